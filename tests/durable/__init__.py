"""La sala durable."""

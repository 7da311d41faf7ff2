"""El agente: lo que hace de verdad por una casa, con qué herramientas y con qué permiso."""

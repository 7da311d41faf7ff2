"""La línea de órdenes: analiza lo que se escribe, llama a la sala que toca e imprime lo que devuelve."""

from enlace.cli.app import main

__all__ = ["main"]

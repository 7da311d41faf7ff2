"""Leer una página o un PDF: solo su texto, y marcado como ajeno."""

from enlace.agent.tools.page.read import PageText, read_page

__all__ = ["PageText", "read_page"]

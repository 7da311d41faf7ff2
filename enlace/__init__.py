"""ENLACE: un modelo de lenguaje propio para la familia, del texto crudo al asistente."""

__version__ = "0.1.0"

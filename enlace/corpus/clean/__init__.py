"""Limpiar un texto: repararlo, saber su idioma, juzgar su calidad y quitar los datos personales."""

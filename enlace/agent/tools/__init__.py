"""Las herramientas que el agente puede usar, una por fichero o por carpeta."""

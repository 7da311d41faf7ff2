"""La búsqueda en internet: una cadena de buscadores que dice por qué cayó cada uno."""

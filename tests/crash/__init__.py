"""Cortes de luz, SIGKILL, disco lleno y disco roto: nada de eso pierde lo prometido."""

"""Lo que se le dice a una persona: una jerarquía de errores, un impresor y los números, en español.

EnlaceError                    1  falló, con un mensaje claro
├── UsageError                 2  la orden está mal escrita
├── InstallationError          3  falta algo en la instalación o en la máquina
├── ConfigError                4  la configuración no es válida (todos los problemas a la vez)
├── NotFoundError              5  no existe lo que se pide
├── LockedError                6  otro proceso lo está usando
├── CorruptDataError           7  los datos no son los que se escribieron
├── ResourceError              8  no hay espacio o memoria
├── RefusedError               9  se rechaza por seguridad
└── Cancelled                130  la persona lo ha cancelado
"""

from enlace.errors.hierarchy import (
    Cancelled,
    ConfigError,
    CorruptDataError,
    EnlaceError,
    InstallationError,
    LockedError,
    NotFoundError,
    Problem,
    RefusedError,
    ResourceError,
    UsageError,
)
from enlace.errors.printer import guard, render, say, warn

__all__ = [
    "Cancelled",
    "ConfigError",
    "CorruptDataError",
    "EnlaceError",
    "InstallationError",
    "LockedError",
    "NotFoundError",
    "Problem",
    "RefusedError",
    "ResourceError",
    "UsageError",
    "guard",
    "render",
    "say",
    "warn",
]

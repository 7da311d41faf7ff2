"""El español de lo que click y argparse escriben por su cuenta (catálogo gettext en `locale/`)."""

import gettext
import os
from pathlib import Path

_DOMAIN = "enlace"
_LOCALE = Path(__file__).with_name("locale")


def speak_spanish() -> None:
    """Hace que click y argparse hablen español, sea cual sea el idioma de la terminal.

    Ambos llaman a `gettext.gettext`, que busca en el dominio global y elige el idioma por la variable LANGUAGE.
    """
    os.environ["LANGUAGE"] = "es"
    gettext.bindtextdomain(_DOMAIN, str(_LOCALE))
    gettext.textdomain(_DOMAIN)

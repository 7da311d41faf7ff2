"""Credenciales: aparte de la configuración, nunca en sus volcados y tapadas en cuanto se escriben."""

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from enlace.errors import ConfigError, Problem

ENV_FILE = ".env"


class Secrets(BaseSettings):
    """Credenciales del entorno o, si no están, del fichero `.env`. Se leen al construir quien las usa, no antes."""

    model_config = SettingsConfigDict(
        env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    brave_api_key: SecretStr | None = None


def read_secrets() -> Secrets:
    """Lee las credenciales. ConfigError: `.env` no se puede leer (sin enseñar nada de lo que contiene)."""
    try:
        return Secrets()
    except (OSError, ValueError):
        # `from None`: el error original puede llevar dentro trozos del fichero.
        raise ConfigError([Problem(ENV_FILE, "", "no se puede leer como líneas NOMBRE=valor en UTF-8")]) from None


def require(name: str) -> SecretStr:
    """La credencial `name`, un campo de Secrets. ConfigError: falta o no vale; dice qué variable es y dónde se pone."""
    variable = name.upper()
    value = getattr(read_secrets(), name)
    text = value.get_secret_value().strip() if isinstance(value, SecretStr) else ""
    if not text:
        problem = Problem(ENV_FILE, variable, "no está ni en el fichero .env ni en el entorno")
        fix = f"escribe {variable}=… en el fichero .env (el modelo es .env.example)"
        what = f"falta la credencial {variable}, que se escribe en el fichero .env o en el entorno"
        raise ConfigError([problem], what=what, fix=fix)
    # Va en una cabecera: con un salto de línea dentro, el resto sería otra cabecera.
    if not (text.isascii() and text.isprintable()):
        problem = Problem(ENV_FILE, variable, "lleva caracteres que una credencial no puede llevar")
        raise ConfigError([problem], what=f"la credencial {variable} no vale", fix=f"copia otra vez {variable} en .env")
    return SecretStr(text)

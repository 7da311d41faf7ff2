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
    """La credencial `name` (un campo de Secrets). ConfigError: falta; dice qué variable es y dónde se pone."""
    value = getattr(read_secrets(), name)
    if isinstance(value, SecretStr):
        return value
    variable = name.upper()
    problem = Problem(ENV_FILE, variable, "no está ni en el fichero .env ni en el entorno")
    fix = f"escribe {variable}=… en el fichero .env (el modelo es .env.example)"
    raise ConfigError([problem], what=f"falta la credencial {variable}", fix=fix)

"""Por qué no ha llegado una respuesta. Los mensajes nunca llevan cabeceras ni consultas: podrían llevar una clave."""

import ssl

from enlace.errors import EnlaceError

# De x509_vfy.h, de OpenSSL.
_TLS_REASONS = {
    9: "el certificado todavía no vale",
    10: "el certificado ha caducado",
    18: "el certificado se firma a sí mismo",
    19: "lo firma una autoridad que no conoces",
    20: "lo firma una autoridad que no conoces",
    21: "falta quien firma el certificado",
    62: "el certificado es de otro nombre",
    64: "el certificado es de otra dirección",
}
_TLS_FIX = "mira el reloj de esta máquina; si tu red usa su propia autoridad, ponla en web.ca_file"


class WebError(EnlaceError):
    """No hay respuesta."""


class NetworkError(WebError):
    """No se llega, se corta o no se entiende. timeout: porque se acabó el tiempo."""

    def __init__(self, what: str, *, where: str = "", why: str = "", timeout: bool = False) -> None:
        super().__init__(what, where=where, why=why, fix="comprueba la conexión y repite")
        self.timeout = timeout


class TlsError(WebError):
    """El certificado no vale, o no hay manera de cifrar. No hay forma de seguir sin comprobarlo."""

    def __init__(self, host: str, error: ssl.SSLError) -> None:
        reason, fix = "no se ha podido cifrar", "comprueba que la dirección es de https y que ese servidor está al día"
        if isinstance(error, ssl.SSLCertVerificationError):
            reason, fix = _TLS_REASONS.get(error.verify_code, "el certificado no vale"), _TLS_FIX
        super().__init__(f"{host}: {reason}", where=host, why=str(error.reason or ""), fix=fix)


class TooBigError(WebError):
    """Pasa del tope de bytes, tal como llega o al descomprimirlo."""

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(
            f"la respuesta de {host} pasa de {limit} bytes", where=host, fix="si te fías, sube web.max_bytes"
        )


class ForbiddenAddressError(WebError):
    """Una dirección a la que no se va: ni de casa, ni de esta máquina, ni por otro puerto o protocolo."""

    exit_code = 9

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"no se puede ir a {where}: {why}", where=where, fix="solo se sale a direcciones públicas")

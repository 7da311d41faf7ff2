"""De ficheros de muchos formatos a textos con su título y su licencia; lo que no se puede leer dice por qué."""

from enlace.corpus.read.files import read_file, source_files
from enlace.corpus.read.raw import RawText, Skipped

__all__ = ["RawText", "Skipped", "read_file", "source_files"]

"""De documentos o shards a lotes de tokens, en un orden que es una función pura de la semilla y del contador."""

from enlace.data.dataset import Dataset, open_data
from enlace.data.mixture import Mixture
from enlace.data.shards import write_shard_set
from enlace.data.source import TokenSource
from enlace.data.text import Document, read_documents

__all__ = ["Dataset", "Document", "Mixture", "TokenSource", "open_data", "read_documents", "write_shard_set"]

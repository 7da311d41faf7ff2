"""La base de datos del hogar, en un solo fichero de SQLite: el único sitio que habla SQL."""

from enlace.store.database import Database, open_database, open_household
from enlace.store.location import home_directory
from enlace.store.search import Pause, SearchState, Turn

__all__ = ["Database", "Pause", "SearchState", "Turn", "home_directory", "open_database", "open_household"]

"""Storage of Callsheet's data: local files and folders, or one schema of a Postgres database for several machines."""

from callsheet.graphs.storage.change_listener import listen
from callsheet.graphs.storage.connections import Connections
from callsheet.graphs.storage.database import Database, DatabaseError, database_at, shared_database, store_address
from callsheet.graphs.storage.database_address import is_address
from callsheet.graphs.storage.local_files import (
    cache_folder,
    cure_of,
    is_full,
    locked,
    private_file,
    private_folder,
    replace_bytes,
    replace_text,
    state_folder,
    yes_from_environment,
)
from callsheet.graphs.storage.store_copy import LOCAL, Copied, copy_files
from callsheet.graphs.storage.stored_file import DatabaseFile, LocalFile, StoredFile, cache_file, file_named, state_file

__all__ = [
    "LOCAL",
    "Connections",
    "Copied",
    "Database",
    "DatabaseError",
    "DatabaseFile",
    "LocalFile",
    "StoredFile",
    "cache_file",
    "cache_folder",
    "copy_files",
    "cure_of",
    "database_at",
    "file_named",
    "is_address",
    "is_full",
    "listen",
    "locked",
    "private_file",
    "private_folder",
    "replace_bytes",
    "replace_text",
    "shared_database",
    "state_file",
    "state_folder",
    "store_address",
    "yes_from_environment",
]

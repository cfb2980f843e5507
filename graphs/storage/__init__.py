"""Storage of Callsheet's data: local files, or a store that several machines share."""

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
from callsheet.graphs.storage.stored_file import (
    SHARED,
    LocalFile,
    SharedStore,
    StoredFile,
    StoreError,
    cache_file,
    file_named,
    shared_store,
    state_file,
)

__all__ = [
    "SHARED",
    "LocalFile",
    "SharedStore",
    "StoreError",
    "StoredFile",
    "cache_file",
    "cache_folder",
    "cure_of",
    "file_named",
    "is_full",
    "locked",
    "private_file",
    "private_folder",
    "replace_bytes",
    "replace_text",
    "shared_store",
    "state_file",
    "state_folder",
    "yes_from_environment",
]

"""Storage of Callsheet's data: local files, or a store that several machines share."""

from callsheet.graphs.storage.local_files import (
    cache_folder as cache_folder,
    cure_of as cure_of,
    is_full as is_full,
    locked as locked,
    private_file as private_file,
    private_folder as private_folder,
    replace_bytes as replace_bytes,
    replace_text as replace_text,
    state_folder as state_folder,
    yes_from_environment as yes_from_environment,
)
from callsheet.graphs.storage.stored_file import (
    SHARED as SHARED,
    LocalFile as LocalFile,
    SharedStore as SharedStore,
    StoredFile as StoredFile,
    StoreError as StoreError,
    cache_file as cache_file,
    file_named as file_named,
    shared_store as shared_store,
    state_file as state_file,
)

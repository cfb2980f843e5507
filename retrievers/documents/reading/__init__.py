"""From files to passages: folder scan, loaders within bounds of memory and time, and chunking."""

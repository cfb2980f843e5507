"""Programs that a worker's model writes to call its tools, run in a sandbox."""

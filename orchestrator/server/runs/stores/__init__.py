"""Where past runs are read from."""

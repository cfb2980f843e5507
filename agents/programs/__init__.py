"""A worker's programs: Python in a sandbox, whose functions are its tools."""

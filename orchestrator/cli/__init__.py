"""The command line, ``callsheet``."""

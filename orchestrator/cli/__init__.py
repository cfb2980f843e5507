"""The command line: ``callsheet``."""

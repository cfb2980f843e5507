"""Catalogs that change while the program runs: servers that are listed, and Python objects."""

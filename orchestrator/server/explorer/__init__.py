"""Serves the explorer, a web page for the catalog and for runs."""

"""The explorer: a web page for the catalog and past runs, and its routes."""

"""Loads catalogs from the sources that a user names, with their servers, pins and policy."""

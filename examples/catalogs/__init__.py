"""Catalogs of several kinds."""

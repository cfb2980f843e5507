"""Benchmarks: catalogs and queries with known answers, read from the published files."""

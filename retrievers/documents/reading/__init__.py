"""Reads files as passages: folder scan, loaders with limits of memory and time, chunking."""

"""Runs the programs of a worker: Python in a sandbox, whose functions are the worker's tools."""

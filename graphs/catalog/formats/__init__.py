"""The formats that a catalog can be read from.

One module per format: MCP listings, server configurations, the published files of benchmarks, document folders.
Add a new format here; ``graphs.catalog.loading`` selects the format of a source.
"""

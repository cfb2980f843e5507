"""The forms that a catalog can be read from.

One module per form: MCP listings and configurations, the published files of benchmarks, document folders.
A new form comes in here, and ``graphs.catalog.loading`` chooses it by what a source is.
"""

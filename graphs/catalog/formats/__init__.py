"""The formats that a catalog can be read from; ``graphs.catalog.loading`` selects the format of a source."""

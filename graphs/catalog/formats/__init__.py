"""The formats that a catalog can be read from; ``graphs.sources.loading`` selects the format of a source."""

"""Data files that ship with the package; NOTICE names their sources."""

"""Programs that show Callsheet at work."""

"""Settings, user, stored preferences, threads and metrics of a run."""

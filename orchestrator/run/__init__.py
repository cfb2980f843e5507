"""Holds what belongs to one run: settings, the user, stored preferences, threads and metrics."""

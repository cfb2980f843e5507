"""What holds for one run: settings, user, stored preferences, threads, metrics."""

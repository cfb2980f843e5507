"""The explorer: a web page over the catalog and past runs, and the routes that feed it."""

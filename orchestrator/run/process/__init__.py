"""The process: its environment, its catalog, and updates of the catalog."""

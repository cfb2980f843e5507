"""What belongs to the process: its environment, its catalog, and updates of the catalog."""

"""What the explorer answers: the catalog, its nodes, searches, reports and the map."""

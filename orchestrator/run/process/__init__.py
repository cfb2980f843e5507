"""What a process serves: where the environment says its catalog is, the catalog itself, and its updates."""

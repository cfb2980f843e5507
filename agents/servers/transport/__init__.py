"""How bytes reach a server and come back: stdio processes and HTTP, bounded."""

"""Transports to a server: stdio processes and HTTP, with size limits."""

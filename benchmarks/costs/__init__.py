"""Time, memory and tokens."""

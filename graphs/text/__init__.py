"""Text and schemas from outside; use the linear-time engine of `regex` for patterns that hostile text can make slow."""

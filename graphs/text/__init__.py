"""Text and schemas from outside: sanitizing, length limits, differences, detection of secrets.

Use the linear-time engine of `regex` for patterns that can be slow on hostile text.
"""

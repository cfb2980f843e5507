"""Text from outside: cleaned, bounded, compared and searched for secrets.

A pattern that is slow on hostile text belongs into the linear-time engine of `regex`.
"""

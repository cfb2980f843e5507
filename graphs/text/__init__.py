"""Text from outside: cleaned, bounded, compared and searched for secrets.

Every regular expression over outside text runs in the linear-time engine of `regex`.
"""

"""A tool's parameters as slots, and the rules that fill each from the text."""

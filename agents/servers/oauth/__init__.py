"""Signing in to remote servers with OAuth 2.1: once in a browser, then with stored tokens, which are encrypted.

A run uses and refreshes stored tokens only; it never discovers authorization servers and never opens a page.
"""

"""Signing in to remote servers with OAuth 2.1: once in a browser, then with stored tokens, which are encrypted.

A call uses and refreshes stored tokens only. Authorization servers are discovered for a person alone, who signs in with
``callsheet sign-in`` or on the sign-in page of a server.
"""

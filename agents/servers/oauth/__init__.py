"""Signing in to remote servers with OAuth 2.1: once in a browser, then with stored tokens, which are encrypted.

A call uses and refreshes stored tokens only. Authorization servers are discovered for a person alone, who is asked by
the command line or by a run that waits.
"""

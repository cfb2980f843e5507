"""Signs users in to remote servers with OAuth 2.1: once in a browser, later with stored, encrypted tokens.

A call only uses and refreshes stored tokens. Authorization servers are discovered only for a person, who signs in with
``callsheet sign-in`` or on the sign-in page of a server.
"""

"""Serves the browser page to talk to the recogniser, and the errors of a transcript against a reference.

Read ``files`` (the page with its headers), ``sign_in`` (the form for a token), ``comparison`` (the errors of
a transcript: the requests), ``alignment`` (what they compute) and ``static/main.js`` (where the page begins).
The page is plain files: no build step, no request to any other server.
"""

"""Requests of a browser in; the page to talk to the recogniser, and the errors against a reference, out.

Read ``files`` (the page with its headers), ``sign_in`` (the form for a token), ``comparison`` (the errors of
a transcript) and ``static/main.js`` (where the page begins). The page is plain files: no build step, no
request to any other server.
"""

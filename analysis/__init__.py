"""References and hypotheses in; error rates, kinds of errors, who is to blame, pages and tables out.

Nothing here loads a model: it reads results and files. Read ``errors`` (alignment, kinds, attribution),
``intervals`` (how sure a rate is), ``results`` (one structure of all figures) and ``page`` (HTML); ``report``
is the command for files of any recogniser. ``inputs`` reads such files; ``weights``, ``runs``, ``keyword``
and ``demo`` look at weights files, run folders, keyword tests and the demo.
"""

"""Error analysis: compares hypotheses with references and reports error rates, kinds and causes of errors.

Nothing here loads a model. Read ``inputs`` (results of utterances, files of any recogniser), ``errors``
(alignment, kinds, causes), ``intervals`` (confidence intervals, comparison of systems), ``results`` (one
structure of all results) and ``page`` (HTML): each imports only the folders before it. ``report`` is the
command for files of any recogniser. ``weights``, ``runs`` and ``keyword`` analyse weights files, run folders
and keyword tests.
"""

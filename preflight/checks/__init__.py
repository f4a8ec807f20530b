"""The checks, one subject per file: manifests, recordings, splits, run folders. Each gives findings.

Read ``manifests``, ``audio`` and ``splits``; ``runs`` checks a run folder.
"""

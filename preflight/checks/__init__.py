"""The checks, one subject per file: manifests, recordings, caches, run folders. Each gives findings.

Read ``manifests``, ``audio`` with ``audio_measurements``, ``readings`` and ``splits``; ``model`` and
``cache`` check a recipe's settings and files, ``runs`` checks a run folder.
"""

"""One subject per file: manifest lines, recordings, caches or run folders in; findings out.

Read ``manifests``, ``audio`` with ``audio_measurements``, ``readings`` and ``splits``; ``model`` and
``cache`` check a recipe's settings and files, ``runs`` checks a run folder.
"""

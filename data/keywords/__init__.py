"""Folders of words or manifests in; keyword clips with labels, and long recordings of them, out.

Read ``folders`` (one folder a word), ``clips`` (train, dev and test), ``clip_cache`` (samples in one file),
``augment`` (batches for training) and ``long_recordings`` (clips joined into hours, to count false alarms).
"""

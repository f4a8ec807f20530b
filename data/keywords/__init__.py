"""Folders of words or manifests in; labelled keyword clips, and long recordings made of them, out.

Read ``folders`` (a folder for each word), ``clips`` (train, dev and test), ``clip_cache`` (samples in one
file), ``augment`` (altered batches for training) and ``long_recordings`` (clips joined to hours, to count
false alarms).
"""

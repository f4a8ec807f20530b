"""Reads labelled keyword clips from folders of words or manifests, and joins clips to long test recordings.

Read ``folders`` (a folder for each word), ``clips`` (train, dev and test), ``clip_cache`` (samples in one
file), ``augment`` (augmented batches for training) and ``long_recordings`` (clips joined to hours, to count
false alarms).
"""

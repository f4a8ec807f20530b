"""An artefact and clips in; differences to the source model, accuracy and latency out.

Read ``proof`` (one artefact in a process of its own), ``measuring`` (which judges it) and ``verification`` (a
bundle on another machine); ``clips``, ``utterances`` and ``scoring`` feed the artefact and count what is
right.
"""

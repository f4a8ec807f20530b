"""What all commands share: how they begin and end, the types of their arguments, and a progress bar.

Read ``entry`` first, which is the first import of every command and reports errors, also those of the other
imports. ``arguments`` has the types for :mod:`argparse`, ``progress`` a progress bar.
"""

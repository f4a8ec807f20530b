"""What all commands share: how they begin and end, and the types of their arguments.

Read ``entry`` first, which is the first import of every command and reports errors, also those of the other
imports. ``arguments`` has the types for :mod:`argparse`.
"""

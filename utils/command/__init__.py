"""What all commands share: how they begin and end, and the types of their arguments.

Read ``entry`` first, which is the first import of every command and reports errors, also those of the other
imports. ``parser`` reads the command line; ``arguments`` has the types of its values.
"""

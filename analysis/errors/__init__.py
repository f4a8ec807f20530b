"""Aligns reference and hypothesis tokens and classifies errors: kind, confusion, and the responsible stage.

Read ``alignment``, ``kinds``, ``confusions`` and ``attribution``; ``align_all`` applies them to a whole test.
``confusion_counts`` counts which syllables are confused with which.
"""

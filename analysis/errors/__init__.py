"""Reference and hypothesis tokens in; alignments, kinds of errors, confusions and the stage to blame out.

Read ``alignment``, ``kinds``, ``confusions`` and ``attribution``; ``align_all`` does them for a whole test,
``oracles`` asks what a perfect part would bring, ``explanation`` asks the models, ``phonology`` measures how
alike hanzi sound, ``confusion_statistics`` counts which syllables are mistaken.
"""

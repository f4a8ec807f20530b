"""Makes new utterances from the syllables of real recordings (spliced speech), to train acoustic models.

Read ``snippets`` (recordings cut at their syllables), ``plan`` (the snippets of each new utterance) and
``splice`` (the command: snippets joined to recordings, and their manifest).
"""

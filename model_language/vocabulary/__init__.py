"""What language models read and write: syllables, hanzi, their ids, and which hanzi a syllable may be.

Read ``symbols`` and ``lexicon``; ``tokens`` and ``any_tone`` serve the shipped converter, which accepts
syllables without tone.
"""

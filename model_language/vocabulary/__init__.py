"""What language models read and write: syllables, hanzi, their ids, and the hanzi of each syllable.

Read ``symbols`` and ``lexicon``; ``tokens`` adds the syllables without tones.
"""

"""The vocabularies of language models: ids of syllables and hanzi, and the candidate hanzi of each syllable.

Read ``symbols`` and ``lexicon``; ``tokens`` adds the syllables without tones.
"""

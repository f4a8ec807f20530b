"""The vocabularies of language models: ids of syllables and hanzi, and the candidate hanzi of each syllable.

Read ``lexicon``, then ``symbols``, which also adds the syllables without tones.
"""

"""N-gram models: estimates them from the token ids of a text, prunes and packs them, and looks them up.

Read ``kneser_ney`` (estimation and look-up), ``pruning`` and ``packed`` with ``compact_tables`` (some 12 bits
for each n-gram). ``words`` scores the words that hanzi form; ``syllables`` is the model of the
CTC beam search.
"""

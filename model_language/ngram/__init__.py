"""N-gram models: token ids of a text in, log-probabilities of tokens after their history out.

Read ``kneser_ney`` (estimation), ``backoff`` (look-up), ``pruning`` and ``packed`` with ``code_book`` and
``hash_table`` (some 12 bits for each n-gram); ``build`` joins these steps. ``words`` rates the words that
hanzi form; ``syllables`` is the model of the CTC beam search.
"""

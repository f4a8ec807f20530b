"""N-gram models: token ids of a text in, log-probabilities of tokens after their history out.

Read ``kneser_ney`` (estimation), ``backoff`` (look-up), ``pruning`` and ``packed`` with ``code_book`` and
``code_table`` (some 12 bits an n-gram); ``build`` joins these steps, ``words`` rates paths by a dictionary,
``syllables`` is the model that the CTC beam uses.
"""

"""Searches for the best sequences of hanzi among the candidates of each syllable.

Read ``grid`` (the candidates of sentences, and the models that score paths) and ``beam`` (the search through
them), then ``confusion_network_search``, ``lattice`` and ``joint`` (several syllables at a position).
``user_words`` finds the words of a user, ``word_bonus`` raises the scores of paths with them.
"""

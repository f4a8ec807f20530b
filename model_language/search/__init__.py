"""Searches for the best sequences of hanzi among the candidates of each syllable.

Read ``grid`` (the candidates of sentences, and the models that score paths) and ``beam`` (the search through
them), then ``joint``, ``confusion_network_search`` and ``lattice`` (several syllables at a position) and
``sequences`` (the same with a network).
``user_words`` finds the words of a user, ``word_bonus`` raises the scores of paths with them.
"""

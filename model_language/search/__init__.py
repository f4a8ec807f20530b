"""Candidates with scores in, the best sequences of hanzi out.

Read ``grid`` (beam search over the candidates of a sentence) and ``beam`` (the same for a batch), then
``confusion_network`` and ``joint`` (several syllables at a position); ``user_words``, ``grid_words`` and
``confusion_network_words`` raise the score of words that a user has listed.
"""

"""Neural networks that compute logits of hanzi at each position from the syllables of a sentence.

Read ``transformer`` or ``cbhg`` with ``loss`` (logits restricted to the lexicon), then ``gated_cnn`` or
``candidate_transformer`` with ``candidates``: they score only the candidates of each syllable, and
``candidate_scorer`` runs them packed. ``published_transformer`` is for published weights.
"""

"""Neural networks that compute logits of hanzi at each position from the syllables of a sentence.

Read ``transformer`` or ``cbhg`` with ``loss`` (logits restricted to the lexicon), then ``gated_cnn`` with
``candidates``: it scores only the candidates of each syllable; ``gated_cnn_numpy`` runs it without a
framework. ``published_transformer`` is for published weights.
"""

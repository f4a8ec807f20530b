"""Pinyin to hanzi: language models that convert syllables, with scores, alternatives and reasons.

Read ``registry`` (models by name, and their loader) and ``pinyin_to_hanzi`` (typed lines to text); then
``vocabulary`` (symbols and lexicon), ``ngram`` and ``networks`` (the models), ``search`` (the best path) and
``converters`` (models with a search, behind one interface). ``language_model`` rescores their best results.
``batching`` and ``array_files`` serve all of them; ``legacy_import`` reads published weights.
"""

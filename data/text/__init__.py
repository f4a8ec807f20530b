"""Raw Chinese text, transcripts and dictionaries in; clean clauses and pairs of pinyin and hanzi out.

From raw to clean text: ``sources`` (files to pieces), ``clauses`` (lines to clauses), ``verbalisation``
(figures to words), ``deduplication`` (repeated lines and evaluation sentences), ``cleaned_pieces`` and
``cleaning`` (the command). From clean text to training data: ``pinyin_pairs`` (pairs as a list),
``pinyin_pair_preparation`` and ``pinyin_pair_dataset`` (pairs as arrays on disk). ``dictionary_text`` makes
training text of a dictionary.
"""

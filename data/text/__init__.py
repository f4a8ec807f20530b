"""Prepares text for language models: cleans raw Chinese text, and adds pinyin to make pairs with hanzi.

Read ``sources`` (files to pieces), ``clauses`` (lines to clauses), ``deduplication`` (repeated lines,
evaluation sentences), ``piece_cleaner`` and ``cleaning`` (the command); then ``pinyin_pairs`` (clean text to
a list of pairs), ``pinyin_pair_preparation`` and ``pinyin_pair_dataset`` (pairs as arrays on disk).
``dictionary_text`` turns a dictionary into training text.
"""

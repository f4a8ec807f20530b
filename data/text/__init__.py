"""Raw Chinese text, transcripts and dictionaries in; clean clauses and pairs of pinyin and hanzi out.

Read ``sources`` (files to pieces), ``clauses`` (lines to clauses), ``verbalisation`` (figures to words),
``deduplication`` (repeated lines, evaluation sentences), ``piece_cleaner`` and ``cleaning`` (the command);
then ``pinyin_pairs`` (clean text to a list of pairs), ``pinyin_pair_preparation`` and
``pinyin_pair_dataset`` (pairs as arrays on disk). ``dictionary_text`` turns a dictionary into training text.
"""

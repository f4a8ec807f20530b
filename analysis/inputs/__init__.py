"""Files of any recogniser and facts about recordings in; texts by utterance id out.

Read ``text_files`` (references and hypotheses), ``transcript_files`` (CTM, TRN, SubRip, JSON),
``hypothesis_files`` and ``normalisation``; ``training_texts`` and ``noise`` tell what a model was trained on
and how noisy a recording is.
"""

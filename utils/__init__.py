"""Shared by all other rooms: errors, files, configs, processes, vocabularies, error rates, command lines.

In: values, files and command lines of any room. Out: the same, checked, or a :class:`utils.errors.UserError`.
Nothing here imports another room. Read ``errors``, ``files``, ``config`` and ``limits`` first, then
``vocabulary`` and ``metrics``; the folders are ``audio`` (samples), ``features`` (frames), ``mandarin``
(pinyin and hanzi), ``hypotheses`` (recognition results), ``run_folder`` (a run's files) and ``backend``
(Keras).
"""

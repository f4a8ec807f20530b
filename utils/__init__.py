"""Code that all other packages use: errors, files, configs, processes, vocabularies, error rates, audio.

Nothing here imports another package of the project. What a user gave is checked here: a wrong value, file or
command line becomes a :class:`utils.errors.UserError`. Read ``errors``, ``files``, ``config`` and ``limits``
first, then ``vocabulary`` and ``metrics``; the folders are ``audio`` (samples), ``features`` (frames),
``mandarin`` (pinyin and hanzi), ``hypotheses`` (recognition results), ``run_folder`` (what a training run
writes), ``backend`` (Keras) and ``command`` (how commands begin and end).
"""

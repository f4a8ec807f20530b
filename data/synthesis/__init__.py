"""Generates synthetic speech with exact transcripts, by espeak-ng in child processes, from text and a seed.

Read ``sentences`` (from a grammar or a text), ``reading`` (citation and spoken syllables), ``voices``,
``synthesiser`` with ``espeak`` (its child process), ``speech`` and ``acoustics`` (rooms and noise). A speech
corpus is made by ``corpus``, recordings of words by ``clips``, ``spoken_commands``, ``wake_words`` and
``wake_word_clips``; ``corpus_card`` records their settings.
"""

"""Text and a seed in; synthetic speech with exact labels out, by espeak-ng in child processes.

Read ``sentences`` (from a grammar or a text), ``reading`` (citation and spoken syllables), ``voices``,
``plan`` (who says what), ``synthesiser`` with ``espeak`` (its child process), ``speech`` and ``acoustics``
(rooms and noise); then ``clips``, ``spoken_commands``, ``wake_words`` and ``wake_word_clips`` (recordings of
words).
"""

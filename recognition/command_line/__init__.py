"""Options of the commands that recognise speech: ``search`` (of several commands), ``transcription``."""

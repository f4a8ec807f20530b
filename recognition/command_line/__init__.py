"""Options of commands: ``search`` (all that recognise speech), ``transcription`` (``transcribe.py``)."""

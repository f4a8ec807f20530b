"""Pinyin and hanzi: canonical tonal syllables (``zhong1``), readings, tone sandhi, confusions, distances.

Read ``pinyin`` first. ``hanzi_readings``, ``polyphones``, ``sandhi``, ``numerals`` and ``verbalisation``
(numbers in a text) find the pronunciation of text; ``typed_pinyin`` parses typed lines. Which syllables are
confused: ``syllable_distance`` (phonetics), ``confusion_statistics`` (counts of an acoustic model).
"""

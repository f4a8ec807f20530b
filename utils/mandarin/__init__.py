"""Facts about Mandarin: pinyin, readings of hanzi, tone sandhi, numerals, which syllables sound alike.

In: text or syllables. Out: canonical tonal syllables such as ``zhong1``, readings, distances. Read ``pinyin``
first; ``hanzi_readings``, ``polyphones``, ``sandhi`` and ``numerals`` read text aloud; ``typed_pinyin``
parses what a user types; ``syllable_distance``, ``substitutions``, ``confusion_statistics`` and
``pinyin_noise`` say which syllables an acoustic model confuses.
"""

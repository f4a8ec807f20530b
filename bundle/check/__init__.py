"""Measures an exported model file (artefact): difference to the source model, accuracy and latency.

Read ``measure_artefact`` (measures one artefact in its own process), ``measuring`` (starts that process and
judges the result) and ``verification`` (checks a bundle on another machine). ``utterances`` and
``scoring`` run the artefact on clips and count its errors.
"""

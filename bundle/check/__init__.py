"""Measures an exported model file (artefact): difference to the source model, accuracy and latency.

Read ``measure_artefact`` (measures one artefact in its own process) and ``measuring`` (starts that process
and judges the result; checks a bundle on another machine). ``utterances`` and ``scoring`` run the artefact on
clips and count its errors.
"""

"""Training of networks on a long text that is cut into rows, sequences of equal length.

Read ``rows`` first, what the tasks share.
``gated`` trains the converter's gated CNN on rows that ``gated_rows`` corrupts like recognised speech;
``causal`` trains the language model of hanzi.
"""

"""Tasks of the networks that are trained on rows of plain text: rows of ids in, a trained network out.

Read ``shuffled_rows`` first, which draws the rows of each batch, then ``row_task``, what the tasks share.
``gated`` trains the converter's gated CNN on rows that ``gated_rows`` corrupts like recognised speech;
``causal`` trains the language model of hanzi.
"""

"""Live audio: partial results while an utterance is spoken, its segments when it has ended.

Read ``loading`` (which kind of stream suits a speech run), ``two_pass_stream`` (a small causal model first,
then the recogniser), ``partial_results`` (hypotheses of an utterance so far) and ``windowed_logits`` (the
logits of live audio with a model of whole utterances).
"""

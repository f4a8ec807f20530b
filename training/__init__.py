"""Trains a model from a checked config into a run folder with weights, history and logs.

Read ``run`` (config to task), ``loop`` (the one training loop) and one file of ``tasks``; then ``optimiser``,
``checkpoint``, ``history``, ``initialise``, ``distillation`` (a trained model teaches another one) and
``splicing`` (joins two utterances where the teacher finds syllables). ``backends`` compiles the step for
TensorFlow, JAX or PyTorch, ``distributed`` runs it on several devices and processes; ``failures`` explains
failures, ``utterance_checks`` finds utterances that CTC can't align, ``profiling`` records steps,
``feature_shards`` computes features alone, on a cluster too.
"""

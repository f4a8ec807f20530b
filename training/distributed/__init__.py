"""Runs a training on several devices or processes, as ``--distribute`` and ``TF_CONFIG`` specify.

Read ``distribution`` (what the loop calls), ``cluster`` (which processes take part) and ``replicas``
(TensorFlow's part).
"""

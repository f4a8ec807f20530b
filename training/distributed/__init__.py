"""``--distribute`` and ``TF_CONFIG`` in; a training run on several devices or processes out.

Read ``distribution`` (what the loop calls), ``cluster`` (which processes take part) and ``replicas``
(TensorFlow's part).
"""

"""A Keras model, an optimiser and losses in; one compiled training step for the backend out.

Read ``step``, then ``step_tensorflow``, ``step_jax`` or ``step_torch``.
"""

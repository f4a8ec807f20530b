"""Compiles the training step (forward pass, gradient, update) for TensorFlow, JAX or PyTorch.

Read ``step``, then ``step_tensorflow``, ``step_jax`` or ``step_torch``.
"""

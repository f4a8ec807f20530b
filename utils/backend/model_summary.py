"""Writes the table of a Keras model's layers and parameters as text, for ``model_summary.txt`` of a run."""

import keras


def summary_text(model: keras.Model) -> str:
    """Layers, output shapes and parameter counts, as ``model.summary()`` prints them."""
    lines: list[str] = []
    model.summary(print_fn=lines.append, line_length=110)
    return "\n".join(lines) + "\n"

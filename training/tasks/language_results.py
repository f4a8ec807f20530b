"""Tests a converter on dev sentences, and writes the result files of models that have no epochs."""

import logging
from collections.abc import Sequence

from model_language.converters.base import Converter
from utils.files import write_json, write_text
from utils.metrics import count_errors, total
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


def character_error_rate(
    converter: Converter, pinyin: Sequence[Sequence[str]], hanzi: Sequence[str]
) -> float:
    """Character error rate of a converter."""
    converted = converter.convert(pinyin)
    return total(count_errors(reference, text) for reference, text in zip(hanzi, converted, strict=True)).rate


def save_results(run: RunFolder, summary: str, metrics: dict[str, float]) -> dict[str, float]:
    """Write ``model_summary.txt`` and ``metrics.json`` of a model that is estimated without epochs.

    Args:
        run: the run folder.
        summary: one line about the model.
        metrics: name → value; the first one is the model's main metric.

    Returns:
        The metrics.
    """
    write_text(run.path / "model_summary.txt", f"{summary}\n")
    for name, value in metrics.items():
        log.info("%s %.4f", name, value)
    write_json(run.metrics, {"best": metrics, "last": metrics, "metric": next(iter(metrics))})
    return metrics

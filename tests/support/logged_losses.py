"""Reads the loss of each optimiser step of a run from its files for TensorBoard."""

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from utils.run_folder.run import RunFolder


def logged_losses(run: RunFolder) -> list[tuple[int, float]]:
    """(step, loss) in the order in which they were written; a resumed run may have written a step twice."""
    files = sorted(run.logs.glob("train/events*"), key=lambda path: path.stat().st_mtime)
    return [
        (event.step, float(value.tensor.float_val[0]))
        for path in files
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
        if value.tag == "loss"
    ]

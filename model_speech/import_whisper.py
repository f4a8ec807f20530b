"""Imports the encoder of a published Whisper model as a speech run, to be trained on by a recipe.

    python -m model_speech.import_whisper whisper-base/ runs/whisper_base_imported
    python train.py speech --config configs/speech/whisper_base.yaml

The source is a Hugging Face folder, a .pt file of OpenAI or a folder of faster-whisper. The head and the
layer of the logits, for all tonal syllables of Mandarin, have random weights: the run recognises nothing yet.
"""

from utils.command.entry import run_command

from collections.abc import Sequence
from pathlib import Path

from model_speech.whisper_weights import read_whisper
from utils.backend.quiet import silence_tensorflow
from utils.command.parser import CommandParser
from utils.config import to_plain
from utils.features.settings import FeatureConfig
from utils.files import replacing_folder
from utils.run_folder.run import require_new_run, start_run
from utils.vocabulary import acoustic_vocabulary


def import_whisper(source: Path, new_run: Path) -> int:
    """Write a speech run with the encoder of ``source``; the folder appears complete or not at all.

    Args:
        source: see :func:`model_speech.whisper_weights.read_whisper`.
        new_run: the folder to create.

    Returns:
        The number of weights taken.

    Raises:
        RunError: ``new_run`` exists, or the source can't be read.
    """
    require_new_run(new_run)
    encoder = read_whisper(source)
    silence_tensorflow()
    from model_speech.models.whisper import WhisperConfig, build_whisper  # here: they load Keras
    from utils.backend.weights import save_weights

    config = WhisperConfig(blocks=encoder.blocks, width=encoder.width, heads=encoder.heads)
    features, vocabulary = FeatureConfig(kind="whisper", bins=encoder.mel_bins), acoustic_vocabulary()
    model = build_whisper(config, encoder.mel_bins, len(vocabulary))
    for name, arrays in encoder.layers.items():
        model.get_layer(name).set_weights(arrays)
    imported = {
        "task": "speech",
        "features": to_plain(features),
        "model": to_plain(config),
        "imported": {"weights": str(source)},
    }
    with replacing_folder(new_run) as folder:
        run = start_run(folder, imported)
        vocabulary.save(run.vocabulary("acoustic.txt"))
        save_weights(model, run.best_weights)
        save_weights(model, run.last_weights)
    return sum(array.size for arrays in encoder.layers.values() for array in arrays)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and import."""
    options = _parser().parse_args(arguments)
    weights = import_whisper(options.source, options.run)
    print(f"imported\t{weights:,} weights of {options.source} to {options.run}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder or file of the published model")
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder to create")
    return parser


if __name__ == "__main__":
    run_command(main)

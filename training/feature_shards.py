"""Computes the features of a recipe's manifests before the training, into the cache or a packed corpus.

With ``--cluster`` the nodes of a Ray cluster compute them; the training, on a machine with GPUs, then reads
them. The same command goes on where a killed one stopped.
"""

from utils.command.entry import run_command

from collections.abc import Sequence
from pathlib import Path

from data.corpora.tools.lists import read_utterances
from data.features.cache import prepare_features
from data.features.packing import pack_corpus
from data.manifest import Utterance
from utils.backend.quiet import silence_tensorflow
from utils.cluster import add_cluster, on_cluster
from utils.command.parser import CommandParser
from utils.config import load_config
from utils.errors import require

EXAMPLES = """\
examples:
  python -m training.feature_shards --config configs/speech/compact_aishell1.yaml
  python -m training.feature_shards --config configs/speech/compact_aishell1.yaml --cluster head:6379
  python -m training.feature_shards --config CONFIG --pack /shared/packed --cluster head:6379
  python -m training.feature_shards --config CONFIG augment.copies=2 data.cache=/shared/features
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and compute what the cache of the recipe lacks."""
    options = _parser().parse_intermixed_args(arguments)
    silence_tensorflow()
    from training.distillation import prepare_teacher  # here: see utils.backend.quiet
    from training.run import RECIPES
    from training.tasks.adaptation import with_initial_settings

    schema, variants, _ = RECIPES["speech"]
    config = with_initial_settings(
        load_config(schema, options.config, ["task=speech", *options.overrides], variants)
    )
    data = config.data
    require(
        not (options.pack and data.limit),
        f"--pack with data.limit={data.limit}",
        hint="a packed corpus has all utterances of its manifests: leave data.limit out",
    )
    with on_cluster(options.cluster):
        if options.pack:
            settings = (config.features, config.augment, data.workers, config.seed)
            summary = pack_corpus(data.train, options.pack, *settings)
            print(f"packed\t{summary['utterances']} utterances, {summary['left_out']} left out")
        else:
            train = _read(data.train)[: data.limit or None]
            copies = (data.cache, config.augment, data.workers, config.seed)
            prepare_features(train, config.features, *copies)
            if config.distillation.teacher:
                prepare_teacher(config.distillation, train, copies)
            prepare_features(_read(data.dev), config.features, data.cache, workers=data.workers)
    print(f"written to\t{options.pack or data.cache}")
    return 0


def _read(manifests: Sequence[str]) -> list[Utterance]:
    return [utterance for path in manifests for utterance in read_utterances(path)]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--config", type=Path, required=True, help="a recipe of train.py speech")
    parser.add_argument(
        "--pack",
        type=Path,
        metavar="DIR",
        help="write the train manifests as a packed corpus, for more data than fits into memory: "
        "data.train=[DIR] reads it",
    )
    add_cluster(parser)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="values that override the recipe")
    return parser


if __name__ == "__main__":
    run_command(main)

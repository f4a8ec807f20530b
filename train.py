"""Train the model of a config file into a run folder. The same command resumes an interrupted run."""

from utils.command.entry import run_command

from collections.abc import Sequence
from pathlib import Path

from utils.backend.quiet import silence_tensorflow
from utils.command.parser import CommandParser

EXAMPLES = """\
examples:
  python train.py speech --config configs/demo/speech.yaml
  python train.py speech --config configs/speech/compact_thchs30.yaml --run runs/wide model.width=320 seed=3
  python train.py language --config configs/language/transformer_thchs30.yaml training.epochs=20
  python train.py speech --config configs/speech/compact_aishell1.yaml --distribute mirrored
  python train.py speech --config CONFIG "data.train=[mine.tsv,thchs30.tsv]" "data.weights=[3,0.25]"
  python train.py speech --config CONFIG --run runs/mine initialise_from=runs/big "freeze=[front*]"
  python train.py speech --config CONFIG --run runs/new initialise_from=runs/old initialise_except=[logits]
  python train.py speech --config CONFIG training.profile=120-180
  python train.py speech --config CONFIG training.precision=mixed_bfloat16 training.xla=true
  python train.py speech --config CONFIG seed=7 training.deterministic=true
  python train.py keyword --config configs/keyword/speech_commands.yaml model.name=tc_resnet
  python train.py keyword --config CONFIG "data.train=[train.tsv]" "data.dev=[dev.tsv]" "data.test=[test.tsv]"
  python train.py keyword --config CONFIG --run runs/two initialise_from=runs/many "data.words=[开灯,关灯]"

keyword: folders named after their words, or manifests whose hanzi are the words. The model is evaluated every
  training.evaluation_steps; the best weights and those of the last evaluations are kept. After the training
  accuracy_last.txt has the accuracy of the last weights on the test split, in per cent.
data.weights: passes over each manifest in an epoch; with 0.25 each epoch reads another quarter.
initialise_from: a run with the initial weights. Weights of the output layer are copied by token, in a keyword
  model by label; new tokens and labels start untrained. Layers have the names in model_summary.txt;
  initialise_except and freeze are patterns of these names.
training.profile: steps to write as a TensorBoard profile to the run's logs/.

Any value of the config can be overridden as key=value. The run folder (default: runs/ and the config's
name) holds weights, vocabulary, config, history and logs; test.py and transcribe.py need nothing else.
With --distribute multi_worker the same command runs on each machine, with its own TF_CONFIG; the first
process of the cluster writes the run folder, and each process takes a part of every batch.
Before a training of speech, quick checks of the manifests run; doctor.py runs all checks.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, create or find the run folder, train."""
    options = _parser().parse_intermixed_args(arguments)
    silence_tensorflow()
    # Here, not above: see utils.backend.quiet.
    from preflight.recipes import check_before_training
    from training.run import train_from_config

    run = options.run or Path("runs") / options.config.stem
    check = None if options.no_checks else check_before_training
    best = train_from_config(
        options.task,
        options.config,
        options.overrides,
        run,
        check,
        options.distribute,
        options.virtual_devices,
    )
    print("metrics of the best weights:")
    for name, value in best.items():
        print(f"{name}\t{value:.6g}")
    print(f"run folder\t{run}")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("task", choices=("speech", "language", "keyword"), help="what to train")
    parser.add_argument("--config", type=Path, required=True, help="YAML file, see configs/")
    parser.add_argument("--run", type=Path, help="the run folder (default: runs/ and the config's name)")
    parser.add_argument(
        "--no-checks", action="store_true", help="train even if doctor.py finds errors in the data"
    )
    parser.add_argument(
        "--distribute",
        choices=("mirrored", "multi_worker"),
        help="use all GPUs of this machine, or all processes in TF_CONFIG",
    )
    parser.add_argument(
        "--virtual-devices",
        type=int,
        default=0,
        metavar="N",
        help="with --distribute mirrored: N virtual CPU devices instead of the GPUs, for a trial",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="values that override the file")
    return parser


if __name__ == "__main__":
    run_command(main)

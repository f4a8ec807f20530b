"""Loads the recogniser that benchmarks of whole recordings use: a speech run with the joint search."""

from pathlib import Path

from model_language.registry import load_converter
from recognition.loading import load_acoustic_logits, load_joint_search_for, load_members
from recognition.recognizer import Recognizer
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH


def joint_recognizer(run: Path = PRETRAINED_SPEECH) -> Recognizer:
    """As ``transcribe.py`` recognises with this speech run and the converter that ships."""
    joint = load_joint_search_for(run, load_converter(PRETRAINED))
    acoustic = load_acoustic_logits(run)
    return Recognizer(acoustic, joint=joint, members=load_members(run, acoustic))

"""Choosing network and regularisation from the data alone, without looking at any truth."""

from unseed._selection.bent import LabelledRows, choose_for_bent, choose_penalty, select_bent
from unseed._selection.choice import SCREENING_ROWS, AutoNetwork, Candidate, Choice, Selection
from unseed._selection.search import RidgePath, choose_regularization, evidence_ahead, select_network

__all__ = [
    "SCREENING_ROWS",
    "AutoNetwork",
    "Candidate",
    "Choice",
    "LabelledRows",
    "RidgePath",
    "Selection",
    "choose_for_bent",
    "choose_penalty",
    "choose_regularization",
    "evidence_ahead",
    "select_bent",
    "select_network",
]

"""Choosing network and regularisation from the data alone, without looking at any truth."""

from unseed._selection.choice import SCREENING_ROWS, AutoNetwork, Candidate, Choice, Selection
from unseed._selection.search import RidgePath, choose_regularization, evidence_ahead, select_network

__all__ = [
    "SCREENING_ROWS",
    "AutoNetwork",
    "Candidate",
    "Choice",
    "RidgePath",
    "Selection",
    "choose_regularization",
    "evidence_ahead",
    "select_network",
]

"""Choosing network and regularisation from the data alone, without looking at any truth."""

from unseed.selection.evidence import Candidate, Selection, select_by_evidence
from unseed.selection.leave_one_out import LeaveOneOut, choose_regularization

__all__ = ["Candidate", "LeaveOneOut", "Selection", "choose_regularization", "select_by_evidence"]

"""Labels of classes and weights of rows, with a clear word for what they cannot be."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from unseed._results import FloatArray
from unseed.errors import FewLabelsWarning, InvalidInputError

Labels = npt.NDArray[Any]


def check_label_column(y: Any) -> None:
    """Refuse labels in several columns, of several kinds, or missing ones."""
    values = np.asarray(y)
    if values.ndim > 1 and values.shape[1] > 1:
        raise InvalidInputError(f"y has {values.shape[1]} columns, and a classifier takes one; fit one for each column")
    if values.dtype.kind == "O":
        flat = values.reshape(-1).tolist()
        missing = [row for row, label in enumerate(flat) if label is None or label != label]
        if missing:
            raise InvalidInputError(f"y has a missing label (NaN or None) in row {missing[0]}; leave such rows out")
        kinds = sorted({"number" if isinstance(label, (int, float, np.number)) else type(label).__name__ for label in flat})
        if len(kinds) > 1:
            raise InvalidInputError(f"y mixes labels of the types {' and '.join(kinds)}; make them all text, or all numbers")


def classes_among(y: Labels, given: Any = None) -> Labels:
    """The classes, in order: those that are given, which the labels must be among, or those of the labels."""
    check_classification_targets(y)
    found = np.unique(y)
    if given is not None:
        classes = np.unique(np.asarray(given))
        strangers = found[~np.isin(found, classes)]
        if len(strangers):
            raise InvalidInputError(f"y has the label {strangers.tolist()[0]!r}, which is not among classes={classes.tolist()}")
        found = classes
    if len(found) < 2:
        raise InvalidInputError(
            f"y has only one class, {found.tolist()[0]!r}: a classifier needs rows of two classes at least"
            if len(found)
            else "y has no class: a classifier needs rows of two classes at least"
        )
    return found


def check_new_labels(y: Labels, classes: Labels) -> None:
    """Refuse labels that the first piece, or its ``classes``, did not name."""
    strangers = np.unique(y[~np.isin(y, classes)])
    if len(strangers):
        stranger = strangers.tolist()[0]
        raise InvalidInputError(
            f"y has the class {stranger!r}, which earlier rows did not have; name all classes in the first call, as in "
            f"partial_fit(X, y, classes={[*classes.tolist(), stranger]})"
        )


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is not a way to weigh classes."""
    is_known = class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced")
    if not is_known and not isinstance(class_weight, dict):
        raise InvalidInputError(
            f"class_weight={class_weight!r} is not known; use None, 'balanced' or a dict of class to weight"
        )
    for label, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        if not (isinstance(weight, (int, float, np.number)) and np.isfinite(weight) and weight > 0):
            raise InvalidInputError(f"class_weight gives the class {label!r} the weight {weight!r}; it must be positive")


def with_class_weights(weights: FloatArray, codes: Labels, classes: Labels, class_weight: Any) -> FloatArray:
    """Weights of rows times those of their classes."""
    if class_weight is None:
        return weights
    if isinstance(class_weight, str):
        totals = np.bincount(codes, weights=weights, minlength=len(classes))
        factors = weights.sum() / (len(classes) * np.maximum(totals, 1e-300))
        return np.asarray(weights * factors[codes])
    labels = classes.tolist()
    absent = [label for label in class_weight if label not in labels]
    if absent:
        raise InvalidInputError(f"class_weight names the class {absent[0]!r}, which y does not have; its classes are {labels}")
    return np.asarray(weights * np.array([class_weight.get(label, 1.0) for label in labels])[codes])


def warn_of_rare(codes: Labels, classes: Labels) -> None:
    """Say which class is known from a single row."""
    rare = np.flatnonzero(np.bincount(codes, minlength=len(classes)) == 1)
    if len(rare):
        name = classes.tolist()[rare[0]]
        warnings.warn(
            f"the class {name!r} has one row, and all that is known of it is that row; add rows, or merge classes",
            FewLabelsWarning,
            stacklevel=4,
        )

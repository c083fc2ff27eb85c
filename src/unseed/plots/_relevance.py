"""Which features move the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed.plots._display import Display, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unseed._estimators import PNCRegressor


@dataclass
class RelevanceDisplay(Display):
    """How much each feature moves the chosen network: its relevance, largest first.

    A relevance is the feature's factor in the first layer, on standardised features, relative to the largest.
    Make one with `from_estimator`.

    Attributes
    ----------
    names : list of str
    relevance : array of shape (n_features,)
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = RelevanceDisplay.from_estimator(PNCRegressor(random_state=0).fit(X[:100], y[:100]))
    >>> display.ax_.get_xlabel()
    'relevance'
    """

    names: list[str]
    relevance: FloatArray

    @classmethod
    def from_estimator(cls, estimator: PNCRegressor, *, max_features: int = 20, ax: Axes | None = None) -> RelevanceDisplay:
        """Draw the relevances of a fitted estimator, at most ``max_features`` of them."""
        check_is_fitted(estimator, "is_fitted_")
        factors_of = getattr(estimator.network_, "first_layer_factors", None)
        if factors_of is None:
            raise InvalidInputError("relevances are those of an MLP; a torch module has none")
        factors = np.array(factors_of(estimator.n_features_in_))
        names = getattr(estimator, "feature_names_in_", None)
        named = [str(name) for name in names] if names is not None else [f"x{i}" for i in range(len(factors))]
        order = np.argsort(-factors, kind="stable")[:max_features]
        largest = max(factors.max(), np.finfo(np.float64).tiny)
        return cls([named[i] for i in order], factors[order] / largest).plot(ax)

    def plot(self, ax: Axes | None = None) -> RelevanceDisplay:
        """Draw on the axes given, or on new ones."""
        ax, colours = self._begin(ax, 6, 0.8 + 0.28 * len(self.names))
        place = np.arange(len(self.names))[::-1]
        ax.barh(place, self.relevance, color=colours.band, height=0.65)
        ax.set_yticks(place, self.names)
        ax.set_xlabel("relevance")
        if len(self.names) > 1 and np.ptp(self.relevance) == 0:
            ax.set_title("one scale for all features: relevances of their own did not pay", loc="left", fontsize="small")
        ax.set_xlim(0, 1.02)
        finish(ax, legend_at=None)
        return self

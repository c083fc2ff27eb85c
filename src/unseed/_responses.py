"""Predictions under a loss with a link: made on the link's scale, mapped to that of the labels, which they never leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from unseed._checks import check_share
from unseed._frames import pandas_for
from unseed._law import Law
from unseed._results import Estimate, FloatArray, Prediction, check_level
from unseed.errors import NotAvailableError
from unseed.losses import Loss, is_location

if TYPE_CHECKING:
    import pandas as pd

_NODES, _DOUBLINGS, _HALVINGS = 64, 60, 70


def mapped(loss: Loss, f: FloatArray) -> FloatArray:
    """What is expected of y at f."""
    return np.asarray(loss.inverse_link(torch.tensor(np.asarray(f, dtype=np.float64))))


def slope(loss: Loss, f: FloatArray) -> FloatArray:
    """Its derivative."""
    leaf = torch.tensor(np.asarray(f), requires_grad=True)
    (found,) = torch.autograd.grad(loss.inverse_link(leaf).sum(), leaf)
    return np.asarray(found)


def on_response(loss: Loss, estimate: Estimate) -> Estimate:
    """Centre and, to first order, standard error of what is expected of y."""
    error = np.abs(slope(loss, estimate.centre)) * estimate.standard_error
    return Estimate(mapped(loss, estimate.centre), error, estimate.degrees_of_freedom)


@dataclass(frozen=True)
class ResponsePrediction(Prediction):
    """A prediction of what is expected of y, whose intervals were made on the scale of a link and mapped.

    Components are variances on the link's scale; mean and standard error are on that of y, the latter to first order.

    Attributes
    ----------
    on_link : Prediction
        On the scale of the link: of the logarithm of a rate, of log-odds.
    loss : Loss
    dispersion : float
        φ of the law of y.

    Examples
    --------
    >>> from unseed import PNCRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1))
    >>> reg = PNCRegressor(loss="poisson", random_state=0).fit(X, rng.poisson(np.exp(X[:, 0])))
    >>> bool((reg.get_prediction(X[:3]).conf_int() > 0).all())
    True
    """

    on_link: Prediction = field(kw_only=True, repr=False)
    loss: Loss = field(kw_only=True)
    dispersion: float = field(kw_only=True)

    @classmethod
    def of(cls, on_link: Prediction, loss: Loss, dispersion: float) -> ResponsePrediction:
        """From a prediction on the link's scale."""
        mean, error = mapped(loss, on_link.mean), np.abs(slope(loss, on_link.mean)) * on_link.standard_error
        known: dict[str, Any] = {"index": on_link.index, "output_names": on_link.output_names}
        found: dict[str, Any] = {"on_link": on_link, "loss": loss, "dispersion": dispersion}
        return cls(mean, error, on_link.degrees_of_freedom, on_link.components, **known, **found)

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise confidence interval of what is expected of y; the last axis holds lower and upper bound."""
        return mapped(self.loss, self.on_link.conf_int(level))

    def simultaneous(self, level: float = 0.95) -> FloatArray:
        """Band that covers all these points at once."""
        return mapped(self.loss, self.on_link.simultaneous(level))

    def quantile(self, q: float | Sequence[float]) -> FloatArray:
        """Values that a new y stays below with these chances."""
        if is_location(self.loss):
            return self.on_link.quantile(q)
        found = [self._quantile(check_share("q", one)) for one in np.atleast_1d(np.asarray(q, dtype=object)).tolist()]
        return found[0] if np.ndim(q) == 0 else np.stack(found, axis=-1)

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """Chance that a new y is at most so much: that of its law, averaged over what is not known of f."""
        if is_location(self.loss):
            return self.on_link.cdf(y)
        return self._averaged()[0](self._observed(y))

    @property
    def _law(self) -> Law:
        if is_location(self.loss):
            return self.on_link._law
        raise NotAvailableError(f"of a new y under loss={self.loss.name!r} there are pred_int, quantile and cdf; ask for these")

    def pred_int(self, level: float = 0.95) -> FloatArray:
        """Interval for a new y: quantiles of its law, averaged over what is not known of f."""
        f = torch.from_numpy(self.on_link.mean.copy())
        law = self.loss.law(f, torch.tensor(self.dispersion))
        if is_location(self.loss):
            return self.on_link.pred_int(level)
        try:
            law.cdf(law.mean)
        except NotImplementedError as error:
            raise NotAvailableError(
                f"loss={self.loss.name!r} has labels of a few kinds, of which there is no interval; ask for kind='confidence'"
            ) from error
        tail = (1 - check_level(level)) / 2
        return np.stack([self._quantile(tail), self._quantile(1 - tail)], axis=-1)

    def _averaged(self) -> tuple[Callable[[FloatArray], FloatArray], Any]:
        """The distribution function of a new y, averaged over what is not known of f; and the laws it is an average of."""
        from scipy.special import ndtri, stdtrit

        shares = (np.arange(_NODES) + 0.5) / _NODES
        dof = self.degrees_of_freedom
        nodes = ndtri(shares) if np.isinf(dof) else stdtrit(dof, shares)
        f = self.on_link.mean[..., None] + self.on_link.standard_error[..., None] * nodes
        law = self.loss.law(torch.from_numpy(f), torch.tensor(self.dispersion, dtype=torch.float64))

        def below(y: FloatArray) -> FloatArray:
            share = law.cdf(torch.from_numpy(np.broadcast_to(y, f.shape[:-1]).copy())[..., None].expand(f.shape)).mean(-1)
            return np.asarray(share)

        return below, law

    def _quantile(self, q: float) -> FloatArray:
        """By bisection of the averaged distribution function."""
        below, law = self._averaged()
        low, high = np.full(self.on_link.mean.shape, -1.0), mapped(self.loss, self.on_link.mean) + 1.0
        for _ in range(_DOUBLINGS):
            if (below(high) >= q).all():
                break
            high = np.where(below(high) < q, 2 * high, high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_enough = below(middle) >= q
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return np.round(high) if getattr(law.support, "is_discrete", False) else np.maximum(high, 0.0)

    def summary_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Table of pandas with the columns of statsmodels, one row per point; NaN where a new y has no interval."""
        pandas = pandas_for("summary_frame")
        confidence = self.conf_int(level)
        try:
            observation = self.pred_int(level)
        except NotAvailableError:
            observation = np.full_like(confidence, np.nan)
        columns = {"mean": self.mean, "mean_se": self.standard_error}
        for name, bounds in (("mean_ci", confidence), ("obs_ci", observation)):
            columns |= {f"{name}_lower": bounds[..., 0], f"{name}_upper": bounds[..., 1]}
        index: Any = self.on_link.index if self.on_link.index is not None else pandas.RangeIndex(len(self.mean))
        frame: pd.DataFrame = pandas.DataFrame(columns, index=index)
        return frame

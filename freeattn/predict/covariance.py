"""Ridge regression on features with a given population covariance (Dobriban, Wager, Ann. Statist. 46, 2018).

N samples x_i = Σ^{1/2} z_i of p features, z_i with iid standard entries, p/N → γ, and the spectrum of Σ tends to the
population law H. The companion transform v(z), the Stieltjes transform of the limit for X Xᵀ/N, solves

    −1/v + γ ∫ t/(1 + tv) dH(t) = z.

With y = X ω + ε, ω ~ N(0, (α²/p) I), ε ~ N(0, I), the prediction risk of ridge regression
(XᵀX/N + λ)⁻¹ Xᵀy/N, the noise of the new observation included, tends to

    R_λ = (1/(λ v)) {1 + (λα²/γ − 1)(1 − λ v'/v)},        v = v(−λ), v' = dv/dz there,

and is least at λ* = γ/α², where it is 1/(λ* v(−λ*)). Source: arXiv 1507.03003, Theorem 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import ConvergenceError, InputError
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.law_integrals import LawIntegrals
from freeattn.numerics.limiting import law as law_of
from freeattn.predict.inputs import numbers, spectral_law

__all__ = ["SampleCovariance", "sample_covariance"]

Array = NDArray[np.float64]
_Integrals = Callable[[Callable[[Array, Array], Array], Array], Array]

_STEPS = 200
_TOLERANCE = 1e-14  # of log v


@dataclass(frozen=True)
class _Sums:
    """∫ family(t, p) dH for each p, with H of weighted points."""

    points: tuple[float, ...]
    shares: tuple[float, ...]

    def __call__(self, family: Callable[[Array, Array], Array], members: Array) -> Array:
        return family(np.array(self.points)[None, :], members[:, None]) @ np.array(self.shares)


@dataclass(frozen=True)
class SampleCovariance:
    """Sample covariance matrices with one population law and one ratio of features to samples.

    Attributes:
        ratio: γ = p/N.
        mean: ∫ t dH.
    """

    ratio: float
    mean: float
    _integrals: _Integrals = field(repr=False)

    def companion(self, penalty: ArrayLike, derivative: int = 0) -> Any:
        """v(−λ) for λ > 0, any shape, or with derivative=1 dv/dz at z = −λ.

        λv + γ ∫ tv/(1 + tv) dH grows from 0 to infinity with v; v is where it is 1.

        Raises:
            InputError: for λ ≤ 0.
            ConvergenceError: when the root is not found.
        """
        if derivative not in (0, 1) or isinstance(derivative, bool):
            raise InputError("derivative", derivative, "0 or 1")
        points = numbers("penalty", penalty, positive=True)
        v = self._solve(points.ravel())
        if derivative:
            v = v**2 / self._slope(points.ravel(), v)
        return float(v[0]) if points.ndim == 0 else v.reshape(points.shape)

    def _solve(self, penalty: Array) -> Array:
        """Newton for log(λv + γ ∫ tv/(1 + tv) dH) = 0 in log v, inside a bracket."""
        low = -np.log(penalty + self.ratio * self.mean)
        high = -np.log(penalty)
        u = low.copy()
        for _ in range(_STEPS):
            v = np.exp(u)
            value, slope = penalty * v + self.ratio * self._integrals(_share, v), self._slope(penalty, v)
            low, high = np.where(value < 1, u, low), np.where(value < 1, high, u)
            following = u - value * np.log(value) / slope
            following = np.where((following >= low) & (following <= high), following, (low + high) / 2)
            change, u = np.abs(following - u), following
            if (change <= _TOLERANCE * (1 + np.abs(u))).all():
                return np.exp(u)
        raise ConvergenceError("the companion transform", float(change.max()), _TOLERANCE, "take a larger penalty")

    def _slope(self, penalty: Array, v: Array) -> Array:
        """λv + γ ∫ tv/(1 + tv)² dH: the derivative of λv + γ ∫ tv/(1 + tv) dH by log v, at the root v²/v'."""
        return penalty * v + self.ratio * self._integrals(_bend, v)

    def ridge_risk(self, penalty: ArrayLike, signal: ArrayLike = 1.0) -> Any:
        """R_λ: prediction risk of ridge regression, noise variance 1 included.

        As λ v'/v = λv/(λv + γB) with B = ∫ tv/(1 + tv)² dH, it is (1 + α²B/v)/(λv + γB), where nothing cancels.

        Args:
            penalty: λ > 0.
            signal: α² = E‖ω‖² > 0, the strength of the signal in units of the noise; shapes are broadcast.

        Raises:
            InputError: for values that are not allowed.
            ConvergenceError: when the companion transform is not found.
        """
        penalties, signals = np.broadcast_arrays(
            numbers("penalty", penalty, positive=True), numbers("signal", signal, positive=True)
        )
        points = penalties.ravel()
        v = self._solve(points)
        risk = (1 + signals.ravel() * self._integrals(_bend, v) / v) / self._slope(points, v)
        return float(risk[0]) if penalties.ndim == 0 else risk.reshape(penalties.shape)

    def best_penalty(self, signal: float = 1.0) -> float:
        """λ* = γ/α², where the risk is 1/(λ* v(−λ*)), the least one."""
        return float(self.ratio / numbers("signal", signal, positive=True))


def _share(t: Array, v: Array) -> Array:
    """tv/(1 + tv), for tv beyond the range of doubles too."""
    return t / (t + 1 / v)


def _bend(t: Array, v: Array) -> Array:
    """tv/(1 + tv)²."""
    return t / (t + 1 / v) / (1 + t * v)


def sample_covariance(population: Any, ratio: Any, weights: Sequence[float] | None = None) -> SampleCovariance:
    """Sample covariance matrices with population law H.

    Args:
        population: eigenvalues of the population covariance, each ≥ 0 and with its weight, or a law on [0, ∞): a
            `SpectralLaw`, or whatever `fa.law` makes one of.
        ratio: γ = p/N > 0, features over samples.
        weights: shares of the eigenvalues, scaled to sum 1 (default: equal); none for a law.

    Raises:
        InputError: for values that are not allowed.
    """
    gamma = numbers("ratio", ratio, positive=True)
    if gamma.ndim:
        raise InputError("ratio", ratio, "one number: features over samples")
    if isinstance(population, (Sequence, np.ndarray)):
        return _discrete(population, float(gamma), weights)
    if weights is not None:
        raise InputError("weights", weights, "nothing next to a law")
    law = spectral_law(population if isinstance(population, SpectralLaw) else law_of(population))
    return SampleCovariance(float(gamma), law.mean, LawIntegrals(law))


def _discrete(eigenvalues: Any, ratio: float, weights: Sequence[float] | None) -> SampleCovariance:
    points = numbers("population", eigenvalues)
    if points.ndim != 1 or not points.any():
        raise InputError("population", eigenvalues, "a list of eigenvalues, not all 0")
    shares = np.ones(points.shape) if weights is None else numbers("weights", weights)
    if shares.shape != points.shape or not shares.any():
        raise InputError("weights", weights, f"{points.size} numbers, not all 0: one for each eigenvalue")
    shares = shares / shares.sum()
    integrals = _Sums(tuple(points.tolist()), tuple(shares.tolist()))
    return SampleCovariance(ratio, float(points @ shares), integrals)

"""How fast a distance falls: a power of n fitted to draws at several sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import stats

__all__ = ["Rate", "fitted_rate"]


@final
@dataclass(frozen=True)
class Rate:
    """The power a of a distance C·n^{−a}, and the constant C.

    Attributes:
        exponent, constant: a and C.
        interval: 95 % Student-t interval of a, from the scatter of the draws about the line; None without scatter to
            tell from. It says nothing about powers that only larger n would show.
    """

    exponent: float
    constant: float
    interval: tuple[float, float] | None

    def at(self, n: float) -> float:
        """C·n^{−a}."""
        return self.constant * n**-self.exponent

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        interval = None if self.interval is None else list(self.interval)
        return {"exponent": self.exponent, "interval": interval, "constant": self.constant}


def fitted_rate(sizes: Sequence[int], values: Sequence[Sequence[float]], confidence: float = 0.95) -> Rate | None:
    """Least squares of log distance on log n over all draws; None when a distance is 0 or there is one size.

    Args:
        sizes: numbers of tokens.
        values: the distances of all draws at each size.
    """
    x = np.concatenate([np.full(len(row), math.log(n)) for n, row in zip(sizes, values, strict=True)])
    distances = np.concatenate([np.asarray(row, dtype=float) for row in values])
    if len(set(sizes)) < 2 or not (np.isfinite(distances).all() and (distances > 0).all()):
        return None
    y = np.log(distances)
    about = x - x.mean()
    spread = float(about @ about)
    slope = float(about @ y) / spread
    residual = y - y.mean() - slope * about
    constant = math.exp(float(y.mean()) - slope * float(x.mean()))
    free = len(y) - 2
    if free < 1:
        return Rate(-slope, constant, None)
    half = float(stats.t.ppf((1 + confidence) / 2, free)) * math.sqrt(float(residual @ residual) / free / spread)
    return Rate(-slope, constant, (-slope - half, -slope + half))

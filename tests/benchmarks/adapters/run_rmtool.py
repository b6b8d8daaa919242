"""rmtool 1.0.0: the Python version of RMTool by N. R. Rao.

`AtimesWish` multiplies by a Wishart matrix, which is its documented way to these products; `Lmz2pdf` gives the density.
Above degree 3 that returns all roots and advises to isolate the right one by hand, or to use `best_density()`, the
largest imaginary part: the latter is what runs here. `multipleroots` holds candidates for edges; there are no atoms
with weights, only `poles`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import rmtool
import sympy
from protocol import answer, serve


class PolynomialMethod:
    def prepare(self, ratios: tuple[float, ...]) -> Any:
        polynomial = rmtool.wishartpol(ratios[0])
        for ratio in ratios[1:]:
            polynomial = rmtool.AtimesWish(polynomial, ratio)
        return polynomial

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        return rmtool.Lmz2pdf(state, points).best_density()

    def describe(self, state: Any) -> dict[str, Any]:
        return {"candidates": rmtool.Lmz2pdf(state, np.array([1.0])).multipleroots.tolist()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(lambda request: answer(PolynomialMethod(), request, sympy.core.cache.clear_cache))

"""Two routes to one law: the closed law of the transforms against the Dyson equation of the words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError
from freeattn.model.attention import Attention
from freeattn.numerics.backends import trace_equation
from freeattn.numerics.descent import Descent
from freeattn.numerics.exact import exact_law
from freeattn.numerics.exact_words import words_law
from freeattn.numerics.given_numbers import DOUBLE_DIGITS
from freeattn.numerics.rational import RationalEngine

__all__ = ["AGREEMENT", "routes_agree"]

AGREEMENT = 1e-10  # relative difference of Stieltjes transforms at which two routes count as one
_POINTS = 20


def routes_agree(spec: Attention) -> float:
    """The largest relative difference of m(z) by the two routes, at 20 points of each half-plane near the law.

    Raises:
        NotCoveredError: when no closed law is known.
        BranchError: when they differ by more than 1e-10.
    """
    exact, words = exact_law(spec), words_law(spec, "gram", None)
    unit = float(exact.unit(DOUBLE_DIGITS)) / float(words.unit(DOUBLE_DIGITS))
    size = float(words.moments(2, DOUBLE_DIGITS)[1]) ** 0.5 / float(words.unit(DOUBLE_DIGITS))
    upper = size * (np.linspace(0.01, 3, _POINTS) + 1j * np.geomspace(1e-4, 1, _POINTS))
    equation = trace_equation(words.tables(0))
    traces = Descent(equation, size).solve(upper)
    by_pencil = equation.output(equation.matrices(traces, upper))
    curve = RationalEngine(exact.curve)
    worst = 0.0
    for z, known in ((upper, by_pencil), (np.conj(upper), np.conj(by_pencil))):
        worst = max(worst, _difference(curve.stieltjes(z / unit) / unit, known))
    if worst > AGREEMENT:
        raise BranchError(f"the two routes differ by {worst:.3g} (relative) in the Stieltjes transform of {spec}")
    return worst


def _difference(found: NDArray[Any], known: NDArray[Any]) -> float:
    return float(np.max(np.abs(found / known - 1)))

"""Quantiles to many digits: Newton for cdf(x) = p, inside the band that holds the quantile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from freeattn.errors import ConvergenceError
from freeattn.numerics.given_numbers import rounded

__all__ = ["quantile_to"]

_STEPS = 200


class _Law(Protocol):
    def edges_to(self, digits: int) -> tuple[tuple[Any, Any], ...]: ...
    def cdf(self, x: Any, digits: int) -> Any: ...
    def density(self, x: Any, digits: int) -> Any: ...
    def quantile(self, p: Any) -> Any: ...


def quantile_to(law: _Law, level: Any, atoms: Sequence[tuple[Any, Any]], digits: int) -> Any:
    """inf{x : cdf(x) ≥ level}.

    Args:
        law: the law, its quantile in doubles is where Newton starts.
        level: an mpmath number in [0, 1] that has the digits asked for.
        atoms: locations and weights, to as many digits.
        digits: digits asked for.

    Raises:
        ConvergenceError: when the iteration does not settle.
    """
    return rounded(_location(law, level, atoms, digits), digits)


def _location(law: _Law, level: Any, atoms: Sequence[tuple[Any, Any]], digits: int) -> Any:
    edges = law.edges_to(digits)
    if level == 0:
        return min([location for location, _ in atoms] + [left for left, _ in edges])
    if level == 1:
        return max([location for location, _ in atoms] + [right for _, right in edges])
    for location, weight in atoms:
        upper = law.cdf(location, digits)
        if upper - weight < level <= upper:
            return location
    rounding = level.context.mpf(10) ** (-digits)
    for low, high in edges:
        upper = law.cdf(high, digits)
        if abs(level - upper) <= rounding:  # all of the mass up to a gap: the infimum is its left end
            return high
        if level < upper:
            return _inverted(law, level, low, high, digits)
    return edges[-1][1]


def _inverted(law: _Law, level: Any, low: Any, high: Any, digits: int) -> Any:
    tolerance = level.context.mpf(10) ** (-digits)
    x = level.context.mpf(law.quantile(float(level)))
    for _ in range(_STEPS):
        if not low < x < high:
            x = (low + high) / 2
        excess = law.cdf(x, digits) - level
        low, high = (low, x) if excess > 0 else (x, high)
        step = excess / law.density(x, digits)
        x = x - step
        if abs(step) <= abs(x) * tolerance or excess == 0:
            return x
    raise ConvergenceError(
        f"the quantile at {float(level)}", float(abs(step / x)), float(tolerance), "ask for fewer digits"
    )

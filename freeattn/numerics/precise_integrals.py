"""Integrals against a density to many digits: Fejér's rule on the panels of each band, in an mpmath context given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.numerics.support import Band

__all__ = ["PreciseIntegrals", "as_number"]

_NODES_PER_DIGIT = 1.0  # panels are resolved to 1e-13 by 16 nodes: 1.2 nodes a digit, with the guard digits to spare
_DOUBLINGS = 6  # of the number of nodes, by a quarter each time


def as_number(context: Any, value: Any) -> Any:
    """A number of the context from an int, float, complex, Fraction, sympy number, decimal string or mpmath number."""
    if hasattr(value, "numerator") and hasattr(value, "denominator") and not isinstance(value, (float, np.floating)):
        return context.mpf(int(value.numerator)) / int(value.denominator)
    return context.mpmathify(value)


class PreciseIntegrals:
    """Integrals over the bands of one law.

    Args:
        context: an mpmath context.
        bands: the bands, to the digits of the context.
        density: ρ at one point inside a band.
        tolerance: relative, of a result.
    """

    def __init__(self, context: Any, bands: Sequence[Band], density: Callable[[Any], Any], tolerance: Any) -> None:
        self.context, self._bands, self._density, self._tolerance = context, bands, density, tolerance
        self._rules: dict[int, list[tuple[Any, Any]]] = {}
        self._cached: dict[Any, list[tuple[Any, Any]]] = {}

    def integrate(
        self, function: Callable[[Any], Any], breaks: Sequence[NDArray[np.float64]], lower: Any = None,
        upper: Any = None,
    ) -> Any:
        """∫ f ρ dx over the bands between two points: Fejér's first rule on the given panels of each band's angle."""
        context = self.context
        total = context.zero
        start, limit = (None if end is None else as_number(context, end) for end in (lower, upper))
        for band, cuts in zip(self._bands, breaks, strict=True):
            left, right = band.left.x, band.right.x
            rounding = self._tolerance * max(abs(left), abs(right))  # of an end: no mass, and no digits of ρ, beside it
            if (limit is not None and limit <= left + rounding) or (start is not None and start >= right - rounding):
                continue
            mapping = _PreciseMap(context, band)
            nodes = [context.mpf(float(cut)) for cut in cuts[:-1]] + [context.pi / 2]
            if limit is not None and limit < right:
                end = mapping.angle(limit)
                nodes = [node for node in nodes if node < end] + [end]
            if start is not None and start > left:
                begin = mapping.angle(start)
                nodes = [begin, *(node for node in nodes if node > begin)]
            for low, high in pairwise(nodes):
                total += self._panel(function, mapping, low, high)
        return total

    def _panel(self, function: Callable[[Any], Any], mapping: _PreciseMap, low: Any, high: Any) -> Any:
        """One panel; the order grows until two orders agree."""
        context = self.context
        order = int(_NODES_PER_DIGIT * context.dps) + 4
        values = [self._fejer(function, mapping, low, high, order)]
        for _ in range(_DOUBLINGS):
            order = order * 5 // 4
            values.append(self._fejer(function, mapping, low, high, order))
            error = abs(values[-1] - values[-2])
            if error <= self._tolerance * max(abs(values[-1]), 1):
                return values[-1]
        raise ConvergenceError(
            "integration against the law", float(error), float(self._tolerance), "ask for fewer digits"
        )

    def _fejer(self, function: Callable[[Any], Any], mapping: _PreciseMap, low: Any, high: Any, order: int) -> Any:
        points = self._points(mapping, low, high, order)
        return self.context.fsum(function(x) * weight for x, weight in points)

    def _points(self, mapping: _PreciseMap, low: Any, high: Any, order: int) -> list[tuple[Any, Any]]:
        """(x, weight·ρ·dx/dθ) at the Chebyshev points of a panel, computed once."""
        key = (mapping.key, low, high, order)
        if key not in self._cached:
            half, middle = (high - low) / 2, (high + low) / 2
            points = []
            for node, weight in self._rule(order):
                x, slope = mapping(middle + half * node)
                points.append((x, weight * half * slope * self._density(x)))
            self._cached[key] = points
        return self._cached[key]

    def _rule(self, order: int) -> list[tuple[Any, Any]]:
        """Nodes cos θ_k and weights (2/n)(1 − 2 Σ_j cos(2jθ_k)/(4j² − 1)) of Fejér's first rule."""
        if order not in self._rules:
            context = self.context
            rule = []
            for k in range(order):
                angle = (2 * k + 1) * context.pi / (2 * order)
                tail = context.fsum(context.cos(2 * j * angle) / (4 * j * j - 1) for j in range(1, order // 2 + 1))
                rule.append((context.cos(angle), (1 - 2 * tail) * 2 / order))
            self._rules[order] = rule
        return self._rules[order]


class _PreciseMap:
    """x(θ) and dx/dθ of `bands.BandMap`, to many digits."""

    def __init__(self, context: Any, band: Band) -> None:
        self._context = context
        self.key = (band.left.x, band.right.x)
        self._left, self._right = context.mpf(band.left.x), context.mpf(band.right.x)
        self._hard_right = band.right.exponent < 0
        power = min(band.left.exponent, band.right.exponent)
        order = 1 / (1 + power) if power < 0 else Fraction(0)
        self._order = context.mpf(order.numerator) / order.denominator
        self._logarithmic = not self._order and 0 < self._left < self._right / 20

    def __call__(self, theta: Any) -> tuple[Any, Any]:
        context = self._context
        sine, twice = context.sin(theta) ** 2, context.sin(2 * theta)
        if self._order:
            width, near = self._right - self._left, context.cos(theta) ** 2 if self._hard_right else sine
            way = width * near**self._order
            x = self._right - way if self._hard_right else self._left + way
            return x, self._order * twice * width * near ** (self._order - 1)
        if self._logarithmic:
            width = context.log(self._right / self._left)
            x = self._left * context.exp(width * sine)
            return x, width * twice * x
        width = self._right - self._left
        return self._left + width * sine, width * twice

    def angle(self, x: Any) -> Any:
        context = self._context
        if self._order:
            way = self._right - x if self._hard_right else x - self._left
            angle = context.asin((way / (self._right - self._left)) ** (1 / (2 * self._order)))
            return context.pi / 2 - angle if self._hard_right else angle
        if self._logarithmic:
            share = context.log(x / self._left) / context.log(self._right / self._left)
        else:
            share = (x - self._left) / (self._right - self._left)
        return context.asin(context.sqrt(share))

"""Roots of a Dyson equation digit by digit, in fixed-point numbers on integers.

The entries of a and G and the traces u are unknowns together, so that everything is bilinear and no matrix is inverted:

    R = 1 − a·G,      r = reads(G) − u,      s = C − z·P − E(u) − a.

The residuals are integers in units of 2^−bits. A correction is computed from their leading digits with a preconditioner
of doubles and rounded to numbers of some 52 bits; the residuals are then updated, exactly but for the last bit, by
products of one long and one short number. A round so gains what a double holds, less what the condition of the equation
costs, and its time is linear in the digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.lifting_layout import Layout
from freeattn.numerics.sparse_equation import Binary, Units, shifted, summed

__all__ = ["LEADING_BITS", "SHORT_BITS", "Lifting"]

Index = NDArray[np.intp]
Real = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers

SHORT_BITS = 52  # of the largest number of a correction
LEADING_BITS = 62  # of residuals, as doubles


class Lifting:
    """The unknowns and residuals of one equation at one point.

    Args:
        layout: where numbers stand.
        units: the units in which everything is of size 1.
        bits: binary digits after the point.
        point: z: (mantissa, exponent) of each component; its unit alone when z is itself an unknown.
        gauge: ℓ of a last equation, ℓ·(second component of u) = 1, when z is an unknown.
        spread: bits below the largest number at which numbers still matter.
    """

    def __init__(
        self, layout: Layout, units: Units, bits: int, point: Sequence[Binary], gauge: Real | None = None,
        spread: int = 0,
    ) -> None:
        self._leading, self._width = LEADING_BITS + spread, SHORT_BITS + spread
        equation, self.layout, self.bits = layout.equation, layout, bits
        exponents = np.concatenate([
            units.of_matrix(equation.energy) - units.traces[equation.sources],
            units.of_inverse(equation.reads) + units.traces[equation.reads.owner],
            units.of_matrix(equation.constant),
        ])
        numbers = equation.fixed(exponents + bits)
        ends = np.cumsum([len(equation.energy.exact), len(equation.reads.exact)])
        self._energy, self._reads, constant = numbers[: ends[0]], numbers[ends[0] : ends[1]], numbers[ends[1] :]
        places = np.zeros((layout.algebra.components, equation.places.shape[1]), dtype=object)
        places[0, equation.constant.owner] = constant
        powers = (units.of_matrix(equation.point) + bits).tolist()
        points = [
            np.array([shifted(a * b, e + f + g) for (a, e), g in zip(equation.point.exact, powers, strict=True)],
                     dtype=object)
            for b, f in point
        ]
        self._point, self._gauge = points[0], None
        if gauge is None:
            for component, values in enumerate(points):
                places[component, equation.point.owner] -= values
        else:
            short = np.ldexp(gauge, SHORT_BITS).tolist()
            self._gauge = np.array([int(value) << bits - SHORT_BITS for value in short], dtype=object)
        self._factor = layout.factor(places)  # a, as left factors of products
        self._found = np.zeros(layout.length, dtype=object)
        self._errors = np.zeros(layout.length, dtype=object)
        self._errors[layout.diagonal] = 1 << bits
        if gauge is not None:
            self._errors[-1] = 1 << bits

    @property
    def inverse(self) -> Integers:
        """The entries of G."""
        return self._found[self.layout.entries]

    @property
    def traces(self) -> Integers:
        """u, component by component."""
        return self._found[self.layout.traces].reshape(self.layout.algebra.components, -1)

    @property
    def point(self) -> int:
        """z, when it is an unknown."""
        return int(self._found[-1])

    def largest(self) -> int:
        """The bits of the largest residual, in units of 2^−bits."""
        return max(map(int.bit_length, self._errors.tolist()))

    def residual(self, largest: int) -> tuple[Real, int]:
        """The leading digits of all residuals, of which the largest is given: numbers·2^exponent."""
        shift = max(largest - self._leading, 0)
        return (self._errors >> shift).astype(np.float64), shift - self.bits

    def begin(self, start: Real) -> None:
        """G and u (and z) rounded to short numbers, a exactly what they give."""
        short, up, down = self._short(start, 0)
        self._advance(short, short << up, down)
        places = self._errors[self.layout.places]
        self._factor += self.layout.left_integers(places)
        self._errors[self.layout.places] = 0
        self._errors[self.layout.entries] -= self.layout.product(self._factor, short[self.layout.entries]) >> down

    def add(self, step: Real, exponent: int) -> None:
        """Corrections step·2^exponent, rounded to short numbers."""
        layout, before = self.layout, self.inverse
        short, up, down = self._short(step, exponent)
        long = short << up
        self._advance(short, long, down)
        self._errors[layout.places] -= long[layout.places]
        self._factor += layout.left_integers(long[layout.places])
        change = layout.product(self._factor, short[layout.entries])
        change += layout.product(layout.left_integers(short[layout.places]), before)
        self._errors[layout.entries] -= change >> down

    def finish(self, step: Real, exponent: int) -> None:
        """Last corrections: residuals are left as they were."""
        short, up, _ = self._short(step, exponent)
        self._found = self._found + (short << up)

    def _short(self, step: Real, exponent: int) -> tuple[Integers, int, int]:
        """step·2^exponent as short integers, in units of 2^−down = 2^(up − bits)."""
        fine = min(self._width - int(np.frexp(np.abs(step).max())[1]), self.bits + exponent)
        numbers = np.rint(np.ldexp(step, fine))
        integers = numbers.astype(np.int64).astype(object) if self._width < 63 else np.array(
            [int(number) for number in numbers.tolist()], dtype=object)
        return integers, self.bits + exponent - fine, fine - exponent

    def _advance(self, short: Integers, long: Integers, down: int) -> None:
        """A correction of G, u and z, and of the residuals that are not products with a."""
        equation, layout, errors = self.layout.equation, self.layout, self._errors
        self._found = self._found + long
        read = summed(self._reads * short[layout.reads], equation.read_starts)
        errors[layout.traces] += (read >> down).reshape(-1) - long[layout.traces]
        traces = short[layout.traces].reshape(layout.algebra.components, -1)
        moved = summed(self._energy * traces[:, equation.sources], equation.energy_starts) >> down
        places = errors[layout.places].reshape(layout.algebra.components, -1)  # a view
        places[:, : equation.energetic] -= moved
        if self._gauge is not None:
            places[0, equation.point.owner] -= self._point * short[-1] >> down
            errors[-1] -= (self._gauge @ traces[1]) >> down

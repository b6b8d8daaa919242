"""Edges and densities that doubles know to fewer digits than they hold, by the equation in many digits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.numerics.folds import Fold
from freeattn.numerics.precise_traces import PreciseTraces
from freeattn.numerics.stretches import Stretch
from freeattn.numerics.trace_equation import TraceEquation

__all__ = ["refined_density", "sharpened"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]


def sharpened(stretch: Stretch, precise: PreciseTraces) -> Stretch:
    """The band with edges x good to the last digit of a double.

    Raises:
        ConvergenceError, BranchError: when many digits do not lead to an edge.
    """
    def sharp(fold: Fold | None) -> Fold | None:
        if fold is None or fold.sharp:
            return fold
        return replace(fold, x=float(precise.fold(fold)), sharp=True)

    return replace(stretch, left=sharp(stretch.left), right=sharp(stretch.right))


def refined_density(equation: TraceEquation, precise: PreciseTraces, u: Complex, x: Real, enough: float) -> Real:
    """ρ at points of a band whose solutions are known in doubles, by many digits where rounding is more than `enough`.

    Where corrections do not shrink, as at the last points before 0 with hardly any mass, ρ stays as doubles have it.

    Args:
        equation: in doubles.
        precise: the same in many digits.
        u: solutions.
        x: points.
        enough: relative error by rounding that may stay.
    """
    points = x.astype(complex)
    matrices = equation.matrices(u, points)
    imaginary = equation.output(matrices).imag
    error = equation.output_error(u, points, matrices)
    for k in np.flatnonzero(~(error <= enough * imaginary)):
        with suppress(ConvergenceError):
            imaginary[k] = float(precise.context.im(precise.stieltjes(u[k], precise.context.mpf(x[k]))))
    return np.asarray(imaginary / np.pi)

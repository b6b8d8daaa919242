"""Laws with a reference that does not use freeattn, and the errors of an answer against it.

MP_c is the limiting law of X Xᵀ for X with rows/columns = c and entries of variance 1/columns (mean 1, S-transform
1/(1 + ct)). A free product of MP_{c_i} solves z t = (1 + t) Π(1 + c_i t), t = −1 − z m(z). At a real point inside the
support the roots come from numpy and are polished to 50 digits by mpmath. The physical one has Im t < 0 and phase 0,

    Σ_i |arg(1 + c_i t)| + |arg(1 + t)| = |arg t|,

since that phase is continuous along the path from z = ∞ and stays in (0, π) there; the other roots have it 2π or more
off. Exactly one root must pass. One factor has its explicit density instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

DIGITS = 50
POINTS = 1000  # equally spaced in the support
OUTSIDE = 100  # equally spaced to the right of it

_mp = mpmath.mp.clone()
_mp.dps = DIGITS
_NEWTON_STEPS = 60
_PHASE_TOLERANCE = 1e-8  # far above rounding, far below the 2π that separates the sheets


@dataclass(frozen=True)
class Reference:
    """A free product of Marchenko-Pastur laws: exact atom at zero, edges, density.

    Attributes:
        key: its name on the command line.
        title: its name in tables.
        ratios: the c_i; at most one above 1, and then the only one.
    """

    key: str
    title: str
    ratios: tuple[Fraction, ...]

    @property
    def atom(self) -> Fraction:
        """Weight at zero: 1 − 1/c for the largest c above 1."""
        return max(Fraction(0), 1 - 1 / max(self.ratios))

    def edges(self) -> tuple[Any, Any]:
        """Ends of the band: critical values of z(t), and 0 where the density diverges there."""
        if len(self.ratios) == 1:
            root = _mp.sqrt(_number(self.ratios[0]))
            return (1 - root) ** 2, (1 + root) ** 2
        right = self._critical(_mp.mpf(0), 10 / _number(min(self.ratios)))
        if max(self.ratios) == 1:
            return _mp.mpf(0), right  # hard edge
        return self._critical(-1 / _number(max(self.ratios)), _mp.mpf(-1)), right

    def _critical(self, low: Any, high: Any) -> Any:
        """z(t) where t z'/z = 0, that is Σ c_i t/(1 + c_i t) + t/(1 + t) = 1: increasing in t between poles."""
        factors = [_mp.mpf(1), *map(_number, self.ratios)]
        for _ in range(6 * DIGITS):  # bisection, more than 3.33 steps a digit
            t = (low + high) / 2
            low, high = (t, high) if sum(c * t / (1 + c * t) for c in factors) < 1 else (low, t)
        return _mp.fprod(1 + c * t for c in factors) / t

    def points(self) -> np.ndarray:
        """Midpoints of equal cells of the support."""
        left, right = (float(end) for end in self.edges())
        return left + (right - left) * (np.arange(POINTS) + 0.5) / POINTS

    def outside(self) -> np.ndarray:
        """From 2 % to 25 % of the support's width to the right of it."""
        left, right = (float(end) for end in self.edges())
        return right + (right - left) * np.linspace(0.02, 0.25, OUTSIDE)

    def density(self, points: np.ndarray) -> np.ndarray:
        """Density at points of the support, correct to double precision."""
        if len(self.ratios) == 1:
            return np.array([float(self._explicit(_mp.mpf(x))) for x in points])
        return np.array([float(self.density_to(x)) for x in points])

    def density_to(self, x: float) -> Any:
        """Density at one point to about 50 digits, from the roots of the polynomial."""
        point = _mp.mpf(x)
        equation = _minus(_product(self.ratios), [0, point])
        lower = [root for root in np.roots([float(a) for a in equation[::-1]]) if root.imag < 0]
        physical = [t for t in (_polished(equation, root) for root in lower) if self._is_physical(t)]
        if len(physical) != 1:
            raise ArithmeticError(f"{len(physical)} physical roots of {self.key} at x = {x}")
        return -physical[0].imag / (_mp.pi * point)

    def _is_physical(self, t: Any) -> bool:
        if not t.imag < 0:
            return False
        phases = [_mp.arg(1 + _number(c) * t) for c in (Fraction(1), *self.ratios)]
        return bool(abs(sum(abs(phase) for phase in phases) - abs(_mp.arg(t))) < _PHASE_TOLERANCE)

    def _explicit(self, x: Any) -> Any:
        left, right = self.edges()
        return _mp.sqrt((x - left) * (right - x)) / (2 * _mp.pi * _number(self.ratios[0]) * x)


@dataclass(frozen=True)
class Errors:
    """How far an answer is from the reference; None where the package gives no such number.

    Attributes:
        mass: the total mass of its answer (density on the points, and its atoms) minus 1. The density's part is
            Σ (ρ̂ − ρ) Δx on top of the exact mass, so that no error of the sum itself counts.
        atom: its weight at and near zero (within 1 % of the width) minus the exact one, plus all weight elsewhere.
        edges: largest distance of an exact end from the nearest one given, and how many bands were given.
        density: largest |ρ̂ − ρ| on the points, and where.
        outside: largest |ρ̂| right of the support.
    """

    mass: float
    atom: float | None
    edges: float | None
    bands: int | None
    candidates: int | None
    density: float
    density_at: float
    outside: float


LAWS = (
    Reference("mp-mp", "MP(1) ⊠ MP(1)", (Fraction(1), Fraction(1))),
    Reference("three-gaussians", "product of three square Gaussians", (Fraction(1),) * 3),
    Reference("mp-2", "MP(2), atom 1/2", (Fraction(2),)),
    Reference("mp-half-mp-four-fifths", "MP(1/2) ⊠ MP(4/5)", (Fraction(1, 2), Fraction(4, 5))),
)


def errors(law: Reference, exact: np.ndarray, answer: dict[str, Any]) -> Errors:
    """The errors of an answer: its "density", "outside", "atoms", "edges" and "candidates"."""
    left, right = (float(end) for end in law.edges())
    width, points = right - left, law.points()
    density = np.nan_to_num(np.array(answer["density"], dtype=float), nan=0.0, posinf=math.inf, neginf=-math.inf)
    outside = np.nan_to_num(np.array(answer["outside"], dtype=float), nan=0.0)
    deviation = np.abs(density - exact)
    atoms = answer.get("atoms")
    weights = [] if atoms is None else [(location, weight) for location, weight in atoms]
    at_zero = sum(weight for location, weight in weights if abs(location) < width / 100)
    elsewhere = sum(abs(weight) for location, weight in weights if abs(location) >= width / 100)
    bands, candidates = answer.get("edges"), answer.get("candidates")
    given = candidates if bands is None else [end for band in bands for end in band]
    mass = float(((density - exact) * width / POINTS).sum()) - float(law.atom) + sum(weight for _, weight in weights)
    return Errors(
        mass=mass,
        atom=None if atoms is None else abs(at_zero - float(law.atom)) + elsewhere,
        edges=max(min(abs(end - other) for other in given) for end in (left, right)) if given else None,
        bands=None if bands is None else len(bands),
        candidates=None if bands is not None or candidates is None else len(candidates),
        density=float(deviation.max()),
        density_at=float(points[deviation.argmax()]),
        outside=float(np.abs(outside).max()),
    )


# Polynomials: coefficients by ascending degree ------------------------------------------------------------------


def _number(value: Fraction) -> Any:
    return _mp.mpf(value.numerator) / value.denominator


def _product(ratios: tuple[Fraction, ...]) -> list[Any]:
    result: list[Any] = [_mp.mpf(1), _mp.mpf(1)]
    for ratio in ratios:
        result = _times(result, [1, _number(ratio)])
    return result


def _times(first: list[Any], second: list[Any]) -> list[Any]:
    result = [_mp.mpf(0)] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            result[i + j] += a * b
    return result


def _minus(first: list[Any], second: list[Any]) -> list[Any]:
    padded = [*second, *[0] * (len(first) - len(second))]
    return [a - b for a, b in zip(first, padded, strict=True)]


def _polished(polynomial: list[Any], guess: complex) -> Any:
    """A root to all digits, by Newton's method from one in double precision."""
    root = _mp.mpc(guess)
    for _ in range(_NEWTON_STEPS):
        value, slope = _mp.polyval(polynomial[::-1], root, derivative=True)
        step = value / slope
        root -= step
        if abs(step) < abs(root) * _mp.mpf(10) ** (5 - DIGITS):
            return root
    raise ArithmeticError(f"Newton's method from {guess} did not end")

"""What a certificate says: a value as a ball, what is proved, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
from flint import fmpq

from freeattn.theory.assumptions import Assumption

__all__ = [
    "BAND", "DYSON", "FLOATING_POINT", "GAP", "LIBRARIES", "UPPER", "Certificate", "CertifiedBall", "CertifiedEdge",
    "EdgeCertificate", "ball_of",
]

DYSON = Assumption(
    "Dyson equation", "the law is that of the resolvent of the pencil: for every b whose imaginary part is positive "
    "definite its block traces are a solution, with positive definite imaginary part, of the equation with b in place "
    "of zP, and they are continuous at b = zP, Im z > 0. The numbers of copies are positive integers",
    "Helton, Rashidi Far and Speicher, IMRN 2007, rnm086; Mingo and Speicher, Free Probability and Random Matrices, "
    "chapters 9 and 10; docs/certificates.md",
)
FLOATING_POINT = Assumption(
    "IEEE arithmetic", "doubles round to nearest, and matrix products are sums of products in some order (no fast "
    "multiplication of Strassen's kind)", "N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3",
)
LIBRARIES = Assumption(
    "libraries", "python-flint's rational arithmetic and mpmath's interval exponential are correct", "their manuals",
)

UPPER, BAND, GAP = "upper half-plane", "band", "gap"


@dataclass(frozen=True)
class CertifiedBall:
    """All numbers within `radius` of `midpoint` (mpmath numbers)."""

    midpoint: Any
    radius: Any

    def contains(self, value: Any) -> bool:
        """Whether a number, taken exactly, lies in the ball."""
        context = _context(4 * int(-mpmath.log10(self.radius)) + 100 if self.radius else 1000)
        return bool(abs(context.convert(value) - context.convert(self.midpoint)) <= context.convert(self.radius))


@dataclass(frozen=True)
class Certificate:
    """A proved value of the Stieltjes transform.

    Attributes:
        z: the point, as given.
        place: "upper half-plane" (by conjugation also the lower one), "band" or "gap".
        stieltjes: the ball that contains m(z); at real z the boundary value from above.
        density: the ball that contains the density; None off the axis. Exactly 0 in a gap.
        proved: the statements that are proved.
        assumptions: what they rest on.
        branch: how it is known which root the value belongs to.
        contraction: the bound, below 1, of the contraction that proves existence and uniqueness of the root.
    """

    z: Any
    place: str
    stieltjes: CertifiedBall
    density: CertifiedBall | None
    proved: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    branch: str
    contraction: float


@dataclass(frozen=True)
class CertifiedEdge:
    """One proved end of a band.

    Attributes:
        x: the ball that contains the edge.
        side: "left" or "right" end of its band.
        contraction: as in `Certificate`.
    """

    x: CertifiedBall
    side: str
    contraction: float


@dataclass(frozen=True)
class EdgeCertificate:
    """Proved edges, ascending.

    Attributes:
        edges: those that are proved.
        not_certified: ends of bands that are no folds (hard edges at 0): rounded values, nothing proved.
        proved, assumptions: as in `Certificate`.
        not_proved: what the certificate does not say.
    """

    edges: tuple[CertifiedEdge, ...]
    not_certified: tuple[float, ...]
    proved: tuple[str, ...]
    not_proved: tuple[str, ...]
    assumptions: tuple[Assumption, ...]


def ball_of(middle: tuple[fmpq, fmpq], radius: float, digits: int, real: bool) -> CertifiedBall:
    """A ball around a rational (real, imaginary) midpoint as mpmath numbers; rounding goes into the radius."""
    context = _context(digits)
    x, y = (context.mpf(int(part.p)) / int(part.q) for part in middle)
    number = x if real else context.mpc(x, y)
    rounding = abs(number) * context.mpf(10) ** (5 - context.dps)
    return CertifiedBall(number, context.mpf(radius) * (1 + 2.0**-40) + rounding)


@lru_cache(maxsize=64)
def _context(digits: int) -> Any:
    """A context of its own; nobody changes it."""
    context = mpmath.MPContext()
    context.dps = digits + 30
    return context

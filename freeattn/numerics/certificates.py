"""What a certificate says: a value as a ball, what is proved, and what that rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import mpmath
from flint import fmpq

from freeattn.display import ShownAsTables
from freeattn.model.precision import context_for_results, own_context
from freeattn.numerics.enclosures import double_of
from freeattn.numerics.exact_traces import Dyadic
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
    "IEEE arithmetic", "doubles round to nearest, each operation by itself, and matrix products are sums of products "
    "in some order (no fast multiplication of Strassen's kind)",
    "N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 3",
)
LIBRARIES = Assumption(
    "libraries", "Python's integers, python-flint's rational arithmetic and mpmath's interval exponential are correct, "
    "and so are the loops that numba compiles, where the extra fast is installed",
    "their manuals",
)

_GUARD_DIGITS = 30  # of a midpoint, beyond those that were asked for
_PRINTED = 1.15  # of a radius: two printed digits are off by 5 %, those of the midpoint by 1 % of the radius, or 2 %

UPPER, BAND, GAP = "upper half-plane", "band", "gap"
_WHERE = {UPPER: "off the real axis", BAND: "inside a band: m is m(x + i0)", GAP: "in a gap, or beyond the bands"}


_ROOT = (
    "the Dyson equation at z, for all weights in their rational enclosures, the true ones among them, has exactly one "
    "solution in a polydisc around the computed one, and its derivative there is regular"
)
_CONE = "all matrices of traces of that solution have positive definite imaginary part"
PROVED = {
    UPPER: (_ROOT, _CONE, "so it is the physical solution (theorem, part a), and m(z) lies in the ball"),
    BAND: (_ROOT, _CONE,
           "so it is the limit of the physical solution from above (theorem, part b): m(x + i0) and the density lie in "
           "their balls, and the law has a positive analytic density near x"),
    GAP: (_ROOT + ", and it is real", "all its matrices of traces have positive definite derivative in z",
          "so it is the limit of the physical solution from above (theorem, part c): m(x) lies in the ball, and the "
          "law has no mass near x"),
}
BRANCHES = {
    UPPER: "cone: positive definite imaginary parts", BAND: "cone: positive definite imaginary parts",
    GAP: "rising: positive definite derivatives",
}


EDGES_PROVED = (
    "each ball contains exactly one fold of the equation with its true weights, real and simple",
    "its matrices of traces change by definite amounts of one sign along the null vector, so it is an end of the "
    "support: the law has a density c·√|x − edge|·(1 + o(1)), c > 0, on the side of its band, and no mass beside it on "
    "the other",
)
EDGES_NOT_PROVED = (
    "that no other band exists, and that no gap lies between a left and the next right end",
    "ends that are no folds: hard edges at 0",
)


@dataclass(frozen=True)
class CertifiedBall:
    """All numbers within `radius` of `midpoint` (mpmath numbers)."""

    midpoint: Any
    radius: Any

    def contains(self, value: Any) -> bool:
        """Whether a number, taken exactly, lies in the ball."""
        context = own_context(4 * int(-mpmath.log10(self.radius)) + 100 if self.radius else 1000)
        return bool(abs(context.convert(value) - context.convert(self.midpoint)) <= context.convert(self.radius))

    def __str__(self) -> str:
        """midpoint ± radius: decimals that, with the radius rounded up, still enclose the ball."""
        if not self.radius:
            return f"{mpmath.nstr(self.midpoint, 5)} exactly"
        size = abs(self.midpoint)
        digits = 3 + max(0, int(mpmath.ceil(mpmath.log10(size / self.radius)))) if size else 3
        return f"{mpmath.nstr(self.midpoint, digits)} ± {mpmath.nstr(self.radius * _PRINTED, 2)}"


@dataclass(frozen=True, repr=False)
class Certificate(ShownAsTables):
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

    shown_as: ClassVar[str] = "certificate"

    z: Any
    place: str
    stieltjes: CertifiedBall
    density: CertifiedBall | None
    proved: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    branch: str
    contraction: float

    def __repr__(self) -> str:
        return f"<Certificate at z = {self.z}, {self.place}: m(z) = {self.stieltjes}>"

    def __str__(self) -> str:
        lines = [f"Certificate at z = {self.z} ({_WHERE[self.place]})", f"  m(z) = {self.stieltjes}"]
        if self.density is not None:
            lines.append(f"  density = {self.density}")
        lines += _report(self.proved, (), self.assumptions)
        return "\n".join([*lines, f"Contraction: {self.contraction:.2g} < 1"])


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


@dataclass(frozen=True, repr=False)
class EdgeCertificate(ShownAsTables):
    """Proved edges, ascending.

    Attributes:
        edges: those that are proved.
        not_certified: ends of bands that are no folds (hard edges at 0): rounded values, nothing proved.
        proved, assumptions: as in `Certificate`.
        not_proved: what the certificate does not say.
    """

    shown_as: ClassVar[str] = "edge-certificate"

    edges: tuple[CertifiedEdge, ...]
    not_certified: tuple[float, ...]
    proved: tuple[str, ...]
    not_proved: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    def __repr__(self) -> str:
        return f"<EdgeCertificate: {'; '.join(str(edge.x) for edge in self.edges) or 'none'}>"

    def __str__(self) -> str:
        lines = ["Certificate of edges", *(f"  {edge.side} end of a band: {edge.x}" for edge in self.edges)]
        lines += [f"  {x:g}: an end that is no fold; nothing is proved about it" for x in self.not_certified]
        return "\n".join([*lines, *_report(self.proved, self.not_proved, self.assumptions)])


def _report(proved: tuple[str, ...], not_proved: tuple[str, ...], assumptions: tuple[Assumption, ...]) -> list[str]:
    """What is proved and what is not, and what both rest on; a ball x ± r is all numbers within r of x."""
    lines = ["Proved (x ± r is the set of all numbers within r of x):", *(f"  - {statement}" for statement in proved)]
    if not_proved:
        lines += ["Not proved:", *(f"  - {statement}" for statement in not_proved)]
    lines.append("Assumed:")
    return [*lines, *(f"  - {a.name}: {a.statement} [{a.source}]" for a in assumptions)]


def ball_of(middle: Dyadic, unit: fmpq, radius: float, digits: int, real: bool) -> CertifiedBall:
    """A ball around a dyadic midpoint times a unit, as mpmath numbers; rounding goes into the radius."""
    context = context_for_results(digits + _GUARD_DIGITS)
    top, bottom = int(unit.p), int(unit.q)
    spare = bottom.bit_length() + context.prec  # of the quotients
    x, y = (context.ldexp(((part * top) << spare) // bottom, -middle.bits - spare) for part in middle[:2])
    rounding = middle.size * double_of(unit) * 2.0 ** (4 - context.prec)
    return CertifiedBall(x if real else context.mpc(x, y), context.mpf((radius + rounding) * (1 + 2.0**-40)))

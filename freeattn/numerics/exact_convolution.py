"""The exact side of a free convolution: moments by free cumulants and S-transforms, atoms by rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.numerics.compile import rational_value
from freeattn.numerics.exact import Atom, ExactSide, exact_context
from freeattn.numerics.polynomials import to_context
from freeattn.theory.cumulants import cumulants_to_moments, moments_to_cumulants
from freeattn.theory.transforms.series import moments_of_product
from freeattn.theory.weights import as_fmpq

__all__ = ["COMPRESSION", "POWER", "PRODUCT", "SUM", "ExactConvolution", "FreeConvolution", "cumulants_of", "remainder"]

SUM, PRODUCT, POWER, COMPRESSION = "free sum", "free product", "free power", "free compression"
_PLAIN = 15
_ROUNDING = Fraction(1, 2**50)  # of a weight: weights that are doubles add up to one to a few of their last bits
_GUARD = 20  # digits: moments to cumulants cancels, about one digit an order


@dataclass(frozen=True)
class FreeConvolution:
    """What was convolved: `laws` (one or two `SpectralLaw`) and, for a power or a compression, the parameter."""

    operation: str
    laws: tuple[Any, ...]
    parameter: Fraction = Fraction(1)


def cumulants_of(law: Any, order: int, digits: int) -> tuple[sp.Rational, ...]:
    """κ_1 … κ_order of a law as rational numbers, to the digits."""
    return tuple(_cumulants(_moments_of(law, order, digits)))


def _cumulants(moments: list[Any]) -> list[Any]:
    return moments_to_cumulants(moments, sp.QQ.zero, sp.QQ.one)


def _moments_of(law: Any, order: int, digits: int) -> list[Any]:
    working = digits + _GUARD + 2 * order
    return [_rational(m, working) for m in law._exact.moments(order, working)]


def _rational(number: Any, digits: int) -> Any:
    value = rational_value(sp.Float(number, digits), digits)
    return sp.QQ(int(value.p), int(value.q))


@dataclass(frozen=True)
class ExactConvolution(ExactSide):
    """A convolution in its own unit, the parameter for a compression (a corner is the power 1/t dilated by t).

    Atoms: μ ⊞ ν has one at a + b when μ({a}) + ν({b}) > 1 (Bercovici, Voiculescu 1998), of the weight that is left;
    μ ⊠ ν likewise at ab ≠ 0, and at 0 the larger weight (Belinschi 2003); μ^{⊞t} has t·μ({a}) − (t − 1) at ta.
    Less than 2⁻⁵⁰ left is none: the density then diverges there, as where it is zero exactly.
    """

    source: FreeConvolution
    mean_one: bool = False

    def normalized(self) -> ExactConvolution:
        return replace(self, mean_one=True)

    def unit(self, digits: int) -> Any:
        context = exact_context(digits)
        t = self.source.parameter
        scale = context.mpf(t.numerator) / t.denominator if self.source.operation == COMPRESSION else context.one
        return scale if not self.mean_one else scale / replace(self, mean_one=False).moments(1, digits)[0]

    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        context = exact_context(digits)
        found = [to_context(as_fmpq(sp.QQ.to_sympy(m)), context) for m in _moments(self.source, order, digits)]
        if self.mean_one:
            found = [m / found[0] ** k for k, m in enumerate(found, 1)]
        return tuple(found)

    def exact_moments(self, order: int) -> tuple[sp.Expr, ...]:
        """m_1 … m_order without rounding.

        Raises:
            NotCoveredError: when those of a law are irrational: θ's of two laws are different numbers of one name.
        """
        groups = [law._exact.exact_moments(order) for law in self.source.laws]
        if not all(moment.is_Rational for group in groups for moment in group):
            raise NotCoveredError("exact moments of a convolution of laws whose moments are irrational: give digits=")
        found = _convolved(self.source, [[sp.QQ(int(m.p), int(m.q)) for m in group] for group in groups])
        if self.mean_one:
            found = tuple(m / found[0] ** k for k, m in enumerate(found, 1))
        return tuple(sp.QQ.to_sympy(m) for m in found)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        unit = float(replace(self, mean_one=False).unit(_PLAIN))
        found = self._atoms(_PLAIN)
        return tuple(sorted((Atom(float(x) / unit, w) for x, w in found), key=lambda atom: atom.location))

    def atoms_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        context = exact_context(digits)
        scale = self.unit(digits) / replace(self, mean_one=False).unit(digits)
        pairs = [(x * scale, context.mpf(w.numerator) / w.denominator) for x, w in self._atoms(digits)]
        return tuple(sorted(pairs))

    @cached_property
    def divergences(self) -> tuple[tuple[float, tuple[float, ...]], ...]:
        """(x, atoms) where the weights of atoms add up to one: none is left, but the density diverges.

        x is in the unit of the engine, the atoms are where the laws have them.
        """
        unit = float(replace(self, mean_one=False).unit(_PLAIN))
        found = [(float(x) / unit, origins) for x, rest, origins in self._weights(_PLAIN) if rest == 0]
        return tuple((x, tuple(map(float, origins))) for x, origins in found)

    def _atoms(self, digits: int) -> list[tuple[Any, Any]]:
        """(location, weight) before the mean is made one."""
        found = [(x, rest) for x, rest, _ in self._weights(digits) if rest > 0]
        if self.source.operation != PRODUCT:
            return found
        zeros = [(x, w) for law in self.source.laws for x, w in _atoms_of(law, digits) if x == 0]
        return found + sorted(zeros, key=lambda atom: atom[1])[-1:]

    def _weights(self, digits: int) -> list[tuple[Any, Any, tuple[Any, ...]]]:
        """(location, weight, atoms of the laws), an atom where it is positive; at 0 products have another rule."""
        t, groups = self.source.parameter, [_atoms_of(law, digits) for law in self.source.laws]
        if self.source.operation == POWER:
            return [(x * t.numerator / t.denominator, remainder(t * w - (t - 1)), (x,)) for x, w in groups[0]]
        if self.source.operation == COMPRESSION:
            return [(x, remainder(w - (1 - t)) / t, (x,)) for x, w in groups[0]]
        pairs = [(a, b, remainder(v + w - 1)) for a, v in groups[0] for b, w in groups[1]]
        if self.source.operation == SUM:
            return [(a + b, rest, (a, b)) for a, b, rest in pairs]
        return [(a * b, rest, (a, b)) for a, b, rest in pairs if a * b]


def remainder(weight: Any) -> Any:
    """What is left of weights, 0 when it is the rounding of a weight or a parameter that was given as a float."""
    return weight if abs(weight) > _ROUNDING else Fraction(0)


def _atoms_of(law: Any, digits: int) -> list[tuple[Any, Any]]:
    """(location as mpmath number, weight as Fraction where it is exact)."""
    return [(x, atom.weight) for (x, _), atom in zip(law._exact.atoms_to(digits), law.atoms, strict=True)]


@lru_cache(maxsize=128)
def _moments(source: FreeConvolution, order: int, digits: int) -> tuple[Any, ...]:
    return _convolved(source, [_moments_of(law, order, digits) for law in source.laws])


def _convolved(source: FreeConvolution, groups: list[list[Any]]) -> tuple[Any, ...]:
    """Moments of a convolution from those of its laws, all rational."""
    if source.operation == PRODUCT:
        return tuple(moments_of_product(groups, sp.QQ))
    t = sp.QQ(source.parameter.numerator, source.parameter.denominator)
    parts = [_cumulants(group) for group in groups]
    if source.operation == SUM:
        cumulants = [a + b for a, b in zip(*parts, strict=True)]
    elif source.operation == POWER:
        cumulants = [t * a for a in parts[0]]
    else:
        cumulants = [a * t**n for n, a in enumerate(parts[0])]
    return tuple(cumulants_to_moments(cumulants, sp.QQ.zero, sp.QQ.one))

"""The algebra of laws: what every node knows about itself.

Nodes are frozen values. Conventions: ψ(z) = ∫ zx/(1−zx) dν, χ = ψ^{−1}, S(w) = (1+w)χ(w)/w, R-transform with
S(w)·R(w·S(w)) = 1; MP_y is the mean-one Marchenko-Pastur law with rows/columns = y, π_t the free Poisson law of rate t.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import sympy as sp

from freeattn.display import ShownAsFormulas
from freeattn.errors import InputError, NotCoveredError
from freeattn.theory.assumptions import Rule
from freeattn.theory.cumulants import cumulants_to_moments, moments_to_cumulants
from freeattn.theory.given_values import positive_integer
from freeattn.theory.symbols import Q, S, W
from freeattn.theory.transforms.series import from_domain, to_domain
from freeattn.theory.transforms.uniformization import Uniformization

__all__ = ["Law", "as_number"]


def as_number(field: str, value: Any) -> sp.Expr:
    """A real parameter of a law as a sympy expression; floats stand for the simple fractions that they round."""
    try:
        number = sp.nsimplify(value, rational=True) if isinstance(value, (float, sp.Float)) else sp.sympify(value)
    except (sp.SympifyError, TypeError, ValueError):
        raise InputError(field, value, "a real number or a symbol") from None
    if not isinstance(number, sp.Expr) or number.is_real is False or number.has(sp.nan, sp.oo, sp.zoo):
        raise InputError(field, value, "a real number or a symbol")
    return number


class Law(ShownAsFormulas, ABC):
    """A probability law on the line, in the algebra."""

    rule: ClassVar[Rule]

    # What a node must say ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def children(self) -> tuple[Law, ...]:
        """The laws that this one is built from."""

    @abstractmethod
    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        """(location, weight) of each possible atom; a weight may be a Max that vanishes."""

    @abstractmethod
    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        """Either moments or cumulants, as `_series_kind` says."""

    _series_kind: ClassVar[str] = "moments"

    def r_transform(self, g: sp.Expr) -> sp.Expr | None:
        """R(g) when it is rational, else None."""
        del g
        return None

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        """S(w) when it is rational, else None."""
        del w
        return None

    def uniformization(self) -> Uniformization:
        """The law as a rational curve.

        Raises:
            NotCoveredError: when no rational parameter is known.
        """
        raise NotCoveredError(
            f"no rational parametrization is known for a law of this kind ({self.rule.name}): its equations are "
            "available, numbers not"
        )

    # What follows by rule --------------------------------------------------------------------------------------------

    def moments(self, order: int) -> tuple[sp.Expr, ...]:
        """m_1 … m_order, exact.

        Raises:
            InputError: for an order that is not a positive integer.
        """
        return _moments(self, positive_integer("order", order))

    def free_cumulants(self, order: int) -> tuple[sp.Expr, ...]:
        """κ_1 … κ_order, exact: R(z) = Σ κ_n z^{n−1}; errors as for `moments`."""
        return _cumulants(self, positive_integer("order", order))

    @property
    def mean(self) -> sp.Expr:
        """The first moment, which is the first free cumulant."""
        return self._series(1)[0]

    @property
    def mass_off_zero(self) -> sp.Expr:
        """1 − ν({0})."""
        return 1 - sp.Add(*(weight for location, weight in self.atoms() if location == 0))

    def s_relation(self) -> sp.Expr:
        """A polynomial in (S, w) that vanishes at S = S(w)."""
        explicit = self.s_transform(W)
        if explicit is not None:
            return sp.fraction(sp.together(S - explicit))[0]
        r = self.r_transform(W * S)
        if r is not None:
            return sp.fraction(sp.cancel(sp.together(S * r - 1)))[0]
        return self._s_relation_by_elimination()

    def s_explicit(self, w: sp.Expr) -> sp.Expr | None:
        """S(w) in closed form, the root with S(0) = 1/mean when the relation is quadratic; None beyond that."""
        explicit = self.s_transform(w)
        if explicit is not None:
            return explicit
        relation = sp.Poly(self.s_relation().subs(W, w), S)
        if relation.degree() != 2:
            return None
        a, b, c = relation.all_coeffs()
        root = sp.sqrt(sp.factor(b**2 - 4 * a * c))
        start = (2 * c * self.mean + b).subs(w, 0)  # ± the root at w = 0, because S(0) = 1/mean
        probe = {s: sp.Rational(k + 7, k + 5) for k, s in enumerate(sorted(start.free_symbols, key=str))}
        return 2 * c / (-b + sp.sign(start.subs(probe)) * root)

    def _s_relation_by_elimination(self) -> sp.Expr:
        curve = self.uniformization()
        first = sp.fraction(sp.together(curve.psi - W))[0]
        second = sp.fraction(sp.together((1 + W) * curve.chi - W * S))[0]
        return eliminate(first, second, Q, keep=(S, W))

    def substitute(self, values: Mapping[sp.Symbol, sp.Expr]) -> Law:
        """The same construction with symbols replaced, all at once."""
        return self.map_parameters(lambda parameter: parameter.xreplace(values))

    def map_parameters(self, change: Callable[[sp.Expr], sp.Expr]) -> Law:
        """The same construction with `change` applied to every parameter of every node."""
        changes = {f.name: _changed(getattr(self, f.name), change) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules used by this node and everything below it, each once, leaves first."""
        seen: dict[str, Rule] = {}
        for child in self.children:
            seen.update({rule.name: rule for rule in child.rules})
        seen.setdefault(self.rule.name, self.rule)
        return tuple(seen.values())


def eliminate(first: sp.Expr, second: sp.Expr, unknown: sp.Symbol, keep: Sequence[sp.Symbol]) -> sp.Expr:
    """The resultant of two polynomials without the factors that do not contain every symbol to keep."""
    resultant = sp.resultant(sp.Poly(first, unknown), sp.Poly(second, unknown))
    factors = sp.factor_list(getattr(resultant, "as_expr", lambda: resultant)())[1]
    useful = [factor for factor, _ in factors if set(keep) <= factor.free_symbols]
    return sp.Mul(*useful)


def _changed(value: Any, change: Callable[[sp.Expr], sp.Expr]) -> Any:
    if isinstance(value, Law):
        return value.map_parameters(change)
    if isinstance(value, tuple):
        return tuple(_changed(item, change) for item in value)
    return change(value) if isinstance(value, sp.Expr) else value


@lru_cache(maxsize=512)
def _moments(law: Law, order: int) -> tuple[sp.Expr, ...]:
    if law._series_kind == "moments":
        return law._series(order)
    domain, [cumulants] = to_domain([law._series(order)])
    return from_domain(domain, cumulants_to_moments(cumulants, domain.zero, domain.one))


@lru_cache(maxsize=512)
def _cumulants(law: Law, order: int) -> tuple[sp.Expr, ...]:
    if law._series_kind == "cumulants":
        return law._series(order)
    domain, [moments] = to_domain([law._series(order)])
    return from_domain(domain, moments_to_cumulants(moments, domain.zero, domain.one))

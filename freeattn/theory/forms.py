"""Two standard forms of rational expressions: factored with every factor 1 + …, and expanded primitive polynomials.

Both are exact and cheap: factorization of small polynomials, and arithmetic in sympy's sparse polynomial rings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import sympy as sp

__all__ = ["expanded", "oriented", "primitive", "ring_of", "split_free", "tidy"]


@lru_cache(maxsize=1024)
def tidy(expression: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The same rational expression as monomial · ∏ (1 + …)^k.

    Each irreducible factor that contains `variable` is divided by its term of lowest order (in `variable`, then in
    total degree) when there is only one; γ_K − cw becomes γ_K·(1 − cw/γ_K). Other factors are oriented.
    """
    return _factored(expression, lambda factor: _lowest(factor, variable))


@lru_cache(maxsize=1024)
def oriented(expression: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The factored expression with a plus sign at the term of lowest order of each factor: 1 − c, never c − 1."""
    return _factored(expression, lambda factor: _sign(factor, variable))


def _factored(expression: sp.Expr, unit_of: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    parts = []
    for part, sign in zip(sp.fraction(sp.together(expression)), (1, -1), strict=True):
        constant, factors = sp.factor_list(part)
        parts.append(constant**sign)
        for factor, power in factors:
            unit = factor if not factor.is_Add else unit_of(factor)
            parts += [unit ** (sign * power), sp.expand(factor / unit) ** (sign * power)]
    return sp.Mul(*parts)


def split_free(expression: sp.Expr, variable: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
    """(part without `variable`, rest) of the tidy form."""
    free, rest = tidy(expression, variable).as_independent(variable, as_Add=False)
    return free, rest


def _lowest(polynomial: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    terms = _lowest_terms(polynomial, variable)
    return terms[0] if polynomial.has(variable) and len(terms) == 1 else _sign(polynomial, variable)


def _sign(polynomial: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    terms = _lowest_terms(polynomial, variable)
    return sp.Integer(-1 if all(term.could_extract_minus_sign() for term in terms) else 1)


def _lowest_terms(polynomial: sp.Expr, variable: sp.Symbol) -> list[sp.Expr]:
    terms = sp.Add.make_args(polynomial)
    keys = [_order(term, variable) for term in terms]
    return [term for term, key in zip(terms, keys, strict=True) if key == min(keys)]


def _order(term: sp.Expr, variable: sp.Symbol) -> tuple[int, int]:
    powers = [(base, exponent) for base, exponent in term.as_powers_dict().items() if base.free_symbols]
    total = sum(int(exponent) if exponent.is_Integer else 1 for _, exponent in powers)
    return sum(int(exponent) for base, exponent in powers if base == variable), total


def ring_of(expressions: Iterable[sp.Expr], leading: Sequence[sp.Symbol]) -> Any:
    """The polynomial ring over Q that holds the expressions; irrational constants are generators of their own."""
    found: set[sp.Expr] = set()
    for expression in expressions:
        found |= expression.free_symbols
        found |= expression.atoms(sp.NumberSymbol, sp.Function)
        found |= {power for power in expression.atoms(sp.Pow) if not power.exp.is_Integer}
    others = sorted(found - set(leading), key=str)
    return sp.polys.rings.PolyRing([*leading, *others], sp.QQ, sp.polys.orderings.lex)


def expanded(terms: Iterable[tuple[sp.Expr, sp.Expr]], leading: Sequence[sp.Symbol]) -> Any:
    """The numerator of Σ coefficient·monomial as a ring element, over the common denominator of all coefficients."""
    pairs = [(*sp.fraction(sp.together(coefficient)), sp.fraction(sp.together(m))) for coefficient, m in terms]
    pairs = [(top * up, bottom * down) for top, bottom, (up, down) in pairs]
    ring = ring_of([part for pair in pairs for part in pair], leading)
    tops = [ring.from_expr(top) for top, _ in pairs]
    bottoms = [ring.from_expr(bottom) for _, bottom in pairs]
    common = ring.one
    for bottom in bottoms:
        common = common.lcm(bottom)
    return sum((top * common.quo(bottom) for top, bottom in zip(tops, bottoms, strict=True)), ring.zero)


def primitive(element: Any) -> Any:
    """A ring element without numerical content, without monomial factors, its first coefficient positive."""
    if not element:
        return element
    exponents = [min(column) for column in zip(*element.itermonoms(), strict=True)]
    shifted = element.ring.from_dict(
        {tuple(a - b for a, b in zip(m, exponents, strict=True)): c for m, c in element.iterterms()}
    )
    reduced = shifted.primitive()[1]
    return -reduced if reduced.LC < 0 else reduced

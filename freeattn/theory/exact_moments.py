"""Exact moments of a layer at its own sizes: rational, or polynomials in θ₁ and θ₂ where these are irrational."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.theory import symbols as sym
from freeattn.theory.attention_words import Words, words_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments
from freeattn.theory.transform_route import transform_derivation

__all__ = ["layer_moments", "mean_one_moments"]


def layer_moments(spec: Attention, order: int, normalized: bool = False) -> tuple[sp.Expr, ...]:
    """m_1 … m_order of the law of a layer, or of the law divided by its mean.

    θ₁ and θ₂ are put in when both are rational; else they stay symbols, or c = θ₂/θ₁ where that is all that matters.

    Raises:
        NotCoveredError: for infinitely many heads of a layer without a closed law.
    """
    words = words_of(spec)
    if any(value is sp.oo for _, value in words.values):
        if not spec.covered_by_transforms:
            raise NotCoveredError("exact moments for infinitely many heads without a closed law: ask for digits")
        derivation = transform_derivation(spec)
        return derivation.normalized_moments(order) if normalized else derivation.moments(order)
    values = dict(words.values) | _rational_thetas(words)
    if normalized and words.homogeneous and sym.THETA_1 not in values:
        values |= {sym.THETA_1: sp.Integer(1), sym.THETA_2: sym.C}
    found = moments(dyson_of(words.expression, words.of), order, values)
    return mean_one_moments(found) if normalized else found


def mean_one_moments(found: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
    """m_k/m_1^k."""
    return tuple(moment / found[0] ** k for k, moment in enumerate(found, 1))


def _rational_thetas(words: Words) -> dict[sp.Symbol, sp.Expr]:
    found: dict[sp.Symbol, sp.Expr] = {}
    for thetas in words.thetas:
        if all(value.is_Rational for value in thetas.exact.values()):
            found |= thetas.exact
    return found

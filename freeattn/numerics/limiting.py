"""`law`: from what has a limiting law to the numbers of it, by one route or the other."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.numerics.exact import exact_law
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.translated import engine_of_curve
from freeattn.theory.transforms import Law

__all__ = ["law"]

_ROUTES = ("transform", "pencil")


def law(
    source: Attention | Law | Expression, route: str | None = None, of: str = "gram",
    sizes: Mapping[Any, Any] | None = None, *, finite_size: bool = False,
) -> SpectralLaw:
    """The limiting law of an attention layer's output, of a word in Gaussian letters, or of a law expression.

    Args:
        source: an `Attention` whose sizes or ratios are numbers, an expression in letters, or a `Law` of
            `freeattn.theory.transforms`.
        route: "transform" (closed laws) or "pencil" (the Dyson equation of the words); by default the first where it
            applies. Both give one law.
        of: for an expression M, "gram" (eigenvalues of M Mᵀ), "cogram" (of Mᵀ M), or "self-adjoint" (of M = Mᵀ itself).
        sizes: for an expression, a number for each symbol that it holds, by name, symbol or space.
        finite_size: for an `Attention`, put the θ's of softmax rows of n_tokens tokens in place of those of the limit
            (`Attention.with_finite_size`); at most 20 digits.

    Raises:
        InputError: when the source is still symbolic, or an argument does not fit it.
        NotCoveredError: when no law is known for it, or not by this route.
        BranchError, ConvergenceError: when the numbers fail their own checks.
    """
    if route not in (None, *_ROUTES):
        raise InputError("route", route, '"transform", "pencil" or None')
    words = isinstance(source, Expression)
    for name, value in (("of", None if of == "gram" else of), ("sizes", sizes)):
        if value is not None and not words:
            raise InputError(name, value, "nothing, unless the source is an expression in letters")
    if finite_size:
        if not isinstance(source, Attention):
            raise InputError("finite_size", finite_size, "False, unless the source is an Attention")
        source = source.with_finite_size()
    if isinstance(source, Law) or (isinstance(source, Attention) and _takes_transforms(source, route)):
        if route == "pencil":
            raise InputError("route", route, '"transform" for a law expression: it has no matrix')
        exact = exact_law(source)
        return SpectralLaw(engine_of_curve(exact.curve), exact)
    if not isinstance(source, (Attention, Expression)):
        raise InputError(
            "source", source, "an Attention (fa.architecture makes one of a name), an expression in letters, or a law "
            "expression"
        )
    if words and route == "transform":
        raise InputError("route", route, '"pencil" for an expression in letters')
    by_words = importlib.import_module("freeattn.numerics.exact_words")  # closed laws do without it
    words_exact = by_words.words_law(source, of, sizes)
    return SpectralLaw(by_words.engine_of(words_exact), words_exact)


def _takes_transforms(spec: Attention, route: str | None) -> bool:
    return route == "transform" or (route is None and spec.covered_by_transforms)

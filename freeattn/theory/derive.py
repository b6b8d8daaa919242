"""From a layer, a law expression or a polynomial in letters to the equations of its law: `derive` chooses the route.

A closed law is derived by transforms; everything else by the linear pencil of its polynomial in letters. The two routes
share the type of their result and nothing else.
"""

from __future__ import annotations

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.scores import ScoreFunction, Softmax
from freeattn.theory import symbols as sym
from freeattn.theory.derivation import Derivation
from freeattn.theory.layer import sizes
from freeattn.theory.pencil_route import layer_derivation, pencil_derivation
from freeattn.theory.transform_route import transform_derivation
from freeattn.theory.transforms import Law

__all__ = ["derive", "symbolic_spec"]

_ROUTES = ("transform", "pencil")


def derive(source: Attention | Law | Expression, route: str | None = None, of: str = "gram") -> Derivation:
    """The derivation of the law of a layer, of a law expression, or of a polynomial in letters.

    Args:
        source: an `Attention`, in numbers or with symbols in any dimension; a law of `freeattn.theory.transforms`; or
            an expression in letters (`gaussian`, `wigner`).
        route: for an `Attention`, "transform" (a closed law by free convolutions) or "pencil" (its words, by the matrix
            Dyson equation); None: transform where a closed law is known, else pencil.
        of: for an expression M, the law of M Mᵀ ("gram"), of MᵀM ("cogram"), or of M = Mᵀ itself ("self-adjoint").

    Raises:
        InputError: for anything else, or a route that does not fit the source.
        NotCoveredError: when no law is known for it by this route.
    """
    if route not in (None, *_ROUTES):
        raise InputError("route", route, '"transform", "pencil" or None (the first that applies)')
    if isinstance(source, Expression):
        if route == "transform":
            raise InputError("route", route, '"pencil" for a polynomial in letters')
        return pencil_derivation(source, of)
    if of != "gram":
        raise InputError("of", of, '"gram" for anything but a polynomial in letters')
    if isinstance(source, Law):
        if route == "pencil":
            raise InputError("route", route, '"transform" for a law expression')
        return transform_derivation(source)
    if isinstance(source, Attention):
        return _derived(source, route)
    raise InputError("source", source, "an Attention, a law expression, or a polynomial in letters")


def _derived(spec: Attention, route: str | None) -> Derivation:
    if route == "pencil":
        return layer_derivation(spec)
    try:
        return transform_derivation(spec)
    except NotCoveredError:
        if route == "transform":
            raise
    return layer_derivation(spec)


def symbolic_spec(output: str = "mha", tie: str = "none", scores: ScoreFunction | str | None = None) -> Attention:
    """A layer all of whose sizes are positive integer symbols, n_tokens, d_model, n_heads, …, with β a symbol."""
    names = ["n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key"]
    if output in ("mha", "values") and tie != "key-value":
        names.append("d_value")
    if output == "mha":
        names.append("d_out")
    return Attention(
        output=output, tie=tie, scores=scores or Softmax(), beta=sym.BETA,
        **dict(zip(names, sizes(*names), strict=True)),
    )

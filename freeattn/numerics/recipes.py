"""Laws by their recipes: what was asked for, from which the same law is made again in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freeattn.model.expression import Expression
from freeattn.numerics.exact import ExactSide
from freeattn.numerics.exact_convolution import COMPRESSION, POWER, PRODUCT, SUM, ExactConvolution
from freeattn.numerics.exact_words import ExactWords
from freeattn.numerics.free_convolutions import free_compression, free_power, free_product, free_sum
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.limiting import law

__all__ = ["reduced", "remade"]

_CONVOLUTIONS: dict[str, Callable[..., SpectralLaw]] = {
    SUM: free_sum, PRODUCT: free_product, POWER: free_power, COMPRESSION: free_compression
}


def reduced(exact: Any) -> tuple[Callable[..., SpectralLaw], tuple[Any, ...]]:
    """What pickle keeps of the law with this exact side: `remade` and its arguments."""
    if isinstance(exact, ExactConvolution):
        source = exact.source
        parameters = (source.parameter,) if source.operation in (POWER, COMPRESSION) else ()
        return remade, (source.operation, (*source.laws, *parameters), {}, exact.mean_one)
    return remade, ("law", (exact.source,), _named(exact), exact.mean_one)


def remade(function: str, arguments: tuple[Any, ...], named: dict[str, Any], mean_one: bool) -> SpectralLaw:
    """The law that a function gives for its arguments, divided by its mean if that was asked for."""
    made = law(*arguments, **named) if function == "law" else _CONVOLUTIONS[function](*arguments)
    return made.normalized() if mean_one else made


def _named(exact: ExactSide) -> dict[str, Any]:
    """The route and, of an expression, the product and the numbers for its symbols."""
    if not isinstance(exact, ExactWords):
        return {"route": "transform"}
    if not isinstance(exact.source, Expression):
        return {"route": "pencil"}
    sizes = {str(symbol): value for symbol, value in exact.values}
    return {"of": exact.system.pencil.of, "sizes": sizes or None}

"""What can be varied in a law given by words, and how the symbols of its equation follow.

The layer is written once more with a symbol t in place of one ratio; derivatives of the values of its words by t are
exact. Widths are varied as total widths over tokens, the number of heads at fixed ratios.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.latent import Latent
from freeattn.model.quantities import Quantity, is_infinite, ratio
from freeattn.model.ties import KeyValueCorrelation
from freeattn.theory.attention_words import words_of
from freeattn.theory.field import as_expression

__all__ = ["Rates", "common_beta", "rates_of"]

Rates = Mapping[sp.Symbol, sp.Expr]
_T = sp.Dummy("t", positive=True)


@lru_cache(maxsize=256)
def rates_of(spec: Attention) -> Mapping[str, Rates]:
    """For each parameter of a layer but β, the derivatives of the symbols that its words hold (zero ones left out).

    Parameters are gamma_key, gamma_value, gamma_out, tokens_per_width, n_heads (at fixed ratios, where each head has
    keys of its own), rho, latent_rank, query_latent_rank and position_width (over n_tokens), residual; for unequal
    heads gamma_key and gamma_value of each family, as in heads[0].gamma_key. Those that ties set are not among them.
    """
    words = words_of(spec)
    known, found = dict(words.values), dict[str, Rates]()
    for name, value, varied in _variations(spec):
        values = dict(words_of(varied).values)
        rates = {s: sp.diff(v, _T).subs(_T, as_expression(value)) for s, v in values.items() if v.has(_T)}
        if set(rates) <= set(known):
            found[name] = {symbol: rate for symbol, rate in rates.items() if rate != 0}
    return found


def common_beta(spec: Attention) -> bool:
    """Whether all heads have the β of the layer."""
    return spec.heads is None or all(family.beta is None for family in spec.heads)


def _variations(spec: Attention) -> Iterator[tuple[str, Quantity, Attention]]:
    """(name, value, the layer with t in its place)."""
    square = spec.tie.output == "key" or spec.residual is not None  # d_out = d_model then
    if spec.heads is None:
        yield from _head_variations(spec)
    else:
        yield from _family_variations(spec)
    if spec.has_output_map and not square:
        yield "gamma_out", spec.gamma_out, _with_ratios(spec, gamma_out=_T)
    follows: dict[str, Any] = {"gamma_out": None} if square else {}
    yield "tokens_per_width", spec.tokens_per_width, _with_ratios(spec, tokens_per_width=_T, **follows)
    if spec.heads is None and spec.n_kv_heads == spec.n_heads and not is_infinite(spec.n_heads):
        yield "n_heads", spec.n_heads, _with_heads(spec)
    tokens = 1 if spec.ratios else spec.n_tokens
    if isinstance(spec.tie.value, KeyValueCorrelation):
        tie = dataclasses.replace(spec.tie, value=KeyValueCorrelation(_T))
        yield "rho", spec.tie.value.rho, spec.replace(tie=tie)
    for field in ("latent", "query_latent"):
        latent: Latent | None = getattr(spec, field)
        if latent is not None:
            varied = dataclasses.replace(latent, rank=tokens * _T)
            yield f"{field}_rank", as_expression(latent.rank) / tokens, spec.replace(**{field: varied})
    if spec.position_width != 0:
        width = as_expression(spec.position_width) / tokens
        yield "position_width", width, spec.replace(position_width=tokens * _T)
    if spec.residual is not None:
        yield "residual", spec.residual, spec.replace(residual=_T)


def _head_variations(spec: Attention) -> Iterator[tuple[str, Quantity, Attention]]:
    """Of like heads."""
    tied: dict[str, Any] = {"gamma_value": None} if spec.tie.equal_widths else {}
    yield "gamma_key", spec.gamma_key, _with_ratios(spec, gamma_key=_T, **tied)
    if spec.has_values and not tied:
        yield "gamma_value", spec.gamma_value, _with_ratios(spec, gamma_value=_T)


def _family_variations(spec: Attention) -> Iterator[tuple[str, Quantity, Attention]]:
    """Of unequal heads, family by family."""
    families = spec.heads or ()
    for k, family in enumerate(families):
        for width in ("d_key", "d_value"):
            tied = spec.tie.equal_widths
            if getattr(family, width) is None or (width == "d_value" and (tied or not spec.has_values)):
                continue
            share = as_expression(family.count) / spec.n_tokens
            changes: dict[str, Any] = {width: _T / share} | ({"d_value": None} if tied else {})
            heads = (*families[:k], dataclasses.replace(family, **changes), *families[k + 1 :])
            name = f"heads[{k}].{width.replace('d_', 'gamma_')}"
            yield name, share * getattr(family, width), spec.replace(heads=heads)


def _with_heads(spec: Attention) -> Attention:
    """t heads of the same total widths."""
    widths = {"gamma_key": spec.gamma_key, "gamma_value": None if spec.tie.equal_widths else spec.gamma_value}
    return _with_ratios(spec, n_heads=_T, **widths)


def _with_ratios(spec: Attention, n_heads: Any = None, **ratios: Any) -> Attention:
    """The layer with other ratios of total widths to tokens; None: as ties say."""
    heads = spec.n_heads if n_heads is None else n_heads
    if spec.ratios is not None:
        return spec.replace(n_heads=heads, ratios=dataclasses.replace(spec.ratios, **ratios))
    share = ratio(spec.n_tokens, heads)
    units = {"gamma_out": spec.n_tokens, "gamma_key": share, "gamma_value": share}
    sizes = {name.replace("gamma", "d"): None if r is None else r * units[name] for name, r in ratios.items()
             if name in units}
    if "tokens_per_width" in ratios:
        sizes["d_model"] = spec.n_tokens / ratios["tokens_per_width"]
    changed = {} if n_heads is None else {"n_heads": n_heads}
    return spec.replace(**changed, **sizes)

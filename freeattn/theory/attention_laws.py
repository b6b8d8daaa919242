"""The closed laws of attention for orthogonal input, written in the algebra of laws.

This module holds the table of arXiv 2610.10033, section 3, and nothing else: which law expression belongs to which
output and tie. With ρ_γ = law of θ₁ − θ₂ + θ₂x, x ~ MP_{1/γ}:

| output | law |
|---|---|
| attention | ρ_{γK} ⊠ MP_{1/h} |
| values | ρ_{γK} ⊠ MP_{1/h} ⊠ π_{γV} |
| MHA | ρ_{γK} ⊠ MP_{1/h} ⊠ MP_{1/γV} ⊠ π_{γO} |
| head sum, h_kv distinct key matrices | ρ_{γkv} ⊠ π_1 |
| values, K = V | π(μ_KV, h), μ_KV = law of (θ₁−θ₂)x + (hθ₂/γ_K)x², x ~ π_{γK/h} |
| MHA, K = V | D_{1/γK}(π(μ_KV, h) ⊠ π_{γO}) |

Sharing keys and values across heads enters only the head sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.quantities import is_infinite
from freeattn.theory import assumptions as given
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Dilation,
    FreePoisson,
    FreeProduct,
    Image,
    Law,
    MarchenkoPastur,
)

__all__ = ["LawExpression", "law_of"]

_SOURCE = "arXiv 2610.10033, Theorem 3.1 and section 3"
_BASIC = (given.ORTHOGONAL_INPUT, given.QUERY_INDEPENDENCE, given.CONDITIONAL_INDEPENDENCE, given.GROWING_WIDTHS)


@dataclass(frozen=True)
class LawExpression:
    """A law in the standard symbols, the value of each symbol for one specification, and what it rests on.

    `values` maps γ's and h to exact numbers or to expressions in the user's symbols; θ₁ and θ₂ are not in it (they
    belong to the score function).
    """

    law: Law
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    rule: Rule
    assumptions: tuple[Assumption, ...]

    def value_of(self, symbol: sp.Symbol) -> sp.Expr:
        """The value of a symbol, or the symbol itself when it has none."""
        return dict(self.values).get(symbol, symbol)


def law_of(spec: Attention) -> LawExpression:
    """The limiting law of the squared singular values of the output of `spec`, as an expression.

    Raises:
        NotCoveredError: for a layer that has no closed law, naming the field, and for infinitely many heads where the
            mean diverges.
    """
    if not spec.covered_by_transforms:
        raise NotCoveredError(
            f"no closed law is known with {', '.join(spec.beyond_transforms)} as given: the transform calculus "
            "covers like heads on orthogonal input, with values independent of the keys or equal to them; the pencil "
            "route covers it"
        )
    tied = spec.tie.value == "key" and spec.output in ("mha", "values")
    endless = is_infinite(spec.n_heads)
    if endless and tied:
        raise NotCoveredError(
            'n_heads = inf has no law with tie="key-value": its mean γ_K θ₁ + h θ₂ grows without bound; '
            "take n_heads finite"
        )
    law = _tied(spec.output) if tied else _independent(spec.output, endless)
    scale = _exact(spec.value_scale) ** 2 * _exact(spec.output_scale) ** 2
    values = _values(spec, endless)
    if scale != 1:
        law = Dilation(law, sym.SCALE)
        values = (*values, (sym.SCALE, scale))
    used = _BASIC if endless else (*_BASIC, given.FIXED_HEADS)
    name = f"law of the {spec.output} output" + (", keys equal to values" if tied else "")
    rule = Rule(name, _STATEMENTS[spec.output, tied], _SOURCE, used)
    opened = tuple(Assumption("left open by symbols", text, "the specification") for text in spec.open_conditions)
    return LawExpression(law, values, rule, (*used, *opened))


def _key_law(gamma: sp.Symbol) -> Law:
    """ρ_γ: law of θ₁ − θ₂ + θ₂ x, x ~ MP_{1/γ}."""
    return Image(MarchenkoPastur(1 / gamma), (sym.THETA_1 - sym.THETA_2, sym.THETA_2))


def _independent(output: str, endless: bool) -> Law:
    if output == "head-sum":
        return FreeProduct((_key_law(sym.GAMMA_KV), FreePoisson(1)))
    factors: list[Law] = [_key_law(sym.GAMMA_KEY)]
    if not endless:
        factors.append(MarchenkoPastur(1 / sym.HEADS))
    if output == "values":
        factors.append(FreePoisson(sym.GAMMA_VALUE))
    if output == "mha":
        factors += [MarchenkoPastur(1 / sym.GAMMA_VALUE), FreePoisson(sym.GAMMA_OUT)]
    return FreeProduct(tuple(factors))


def _tied(output: str) -> Law:
    rate, slope = sym.GAMMA_KEY / sym.HEADS, sym.HEADS * sym.THETA_2 / sym.GAMMA_KEY
    per_head = Image(FreePoisson(rate), (sp.Integer(0), sym.THETA_1 - sym.THETA_2, slope))
    heads = CompoundFreePoisson(per_head, sym.HEADS)
    if output == "values":
        return heads
    return Dilation(FreeProduct((heads, FreePoisson(sym.GAMMA_OUT))), 1 / sym.GAMMA_KEY)


_STATEMENTS = {
    ("attention", False): "ρ_{γK} ⊠ MP_{1/h}",
    ("values", False): "ρ_{γK} ⊠ MP_{1/h} ⊠ π_{γV}",
    ("mha", False): "ρ_{γK} ⊠ MP_{1/h} ⊠ MP_{1/γV} ⊠ π_{γO}",
    ("head-sum", False): "ρ_{γkv} ⊠ π_1",
    ("values", True): "π(μ_KV, h)",
    ("mha", True): "D_{1/γK}(π(μ_KV, h) ⊠ π_{γO})",
}


def _values(spec: Attention, endless: bool) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    if spec.output == "head-sum":
        return ((sym.GAMMA_KV, _exact(spec.gamma_kv)),)
    pairs: list[tuple[sp.Symbol, Any]] = [(sym.GAMMA_KEY, spec.gamma_key)]
    if spec.output in ("mha", "values") and spec.tie.value != "key":
        pairs.append((sym.GAMMA_VALUE, spec.gamma_value))
    if spec.output == "mha":
        pairs.append((sym.GAMMA_OUT, spec.gamma_out))
    if not endless:
        pairs.append((sym.HEADS, spec.n_heads))
    return tuple((symbol, _exact(value)) for symbol, value in pairs)


def _exact(value: Any) -> sp.Expr:
    return sp.sympify(value)

"""Heads as words: scores, values and output map of one family of heads, with ties and latents.

Variances carry all scales, so that no word has a square root. With k, v the variances of the entries of K and V, W^O
of variance o, θ's of the score function and f = 1/(n²v) (1/(nh) where the output has no values),

    Q has variance f·θ₂/(d_key·k),    the noise W has variance f·(θ₁ − θ₂) :

then Σ_r (Q_r K_rᵀ + W_r) V_r O_r is the Gaussian equivalent of MHA^⊥, for any k and v. A tied output map needs k = o,
because it is Kᵀ; tied values need v = k.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import final

import sympy as sp

from freeattn.model.expression import Expression, concatenate, gaussian
from freeattn.model.inputs import InputLaw
from freeattn.model.letters import Copies, Space, copies, space
from freeattn.theory import symbols as sym
from freeattn.theory.word_tokens import REST, TOKENS, Tokens, Weight

__all__ = ["CORRELATED", "Family", "HeadWords", "Kind"]

CORRELATED = "correlated"  # values with a correlation to the keys, whatever its size

OUT = space("out", sym.D_OUT)
LATENT = space("latent", sym.RANK)
POSITION = space("position", sym.D_POSITION)


@final
@dataclass(frozen=True)
class Family:
    """Like heads: their number 1, 2, … among unequal ones (0: all heads are alike) and their symbols of θ₁ and θ₂."""

    number: int
    theta_1: sp.Symbol
    theta_2: sp.Symbol
    grouped: bool = False

    def name(self, text: str) -> str:
        return f"{text}{self.number or ''}"

    def symbol(self, symbol: sp.Symbol) -> sp.Symbol:
        return sym.numbered(symbol, self.number) if self.number else symbol

    @property
    def count(self) -> sp.Symbol:
        return self.symbol(sym.HEADS)

    @cached_property
    def key_value_heads(self) -> Copies:
        """The family that keys and values belong to."""
        return copies("groups", sym.KV_HEADS) if self.grouped else self.heads

    @cached_property
    def heads(self) -> Copies:
        """The family that queries belong to; inside each group where heads share keys."""
        if self.grouped:
            return copies("heads", sym.HEADS / sym.KV_HEADS, within=copies("groups", sym.KV_HEADS))
        return copies(self.name("heads"), self.count)

    def sum(self, expression: Expression) -> Expression:
        """Σ over all heads."""
        inner = self.heads.sum(expression)
        return self.key_value_heads.sum(inner) if self.grouped else inner

    def concatenate(self, expression: Expression) -> Expression:
        """The expressions of all heads side by side."""
        return self.heads.concatenate(expression)


@final
@dataclass(frozen=True)
class Kind:
    """What the words of a layer depend on: which matrices there are and how they are tied, no size.

    Attributes:
        inputs, output, families: of the layer; `square` says that n_tokens = d_model.
        value_tie, output_tie: "none" or "key"; `CORRELATED` values.
        latent, query_latent: whether it is shared by all heads; None without one.
        positions, residual: whether there are any.
        linear: whether θ₁ = θ₂, so that there is no noise.
        scaled: whether weights or the residual branch have scales.
    """

    inputs: InputLaw
    square: bool
    families: tuple[Family, ...]
    output: str
    value_tie: str
    output_tie: str
    latent: bool | None
    query_latent: bool | None
    positions: bool
    residual: bool
    linear: bool
    scaled: bool

    @property
    def has_values(self) -> bool:
        """Whether the output contains the values."""
        return self.output in ("mha", "values")

    @property
    def equal_widths(self) -> bool:
        """Whether ties make values as wide as keys."""
        return (self.value_tie, self.output_tie) != ("none", "none")


@final
class HeadWords:
    """The letters of one family of heads.

    Args:
        kind: of the layer.
        tokens: its tokens.
        family: the heads.
        total_heads: the number of heads of all families.
        total_width: the width of the values of all heads.
    """

    def __init__(
        self, kind: Kind, tokens: Tokens, family: Family, total_heads: sp.Expr, total_width: sp.Expr
    ) -> None:
        self._kind, self._tokens, self._family = kind, tokens, family
        self._output_variance = 1 / total_width
        tied = kind.has_values and kind.value_tie != "none"
        self._key_variance = self._output_variance if kind.output_tie == "key" else tokens.entry
        self._value_variance = self._key_variance if tied else tokens.entry
        n, scale = sym.TOKENS, sym.SCALE if kind.scaled else sp.Integer(1)
        self._factor = scale / (n**2 * self._value_variance) if kind.has_values else scale / (n * total_heads)

    # Widths ------------------------------------------------------------------------------------------------------

    @cached_property
    def _key_spaces(self) -> tuple[Space, ...]:
        """The latent part of a key, and the part that carries positions."""
        own = space(self._family.name("key"), self._family.symbol(sym.D_KEY))
        return (own, POSITION) if self._kind.positions else (own,)

    @cached_property
    def key_width(self) -> sp.Expr:
        """d_key, both parts."""
        return sp.Add(*(place.size for place in self._key_spaces))

    # Letters -----------------------------------------------------------------------------------------------------

    @cached_property
    def _keys(self) -> tuple[Weight, ...]:
        own, *position = self._key_spaces
        found = [self._projected("K", own, self._key_variance)]
        found += [self._tokens.weight("P", place, self._key_variance, None) for place in position]
        return tuple(found)

    @cached_property
    def _values(self) -> tuple[Weight, ...]:
        """W^V, in pieces as wide as those of the keys where a tie asks for it."""
        if self._kind.value_tie == "key":
            return self._keys
        if self._kind.value_tie == CORRELATED:
            fresh = self._fresh_values((1 - sym.RHO**2) * self._value_variance)
            return tuple(sym.RHO * key + value for key, value in zip(self._keys, fresh, strict=True))
        return self._fresh_values(self._value_variance)

    def _fresh_values(self, variance: sp.Expr) -> tuple[Weight, ...]:
        """Values independent of the keys; all of them come from the latent, if there is one."""
        own = space(self._family.name("value"), self._family.symbol(sym.D_VALUE))
        spaces = self._key_spaces if self._kind.equal_widths else (own,)
        return tuple(self._projected(name, place, variance) for name, place in zip(("V", "VP"), spaces, strict=False))

    def _projected(self, name: str, columns: Space, variance: sp.Expr) -> Weight:
        """A key or value weight, through the latent if there is one."""
        shared, owner = self._kind.latent, self._family.key_value_heads
        if shared is None:
            return self._tokens.weight(self._family.name(name), columns, variance, owner)
        down = self._tokens.weight("D", LATENT, self._tokens.entry, None) if shared else self._tokens.weight(
            self._family.name("D"), LATENT, self._tokens.entry, owner
        )
        spread = variance / (self._tokens.entry * sym.RANK)
        return down @ gaussian(self._family.name(f"U{name}"), LATENT, columns, spread, owner)

    def _query(self, name: str, columns: Space) -> Weight:
        variance = self._factor * self._family.theta_2 / (self.key_width * self._key_variance)
        shared, heads = self._kind.query_latent, self._family.heads
        if shared is None:
            return self._tokens.weight(self._family.name(name), columns, variance, heads)
        place = space("query latent", sym.QUERY_RANK)
        down_name = "DQ" if shared else self._family.name("DQ")
        down = self._tokens.weight(down_name, place, self._tokens.entry, None if shared else heads)
        spread = variance / (self._tokens.entry * sym.QUERY_RANK)
        return down @ gaussian(self._family.name(f"U{name}"), place, columns, spread, heads)

    @cached_property
    def _attention(self) -> Expression:
        """The Gaussian equivalent of A_r^⊥, scaled: scores and noise."""
        names = ("Q", "QP")
        words = [
            self._query(name, place).features @ key.features.T
            for name, place, key in zip(names, self._key_spaces, self._keys, strict=False)
        ]
        if not self._kind.linear:
            variance = self._factor * (self._family.theta_1 - self._family.theta_2)
            words.append(gaussian(self._family.name("W"), TOKENS, TOKENS, variance, self._family.heads))
        return reduce(add, words)

    # Outputs -----------------------------------------------------------------------------------------------------

    def mha(self, part: Space) -> Expression:
        """Σ_r A_r V_r O_r with columns in one part of the model space."""
        words = [
            self._attention @ value.features @ out
            for value, out in zip(self._values, self._output_maps(part), strict=True)
        ]
        return self._family.sum(reduce(add, words))

    def _output_maps(self, part: Space) -> tuple[Expression, ...]:
        """O_r, one piece for each piece of the values."""
        if self._kind.output_tie == "key":
            return tuple(key.pieces[self._tokens.parts.index(part)].T for key in self._keys)
        widths = [value.features.columns for value in self._values]
        return tuple(self._free_output(place, part) for place in widths)

    def _free_output(self, place: Space, part: Space) -> Expression:
        name = "O" + ("P" if place == POSITION else "") + ("°" if part == REST else "")
        return gaussian(self._family.name(name), place, part, self._output_variance, self._family.heads)

    def values(self) -> Expression:
        """[A_1 V_1, …, A_h V_h]."""
        pieces = [self._attention @ value.features for value in self._values]
        return self._family.concatenate(pieces[0] if len(pieces) == 1 else concatenate(*pieces))

    def attention(self) -> Expression:
        """[A_1, …, A_h]."""
        return self._family.concatenate(self._attention)

    def head_sum(self) -> Expression:
        """Σ_r A_r."""
        return self._family.sum(self._attention)

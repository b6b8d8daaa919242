"""The words of a layer: its Gaussian equivalent as a polynomial in independent Gaussian letters.

`words_of` covers every specification. Spaces, counts and coefficients are symbols, so that layers which differ in sizes
only share one expression, and its Dyson equation is derived once; `values` holds the numbers, in units of n_tokens (all
sizes over n_tokens; the words are homogeneous, so that their law depends on ratios alone). θ₁ and θ₂ stay symbols:
`thetas` says which score function and which β fill them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import Any, final

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.expression import Expression, concatenate
from freeattn.model.inputs import FeatureCovariance, OrthogonalInput
from freeattn.model.quantities import Quantity, is_infinite, ratio
from freeattn.model.scores import ScoreFunction
from freeattn.model.ties import KeyValueCorrelation
from freeattn.theory import assumptions as given
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.equivalent import equivalence_of
from freeattn.theory.field import as_expression
from freeattn.theory.word_heads import CORRELATED, OUT, Family, HeadWords, Kind
from freeattn.theory.word_tokens import Tokens, tokens_of

__all__ = ["WORDS", "Thetas", "Words", "words_of"]

Values = tuple[tuple[sp.Symbol, sp.Expr], ...]

WORDS = Rule(
    "words of the layer", "M is a polynomial in independent Gaussian letters: tokens, weights and noise",
    "arXiv 2610.10033, section 3, with the weights that the specification names",
    (given.QUERY_INDEPENDENCE, given.CONDITIONAL_INDEPENDENCE, given.GROWING_WIDTHS, given.FIXED_HEADS),
)


@final
@dataclass(frozen=True)
class Thetas:
    """θ₁ and θ₂ of like heads: their symbols, the score function, and β as a number or symbol."""

    theta_1: sp.Symbol
    theta_2: sp.Symbol
    scores: ScoreFunction
    beta: Quantity

    @property
    def exact(self) -> dict[sp.Symbol, sp.Expr]:
        """θ₁ and θ₂ as functions of β, where the score function has them in closed form; empty otherwise."""
        found = self.scores.exact_thetas(as_expression(self.beta), sp)
        return {} if found is None else dict(zip((self.theta_1, self.theta_2), map(sp.sympify, found), strict=True))


@final
@dataclass(frozen=True)
class Words:
    """The words of one specification.

    Attributes:
        expression: the matrix M; its spaces, counts, variances and coefficients are symbols.
        of: which law is meant: "gram", the eigenvalues of M Mᵀ.
        values: each symbol's value in units of n_tokens, exact; the number of heads may be infinite (sympy's oo, widths
            of a head then being total widths over the symbol of the number of heads).
        thetas: the θ's, which are not in `values`; heads with equal β share them.
        homogeneous: True when M Mᵀ is homogeneous of degree one in θ₁ and θ₂ of one pair, so that the law for θ₁ = 1,
            θ₂ = c is dilated by θ₁. A residual connection and heads of different β are not.
        rules, assumptions: what it rests on.
    """

    expression: Expression
    of: str
    values: Values
    thetas: tuple[Thetas, ...]
    homogeneous: bool
    rules: tuple[Rule, ...]
    assumptions: tuple[Assumption, ...]


@lru_cache(maxsize=256)
def words_of(spec: Attention) -> Words:
    """The words of a layer.

    Raises:
        NotCoveredError: for tokens without words.
    """
    families = _families(spec)
    used = _assumptions(spec)
    opened = tuple(Assumption("left open by symbols", text, "the specification") for text in spec.open_conditions)
    pairs = dict.fromkeys((f.theta_1, f.theta_2, beta) for f, beta in zip(families, _betas(spec), strict=True))
    return Words(
        expression=_expression(_kind(spec, families)),
        of="gram",
        values=_values(spec, families),
        thetas=tuple(Thetas(one, two, spec.scores, beta) for one, two, beta in pairs),
        homogeneous=spec.residual is None and len(pairs) == 1,
        rules=(equivalence_of(spec), WORDS),
        assumptions=tuple(dict.fromkeys((*used, *WORDS.assumptions, *equivalence_of(spec).assumptions, *opened))),
    )


# The expression --------------------------------------------------------------------------------------------------


def _families(spec: Attention) -> tuple[Family, ...]:
    if spec.heads is None:
        return (Family(0, sym.THETA_1, sym.THETA_2, grouped=spec.n_kv_heads != spec.n_heads),)
    betas = tuple(dict.fromkeys(_betas(spec)))
    found = []
    for number, beta in enumerate(_betas(spec), start=1):
        which = betas.index(beta) + 1
        pair = (sym.THETA_1, sym.THETA_2)
        one, two = pair if len(betas) == 1 else (sym.numbered(symbol, which) for symbol in pair)
        found.append(Family(number, one, two))
    return tuple(found)


def _betas(spec: Attention) -> tuple[Quantity, ...]:
    if spec.heads is None:
        return (spec.beta,)
    return tuple(spec.beta if family.beta is None else family.beta for family in spec.heads)


def _kind(spec: Attention, families: tuple[Family, ...]) -> Kind:
    tie = spec.tie.value
    return Kind(
        inputs=spec.inputs, square=bool(spec.tokens_per_width == 1), families=families, output=spec.output,
        value_tie=CORRELATED if isinstance(tie, KeyValueCorrelation) else tie, output_tie=spec.tie.output,
        latent=None if spec.latent is None else spec.latent.shared,
        query_latent=None if spec.query_latent is None else spec.query_latent.shared,
        positions=bool(spec.position_width != 0), residual=spec.residual is not None,
        linear=_linear(spec.scores), scaled=bool(_scale(spec) != 1),
    )


@lru_cache(maxsize=64)
def _linear(scores: ScoreFunction) -> bool:
    """Whether θ₁ = θ₂ exactly: then there is no noise."""
    exact: Any = scores.exact_thetas(sym.BETA, sp)
    return exact is not None and bool(exact[0] == exact[1])


@lru_cache(maxsize=64)
def _expression(kind: Kind) -> Expression:
    """M: one expression for all layers of a kind, from which their equation is derived once."""
    tokens = tokens_of(kind.inputs, kind.square)
    heads = _heads(kind, tokens)
    if kind.output == "mha":
        return _mha(kind, tokens, heads)
    if kind.output == "head-sum":
        return reduce(add, (one.head_sum() for one in heads))
    blocks = [one.values() if kind.output == "values" else one.attention() for one in heads]
    return blocks[0] if len(blocks) == 1 else concatenate(*blocks)


def _heads(kind: Kind, tokens: Tokens) -> tuple[HeadWords, ...]:
    families = kind.families
    total_heads = sp.Add(*(family.count for family in families))
    total_width = sp.Add(*(family.count * _value_width(kind, family) for family in families))
    return tuple(HeadWords(kind, tokens, family, total_heads, total_width) for family in families)


def _value_width(kind: Kind, family: Family) -> sp.Expr:
    """d_value; that of the keys where values are tied to them or the output map is."""
    if not kind.equal_widths:
        return family.symbol(sym.D_VALUE)
    return family.symbol(sym.D_KEY) + (sym.D_POSITION if kind.positions else 0)


def _mha(kind: Kind, tokens: Tokens, heads: tuple[HeadWords, ...]) -> Expression:
    """Σ_r A_r V_r O_r, and X beside it; columns by parts of the model space when W^O ends there by construction."""
    if not kind.residual and kind.output_tie == "none":
        return reduce(add, (one.mha(OUT) for one in heads))
    columns = []
    for part in tokens.parts:
        total = reduce(add, (one.mha(part) for one in heads))
        skip = tokens.skip(part) if kind.residual else None
        columns.append(total if skip is None else skip + total)
    return columns[0] if len(columns) == 1 else concatenate(*columns)


# Values ----------------------------------------------------------------------------------------------------------


def _scale(spec: Attention) -> sp.Expr:
    """The factor on M Mᵀ from scales of weights and of the residual branch."""
    branch = 1 if spec.residual is None else spec.residual
    return (as_expression(spec.value_scale) * as_expression(spec.output_scale) * as_expression(branch)) ** 2


def _values(spec: Attention, families: tuple[Family, ...]) -> Values:
    pairs: list[tuple[sp.Symbol, Any]] = [(sym.TOKENS, 1), (sym.D_MODEL, ratio(1, spec.tokens_per_width))]
    pairs += _head_values(spec) if spec.heads is None else _family_values(spec, families)
    if spec.output == "mha":
        pairs.append((sym.D_OUT, spec.gamma_out))
    if spec.position_width != 0:
        pairs.append((sym.D_POSITION, _in_tokens(spec, spec.position_width)))
    for symbol, latent in ((sym.RANK, spec.latent), (sym.QUERY_RANK, spec.query_latent)):
        if latent is not None:
            pairs.append((symbol, _in_tokens(spec, latent.rank)))
    if isinstance(spec.tie.value, KeyValueCorrelation):
        pairs.append((sym.RHO, spec.tie.value.rho))
    if _scale(spec) != 1:
        pairs.append((sym.SCALE, _scale(spec)))
    return tuple((symbol, as_expression(value)) for symbol, value in pairs)


def _in_tokens(spec: Attention, width: Quantity) -> Quantity:
    """A width over n_tokens; specifications by ratios have it so already."""
    return width if spec.ratios else ratio(width, spec.n_tokens)


def _head_values(spec: Attention) -> list[tuple[sp.Symbol, Any]]:
    """Of like heads: per-head widths are total widths over the number of heads, also when that is infinite."""
    endless = is_infinite(spec.n_heads)
    heads = sym.HEADS if endless else spec.n_heads
    content = ratio(spec.gamma_key, heads) - _in_tokens(spec, spec.position_width)
    pairs = [(sym.HEADS, sp.oo if endless else heads), (sym.D_KEY, content)]
    if spec.n_kv_heads != spec.n_heads:
        pairs.append((sym.KV_HEADS, spec.n_kv_heads))
    if spec.has_values and not spec.tie.equal_widths:
        pairs.append((sym.D_VALUE, ratio(spec.gamma_value, heads)))
    return pairs


def _family_values(spec: Attention, families: tuple[Family, ...]) -> list[tuple[sp.Symbol, Any]]:
    pairs = []
    for family, heads in zip(families, spec.families, strict=True):
        content = ratio(heads.d_key - spec.position_width, spec.n_tokens)
        pairs += [(family.count, heads.count), (family.symbol(sym.D_KEY), content)]
        if spec.has_values and not spec.tie.equal_widths:
            pairs.append((family.symbol(sym.D_VALUE), ratio(heads.d_value, spec.n_tokens)))
    return pairs


# Assumptions -----------------------------------------------------------------------------------------------------


def _assumptions(spec: Attention) -> tuple[Assumption, ...]:
    if isinstance(spec.inputs, OrthogonalInput):
        found = [given.ORTHOGONAL_INPUT]
    else:
        found = [given.COVARIANT_INPUT if isinstance(spec.inputs, FeatureCovariance) else given.GAUSSIAN_INPUT]
    if any(latent is not None and latent.normalized for latent in (spec.latent, spec.query_latent)):
        found.append(given.NORMALIZED_LATENT)
    if not isinstance(spec.inputs, OrthogonalInput) or spec.query_latent is not None or spec.heads is not None \
            or spec.residual is not None:
        found.append(given.BEYOND_THEOREM)
    return tuple(found)

"""Tokens and weights as letters: what X W and W are, for each law of the tokens.

Units: X stands for X/√d_model (entries of variance 1/d) and a weight W for a matrix whose entries have the variance
that the entries of X W are to have. So that X W and W keep one variance, whatever the tokens:

- Gaussian tokens: X is a letter with N(0, 1/d) entries, X W a word of two letters;
- a feature covariance C: X = G √C, with √C a deterministic diagonal letter;
- orthogonal tokens: in coordinates of the model space whose first n span the rows of X, X is [1, 0]. W falls into two
  independent letters, W = [W₁; W₂] with X W = W₁; the model space falls into two parts, of sizes n and d − n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.expression import Expression, diagonal, gaussian, identity
from freeattn.model.inputs import FeatureCovariance, GaussianInput, InputLaw, OrthogonalInput
from freeattn.model.letters import Copies, Space, space
from freeattn.theory import symbols as sym
from freeattn.theory.field import as_expression

__all__ = ["REST", "TOKENS", "Tokens", "Weight", "tokens_of"]

TOKENS = space("tokens", sym.TOKENS)
MODEL = space("model", sym.D_MODEL)
REST = space("rest", sym.D_MODEL - sym.TOKENS)  # model coordinates that orthogonal tokens do not reach


@final
@dataclass(frozen=True)
class Weight:
    """A matrix W with d_model rows: `features` = X W (tokens × columns), and W itself, one piece for each part of the
    model space."""

    features: Expression
    pieces: tuple[Expression, ...]

    def __matmul__(self, right: Expression) -> Weight:
        return Weight(self.features @ right, tuple(piece @ right for piece in self.pieces))

    def __add__(self, other: Weight) -> Weight:
        pieces = tuple(a + b for a, b in zip(self.pieces, other.pieces, strict=True))
        return Weight(self.features + other.features, pieces)

    def __rmul__(self, scalar: Any) -> Weight:
        return Weight(scalar * self.features, tuple(scalar * piece for piece in self.pieces))


class Tokens(ABC):
    """The tokens.

    Attributes:
        entry: the variance of entries of X W that keeps variance × size of all letters of order one.
        parts: the parts that the model space falls into.
    """

    entry: sp.Expr
    parts: tuple[Space, ...]

    @abstractmethod
    def weight(self, name: str, columns: Space, variance: sp.Expr, per: Copies | None) -> Weight:
        """An independent weight W with entries of X W of the given variance."""

    @abstractmethod
    def skip(self, part: Space) -> Expression | None:
        """The columns of X that belong to a part of the model space; None where they are zero."""


@final
class _Orthogonal(Tokens):
    def __init__(self, square: bool) -> None:
        self.entry = 1 / sym.TOKENS
        self.parts = (TOKENS,) if square else (TOKENS, REST)

    def weight(self, name: str, columns: Space, variance: sp.Expr, per: Copies | None) -> Weight:
        letters = (name, f"{name}°")
        pieces = tuple(gaussian(a, part, columns, variance, per) for a, part in zip(letters, self.parts, strict=False))
        return Weight(pieces[0], pieces)

    def skip(self, part: Space) -> Expression | None:
        return identity(TOKENS) if part == TOKENS else None


@final
class _Letters(Tokens):
    """Tokens that are an expression themselves."""

    def __init__(self, tokens: Expression) -> None:
        self.entry = 1 / sym.D_MODEL
        self.parts = (MODEL,)
        self._tokens = tokens

    def weight(self, name: str, columns: Space, variance: sp.Expr, per: Copies | None) -> Weight:
        letter = gaussian(f"W{name}", MODEL, columns, variance, per)
        return Weight(self._tokens @ letter, (letter,))

    def skip(self, part: Space) -> Expression | None:
        return self._tokens if part == MODEL else None


def tokens_of(inputs: InputLaw, square: bool) -> Tokens:
    """The tokens of an input law; `square` says that n_tokens = d_model.

    Raises:
        NotCoveredError: for an input law without words.
    """
    if isinstance(inputs, OrthogonalInput):
        return _Orthogonal(square)
    if isinstance(inputs, GaussianInput):
        return _Letters(gaussian("X", TOKENS, MODEL, 1 / sym.D_MODEL))
    if isinstance(inputs, FeatureCovariance):
        roots = tuple(sp.sqrt(as_expression(value)) for value in inputs.eigenvalues)
        spread = diagonal("√C", MODEL, roots, inputs.weights)
        return _Letters(gaussian("G", TOKENS, MODEL, 1 / sym.D_MODEL) @ spread)
    raise NotCoveredError(f"tokens with the law {inputs!r} have no words in Gaussian letters yet")

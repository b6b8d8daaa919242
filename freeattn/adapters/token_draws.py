"""Tokens for a module: drawn from a law, or given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from freeattn.adapters.module_reading import ModuleReading
from freeattn.errors import InputError
from freeattn.evidence.weights import Weights
from freeattn.model.attention import Attention
from freeattn.model.inputs import GaussianInput, InputLaw, OrthogonalInput, as_inputs
from freeattn.model.quantities import as_size

__all__ = ["TokenSource", "token_source"]

Array: TypeAlias = NDArray[np.float64]

_ORTHOGONAL = 1e-6  # relative to the mean square: how far from a multiple of the identity X Xᵀ/d may be


@final
@dataclass(frozen=True, eq=False)
class TokenSource:
    """Where tokens come from.

    Attributes:
        n_tokens: their number.
        law: the law of the tokens that the spectrum is compared with.
        square: mean square of their entries, 1 unless they are given.
        widths: of the tokens that queries, keys and values are made from.
        given: the tokens, or None.
    """

    n_tokens: int
    law: InputLaw
    square: float
    widths: tuple[int, int, int]
    given: Array | None

    def draw(self, spec: Attention, seed: np.random.SeedSequence) -> tuple[Array, Array, Array]:
        """Tokens of queries, keys and values: one matrix three times where the widths are equal."""
        if self.given is not None:
            return (self.given,) * 3
        if len(set(self.widths)) == 1:
            return (Weights(spec, seed).tokens(),) * 3
        parts = zip(self.widths, seed.spawn(3), strict=True)
        query, key, value = (Weights(spec.replace(d_model=width), one).tokens() for width, one in parts)
        return query, key, value


def token_source(reading: ModuleReading, inputs: Any, n_tokens: int | None) -> TokenSource:
    """The tokens that `verify_module` is asked to use.

    Raises:
        InputError: for tokens that do not fit the module, and for a number of tokens that is not theirs.
    """
    if isinstance(inputs, (str, InputLaw)):
        return TokenSource(_number(n_tokens), as_inputs(inputs), 1.0, reading.token_widths, None)
    tokens = _given(inputs, reading)
    if n_tokens is not None and _number(n_tokens) != len(tokens):
        raise InputError("n_tokens", n_tokens, f"{len(tokens)}, the number of given tokens, or None")
    square = float(np.mean(tokens**2))
    if not square > 0:
        raise InputError("inputs", "zeros only", "tokens that are not all zero")
    law = OrthogonalInput() if _orthogonal(tokens, square) else GaussianInput()
    return TokenSource(len(tokens), law, square, reading.token_widths, tokens)


def _number(n_tokens: object) -> int:
    number = as_size("n_tokens", n_tokens)
    if not isinstance(number, int):
        raise InputError("n_tokens", n_tokens, "a positive integer")
    return number


def _given(inputs: Any, reading: ModuleReading) -> Array:
    width = reading.token_widths[0]
    shape: tuple[int, ...] = tuple(getattr(inputs, "shape", ()))
    allowed = f'"gaussian", "orthogonal", an input law, or finite numbers as n_tokens × {width}'
    if reading.cross or len(shape) != 2 or shape[1] != width or shape[0] < 1:
        raise InputError("inputs", f"an array of shape {shape}" if shape else inputs, allowed)
    if hasattr(inputs, "detach") and not inputs.is_complex():
        inputs = inputs.detach().cpu().double()  # numpy has no bfloat16
    plain = np.asarray(inputs)
    if plain.dtype.kind not in "iuf":
        raise InputError("inputs", f"an array of {plain.dtype}", allowed)
    tokens = plain.astype(np.float64)
    if not np.isfinite(tokens).all():
        raise InputError("inputs", "an array with NaN or infinity", allowed)
    return tokens


def _orthogonal(tokens: Array, square: float) -> bool:
    rows, width = tokens.shape
    if rows > width:
        return False
    gram = tokens @ tokens.T / width
    return bool(np.abs(gram - square * np.eye(rows)).max() <= _ORTHOGONAL * square)

"""The random matrices of one simulated layer: tokens, weights, latents, and the noise of the Gaussian equivalent.

Every matrix comes from a stream of its own, which depends on the seed and on the head alone: numbers do not depend on
the order of work, and a layer that shares a matrix with another one has the same numbers in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.inputs import FeatureCovariance, OrthogonalInput
from freeattn.model.latent import Latent
from freeattn.model.quantities import is_infinite, is_known
from freeattn.model.ties import KeyValueCorrelation

__all__ = ["HeadSizes", "Matrix", "Weights", "blas_threads", "check_sizes", "named_seed", "seed_sequence", "shares"]

Matrix: TypeAlias = NDArray[np.float64]

_ONE_THREAD_BELOW = 2048  # rows
# First part of the key of a random stream.
_INPUT, _QUERY, _KEY, _VALUE, _OUTPUT, _NOISE, _LATENT, _QUERY_LATENT, _POSITION = range(9)


@final
@dataclass(frozen=True)
class HeadSizes:
    """Widths and inverse temperature of one head; d_value is 0 when the output has no values."""

    d_key: int
    d_value: int
    beta: float


@final
class Weights:
    """The random matrices of one layer, drawn when asked for; the same call gives the same matrix.

    Weights that act on the tokens have iid N(0, 1/d_model) entries, those that act on a latent N(0, 1/rank). The rows
    of W^O that belong to a head are N(0, 1/total width of the values), times output_scale, or its W^K transposed and
    scaled to the same size.

    Source: arXiv 2610.10033, section 2.
    """

    def __init__(self, spec: Attention, seed: int | np.random.SeedSequence) -> None:
        check_sizes(spec)
        self._spec = spec
        self._root = seed_sequence(seed)
        self.n_tokens: int = spec.n_tokens
        self.d_model: int = spec.d_model
        self.n_heads: int = spec.n_heads
        self.n_kv_heads: int = spec.n_kv_heads
        self.position_width: int = spec.position_width
        self.heads = tuple(_head_sizes(spec))
        self.value_width = sum(head.d_value for head in self.heads)  # of all heads
        self.d_out: int = spec.d_out if spec.has_output_map else 0

    def tokens(self) -> Matrix:
        """X (n_tokens × d_model).

        Orthogonal tokens are √d_model times the transposed Q factor of a Gaussian matrix, signs corrected; with a
        feature covariance the eigenvalues come in order, each for its share of the features.
        """
        inputs, shape = self._spec.inputs, (self.n_tokens, self.d_model)
        if not isinstance(inputs, OrthogonalInput):
            tokens = self._stream(_INPUT, 0).standard_normal(shape)
            if isinstance(inputs, FeatureCovariance):
                tokens *= _feature_scales(inputs, self.d_model)
            return tokens
        gaussian = self._stream(_INPUT, 0).standard_normal(shape[::-1])
        frame, triangle = np.linalg.qr(gaussian)
        frame *= np.where(np.diagonal(triangle) < 0, -1.0, 1.0) * math.sqrt(self.d_model)
        return frame.T

    def group(self, kv_head: int) -> range:
        """The consecutive query heads that use key/value head `kv_head`."""
        size = self.n_heads // self.n_kv_heads
        return range(kv_head * size, (kv_head + 1) * size)

    def latent(self, kv_head: int) -> Matrix:
        """W^D of the latent of a key/value head, d_model × rank; one for all heads when it is shared."""
        return self._down(_LATENT, self._spec.latent, kv_head)

    def query_latent(self, head: int) -> Matrix:
        """The same for queries."""
        return self._down(_QUERY_LATENT, self._spec.query_latent, head)

    def query(self, head: int) -> Matrix:
        """W^Q of a query head, d_model × d_key, or U^Q, rank × d_key; the coordinates that meet positions come last."""
        return self._gaussian(_QUERY, head, (self._rows(self._spec.query_latent), self.heads[head].d_key))

    def key(self, kv_head: int) -> Matrix:
        """W^K of a key/value head, d_model × d_key, or U^K, rank × (d_key − position_width)."""
        width = self._sizes(kv_head).d_key - self.position_width
        return self._gaussian(_KEY, kv_head, (self._rows(self._spec.latent), width))

    def position(self) -> Matrix:
        """W^P, d_model × position_width: the key coordinates that all heads share."""
        return self._gaussian(_POSITION, 0, (self.d_model, self.position_width))

    def value(self, kv_head: int) -> Matrix:
        """An independent W^V of a key/value head, d_model × d_value, or U^V, rank × d_value."""
        return self._gaussian(_VALUE, kv_head, (self._rows(self._spec.latent), self._sizes(kv_head).d_value))

    def output(self, head: int) -> Matrix:
        """The d_value × d_out rows of W^O that belong to a query head, times output_scale."""
        if self._spec.tie.output == "key":
            matrix = self._whole_key(head // (self.n_heads // self.n_kv_heads)).T
            matrix = matrix * math.sqrt(self.d_model / self.value_width)
        else:
            matrix = self._stream(_OUTPUT, head).standard_normal((self.heads[head].d_value, self.d_out))
            matrix /= math.sqrt(self.value_width)
        matrix *= float(self._spec.output_scale)
        return matrix

    def noise(self, head: int) -> Matrix:
        """W_r of the Gaussian equivalent, n_tokens × n_tokens, iid N(0, 1)."""
        return self._stream(_NOISE, head).standard_normal((self.n_tokens, self.n_tokens))

    def _whole_key(self, kv_head: int) -> Matrix:
        """W^K as a map from the tokens, latent multiplied out (and not normalized)."""
        key = self.key(kv_head)
        if self._spec.latent is not None:
            key = self.latent(kv_head) @ key
        return np.hstack([key, self.position()]) if self.position_width else key

    def _sizes(self, kv_head: int) -> HeadSizes:
        return self.heads[self.group(kv_head)[0]]

    def _rows(self, latent: Latent | None) -> int:
        return self.d_model if latent is None else int(latent.rank)

    def _down(self, kind: int, latent: Latent | None, head: int) -> Matrix:
        assert latent is not None
        return self._gaussian(kind, 0 if latent.shared else head, (self.d_model, int(latent.rank)))

    def _gaussian(self, kind: int, index: int, shape: tuple[int, int]) -> Matrix:
        """Independent entries of variance 1/rows: it keeps the variance of what it acts on."""
        matrix = self._stream(kind, index).standard_normal(shape)
        matrix /= math.sqrt(shape[0])
        return matrix

    def _stream(self, kind: int, index: int) -> np.random.Generator:
        key = (*self._root.spawn_key, kind, index)  # what spawn() would make, without its hidden counter
        return np.random.default_rng(
            np.random.SeedSequence(self._root.entropy, spawn_key=key, pool_size=self._root.pool_size)
        )


def blas_threads(rows: int) -> threadpool_limits:
    """A context with one BLAS thread for matrices below 2048 rows: threads that wait for a busy core can slow a
    factorization of size 512 a hundredfold; large ones gain from them."""
    return threadpool_limits(1 if rows < _ONE_THREAD_BELOW else None, user_api="blas")


def seed_sequence(seed: object) -> np.random.SeedSequence:
    """The root of all streams: a seed sequence as it is, or the one of a non-negative integer."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.SeedSequence(int(seed))
    raise InputError("seed", seed, "a non-negative integer or a numpy SeedSequence")


def named_seed(seed: Any) -> int:
    """A seed that a report or a table can name: a non-negative integer.

    Raises:
        InputError: for anything else, a seed sequence too.
    """
    if isinstance(seed, np.random.SeedSequence):
        raise InputError("seed", seed, "a non-negative integer, so that the report can name it")
    seed_sequence(seed)
    return int(seed)


def check_sizes(spec: object) -> None:
    """Refuse what cannot be drawn: a specification with symbols, without sizes or with infinitely many heads.

    Raises:
        InputError: naming the field and how to give it.
    """
    if not isinstance(spec, Attention):
        raise InputError("spec", spec, "an Attention")
    if is_infinite(spec.n_heads):
        raise InputError("n_heads", spec.n_heads, "a finite number to draw a sample: spec.replace(n_heads=…)")
    if spec.ratios is not None:
        raise InputError("n_tokens", None, "sizes to draw a sample: give them with spec.with_sizes(n_tokens)")
    for name, value in _needed(spec).items():
        if not is_known(value):
            allowed = f"a number to draw a sample: give it with spec.replace({name.partition('.')[0]}=…)"
            raise InputError(name, value, allowed)


def _needed(spec: Attention) -> dict[str, Any]:
    """Every number that a draw needs, by the name of its field."""
    names = ["n_tokens", "d_model", "n_heads", "n_kv_heads", "beta", "value_scale", "output_scale", "position_width"]
    names += ["d_key"] if spec.heads is None else []
    names += ["d_value"] if spec.has_values and spec.heads is None else []
    names += ["d_out"] if spec.has_output_map else []
    names += ["residual"] if spec.residual is not None else []
    found = {name: getattr(spec, name) for name in names}
    for family in spec.heads or ():
        widths = ("d_key", "d_value") if spec.has_values else ("d_key",)
        found |= {f"heads.{name}": getattr(family, name) for name in widths if not is_known(getattr(family, name))}
        if family.beta is not None and not is_known(family.beta):
            found["heads.beta"] = family.beta
    latents = {"latent": spec.latent, "query_latent": spec.query_latent}
    found |= {f"{name}.rank": latent.rank for name, latent in latents.items() if latent is not None}
    if isinstance(spec.tie.value, KeyValueCorrelation):
        found["tie.rho"] = spec.tie.value.rho
    return found


def _head_sizes(spec: Attention) -> list[HeadSizes]:
    found = []
    for family in spec.families:
        d_value = family.d_value if spec.has_values else 0
        found += [HeadSizes(family.d_key, d_value, float(family.beta))] * family.count
    return found


def shares(weights: Sequence[float], size: int) -> NDArray[np.intp]:
    """Which of several values each of `size` coordinates has, in order; shares are met to within one coordinate.

    Coordinate j = 1 … size has value number k when w_1 + … + w_{k−1} ≤ (j − 1/2)/size < w_1 + … + w_k.
    """
    middles = (np.arange(size) + 0.5) / size
    return np.searchsorted(np.cumsum(np.asarray(weights, dtype=float))[:-1], middles, side="right")


def _feature_scales(inputs: FeatureCovariance, d_model: int) -> Matrix:
    """√t for each feature."""
    which = shares([float(weight) for weight in inputs.weights], d_model)
    return np.sqrt([float(value) for value in inputs.eigenvalues])[which]

"""Simulated attention at finite size, and its Gaussian equivalent with the same queries, keys, values and output map.

The softmax path draws tokens and weights, forms scores and applies the score function: it uses dimensions, sharing and
`scores.apply`, and neither θ's nor a law. So what checks a law shares no step with what derives it. Only the Gaussian
equivalent, the yardstick for finite-size noise, is built from θ₁ and θ₂.

Heads are drawn one by one, from streams that depend on the seed and on the head alone: memory stays at a few n × n
arrays, the tokens and the accumulated outputs, and numbers do not depend on the order of work.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.quadrature import thetas
from freeattn.model.quantities import is_infinite, is_known

__all__ = ["Sample", "Weights", "check_sizes", "sample", "seed_sequence"]

Matrix: TypeAlias = NDArray[np.float64]

_INPUT, _QUERY, _KEY, _VALUE, _OUTPUT, _NOISE = range(6)  # first part of the key of a random stream
# BLAS threads that wait for a busy core can slow a 512 × 512 factorization a hundredfold; large ones gain from them.
_ONE_THREAD_BELOW = 2048
_EPSILON = float(np.finfo(np.float64).eps)


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """Squared singular values of the centered output M: the n_tokens eigenvalues of M Mᵀ, ascending.

    Attributes:
        softmax: from the real score function (softmax unless the specification says otherwise).
        equivalent: from the Gaussian equivalent with the same queries, keys, values and output map.
        spec, seed: what was drawn; the same seed gives the same numbers on the same machine.

    Zeros are included and exact: a value that double precision cannot tell from zero is set to 0.
    """

    softmax: Matrix
    equivalent: Matrix
    spec: Attention
    seed: int | np.random.SeedSequence


def sample(spec: Attention, seed: int | np.random.SeedSequence = 0) -> Sample:
    """Draw one attention layer and its Gaussian equivalent: squared singular values of the matrix spec.output.

    With S_r = Q_r K_rᵀ/√d_key, A_r = scores.apply(S_r, β) and A_r^⊥ = A_r − 11ᵀ/n (normalized scores) or A_r minus the
    mean of its entries, M is [A_1^⊥ V_1, …, A_h^⊥ V_h] W^O ("mha"), the same without W^O ("values"),
    √(n/h)·[A_1^⊥ … A_h^⊥] ("attention") or √(n h)·(mean of A_r^⊥) ("head-sum"). The equivalent puts
    (√θ₂ S_r + √(θ₁−θ₂) W_r)/n in place of A_r^⊥, W_r iid N(0, 1).

    Raises:
        InputError: when the specification has symbols or no sizes, for a seed that is not one, or when the score
            function gives weights that are not finite.

    Source: arXiv 2610.10033, sections 2-3 and Table D.2 (draws of both with the same Q, K, V, O).
    """
    weights = Weights(spec, seed)
    with threadpool_limits(1 if weights.n_tokens < _ONE_THREAD_BELOW else None, user_api="blas"):
        with np.errstate(all="ignore"):  # a number that is not finite becomes an error, not a warning
            real, equivalent = _outputs(spec, weights)
        if not (np.isfinite(real.matrix).all() and np.isfinite(equivalent.matrix).all()):
            allowed = f"a function whose outputs do not overflow at beta = {spec.beta}"
            raise InputError("scores", spec.scores.name, allowed)
        return Sample(real.squared_singular_values(), equivalent.squared_singular_values(), spec, seed)


def _outputs(spec: Attention, weights: Weights) -> tuple[_Accumulator, _Accumulator]:
    """M of real attention and of its equivalent, head by head."""
    real, equivalent = _accumulator(spec), _accumulator(spec)
    tokens = weights.tokens()
    signal, noise = (factor / weights.n_tokens for factor in _equivalent_factors(spec))
    for kv_head in range(weights.n_kv_heads):
        keys = tokens @ weights.key(kv_head)
        values = tokens @ weights.value(kv_head) if weights.d_value else None
        for head in weights.group(kv_head):
            scores = _scores(tokens @ weights.query(head), keys)
            output = weights.output(head) if weights.d_out else None
            real.add(head, _block(_centered(spec, scores), values, output, weights.n_heads))
            scores *= signal
            scores += noise * weights.noise(head)
            equivalent.add(head, _block(scores, values, output, weights.n_heads))
    return real, equivalent


@final
class Weights:
    """The random matrices of one layer, drawn when asked for; the same call gives the same matrix.

    Tokens satisfy X Xᵀ/d_model = I; W^Q, W^K, W^V have iid N(0, 1/d_model) entries (W^V = W^K when tied, then
    value_scale); the rows of W^O that belong to a head are N(0, 1/(n_heads d_value)), times output_scale.

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
        self.d_key: int = spec.d_key
        self.d_value: int = spec.d_value if spec.output in ("mha", "values") else 0
        self.d_out: int = spec.d_out if spec.output == "mha" else 0

    def tokens(self) -> Matrix:
        """X (n_tokens × d_model): √d_model times the transposed Q factor of a Gaussian matrix, signs corrected."""
        gaussian = self._stream(_INPUT, 0).standard_normal((self.d_model, self.n_tokens))
        frame, triangle = np.linalg.qr(gaussian)
        frame *= np.where(np.diagonal(triangle) < 0, -1.0, 1.0) * math.sqrt(self.d_model)
        return frame.T

    def group(self, kv_head: int) -> range:
        """The consecutive query heads that use key/value head `kv_head`."""
        size = self.n_heads // self.n_kv_heads
        return range(kv_head * size, (kv_head + 1) * size)

    def query(self, head: int) -> Matrix:
        """W^Q of a query head, d_model × d_key."""
        return self._gaussian(_QUERY, head, (self.d_model, self.d_key), self.d_model)

    def key(self, kv_head: int) -> Matrix:
        """W^K of a key/value head, d_model × d_key."""
        return self._gaussian(_KEY, kv_head, (self.d_model, self.d_key), self.d_model)

    def value(self, kv_head: int) -> Matrix:
        """W^V of a key/value head, d_model × d_value: W^K itself when tied; times value_scale."""
        if self._spec.tie.value == "key":
            matrix = self.key(kv_head)
        else:
            matrix = self._gaussian(_VALUE, kv_head, (self.d_model, self.d_value), self.d_model)
        matrix *= float(self._spec.value_scale)
        return matrix

    def output(self, head: int) -> Matrix:
        """The d_value × d_out rows of W^O that belong to a query head, times output_scale."""
        matrix = self._gaussian(_OUTPUT, head, (self.d_value, self.d_out), self.n_heads * self.d_value)
        matrix *= float(self._spec.output_scale)
        return matrix

    def noise(self, head: int) -> Matrix:
        """W_r of the Gaussian equivalent, n_tokens × n_tokens, iid N(0, 1)."""
        return self._gaussian(_NOISE, head, (self.n_tokens, self.n_tokens), 1)

    def _gaussian(self, kind: int, index: int, shape: tuple[int, int], inverse_variance: int) -> Matrix:
        matrix = self._stream(kind, index).standard_normal(shape)
        matrix /= math.sqrt(inverse_variance)
        return matrix

    def _stream(self, kind: int, index: int) -> np.random.Generator:
        key = (*self._root.spawn_key, kind, index)  # what spawn() would make, without its hidden counter
        return np.random.default_rng(
            np.random.SeedSequence(self._root.entropy, spawn_key=key, pool_size=self._root.pool_size)
        )


def seed_sequence(seed: object) -> np.random.SeedSequence:
    """The root of all streams: a seed sequence as it is, or the one of a non-negative integer."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.SeedSequence(int(seed))
    raise InputError("seed", seed, "a non-negative integer or a numpy SeedSequence")


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
    needed = ["n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "beta", "value_scale", "output_scale"]
    needed += ["d_value"] if spec.output in ("mha", "values") else []
    needed += ["d_out"] if spec.output == "mha" else []
    for name in needed:
        if not is_known(getattr(spec, name)):
            allowed = f"a number to draw a sample: give it with spec.replace({name}=…)"
            raise InputError(name, getattr(spec, name), allowed)


def _equivalent_factors(spec: Attention) -> tuple[float, float]:
    values = thetas(spec.scores, spec.beta)
    return math.sqrt(values.theta_2), math.sqrt(max(values.theta_1 - values.theta_2, 0))


def _scores(queries: Matrix, keys: Matrix) -> Matrix:
    scores: Matrix = queries @ keys.T
    scores /= math.sqrt(keys.shape[1])
    return scores


def _centered(spec: Attention, scores: Matrix) -> Matrix:
    """A^⊥: attention weights minus 1/n (rows sum to one) or minus the mean of all entries."""
    attention = np.asarray(spec.scores.apply(scores, float(spec.beta)), dtype=np.float64)
    if attention.shape != scores.shape or not np.isfinite(attention).all():
        raise InputError("scores", spec.scores.name, f"a function with finite weights at beta = {spec.beta}")
    attention -= 1 / len(attention) if spec.scores.normalized else attention.mean()
    return attention


def _block(centered: Matrix, values: Matrix | None, output: Matrix | None, n_heads: int) -> Matrix:
    """What one head contributes to M; the factor √(n/h) serves "attention" and "head-sum" alike."""
    if values is None:
        block = centered * math.sqrt(len(centered) / n_heads)
    else:
        block = centered @ values
    return block if output is None else block @ output


class _Accumulator(ABC):
    """Collects the blocks of M head by head; `matrix` is M or M Mᵀ."""

    matrix: Matrix

    @abstractmethod
    def add(self, head: int, block: Matrix) -> None:
        """Take in the block of one head."""

    @abstractmethod
    def squared_singular_values(self) -> Matrix:
        """The eigenvalues of M Mᵀ, ascending, numerical zeros set to 0."""


@final
class _Whole(_Accumulator):
    """Keeps M: blocks side by side, `step` columns apart, or their sum (step 0)."""

    def __init__(self, rows: int, columns: int, step: int) -> None:
        self.matrix = np.zeros((rows, columns))
        self._step = step

    def add(self, head: int, block: Matrix) -> None:
        start = head * self._step
        self.matrix[:, start : start + block.shape[1]] += block

    def squared_singular_values(self) -> Matrix:
        rows, columns = self.matrix.shape
        found = np.linalg.svd(self.matrix, compute_uv=False)[::-1] ** 2
        values = np.concatenate([np.zeros(rows - len(found)), found])
        # Singular values carry an absolute error of about max(shape)·ε·largest, as in numpy's matrix_rank.
        return _with_exact_zeros(values, (max(rows, columns) * _EPSILON) ** 2)


@final
class _Gram(_Accumulator):
    """Keeps M Mᵀ only, for blocks side by side that are together wider than n_tokens."""

    def __init__(self, rows: int) -> None:
        self.matrix = np.zeros((rows, rows))

    def add(self, head: int, block: Matrix) -> None:
        del head
        self.matrix += block @ block.T

    def squared_singular_values(self) -> Matrix:
        # Eigenvalues carry an absolute error of about n·ε·largest.
        found = np.asarray(np.linalg.eigvalsh(self.matrix), dtype=np.float64)
        return _with_exact_zeros(found, len(self.matrix) * _EPSILON)


def _accumulator(spec: Attention) -> _Accumulator:
    n = spec.n_tokens
    if spec.output == "mha":
        return _Whole(n, spec.d_out, 0)
    if spec.output == "head-sum":
        return _Whole(n, n, 0)
    step = spec.d_value if spec.output == "values" else n
    width = spec.n_heads * step
    return _Whole(n, width, step) if width <= n else _Gram(n)


def _with_exact_zeros(values: Matrix, relative: float) -> Matrix:
    """Ascending values with everything below relative·largest set to 0, read-only."""
    cleaned = np.where(values < relative * values[-1], 0.0, values)
    cleaned.setflags(write=False)
    return cleaned

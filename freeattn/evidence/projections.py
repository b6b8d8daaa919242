"""Queries, keys and values of a simulated layer: the tokens through its weights, latents and ties."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from freeattn.evidence.weights import Matrix, Weights
from freeattn.model.attention import Attention
from freeattn.model.latent import Latent
from freeattn.model.ties import KeyValueCorrelation

__all__ = ["Projections"]


@final
class Projections:
    """Q_r, K_r and V_r, computed when asked for; what all heads share is computed once.

    A latent is D = X W^D, its rows scaled to ‖D_i‖² = rank when it is normalized. Keys are D U^K, beside them X W^P when
    some coordinates carry positions; values are D U^V, the keys themselves, or ρK + √(1 − ρ²) D U^V.
    """

    def __init__(self, spec: Attention, weights: Weights) -> None:
        self._spec, self._weights = spec, weights
        self.tokens = weights.tokens()
        self._latent = self._shared(spec.latent, weights.latent)
        self._query_latent = self._shared(spec.query_latent, weights.query_latent)
        self._position = self.tokens @ weights.position() if weights.position_width else None

    def queries(self, head: int) -> Matrix:
        """Q of a query head, n_tokens × d_key."""
        source = self.tokens if self._spec.query_latent is None else self._query_latent
        if source is None:
            source = self._project(self._spec.query_latent, self._weights.query_latent(head))
        return source @ self._weights.query(head)

    def keys_and_values(self, kv_head: int) -> tuple[Matrix, Matrix | None]:
        """K and V of a key/value head; V is None when the output has no values."""
        source = self.tokens if self._spec.latent is None else self._latent
        if source is None:
            source = self._project(self._spec.latent, self._weights.latent(kv_head))
        keys = source @ self._weights.key(kv_head)
        if self._position is not None:
            keys = np.hstack([keys, self._position])
        if not self._spec.has_values:
            return keys, None
        return keys, self._values(source, keys, kv_head) * float(self._spec.value_scale)

    def _values(self, source: Matrix, keys: Matrix, kv_head: int) -> Matrix:
        tie = self._spec.tie.value
        if tie == "key":
            return keys
        fresh = source @ self._weights.value(kv_head)
        if not isinstance(tie, KeyValueCorrelation):
            return fresh
        rho = float(tie.rho)
        return rho * keys + math.sqrt(1 - rho**2) * fresh

    def _shared(self, latent: Latent | None, down: object) -> Matrix | None:
        """A latent that all heads share; None when there is none."""
        return self._project(latent, down(0)) if latent is not None and latent.shared and callable(down) else None

    def _project(self, latent: Latent | None, down: Matrix) -> Matrix:
        found: Matrix = self.tokens @ down
        if latent is not None and latent.normalized:
            found /= np.sqrt(np.mean(found**2, axis=1, keepdims=True))
        return found

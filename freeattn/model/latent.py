"""Latents: low-rank factors that keys and values, or queries, are built from."""

from __future__ import annotations

from dataclasses import dataclass

from freeattn.errors import InputError
from freeattn.model.quantities import Quantity, as_positive

__all__ = ["Latent", "as_latent"]


@dataclass(frozen=True)
class Latent:
    """A latent D = X W^D (n_tokens × rank) that heads project up: K_r = D U^K_r and V_r = D U^V_r, or Q_r = D U^Q_r.

    W^D has iid N(0, 1/d_model) entries, the U's iid N(0, 1/rank): entries of D, K_r and V_r have variance one.

    Attributes:
        rank: width of the latent, a positive integer or a symbol; in a specification by ratios rank/n_tokens, any
            positive number. It may exceed n_tokens and d_model.
        shared: one latent for all heads, or one for each key/value head (for queries: each head).
        normalized: rows of D are scaled to ‖D_i‖² = rank. The limit is the same; simulations do it.

    Raises:
        InputError: for values that are not allowed.
    """

    rank: Quantity
    shared: bool = True
    normalized: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", as_positive("rank", self.rank))
        for field in ("shared", "normalized"):
            if not isinstance(getattr(self, field), bool):
                raise InputError(field, getattr(self, field), "True or False")


def as_latent(field: str, value: object) -> Latent | None:
    """A `Latent`, or None where there is none.

    Raises:
        InputError: for anything else.
    """
    if value is None or isinstance(value, Latent):
        return value
    raise InputError(field, value, "a Latent(rank, shared=True, normalized=False), or None")

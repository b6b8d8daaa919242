"""Inputs: the law of the token matrix X (n_tokens × d_model)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from freeattn.errors import InputError
from freeattn.model.quantities import as_quantity, encode, ratio

__all__ = ["FeatureCovariance", "GaussianInput", "InputLaw", "OrthogonalInput", "as_inputs"]


class InputLaw(ABC):
    """The law of the tokens, as a value.

    Attributes:
        name: identifier, also the string that stands for the law in `Attention(inputs=…)` where it has no parameters.
        max_tokens_per_width: largest n_tokens/d_model for which the law exists; None when there is no limit.
    """

    name: ClassVar[str]
    max_tokens_per_width: ClassVar[int | None] = None

    @abstractmethod
    def to_form(self) -> object:
        """What stands for the law in a specification's canonical form."""


@dataclass(frozen=True)
class OrthogonalInput(InputLaw):
    """Orthogonal tokens: X Xᵀ / d_model = I, which needs n_tokens ≤ d_model.

    Queries, keys and values X W with iid N(0, 1/d_model) weights then have iid N(0, 1) entries (arXiv 2610.10033,
    section 2).
    """

    name: ClassVar[str] = "orthogonal"
    max_tokens_per_width: ClassVar[int | None] = 1

    def to_form(self) -> object:
        return self.name


@dataclass(frozen=True)
class GaussianInput(InputLaw):
    """Gaussian tokens: X has iid N(0, 1) entries, for any n_tokens and d_model."""

    name: ClassVar[str] = "gaussian"

    def to_form(self) -> object:
        return self.name


@dataclass(frozen=True)
class FeatureCovariance(InputLaw):
    """Gaussian tokens with a feature covariance: rows of X are iid N(0, C), C of discrete spectrum.

    The eigenvalue t_k of C has the share w_k of the d_model features. Weights are divided by their sum (counts are
    accepted), and eigenvalues are scaled so that Σ w_k t_k = 1: entries of X have variance one on average, so that
    scores keep variance one and β its meaning. Equal eigenvalues are merged, and all are sorted, exactly.

    Args:
        eigenvalues: nonnegative rational numbers (floats stand for their exact binary value), not all zero.
        weights: positive rational numbers, one for each eigenvalue (default: equal weights).

    Raises:
        InputError: for values that are not allowed.
    """

    eigenvalues: tuple[Fraction, ...]
    weights: tuple[Fraction, ...] = ()

    name: ClassVar[str] = "feature-covariance"

    def __post_init__(self) -> None:
        values = _rationals("eigenvalues", self.eigenvalues, "nonnegative numbers, at least one of them above 0")
        shares = self.weights if _given(self.weights) else (1,) * len(values)
        weights = _rationals("weights", shares, "positive numbers, one for each eigenvalue")
        if any(value < 0 for value in values) or not any(values):
            raise InputError("eigenvalues", self.eigenvalues, "nonnegative numbers, at least one of them above 0")
        if any(weight <= 0 for weight in weights) or len(weights) != len(values):
            raise InputError("weights", self.weights, f"{len(values)} positive numbers, one for each eigenvalue")
        total = sum(weights, Fraction(0))
        mean = sum((w * t for w, t in zip(weights, values, strict=True)), Fraction(0)) / total
        merged: dict[Fraction, Fraction] = {}
        for weight, value in zip(weights, values, strict=True):
            merged[value / mean] = merged.get(value / mean, Fraction(0)) + weight / total
        object.__setattr__(self, "eigenvalues", tuple(sorted(merged)))
        object.__setattr__(self, "weights", tuple(merged[value] for value in sorted(merged)))

    def to_form(self) -> object:
        return {
            "name": self.name,
            "eigenvalues": [encode(ratio(value, 1)) for value in self.eigenvalues],
            "weights": [encode(ratio(weight, 1)) for weight in self.weights],
        }


def _given(weights: object) -> bool:
    return weights is not None and not (isinstance(weights, (tuple, list)) and not weights)


def _rationals(field: str, values: Any, allowed: str) -> tuple[Fraction, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(field, values, f"a sequence of {allowed}")
    numbers = [as_quantity(field, value, allowed) for value in values]
    for number in numbers:
        if not isinstance(number, (int, Fraction)):  # symbols, and irrational numbers such as sqrt(2)
            raise InputError(field, number, f"rational {allowed}")
    return tuple(Fraction(number) for number in numbers)


_BY_NAME: dict[str, type[OrthogonalInput | GaussianInput]] = {
    law.name: law for law in (OrthogonalInput, GaussianInput)
}


def as_inputs(value: object) -> InputLaw:
    """Resolve the strings "orthogonal" and "gaussian"; an input law passes through.

    Raises:
        InputError: for anything else.
    """
    if isinstance(value, InputLaw):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]()
    names = ", ".join(f'"{name}"' for name in _BY_NAME)
    raise InputError("inputs", value, f"{names}, or a FeatureCovariance(eigenvalues, weights)")

"""Ties: which matrices of a head are built from the same weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.quantities import Quantity, as_quantity, encode, is_symbolic

__all__ = ["KeyValueCorrelation", "Ties", "as_ties", "refuse_queries"]

_SHORTHAND = {
    "none": ("none", "none"),
    "key-value": ("key", "none"),
    "output-key": ("none", "key"),
    "key-value-output": ("key", "key"),
}


@dataclass(frozen=True)
class KeyValueCorrelation:
    """Values correlated with keys: V = ρK + √(1 − ρ²) V′ in each head, V′ an independent copy of V; d_value = d_key.

    Attributes:
        rho: the correlation, a number with −1 < ρ < 1 or a symbol. ρ = 0 is independence; ρ = 1 is tie="key-value".

    Raises:
        InputError: for any other value.
    """

    rho: Quantity

    def __post_init__(self) -> None:
        allowed = "a number between -1 and 1, both excluded, or a symbol"
        rho = as_quantity("rho", self.rho, allowed)
        if not is_symbolic(rho) and not (rho > -1 and rho < 1):
            raise InputError("rho", self.rho, allowed)
        object.__setattr__(self, "rho", rho)


ValueTie: TypeAlias = str | KeyValueCorrelation


@dataclass(frozen=True)
class Ties:
    """What the values and the output map of a head are tied to.

    Attributes:
        value: "none" (W^V independent of W^K), "key" (W^V = W^K within each head), or a `KeyValueCorrelation`.
        output: "none" (W^O independent of everything) or "key": the rows of W^O that belong to a head are its W^K
            transposed, scaled to the entry variance that an independent W^O has, 1/(n_heads d_value):
            W^Kᵀ·√(d_model/(n_heads d_value)).

    Raises:
        InputError: for any other value.
        NotCoveredError: for a tie to the queries, with the reason.
    """

    value: ValueTie = "none"
    output: str = "none"

    def __post_init__(self) -> None:
        for field, tied in (("tie.value", self.value), ("tie.output", self.output)):
            refuse_queries(tied, field)
        if not (isinstance(self.value, KeyValueCorrelation) or self.value in ("none", "key")):
            raise InputError("tie.value", self.value, '"none", "key" or a KeyValueCorrelation(rho)')
        if self.output not in ("none", "key"):
            raise InputError("tie.output", self.output, '"none" or "key"')

    @property
    def shorthand(self) -> str:
        """The string that stands for this value in `Attention(tie=…)`; a correlation, which has none, is described."""
        if isinstance(self.value, KeyValueCorrelation):
            output = "" if self.output == "none" else ", output-key"
            return f"key-value-correlation {self.value.rho}{output}"
        return next(name for name, pair in _SHORTHAND.items() if pair == (self.value, self.output))

    @property
    def equal_widths(self) -> bool:
        """True when d_value = d_key is needed."""
        return self != Ties()

    def to_form(self) -> object:
        """What stands for the ties in a specification's canonical form."""
        if isinstance(self.value, KeyValueCorrelation):
            return {"value": {"key-value-correlation": encode(self.value.rho)}, "output": self.output}
        return self.shorthand


def as_ties(value: object) -> Ties:
    """Resolve "none", "key-value", "output-key", "key-value-output" and a `KeyValueCorrelation`; `Ties` pass through.

    Raises:
        InputError: for anything else.
        NotCoveredError: for a tie to the queries, with the reason.
    """
    if isinstance(value, Ties):
        return value
    if isinstance(value, KeyValueCorrelation):
        return Ties(value=value)
    if isinstance(value, str) and value in _SHORTHAND:
        return Ties(*_SHORTHAND[value])
    refuse_queries(value)
    names = ", ".join(f'"{name}"' for name in _SHORTHAND)
    raise InputError("tie", value, f"{names}, a KeyValueCorrelation(rho) or a Ties value")


def refuse_queries(tied: object, field: str = "tie") -> None:
    """Nothing, except for the name of a tie to the queries: they must be independent (arXiv 2610.10033, section 2).

    Raises:
        NotCoveredError: saying why no law is known.
    """
    if isinstance(tied, str) and "quer" in tied.lower():
        raise NotCoveredError(
            f"{field} = {tied!r} has no known law: queries tied to keys make the scores symmetric, or give them a "
            "diagonal that grows like √d_key, and the rows of the attention matrix are no longer independent given "
            "the keys, on which the Gaussian equivalent rests; no equivalent is known. Queries must be independent"
        )

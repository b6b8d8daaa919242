"""Numbers with derivatives by several parameters: a + Σ_i a_i ε_i with ε_i ε_j = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Dual"]


@dataclass(frozen=True, slots=True)
class Dual:
    """A value and its derivative by each parameter, in one arithmetic (mpmath numbers of one context)."""

    value: Any
    slopes: tuple[Any, ...]

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            slopes = tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True))
            return Dual(self.value + other.value, slopes)
        return Dual(self.value + other, self.slopes)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-a for a in self.slopes))

    def __sub__(self, other: Any) -> Dual:
        return self + -other

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            pairs = zip(self.slopes, other.slopes, strict=True)
            return Dual(self.value * other.value, tuple(a * other.value + self.value * b for a, b in pairs))
        return Dual(self.value * other, tuple(a * other for a in self.slopes))

    __rmul__ = __mul__

    def __rtruediv__(self, other: Any) -> Dual:
        inverse = 1 / self.value
        return Dual(other * inverse, tuple(-other * a * inverse**2 for a in self.slopes))

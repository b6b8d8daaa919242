"""Moments and free cumulants, each from the other, over any commutative ring.

With M(z) = 1 + Σ m_k z^k and free cumulants κ_n,  M(z) = 1 + Σ_s κ_s (z M(z))^s, that is

    m_n = Σ_{s ≤ n} κ_s [z^{n−s}] M(z)^s.

The coefficient of κ_n is one, so nothing is divided.

Source: Nica-Speicher, lecture 10 and theorem 10.23.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

__all__ = ["cumulants_to_moments", "moments_to_cumulants"]


class _Powers:
    """[z^j] M(z)^s, grown along s + j = n while the moments become known."""

    def __init__(self, zero: Any, one: Any) -> None:
        self._zero = zero
        self.moments = [one]
        self._rows = [[one]]

    def next_diagonal(self) -> list[Any]:
        """[z^{n−s}] M(z)^s for s = 1 … n, with n one more than before; needs m_0 … m_{n−1}."""
        n = len(self._rows)
        self._rows.append([])
        found = []
        for s in range(1, n + 1):
            lower, j = self._rows[s - 1], n - s
            found.append(sum(map(mul, self.moments[: j + 1], lower[j::-1]), self._zero))
            self._rows[s].append(found[-1])
        self._rows[0].append(self._zero)
        return found


def cumulants_to_moments(cumulants: Sequence[Any], zero: Any, one: Any) -> list[Any]:
    """m_1 … m_n from κ_1 … κ_n."""
    powers = _Powers(zero, one)
    for n in range(1, len(cumulants) + 1):
        powers.moments.append(sum(map(mul, cumulants[:n], powers.next_diagonal()), zero))
    return powers.moments[1:]


def moments_to_cumulants(moments: Sequence[Any], zero: Any, one: Any) -> list[Any]:
    """κ_1 … κ_n from m_1 … m_n."""
    powers, cumulants = _Powers(zero, one), list[Any]()
    for moment in moments:
        cumulants.append(moment - sum(map(mul, cumulants, powers.next_diagonal()[:-1]), zero))
        powers.moments.append(moment)
    return cumulants

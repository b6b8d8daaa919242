"""m(z) at infinity modulo primes, from exact moments: for laws that are known by their moments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from flint import nmod_poly

from freeattn.theory.modular_series import BadPrimeError

__all__ = ["MomentSeries"]


class MomentSeries:
    """m(1/u) = −Σ_k m_k u^{k+1}.

    Args:
        moments: order ↦ m_1 … m_order, rational.
    """

    def __init__(self, moments: Callable[[int], Sequence[sp.Rational]]) -> None:
        self._moments = moments
        self._known: tuple[sp.Rational, ...] = ()

    def output(self, order: int, prime: int) -> Any:
        """m modulo u^{order + 1} and the prime, an `nmod_poly` in u.

        Raises:
            BadPrimeError: when the prime divides a denominator.
        """
        count = max(order - 1, 0)
        if len(self._known) < count:
            self._known = tuple(self._moments(count))
        known = self._known[:count]
        if any(int(moment.q) % prime == 0 for moment in known):
            raise BadPrimeError
        residues = [-int(m.p) * pow(int(m.q), -1, prime) % prime for m in known]
        return nmod_poly([0, prime - 1, *residues][: order + 1], prime)

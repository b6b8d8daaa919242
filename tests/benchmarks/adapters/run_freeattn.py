"""freeattn by both of its routes: "laws", a law expression; "words", a product of Gaussian letters.

All caches of freeattn and sympy are emptied before each warm run.
"""

from __future__ import annotations

import functools
import gc
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from protocol import answer, serve

import freeattn as fa
from freeattn.theory.transforms import FreeProduct, MarchenkoPastur

ROWS = 40


def forget() -> None:
    """Empty every cached function of freeattn, and sympy's cache."""
    for value in gc.get_objects():
        if isinstance(value, functools._lru_cache_wrapper) and value.__module__.startswith("freeattn"):
            value.cache_clear()
    sympy.core.cache.clear_cache()


class LawMethod:
    def prepare(self, ratios: tuple[float, ...]) -> fa.SpectralLaw:
        factors = tuple(MarchenkoPastur(exact(ratio)) for ratio in ratios)
        return fa.law(factors[0] if len(factors) == 1 else FreeProduct(factors))

    def density(self, state: fa.SpectralLaw, points: np.ndarray) -> np.ndarray:
        return state.density(points)

    def describe(self, state: fa.SpectralLaw) -> dict[str, Any]:
        return {
            "edges": [list(band) for band in state.edges],
            "atoms": [[float(atom.location), float(atom.weight)] for atom in state.atoms],
        }


class WordMethod(LawMethod):
    def prepare(self, ratios: tuple[float, ...]) -> fa.SpectralLaw:
        left, word = fa.space("rows", ROWS), None
        for k, ratio in enumerate(ratios):
            right = fa.space(f"columns{k}", ROWS / exact(ratio))
            letter = fa.gaussian(f"X{k}", left, right, exact(ratio) / ROWS)
            left, word = right, letter if word is None else word @ letter
        return fa.law(word)


def exact(ratio: float) -> sympy.Rational:
    """The ratio that the decimal digits of a request mean."""
    value = Fraction(ratio).limit_denominator(1000)
    return sympy.Rational(value.numerator, value.denominator)


if __name__ == "__main__":
    serve(lambda request: answer(LawMethod() if request["method"] == "laws" else WordMethod(), request, forget))

"""Laws that several test modules look at: each of the six closed laws, and laws built by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp

import freeattn as fa
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    Image,
    Law,
    MarchenkoPastur,
    Semicircle,
)

R = sp.Rational
BERT = fa.architecture("bert-base", n_tokens=512)
WORDS: dict[str, fa.Attention] = {  # layers whose laws are those of words
    "orthogonal": BERT,
    "Gaussian": BERT.replace(inputs="gaussian"),
    "feature covariance": BERT.replace(
        inputs=fa.FeatureCovariance((Fraction(1, 2), Fraction(3, 2)), (Fraction(1, 2), Fraction(1, 2)))),
}


def ratios(*gammas: Any, **fields: Any) -> fa.Attention:
    return fa.Attention.from_ratios(*gammas, **fields)


SPECS: dict[str, fa.Attention] = {
    "attention": ratios(R(3, 4), n_heads=4, output="attention"),
    "attention, two bands": ratios(R(1, 4), n_heads=16, output="attention"),
    "attention, many heads": ratios(2, n_heads=math.inf, output="attention"),
    "values": ratios(R(3, 4), R(5, 2), n_heads=4, output="values"),
    "values, atom": ratios(R(3, 4), R(2, 5), n_heads=2, output="values", beta=R(3, 2)),
    "mha": ratios(R(3, 2), R(3, 2), R(3, 2), n_heads=12),
    "mha, two bands": ratios(R(1, 20), 20, 20, n_heads=128),
    "mha, hard edge": ratios(2, 1, 1, n_heads=1),
    "mha, atom": ratios(R(1, 3), 2, R(1, 2), n_heads=8, beta=R(1, 2)),
    "head-sum": ratios(R(1, 2), n_heads=8, output="head-sum", n_kv_heads=2),
    "tied values": ratios(R(3, 2), n_heads=4, output="values", tie="key-value"),
    "tied values, atom": ratios(R(2, 5), n_heads=3, output="values", tie="key-value"),
    "tied mha": ratios(R(3, 2), None, 2, n_heads=4, tie="key-value"),
    "tied mha, hard edge": ratios(1, None, 1, n_heads=2, tie="key-value"),
    "tied mha, small": ratios(R(1, 4), None, R(1, 2), n_heads=16, tie="key-value", beta=2),
    "linear scores": ratios(R(1, 2), 2, 3, n_heads=2, scores="linear"),
}
SIX = ("attention", "values", "mha", "head-sum", "tied values", "tied mha")

COIN = Discrete((-1, 1), (R(1, 2), R(1, 2)))
EXPRESSIONS: dict[str, Law] = {
    "Marchenko-Pastur": MarchenkoPastur(R(1, 2)),
    "Marchenko-Pastur, atom": MarchenkoPastur(R(5, 2)),
    "Marchenko-Pastur, hard edge": MarchenkoPastur(1),
    "semicircle": Semicircle(1),
    "semicircle and coin": FreeSum((Semicircle(1), COIN)),
    "semicircle and coin, two bands": FreeSum((Semicircle(R(1, 4)), COIN)),
    "semicircle and Marchenko-Pastur": FreeSum((Semicircle(R(1, 2)), MarchenkoPastur(R(1, 2)))),
    "sum with atoms": FreeSum((Discrete((0, 1), (R(1, 2), R(1, 2))), FreePoisson(R(1, 4)))),
    "sample covariance": FreeProduct((Discrete((1, 10), (R(1, 2), R(1, 2))), MarchenkoPastur(R(1, 10)))),
    "projections": FreeProduct((Discrete((0, 1), (R(1, 3), R(2, 3))), Discrete((0, 1), (R(1, 4), R(3, 4))))),
    "compound, signed": CompoundFreePoisson(Discrete((-2, 1), (R(1, 2), R(1, 2))), R(1, 2)),
    "quadratic image": Image(FreePoisson(2), (0, R(1, 3), R(3, 4))),
}
EVERYTHING = {**SPECS, **EXPRESSIONS}


@lru_cache(maxsize=64)
def built(name: str) -> fa.SpectralLaw:
    """The law of a specimen, built once for all tests."""
    return fa.law(EVERYTHING[name])

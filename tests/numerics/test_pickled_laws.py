"""Laws go to other processes by their recipe, and come back the same."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.transforms import FreePoisson, FreeProduct, FreeSum, Law, MarchenkoPastur

SIZES: dict[str, Any] = {"n_tokens": 60, "d_model": 90, "n_heads": 3, "d_key": 20, "d_value": 25, "d_out": 70}
SPEC = fa.Attention(**SIZES)
A_HALF = MarchenkoPastur(sp.Rational(1, 2))
SUM = FreeSum((A_HALF, FreePoisson(sp.Integer(1))))
n, p = fa.space("n", 100), fa.space("p", 150)
G = fa.gaussian("G", n, p, Fraction(1, 100))
WIDTH = sp.Symbol("w", positive=True)
OPEN = fa.gaussian("F", n, fa.space("q", WIDTH), Fraction(1, 100))
S = fa.wigner("S", n, Fraction(1, 100))
MADE = {
    "closed": lambda: fa.law(SPEC),
    "words": lambda: fa.law(SPEC.replace(inputs="gaussian", n_tokens=120)),
    "finite size": lambda: fa.law(SPEC, finite_size=True),
    "endless": lambda: fa.law(fa.Attention.from_ratios(1, 1, Fraction(1, 2), n_heads=float("inf"))),
    "mean one": lambda: fa.law(SPEC).normalized(),
    "expression": lambda: fa.law(SUM),
    "letters": lambda: fa.law(G),
    "transposed": lambda: fa.law(G, of="cogram").normalized(),
    "sizes": lambda: fa.law(OPEN, sizes={"w": 150}),
    "self-adjoint": lambda: fa.law(S + G @ G.T, of="self-adjoint"),
    "free sum": lambda: fa.free_sum(fa.law(SPEC), fa.law(G)),
    "free product": lambda: fa.free_product(fa.law(SPEC).normalized(), fa.law(G)),
    "free power": lambda: fa.free_power(fa.law(SPEC), Fraction(3, 2)),
    "free compression": lambda: fa.free_compression(fa.law(SPEC), Fraction(2, 3)).normalized(),
}


def middle(law: fa.SpectralLaw) -> float:
    low, high = law.edges[-1]
    return float(law.density((low + high) / 2))


@pytest.mark.parametrize("name", MADE)
def test_a_law_comes_back_the_same(name: str) -> None:
    law = MADE[name]()
    points = np.linspace(law.edges[0][0], law.edges[-1][1], 7)[1:-1]
    law.density(points)
    again = pickle.loads(pickle.dumps(law))
    assert again is not law
    assert repr(again) == repr(law)
    assert (again.edges, again.atoms, again.moments(4)) == (law.edges, law.atoms, law.moments(4))
    assert (again.density(points) == law.density(points)).all()
    assert len(pickle.dumps(law)) < 10_000  # the recipe, not its numbers
    if not isinstance(law.spec, (fa.Attention, Law)):
        return
    assert again.spec == law.spec


def test_what_was_computed_does_not_matter() -> None:
    law = fa.law(SPEC)
    before = pickle.dumps(law)
    law.edges_to(30)
    law.density(1, digits=30)
    law.certify(1)
    assert pickle.dumps(law) == before
    assert pickle.loads(before).density(1, digits=30) == law.density(1, digits=30)


def test_the_route_is_kept() -> None:
    plain = SPEC.replace(output="attention", d_value=None, d_out=None)
    for route in ("transform", "pencil"):
        law = fa.law(plain, route=route)
        assert type(pickle.loads(pickle.dumps(law))._exact) is type(law._exact)


def test_copies() -> None:
    law = fa.law(SPEC)
    assert copy.deepcopy(law) is law
    assert copy.deepcopy({"law": law})["law"] is law


@pytest.mark.parametrize("expression", [A_HALF, SUM, FreeProduct((A_HALF, FreePoisson(WIDTH)))])
def test_law_expressions(expression: Law) -> None:
    assert pickle.loads(pickle.dumps(expression)) == copy.deepcopy(expression) == expression


def test_laws_go_through_a_pool() -> None:
    laws = [fa.law(SPEC), fa.law(G)]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(middle, laws)) == [middle(law) for law in laws]
        (made,) = pool.map(partial(fa.law, route="pencil"), [SPEC])
    assert made.spec == SPEC
    assert made.mean == pytest.approx(laws[0].mean, rel=1e-12)

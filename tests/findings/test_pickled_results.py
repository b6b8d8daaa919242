"""What public functions give goes to other processes: by pickle and by copies, with equal content."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn import predict

SPEC = fa.Attention(n_tokens=48, d_model=48, n_heads=3, d_key=16, d_value=16)
GAUSSIAN = SPEC.replace(inputs="gaussian", n_tokens=60)
n, p = fa.space("n", 64), fa.space("p", 96)
G = fa.gaussian("G", n, p, sp.Rational(1, 64))
LAW = fa.law(SPEC)
FOUR, TWO = (fa.Attention.from_ratios(1, 1, 1, n_heads=heads) for heads in (4, 2))
FIXED = fa.law(TWO.replace(beta=Fraction(1, 2)))
MIDDLE = float(sum(LAW.edges[-1])) / 2


def criterion(law: fa.SpectralLaw) -> float:
    return float(law.mean)


def against_constant(law: fa.SpectralLaw, digits: int = 15) -> Any:
    """e^{β²} − 1 of four heads, and for two a constant that it crosses: 2 (e^{1/4} − 1)."""
    return law.moments(1, digits=digits)[0] if law.spec.n_heads == 4 else 2 * FIXED.moments(1, digits=digits)[0]


MADE: dict[str, Callable[[], Any]] = {
    "certificate in a band": lambda: LAW.certify(MIDDLE),
    "certificate in a gap": lambda: LAW.certify(3 * LAW.edges[-1][1]),
    "certificate off the axis": lambda: LAW.certify(MIDDLE + 1j),
    "certificate of many digits": lambda: LAW.certify(MIDDLE, digits=60),
    "certificate of edges": lambda: LAW.certify_edges(),
    "certificate of edges, words": lambda: fa.law(GAUSSIAN).certify_edges(30),
    "a number of many digits": lambda: LAW.stieltjes(mpmath.mpc(1, 1), digits=50),
    "edges of many digits": lambda: LAW.edges_to(50),
    "moments of many digits": lambda: LAW.moments(4, digits=50),
    "atoms": lambda: fa.law(GAUSSIAN).atoms,
    "sample covariance of eigenvalues": lambda: predict.sample_covariance([1, 2.5], 0.5, [1, 3]),
    "sample covariance of a law": lambda: predict.sample_covariance(LAW, 0.5),
    "summary": lambda: predict.summary(LAW),
    "shape numbers": lambda: predict.shape_numbers(LAW),
    "sensitivities": lambda: predict.sensitivities(LAW),
    "allocation": lambda: predict.allocate(SPEC, 30_000, criterion, points=3),
    "best beta": lambda: predict.best_beta(SPEC, criterion, 0.5, 1.5, points=5),
    "crossings": lambda: predict.crossover(FOUR, TWO, against_constant, low=0.6, high=0.75, digits=30, points=5),
    "sample": lambda: fa.sample(SPEC),
    "sample of letters": lambda: fa.sample(G),
    "verification": lambda: fa.verify(SPEC, draws=2),
    "verification of letters": lambda: fa.verify(G, draws=2),
    "verification of a spectrum": lambda: fa.verify_spectrum(fa.sample(SPEC).softmax, SPEC),
    "sweep": lambda: fa.sweep(SPEC, {"d_key": [8, 16]}, ["condition_number"]),
    "convergence": lambda: fa.converge(SPEC, sizes=[48, 96], draws=2, betas=[1]),
    "derivation": lambda: fa.derive(SPEC),
    "derivation of words": lambda: fa.derive(GAUSSIAN),
    "derivation of letters": lambda: fa.derive(G),
    "algebraic curve": lambda: fa.derive(G).curve(),
    "symbolic layer": lambda: fa.symbolic_spec(),
    "ratios": lambda: fa.Attention.from_ratios(gamma_key=1, n_heads=4, output="attention"),
    "architectures": lambda: tuple(fa.architectures()),
    "expression": lambda: G @ G.T,
    "score function": lambda: fa.ReLU(),
    "report": lambda: fa.html_report(SPEC, draws=0),
}


def same(first: Any, second: Any) -> bool:
    """Equal content: arrays and laws too, whose == is none of their content."""
    if type(first).__name__ != type(second).__name__:
        return False
    if isinstance(first, np.ndarray):
        return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"))
    if isinstance(first, np.random.SeedSequence):
        return bool(first.state == second.state)
    if isinstance(first, fa.SpectralLaw):
        return (first.edges, first.atoms, first.mean) == (second.edges, second.atoms, second.mean)
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(value, second[key]) for key, value in first.items())
    if is_dataclass(first):
        shown = [one.name for one in fields(first) if one.compare and not one.name.startswith("_")]
        return all(same(getattr(first, name), getattr(second, name)) for name in shown)
    return bool(first == second) or (first != first and second != second)


@cache
def result(name: str) -> Any:
    return MADE[name]()


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("again", [pickled, copy.deepcopy])
@pytest.mark.parametrize("name", MADE)
def test_a_result_comes_back_with_equal_content(name: str, again: Callable[[Any], Any]) -> None:
    made = result(name)
    assert made is not None
    assert not isinstance(made, tuple) or made
    returned = again(made)
    assert same(made, returned)
    assert (repr(returned), str(returned)) == (repr(made), str(made))


def certified(law: fa.SpectralLaw) -> Any:
    return law.certify(MIDDLE, digits=40)


def test_certificates_and_covariances_come_back_from_a_pool() -> None:
    given = predict.sample_covariance([1, 2.5], 0.5)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        (found,) = pool.map(certified, [LAW])
        risk = pool.submit(given.ridge_risk, 0.3).result()
    assert found.proved == certified(LAW).proved  # its balls depend on what the process had loaded
    assert found.density.contains(LAW.density(MIDDLE, digits=60))
    assert risk == given.ridge_risk(0.3)


def test_a_covariance_that_came_back_predicts_the_same() -> None:
    for population in ([1, 2.5], LAW):
        made = predict.sample_covariance(population, 0.5)
        again = pickle.loads(pickle.dumps(made))
        assert again.ridge_risk([0.1, 1.0]).tolist() == made.ridge_risk([0.1, 1.0]).tolist()
        assert "object at" not in repr(made)
    assert predict.sample_covariance([1, 2], 0.5) != predict.sample_covariance([1.5, 1.5], 0.5)


def test_a_number_that_came_back_has_as_many_digits() -> None:
    number = LAW.density(MIDDLE, digits=50)
    again = pickle.loads(pickle.dumps(number))
    assert again == number
    assert again.context.prec == number.context.prec
    assert abs((again / 3) * 3 - again) < 1e-50
    assert mpmath.mp.dps == 15


def test_a_precision_that_a_user_set_is_kept() -> None:
    number = LAW.density(MIDDLE, digits=50)
    number.context.prec = 401
    assert pickle.loads(pickle.dumps(number)).context.prec == 401

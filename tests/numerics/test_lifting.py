"""Laws of words to many digits: precisions and routes agree, the equation holds, and what is refused."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from specimens import WORDS

import freeattn as fa
from freeattn.errors import BranchError, ConvergenceError
from freeattn.model.precision import own_context
from freeattn.model.quantities import binary_of
from freeattn.numerics.lifting import Lifting
from freeattn.numerics.lifting_layout import COMPLEX, DUAL, REAL, Layout
from freeattn.numerics.precise_traces import PreciseTraces
from freeattn.numerics.sparse_equation import SparseEquation
from freeattn.theory.inversion import inverted

F = Fraction
RATIOS = fa.Attention.from_ratios
CONTEXT = mpmath.MPContext()
CONTEXT.dps = 700
LAYERS = WORDS | {
    "key-value, two copies of sectors": RATIOS(F(3, 2), None, 2, n_heads=4, tie="key-value"),
    "correlated": RATIOS(F(5, 2), F(5, 2), 2, n_heads=4, tie=fa.KeyValueCorrelation(F(1, 2))),
    "hard edge": RATIOS(1, 1, 1, n_heads=1, tokens_per_width=1, inputs="gaussian"),
}
BOTH_ROUTES = ["orthogonal", "key-value, two copies of sectors"]


@cache
def law_of(name: str) -> Any:
    return fa.law(LAYERS[name], route="pencil") if name in BOTH_ROUTES else fa.law(LAYERS[name])


def error(a: Any, b: Any) -> float:
    first, second = CONTEXT.convert(a), CONTEXT.convert(b)
    return float(abs(first - second) / abs(second)) if second else float(abs(first))


def points(law: Any) -> list[Any]:
    (left, _), (_, right) = law.edges[0], law.edges[-1]
    band = [right * share + left * (1 - share) for share in (1e-6, 0.3, 0.999999)]
    return [*band, 0.7 * right + 0.1j, complex(band[1], -1e-9), 1.5 * right, -right, 1e-9 * right, 1e9 * right, 1e12j]


@pytest.mark.parametrize("name", LAYERS)
def test_precisions_agree(name: str) -> None:
    law = law_of(name)
    for z in points(law):
        coarse, fine = law.stieltjes(z, digits=50), law.stieltjes(z, digits=80)
        assert error(coarse, fine) <= 1e-49
        assert error(coarse.imag, fine.imag) <= 1e-48  # of Im m, however small beside Re m
        assert abs(law.stieltjes(z) - complex(fine)) <= 1e-9 * abs(fine)
    for coarse, fine in zip(law.edges_to(50), law.edges_to(80), strict=True):
        assert max(map(error, coarse, fine)) <= 1e-49


@pytest.mark.parametrize("name", BOTH_ROUTES)
def test_routes_agree_to_many_digits(name: str) -> None:
    law, closed = law_of(name), fa.law(LAYERS[name], route="transform")
    for z in points(law):
        assert error(law.stieltjes(z, digits=200), closed.stieltjes(z, digits=220)) <= 1e-199
    for found, edges in zip(law.edges_to(500), closed.edges_to(500), strict=True):
        assert max(map(error, found, edges)) <= 1e-499


@pytest.mark.parametrize("power", [4, 8, 12])
def test_near_an_edge(power: int) -> None:
    """The Jacobian is nearly singular: digits are paid for by precision and rounds, not lost."""
    law, closed = law_of("orthogonal"), fa.law(LAYERS["orthogonal"], route="transform")
    edge = CONTEXT.convert(law.edges_to(60)[-1][1])
    for side in (-1, 1):
        x = edge * (1 + side * CONTEXT.mpf(10) ** -power)
        found, expected = law.stieltjes(x, digits=50), closed.stieltjes(x, digits=60)
        assert error(found, expected) <= 1e-49
        assert error(found.imag, expected.imag) <= 10.0 ** (power - 54)  # as far as x is known beside the edge


def test_infinitely_many_heads_keep_small_traces() -> None:
    """Traces of the size of 1/h = 10⁻⁴⁰ enter with weights of the size of h."""
    law = fa.law(RATIOS(F(3, 2), F(3, 2), F(3, 2), n_heads=math.inf, tokens_per_width=F(1, 2), inputs="gaussian"))
    for z in (1.0, 2 + 0.5j, 1e-9j, -3.0):
        assert error(law.stieltjes(z, digits=20), law.stieltjes(z, digits=35)) <= 1e-19
    for coarse, fine in zip(law.edges_to(20), law.edges_to(35), strict=True):
        assert max(map(error, coarse, fine)) <= 1e-19


# Integers ----------------------------------------------------------------------------------------------------------


def parts(name: str, digits: int) -> tuple[Any, PreciseTraces]:
    engine = law_of(name)._engine
    return engine, engine.traces_to(digits)


@pytest.mark.parametrize("algebra", [REAL, COMPLEX, DUAL])
def test_residuals_are_those_of_the_unknowns(algebra: Any) -> None:
    """After any corrections, right or wrong, R = 1 − a·G and r = reads(G) − u up to rounding, in each algebra."""
    engine, precise = parts("Gaussian", 40)
    equation, bits = precise._sparse, 200
    assert isinstance(equation, SparseEquation)
    layout, generator = Layout(equation, algebra), np.random.default_rng(5)
    u = engine._on_axis(np.array([1.0]))[0]
    system = equation.balanced(u, 1.0 + 0j)
    gauge = np.ones(equation.count) if algebra is DUAL else None
    place = [binary_of(precise.context.mpf(part)) for part in (1.25, 0.5)[: algebra.components]]
    lifting = Lifting(layout, system.units, bits, place[:1] if algebra is DUAL else place, gauge)
    lifting.begin(generator.normal(size=layout.length))
    for exponent in (-20, -70, -115):
        lifting.add(generator.normal(size=layout.length), exponent)
    product = layout.product(lifting._factor, lifting.inverse)
    identity = np.zeros(product.size, dtype=object)
    identity[layout.diagonal] = 1 << 2 * bits
    assert np.abs(identity - product - (lifting._errors[layout.entries] << bits)).max() <= 8 << bits
    read = (lifting._reads * lifting.inverse[layout.reads]).reshape(-1)
    distance = read - (lifting._found[layout.traces] << bits)
    assert np.abs(distance - (lifting._errors[layout.traces] << bits)).max() <= 8 << bits


@pytest.mark.parametrize("name", ["Gaussian", pytest.param("feature covariance", marks=pytest.mark.slow)])
def test_the_equation_holds(name: str) -> None:
    """m from inverses of the small matrices at traces that the lifting found, in floating-point arithmetic."""
    engine, precise = parts(name, 60)
    tables, context = engine._tables(120), own_context(120)
    z = context.mpc(2, "0.25")
    u = engine._descent.solve(np.array([complex(z)]))[0]
    found = precise.stieltjes(u, precise.context.mpc(2, "0.25"))
    traces = [context.mpc(complex(v)) for v in u]
    for _ in range(400):  # the averaged iteration: slow, and another method
        matrices = []
        for sector in tables.sectors:
            size = len(sector.weight)
            rows = [[context.mpc(sector.constant[p, q]) - z * sector.point[p, q] for q in range(size)]
                    for p in range(size)]
            for e, energy in zip(sector.sources, sector.energy, strict=True):
                for p, q in zip(*np.nonzero(energy), strict=True):
                    rows[p][q] -= energy[p, q] * traces[e]
            matrices.append(inverted(rows, context))
        phi = [sum(r.coefficient * matrices[r.sector][r.row][r.column] for r in reads) for reads in tables.reads]
        change = max(abs(a - b) for a, b in zip(phi, traces, strict=True))
        traces = [(a + b) / 2 for a, b in zip(phi, traces, strict=True)]
        if change < 1e-25:
            break
    m = sum(r.coefficient * matrices[r.sector][r.row][r.column] for r in tables.output)
    assert change < 1e-25
    assert error(found, m) <= 1e-23


# Refusals ------------------------------------------------------------------------------------------------------------


def test_a_wrong_start_is_refused() -> None:
    engine, precise = parts("Gaussian", 50)
    z = precise.context.mpc(2, "0.25")
    u = engine._descent.solve(np.array([2 + 0.25j]))[0]
    right = precise.stieltjes(u, z)
    assert error(precise.stieltjes(u * (1 + 1e-8), z), right) <= 1e-49
    for wrong in (u * 1.01, u + 0.5, np.conj(u)):
        with pytest.raises((BranchError, ConvergenceError)):
            precise.stieltjes(wrong, z)


def beside_an_edge(power: int, side: int) -> mpmath.mpf:
    return CONTEXT.convert(law_of("orthogonal").edges_to(60)[-1][1]) * (1 + side * CONTEXT.mpf(10) ** -power)


@pytest.mark.parametrize("side", [1, -1])
def test_a_point_that_doubles_tell_from_an_edge_is_right(side: int) -> None:
    x, closed = beside_an_edge(10, side), fa.law(LAYERS["orthogonal"], route="transform")
    assert error(law_of("orthogonal").stieltjes(x, digits=50), closed.stieltjes(x, digits=60)) <= 1e-49


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("power", [20, 30])
def test_a_point_nearer_to_an_edge_is_refused(power: int, side: int) -> None:
    """In doubles it is the edge, where no start has a regular Jacobian: rounding decides how Newton leaves it."""
    with pytest.raises((ConvergenceError, BranchError), match=r"the point is too near an edge|to another root"):
        law_of("orthogonal").stieltjes(beside_an_edge(power, side), digits=50)


def test_threads_do_not_meet() -> None:
    law = law_of("correlated")
    alone = [law.stieltjes(z, digits=45) for z in (1 + 1j, 2.0, 3 + 0.1j)] * 4
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda z: law.stieltjes(z, digits=45), [1 + 1j, 2.0, 3 + 0.1j] * 4))
    assert [str(a) for a in alone] == [str(b) for b in together]


def test_a_context_whose_precision_was_changed_is_not_used_again() -> None:
    context = own_context(33)
    assert own_context(33) is context
    context.dps = 5
    assert own_context(33) is not context
    assert own_context(33).dps == 33


def test_a_start_with_half_of_its_digits_is_taken_anew() -> None:
    """At 1e-18 of a hard edge doubles leave 1e-8 of the start: the distribution function integrates from there."""
    law = fa.law(fa.Attention(n_tokens=8, d_model=16, n_heads=8, d_key=16, inputs="gaussian", output="head-sum"))
    context = own_context(40)
    points = [context.mpf(10) ** -power for power in (12, 18)]
    far, near = (law.density(x, digits=30) * context.sqrt(x) for x in points)
    assert abs(near / far - 1) < 1e-5  # ρ ~ c/√x
    found, more = law.cdf(1.5, digits=25), law.cdf(1.5, digits=32)
    assert abs(found - more) < 1e-24
    assert float(found) == pytest.approx(law.cdf(1.5), rel=1e-12)

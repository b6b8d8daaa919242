"""Compiled loops for many digits and for proofs: limbs, roots and bounds against Python's integers and numpy."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import mpmath
import numpy as np
import pytest
from specimens import WORDS

import freeattn as fa
from freeattn.errors import BranchError, ConvergenceError, FreeattnError
from freeattn.numerics.backends import precise_traces
from freeattn.numerics.certify import certifier_of
from freeattn.numerics.enclosures import double_of
from freeattn.numerics.exact_points import exact_pair
from freeattn.numerics.precise_traces import PreciseTraces
from freeattn.numerics.root_proofs import prove
from freeattn.numerics.trace_equation import TraceEquation

pytest.importorskip("numba")
from freeattn.numerics.compiled.equation import CompiledEquation
from freeattn.numerics.compiled.limbs import LIMB, accumulate, carry, cut, place
from freeattn.numerics.compiled.pairs import times_exactly
from freeattn.numerics.compiled.traces import CompiledTraces, limbs_of
from freeattn.numerics.compiled.value_proofs import CompiledProofs

_SPEC = spec_from_file_location("robustness", Path(__file__).parents[1] / "benchmarks" / "robustness.py")
robustness = module_from_spec(_SPEC)
_SPEC.loader.exec_module(robustness)
CONTEXT = mpmath.MPContext()
CONTEXT.dps = 700
LAYERS = WORDS | {"latent": fa.architecture("deepseek-v3", n_tokens=2048)}


@cache
def law_of(name):
    return fa.law(LAYERS[name], route="pencil")


def error(a, b):
    first, second = CONTEXT.convert(a), CONTEXT.convert(b)
    return float(abs(first - second) / abs(second)) if second else float(abs(first))


@cache
def both(law, digits):
    """The compiled version of a law's traces, and that on Python's integers."""
    engine = law._engine
    tables, equation = engine._tables(digits + 15), CompiledEquation(engine._tables(0))
    return CompiledTraces(tables, equation, digits, 15), PreciseTraces(tables, equation, digits, 15)


# Limbs ---------------------------------------------------------------------------------------------------------------


def value(limbs):
    """In units of the last limb."""
    return sum(int(limb) << LIMB * k for k, limb in enumerate(reversed(limbs)))


def test_products_of_limbs_are_those_of_integers():
    rng, unit, length = random.Random(3), 2, 12
    for _ in range(200):
        long = [rng.randrange(-(2**25), 2**25) for _ in range(length)]
        short = [rng.randrange(-(2**25), 2**25) for _ in range(3)]
        long[:unit], first, sign = [0] * unit, rng.randrange(unit, length), rng.choice([-1, 1])
        sums = np.zeros(2 * length, dtype=np.int64)
        longs, shorts = np.array(long, dtype=np.int32), np.array([short], dtype=np.int32)
        accumulate(sums, 1, longs, 0, length, unit, shorts, 0, first, sign)
        before = value(sums[length:])
        carry(sums, 1, length, 0, length)
        assert not sums[:length].any()
        assert value(sums[length:]) == before
        assert max(abs(sums[length + 1:])) <= 2**25
        exact = sign * value(long) * value(short) * Fraction(2) ** (-LIMB * (first + 2 - unit))
        assert abs(before - exact) <= 3 * 2**25  # what is below the last limb: three products at most in each limb


def test_numbers_become_limbs_and_corrections_are_cut_to_the_last_bit():
    rng = random.Random(4)
    pairs = [(rng.randrange(-(2**200), 2**200), rng.randrange(-150, -100)) for _ in range(50)] + [(0, 0), (-1, -3)]
    limbs, exponents = limbs_of(pairs)
    numbers = np.zeros(len(pairs) * 20, dtype=np.int64)
    for row, exponent in enumerate(exponents):
        place(numbers, row, 20, 6, limbs, row, exponent)
        exact = pairs[row][0] * Fraction(2) ** (pairs[row][1] + LIMB * 13)
        assert abs(value(numbers[20 * row : 20 * row + 20]) - exact) < 1
    steps, shorts = np.array([rng.uniform(-1e7, 1e7) for _ in range(40)]), np.zeros((40, 4), dtype=np.int32)
    cut(steps, shorts, 1.0)
    assert all(value(short) == Fraction(step) * 2 ** (3 * LIMB) for short, step in zip(shorts, steps, strict=True))


def test_products_of_doubles_are_split_exactly():
    rng = random.Random(5)
    for _ in range(500):
        a, b = (rng.uniform(-1, 1) * 10.0 ** rng.uniform(-60, 60) for _ in range(2))
        high, low = times_exactly(a, b)
        assert Fraction(high) + Fraction(low) == Fraction(a) * Fraction(b)


# Roots ---------------------------------------------------------------------------------------------------------------


def compared(law, digits):
    """The largest difference of both versions over points of every kind, and at the ends of bands."""
    engine, (compiled, reference) = law._engine, both(law, digits)
    right = max(panel.map.right for panel in engine.panels)
    left = engine.panels[-1].map.left
    middle = (left + right) / 2
    points = [middle, 1.5 * right, -right, 0.7 * right + 0.1j, middle + 1e-9j, left + (right - left) * 1e-6,
              1e-9 * right * (1 + 1j), 1e9j * right]
    worst, compared_points = 0.0, 0
    for z in points:
        _, start, point = engine.start_at(z, digits)
        try:
            expected = reference.stieltjes(start, point)
        except ConvergenceError:  # digits that weights do not have
            with pytest.raises(ConvergenceError):
                compiled.stieltjes(start, point)
            continue
        found, compared_points = compiled.stieltjes(start, point), compared_points + 1
        worst = max(worst, error(found, expected), error(found.imag, expected.imag))
    assert compared_points >= 6
    for fold in (fold for pair in engine.folds for fold in pair if fold is not None):
        found, expected = compiled.fold_traces(fold), reference.fold_traces(fold)
        worst = max(worst, error(found[0], expected[0]), *map(error, found[1], expected[1]))
    return worst


@pytest.mark.parametrize("name", LAYERS)
def test_roots_are_those_on_integers(name):
    assert compared(law_of(name), 60) <= 1e-59


def test_roots_to_many_digits_are_those_on_integers():
    assert compared(law_of("Gaussian"), 400) <= 1e-399


@pytest.mark.slow
@pytest.mark.parametrize("kind", robustness.KINDS)
def test_roots_of_random_layers_are_those_on_integers(kind):
    rng, seen = random.Random(8), 0
    for _ in range(4):
        spec = robustness.layer(rng, kind)
        try:
            law = fa.law(spec, route="pencil")
        except FreeattnError:
            continue
        seen += 1
        assert compared(law, 60) <= 1e-59
    assert seen


def test_unknowns_of_a_complex_point_are_those_on_integers():
    engine, (compiled, reference) = law_of("latent")._engine, both(law_of("latent"), 60)
    _, start, point = engine.start_at(3 + 0.2j, 60)
    for found, expected in zip(compiled.traces(start, point), reference.traces(start, point), strict=True):
        assert error(found, expected) <= 1e-58


def test_wrong_starts_are_refused_as_on_integers():
    engine, (compiled, reference) = law_of("Gaussian")._engine, both(law_of("Gaussian"), 50)
    _, u, z = engine.start_at(2 + 0.25j, 50)
    right = reference.stieltjes(u, z)
    assert error(compiled.stieltjes(u * (1 + 1e-8), z), right) <= 1e-49
    for wrong in (u * 1.01, u + 0.5, np.conj(u), u * np.nan, u * 1e200, u * 0):
        with pytest.raises((BranchError, ConvergenceError)):
            compiled.stieltjes(wrong, z)


def test_the_backend_of_the_equation_decides():
    tables = law_of("orthogonal")._engine._tables
    assert type(precise_traces(tables(65), TraceEquation(tables(0)), 50, 15)) is PreciseTraces
    assert type(precise_traces(tables(65), CompiledEquation(tables(0)), 50, 15)) is CompiledTraces


# Proofs --------------------------------------------------------------------------------------------------------------


@cache
def proofs_of(name):
    law = law_of(name)
    certifier = certifier_of(law._exact, law._engine)
    return certifier, CompiledProofs(certifier._enclosed(15).tables(), certifier.system(15)[0].width)


def scaled(certifier, z):
    x, y = exact_pair(z)
    unit = certifier.system(15)[1]
    return x * unit, y * unit


def in_doubles(where):
    return complex(*map(double_of, where))


@pytest.mark.parametrize("name", LAYERS)
def test_balls_of_one_call_contain_values_and_contract_like_the_reference(name):
    law, (certifier, proofs) = law_of(name), proofs_of(name)
    right = law.edges[-1][1]
    unit = certifier.system(15)[1]
    for z in (0.7 * right + 0.1j, 0.5 * right, -3 + 2j, 0.9 * right + 1e-8j, 1e-6 * right + 1e-7j * right):
        where = scaled(certifier, z)
        start = certifier._from_infinity(in_doubles(where))
        found, reference = proofs(start, where), prove(certifier.system(15)[0], start, where)
        assert found is not None
        assert 0.5 < found.share / reference.proof.share < 2
        exact = CONTEXT.convert(law.stieltjes(z, digits=40)) * int(unit.q) / int(unit.p)
        x, y = (CONTEXT.ldexp(part, -found.middle.bits) for part in found.middle[:2])
        assert abs(CONTEXT.mpc(x, y) - exact) <= found.radius + abs(exact) * CONTEXT.mpf(10) ** -39
        assert found.radius <= 1e-20 * float(abs(exact))


@pytest.mark.parametrize("name", ["orthogonal", "Gaussian"])
def test_wrong_roots_have_no_proof_in_one_call(name):
    """Other roots of the equation, roots of another point, of another law, and what is no root."""
    certifier, proofs = proofs_of(name)
    z = 2 + 0.3j
    where = scaled(certifier, z)
    start = certifier._from_infinity(in_doubles(where))
    assert proofs(start, where) is not None
    assert proofs(np.conj(start), where) is None
    assert proofs(np.conj(start), (where[0], -where[1])) is None  # a root, and not the one in the cone
    for wrong in (start * (1 + 1e-3), start + 0.1, start * np.nan, start * 1e200, start * 0):
        assert proofs(wrong, where) is None
    rng = np.random.default_rng(6)
    others = 0
    for _ in range(300):  # roots that Newton's method finds from anywhere
        guess = start * (1 + rng.normal(size=start.size) + 1j * rng.normal(size=start.size))
        root, good = certifier.equation.newton(guess[None], np.array([in_doubles(where)]))
        if good[0] and np.max(np.abs(root[0] / start - 1)) > 1e-3:
            others += 1
            assert proofs(root[0], where) is None
    assert others


def test_a_wider_enclosure_of_weights_widens_the_ball():
    certifier, proofs = proofs_of("Gaussian")
    where = scaled(certifier, 2 + 0.3j)
    start = certifier._from_infinity(in_doubles(where))
    wide = CompiledProofs(certifier._enclosed(15).tables(), 1e-19)
    assert wide(start, where).radius > 100 * proofs(start, where).radius


def test_certificates_of_both_backends_agree():
    law, (certifier, _) = law_of("Gaussian"), proofs_of("Gaussian")
    quick = law.certify(2 + 0.3j)
    assert law._certifier._compiled is not None
    certifier.__dict__["_compiled"] = None
    slow = certifier.point(2 + 0.3j, 15)
    del certifier.__dict__["_compiled"]
    assert (quick.place, quick.proved, quick.branch) == (slow.place, slow.proved, slow.branch)
    assert error(quick.stieltjes.midpoint, slow.stieltjes.midpoint) <= 1e-20
    assert quick.stieltjes.contains(law.stieltjes(2 + 0.3j, digits=40))


def test_edges_to_many_digits_are_proved_at_the_place_that_the_lifting_finds(monkeypatch):
    from freeattn.numerics import certify

    placed, place_fold = [], certify.place_fold

    def counted(*given):
        placed.append(given)
        return place_fold(*given)

    monkeypatch.setattr(certify, "place_fold", counted)
    law = fa.law(fa.Attention(n_tokens=60, d_model=90, n_heads=3, d_key=30, d_value=30, inputs="gaussian"))
    exact = law.edges_to(140)
    edges = law.certify_edges(100).edges
    for edge, value in zip(edges, (end for band in exact for end in band), strict=True):
        assert edge.x.contains(value)
        assert edge.x.radius < 1e-99 * abs(value)
    assert len(placed) == len(edges) == 2


def test_loops_that_another_thread_is_loading_are_not_used(monkeypatch):
    import sys
    from types import ModuleType

    from freeattn.numerics import backends

    tables = law_of("Gaussian")._engine._tables(0)
    monkeypatch.setitem(sys.modules, backends._COMPILED, ModuleType("half of a module"))
    assert type(backends.trace_equation_at_once(tables)) is TraceEquation


def test_sums_too_long_for_limbs_are_taken_on_integers(monkeypatch):
    from freeattn.numerics.compiled import traces

    tables = law_of("Gaussian")._engine._tables
    equation = CompiledEquation(tables(0))
    assert type(precise_traces(tables(65), equation, 50, 15)) is CompiledTraces
    monkeypatch.setattr(traces, "_MOST_TERMS", 0)
    assert type(precise_traces(tables(65), equation, 50, 15)) is PreciseTraces

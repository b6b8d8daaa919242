"""Certificates: balls that contain values known to many digits, and refusals of everything that is not the law."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from flint import fmpq

import freeattn as fa
from freeattn.errors import CertificationError, InputError, NotCoveredError
from freeattn.numerics import folds
from freeattn.numerics.array_balls import Ball, about, positive_definite, product
from freeattn.numerics.certificates import CertifiedBall
from freeattn.numerics.certify import certifier_of
from freeattn.numerics.enclosures import Enclosure, enclosed, exactly, rounded
from freeattn.numerics.fold_proofs import prove_fold
from freeattn.numerics.folds import Fold
from freeattn.numerics.root_proofs import prove, refine
from freeattn.numerics.trace_balls import contraction
from freeattn.numerics.trace_pattern import keeps_pattern
from freeattn.theory.dyson import dyson_of
from freeattn.theory.transforms import MarchenkoPastur

N = fa.space("n", 1)
SIZES = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "d_out": 768}
WIGNER = fa.wigner("S", N)
SOURCES = {
    "orthogonal": fa.Attention(**SIZES),
    "gaussian": fa.Attention(**SIZES, inputs="gaussian"),
    "one head": fa.Attention(**{**SIZES, "n_heads": 1}, inputs="gaussian", beta=Fraction(1, 3)),
    "key-value": fa.Attention(**SIZES, tie="key-value"),
    "latent": fa.Attention(**SIZES, latent=fa.Latent(256, shared=True), inputs="gaussian"),
    "deepseek": fa.architecture("deepseek-v3", n_tokens=2048),
    "relu": fa.Attention(**SIZES, scores="relu"),
    "head-sum": fa.Attention(**SIZES, output="head-sum", n_kv_heads=4),
    "semicircle": WIGNER,
    "two bands": Fraction(1, 2) * WIGNER + fa.diagonal("D", N, [-1, 1], [1, 1]),
    "three squares": fa.gaussian("A", N, N) @ fa.gaussian("B", N, N) @ fa.gaussian("C", N, N),
}
SIGNED = ("semicircle", "two bands")


def law_of(name):
    return fa.law(SOURCES[name], of="self-adjoint") if name in SIGNED else fa.law(SOURCES[name])


@pytest.fixture(scope="module", params=SOURCES)
def law(request):
    return law_of(request.param)


@pytest.fixture(scope="module")
def layer():
    return fa.law(SOURCES["gaussian"])


def points_of(law):
    """Off the axis, in each band, beyond the support, and in the gap between bands."""
    (low, _), (_, high) = law.edges[0], law.edges[-1]
    inside = [left + (right - left) * share for left, right in law.edges for share in (1e-3, 0.37, 0.999)]
    between = [0.4 * left + 0.6 * right for (_, left), (right, _) in zip(law.edges, law.edges[1:], strict=False)]
    return [*inside, *between, low - 0.7, 1.1 * high, 0.3 + 0.2j, high * (0.5 + 1e-3j), -2 - 3j]


# Values --------------------------------------------------------------------------------------------------------------


def test_balls_contain_values_to_many_digits(law):
    for z in points_of(law):
        proof = law.certify(z)
        known = law.stieltjes(z, digits=50)
        assert proof.stieltjes.contains(known), z
        assert proof.stieltjes.radius < 1e-13 * abs(proof.stieltjes.midpoint)
        assert proof.contraction < 0.25
        if isinstance(z, complex):
            assert (proof.place, proof.density) == ("upper half-plane", None)
        elif proof.place == "band":
            assert proof.density.contains(law.density(z, digits=50)), z
            assert proof.density.midpoint > proof.density.radius
        else:
            assert proof.place == "gap"
            assert law.density(z) == 0 == proof.density.midpoint == proof.density.radius


def test_normalized_laws_and_many_digits(layer):
    law = layer.normalized()
    for z in (0.5, -0.25 + 0.5j):
        proof = law.certify(z, digits=60)
        assert proof.stieltjes.contains(law.stieltjes(z, digits=90))
        assert proof.stieltjes.radius < 1e-60 * abs(proof.stieltjes.midpoint)
    assert law.certify_edges(60).edges[1].x.contains(law.edges_to(90)[0][1])


def test_points_are_exact_numbers():
    law = fa.law(WIGNER, of="self-adjoint")
    third = law.certify(Fraction(1, 3), digits=40)
    context = mpmath.MPContext()
    context.dps = 80
    x = context.mpf(1) / 3
    assert third.density.contains(context.sqrt(4 - x * x) / (2 * context.pi))
    assert law.certify("1/3", digits=40).density == third.density
    assert not law.certify(1 / 3, digits=40).density.contains(third.density.midpoint)
    assert law.certify(0).density.contains(1 / context.pi)


def test_lower_half_plane_is_the_conjugate(layer):
    upper, lower = layer.certify(1 + 1j).stieltjes, layer.certify(1 - 1j).stieltjes
    assert lower.midpoint == upper.midpoint.conjugate()


@pytest.mark.parametrize("source", ["orthogonal", "two bands"])
def test_near_an_edge_it_proves_or_refuses(source):
    law = law_of(source)
    refused, proved = 0, 0
    for edge in np.ravel(law.edges):
        for distance in (1e-3, 1e-6, 1e-9, 1e-12, 1e-14, 0.0):
            for x in (edge * (1 - distance), edge * (1 + distance)):
                try:
                    proof = law.certify(x)
                except CertificationError:
                    refused += 1
                    continue
                proved += 1
                inside = any(left < x < right for left, right in law.edges)
                assert proof.place == ("band" if inside else "gap")
                assert proof.stieltjes.radius <= 1e-15 * abs(proof.stieltjes.midpoint)
                if distance >= 1e-9:  # nearer, doubles have no value to compare with
                    assert abs(complex(proof.stieltjes.midpoint) / complex(law.stieltjes(x)) - 1) < 1e-8 / distance**0.5
    assert refused
    assert proved >= 12 * len(law.edges)


# What must be refused ------------------------------------------------------------------------------------------------


def scaled(certifier, z):
    """A point in the unit of the equation, and the double nearest to it."""
    per_unit = certifier.system(15)[1]
    pair = tuple(fmpq(*part.as_integer_ratio()) * per_unit for part in (z.real, z.imag))
    return pair, complex(*(int(part.p) / int(part.q) for part in pair))


def other_roots(certifier, z, count=60):
    """Roots of the equation at z that Newton's method finds from random starts."""
    equation, random = certifier.equation, np.random.default_rng(5)
    physical = certifier._descent.solve(np.array([z]))
    noise = random.normal(size=(2, count, equation.count))
    start = physical * (1 + 2 * noise[0] + 2j * noise[1])
    found, good = equation.newton(start, np.full(count, z))
    roots = []
    for root in found[good]:
        if all(np.max(np.abs(root - known) / np.abs(known)) > 1e-6 for known in [physical[0], *roots]):
            roots.append(root)
    return roots


@pytest.mark.parametrize("z", [1.0 + 0.5j, 6.0 + 0.01j])
def test_planted_wrong_roots_are_refused(layer, z):
    certifier = certifier_of(layer._exact)
    pair, place = scaled(certifier, z)
    roots = other_roots(certifier, place)
    assert roots
    for root in roots:
        with pytest.raises(CertificationError):
            certifier.proved(z, pair, root, 15)


def test_conjugate_root_and_shifted_point_are_refused(layer):
    certifier = certifier_of(layer._exact)
    for z in (2.0 + 0.0j, 1.0 + 0.5j):
        pair, place = scaled(certifier, z)
        if z.imag:
            root = certifier._descent.solve(np.array([place]))[0]
        else:
            root = certifier.axis.classify(np.array([place.real]))[1][0]
        assert certifier.proved(z, pair, root, 15).stieltjes.contains(layer.stieltjes(z, digits=50))
        conjugate, _ = scaled(certifier, z.conjugate())
        with pytest.raises(CertificationError, match="physical"):
            certifier.proved(z, conjugate, root.conj(), 15)
        shifted, _ = scaled(certifier, z + 1e-3)
        with pytest.raises(CertificationError, match="not a root"):
            certifier.proved(z, shifted, root, 15)


def test_conjugate_root_in_the_upper_half_plane_is_no_root(layer):
    certifier = certifier_of(layer._exact)
    pair, place = scaled(certifier, 1.0 + 0.5j)
    root = certifier._descent.solve(np.array([place]))[0]
    with pytest.raises(CertificationError):
        certifier.proved(1.0, pair, root.conj(), 15)


def test_the_other_real_root_of_a_gap_is_refused():
    """Semicircle: m² + zm + 1 = 0 has two real roots beyond the edge."""
    certifier = certifier_of(fa.law(WIGNER, of="self-adjoint")._exact)
    pair = (fmpq(5, 2), fmpq(0))
    certifier.proved(2.5, pair, np.array([-0.5]), 15)
    with pytest.raises(CertificationError, match="physical"):
        certifier.proved(2.5, pair, np.array([-2.0]), 15)


def test_a_start_that_is_a_little_off_is_proved_all_the_same(layer):
    """The proof does not rest on the start: one within reach of Newton's method gives the same value."""
    certifier = certifier_of(layer._exact)
    pair, place = scaled(certifier, 1.0 + 0.5j)
    root = certifier._descent.solve(np.array([place]))[0] * (1 + 1e-9)
    ball = certifier.proved(1.0 + 0.5j, pair, root, 15).stieltjes
    assert ball.contains(layer.stieltjes(1.0 + 0.5j, digits=50))


def test_refusals(layer):
    with pytest.raises(NotCoveredError, match="in letters"):
        fa.law(MarchenkoPastur(2)).certify(1.0)
    ratios = {"gamma_key": 1.5, "gamma_value": 1.5, "gamma_out": 1.5}
    with pytest.raises(NotCoveredError, match="finitely many heads"):
        fa.law(fa.Attention.from_ratios(n_heads=float("inf"), **ratios)).certify(1.0)
    for wrong in (float("nan"), float("inf"), "x", None):
        with pytest.raises(InputError, match="z"):
            layer.certify(wrong)
    for digits in (0, 201, 2.5):
        with pytest.raises(InputError, match="digits"):
            layer.certify(1.0, digits=digits)
    with pytest.raises(CertificationError):
        fa.law(SOURCES["three squares"]).certify(0.0)  # a hard edge


def nearby(n_heads=12, **fields):
    """The layer of `layer`, with other fields."""
    return fa.law(fa.Attention(**{**SIZES, "n_heads": n_heads}, inputs="gaussian", **fields))


def test_roots_of_other_laws_are_refused(layer):
    """A weight that is a little off: the root of one equation planted into another."""
    z = 1.0 + 0.5j
    other = certifier_of(nearby(beta=1 + Fraction(1, 10**3))._exact)
    pair, place = scaled(certifier_of(layer._exact), z)
    start = other._descent.solve(np.array([place]))[0]
    with pytest.raises(CertificationError, match="not a root"):
        certifier_of(layer._exact).proved(z, pair, start, 15)


def test_a_weight_that_is_off_by_1e_9_does_not_move_the_ball(layer):
    """Within reach of Newton's method the proof is about the law that was asked for, not the one of the start."""
    z = 1.0 + 0.5j
    changed = nearby(beta=1 + Fraction(1, 10**9))
    certifier = certifier_of(layer._exact)
    pair, place = scaled(certifier, z)
    start = certifier_of(changed._exact)._descent.solve(np.array([place]))[0]
    ball = certifier.proved(z, pair, start, 15).stieltjes
    assert ball.contains(layer.stieltjes(z, digits=80))
    assert not ball.contains(changed.stieltjes(z, digits=80))


def test_polydiscs_that_are_too_wide_are_refused(layer):
    certifier = certifier_of(layer._exact)
    _, place = scaled(certifier, 1.0 + 0.5j)
    start, balls = certifier._descent.solve(np.array([place]))[0], certifier.system(15)[0].balls
    near = balls.approximate(start, place)
    size = balls.sizes(near)
    derivative, _ = balls.jacobian(balls.inverses(Ball(start, 1e-9 * size), about(np.asarray(place)), near))
    inverse = np.linalg.inv(derivative.middle)
    assert contraction(derivative, inverse, size).share < 1e-6
    wide = balls.inverses(Ball(start, 0.02 * size), about(np.asarray(place)), near)
    with pytest.raises(CertificationError, match="ill-conditioned"):
        contraction(balls.jacobian(wide)[0], inverse, size)
    with pytest.raises(CertificationError, match="singular"):
        balls.inverses(Ball(start, 0.5 * size), about(np.asarray(place)), near)


def test_bounds_contain_inverses_and_derivatives_of_all_points_of_a_polydisc(layer):
    """Random points of the polydisc, inverted in doubles: the radii are far above their rounding."""
    certifier, random = certifier_of(layer._exact), np.random.default_rng(4)
    _, place = scaled(certifier, 1.0 + 0.5j)
    start, balls = certifier._descent.solve(np.array([place]))[0], certifier.system(15)[0].balls
    near = balls.approximate(start, place)
    radius = 1e-5 * balls.sizes(near)
    matrices = balls.inverses(Ball(start, radius), about(np.asarray(place)), near)
    jacobian, _ = balls.jacobian(matrices)
    for _ in range(20):
        turn = np.exp(2j * np.pi * random.random(balls.count))
        there = balls.approximate(start + turn * radius, place)
        assert (np.abs(there - matrices.middle) <= matrices.radius).all()
        derivative = np.eye(balls.count) - balls.derivative(there)
        assert (np.abs(derivative - jacobian.middle) <= jacobian.radius).all()
    assert np.abs(matrices.radius).max() < 1e-2


def test_a_newton_step_gains_what_its_bounds_say():
    """The moved centre stays in the polydisc, and the bounds of its residual shrink with it."""
    law = fa.law(SOURCES["deepseek"])
    certifier = certifier_of(law._exact)
    system, _ = certifier.system(40)
    pair, place = scaled(certifier, 2.0 + 0.5j)
    root = prove(system, certifier._descent.solve(np.array([place]))[0], pair)
    moved = refine(system, root)
    assert np.abs(moved.residual.values).max() < 1e-20
    assert (moved.residual.errors <= 1e-8 * np.abs(root.residual.values).max() + 1e-30).all()
    assert (moved.moved <= root.polydisc.radius).all()


@pytest.mark.parametrize("kind", ["orthogonal", "values", "attention", "unequal widths"])
@pytest.mark.parametrize("z", [0.3 + 0.1j, 2.0 - 1e-3j, -1.5 + 0j])
def test_balls_contain_the_value_of_the_other_route(kind, z):
    fields = {"values": {"output": "values"}, "attention": {"output": "attention"}}.get(kind, {})
    given = {"gamma_key": Fraction(3, 7), "tokens_per_width": Fraction(1, 2)}
    given |= {"gamma_value": Fraction(5, 4)} if kind != "attention" else {}
    given |= {"gamma_out": Fraction(2, 3)} if not fields else {}
    beta = Fraction(3, 2) if kind == "unequal widths" else 1
    spec = fa.Attention.from_ratios(n_heads=3, beta=beta, **given, **fields)
    ball = fa.law(spec, route="pencil").certify(z, digits=30).stieltjes
    assert ball.contains(fa.law(spec, route="transform").stieltjes(z if z.imag else z.real, digits=60))
    assert ball.radius < 1e-29 * abs(ball.midpoint)


def test_equations_that_do_not_keep_their_pattern_are_told():
    system = certifier_of(fa.law(SOURCES["semicircle"], of="self-adjoint")._exact)._words.system
    assert keeps_pattern(system)
    whole = dyson_of(fa.gaussian("A", N, N) @ fa.gaussian("B", N, N))
    assert keeps_pattern(whole)
    partners = whole.pencil.partners
    diagonal = next(t for t in whole.traces if t.row == t.column and partners[t.row] != t.row)
    assert not keeps_pattern(replace(whole, traces=tuple(t for t in whole.traces if t != diagonal)))


# What is said --------------------------------------------------------------------------------------------------------


def test_reports_say_what_is_proved_and_assumed(layer):
    proof = layer.certify(2.0)
    assert proof.density.contains(layer.density(2.0, digits=40))
    text = str(proof)
    for part in ("z = 2.0", "inside a band", "density = 0.093366182220452", "Proved", "theorem, part b", "Assumed",
                 "Dyson equation", "IEEE arithmetic", "enclosures"):
        assert part in text, part
    edges = str(layer.certify_edges())
    for part in ("left end of a band: 0.0120397987", "right end", "Not proved", "that no other band exists"):
        assert part in edges, part
    assert "density = 0.0 exactly" in str(layer.certify(-1.0))


@pytest.mark.parametrize(("middle", "radius"), [(1.23456789012345678, 1e-9), (-123456.7890123, 0.3), (0.5, 0.7)])
def test_printed_balls_enclose_the_ball(middle, radius):
    ball = CertifiedBall(mpmath.mpf(middle), mpmath.mpf(radius))
    shown, error = map(Fraction, str(ball).split(" ± "))
    exact = Fraction(float(ball.midpoint))
    assert abs(exact - shown) + Fraction(radius) <= error <= Fraction(1.3 * radius)


# Edges ---------------------------------------------------------------------------------------------------------------


def test_edges_contain_those_to_many_digits(law):
    proof = law.certify_edges()
    known = [(x, side) for band in law.edges_to(40) for x, side in zip(band, ("left", "right"), strict=True)]
    folds = [(x, side) for x, side in known if x != 0]
    assert len(proof.edges) + len(proof.not_certified) == len(known)
    for edge, (x, side) in zip(proof.edges, folds, strict=True):
        assert edge.x.contains(x)
        assert edge.x.radius < 1e-14 * abs(x)
        assert edge.side == side
    assert proof.proved
    assert proof.not_proved
    assert {a.name for a in proof.assumptions} >= {"Dyson equation", "IEEE arithmetic"}


def test_planted_folds_are_refused():
    """A shifted place, other traces, and the wrong end of a band."""
    law = fa.law(SOURCES["two bands"], of="self-adjoint")
    certifier = certifier_of(law._exact)
    system, _ = certifier.system(15)
    right = certifier._fold(law.edges[1][1], 1.0)
    assert prove_fold(system, right).right_end
    with pytest.raises(CertificationError, match="not a fold"):
        prove_fold(system, Fold(right.x * (1 + 1e-4), right.traces, right.direction))
    with pytest.raises(CertificationError):
        prove_fold(system, Fold(right.x, -right.traces, right.direction))
    with pytest.raises(CertificationError, match="other end"):
        certifier.proved_edge(prove_fold(system, right), "left", 15)


@pytest.mark.parametrize("moved", ["1e-13", "1e-10", "1e-8"])
def test_from_a_moved_start_the_true_edge_is_proved(layer, moved):
    certifier = certifier_of(layer._exact)
    system, per_unit = certifier.system(15)
    edge = layer.edges_to(40)[0][1]
    fold = certifier._fold(float(edge) * int(per_unit.p) / int(per_unit.q), 1.0)
    proof = certifier.proved_edge(prove_fold(system, replace(fold, x=fold.x * (1 + float(moved)))), "right", 15)
    assert proof.x.contains(edge)
    assert not proof.x.contains(edge * (1 + mpmath.mpf(moved)))


def test_a_start_that_is_no_fold_is_refused(layer):
    certifier = certifier_of(layer._exact)
    system, per_unit = certifier.system(15)
    fold = certifier._fold(float(layer.edges[0][1]) * int(per_unit.p) / int(per_unit.q), 1.0)
    with pytest.raises(CertificationError, match="the start is not a fold: its relative correction is 1e-05"):
        prove_fold(system, replace(fold, x=fold.x * (1 + 1e-5)))


def test_folds_of_other_branches_are_refused(layer, monkeypatch):
    """Folds that Newton's method finds from random starts, without the test of the branch."""
    monkeypatch.setattr(folds, "_on_physical_branch", lambda *_: True)
    certifier, random = certifier_of(layer._exact), np.random.default_rng(7)
    system, per_unit = certifier.system(15)
    unit = int(per_unit.p) / int(per_unit.q)
    edges, equation = np.ravel(layer.edges) * unit, certifier.equation
    known = certifier._fold(float(edges[1]), 1.0)
    refused = 0
    for _ in range(60):
        noise = random.normal(size=(2, equation.count))
        place = float(edges[1] * 10 ** random.uniform(-3, 1))
        fold = folds.find_fold(equation, place, known.traces * (1 + noise[0]), known.direction * noise[1])
        if fold is None or np.min(np.abs(fold.x / edges - 1)) < 1e-6:
            continue
        with pytest.raises(CertificationError):
            prove_fold(system, fold)
        refused += 1
    assert refused


def test_the_cusp_is_refused():
    law = fa.law(WIGNER + fa.diagonal("D", N, [-1, 1], [1, 1]), of="self-adjoint")
    with pytest.raises(CertificationError):
        law.certify(0)


# The tools -----------------------------------------------------------------------------------------------------------


def test_positive_definite_is_proved_or_refused():
    near = np.array([[1.0, 1 - 1e-8], [1 - 1e-8, 1.0]])
    assert positive_definite(Ball(near, np.zeros((2, 2))))
    assert not positive_definite(Ball(near, np.full((2, 2), 1e-8)))
    assert not positive_definite(Ball(np.array([[1.0, 1.0], [1.0, 1.0]]), np.zeros((2, 2))))
    assert not positive_definite(Ball(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2))))
    assert not positive_definite(Ball(np.array([[np.nan]]), np.zeros((1, 1))))
    scales = np.diag([1e-60, 1e60])
    assert positive_definite(Ball(scales @ near @ scales, np.zeros((2, 2))))


def test_products_of_balls_contain_exact_products():
    random = np.random.default_rng(3)
    a, b = (random.normal(size=(5, 5)) * 10.0 ** random.integers(-8, 8, (5, 5)) for _ in range(2))
    ball = product(Ball(a, np.zeros((5, 5))), Ball(b, np.zeros((5, 5))))
    for i, j in np.ndindex(5, 5):
        exact = sum(Fraction(a[i, k]) * Fraction(b[k, j]) for k in range(5))
        assert abs(exact - Fraction(ball.middle[i, j])) <= Fraction(ball.radius[i, j])


def test_enclosures_contain_what_they_enclose():
    expression = sympy.sympify("sqrt(2)*exp(Rational(1, 4)) - 3/pi + E")
    interval = enclosed(expression, {}, 50)
    known = expression.evalf(80)
    low, high = (sympy.Rational(int(v.p), int(v.q)) for v in (interval.low, interval.high))
    assert low <= known <= high
    assert high - low < 1e-48
    assert exactly(0.1) != fmpq(1, 10)
    centre, radius = rounded(Enclosure(fmpq(1, 3), fmpq(1, 3)), 30)
    assert (centre, radius) == (fmpq(1, 3), 0)
    with pytest.raises(CertificationError):
        1 / Enclosure(fmpq(-1), fmpq(1))

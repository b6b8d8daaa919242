"""m at real points outside the bands: against many digits, integrals and closed forms, and without continuation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.numerics.real_axis import Axis

R, C = fa.space("r", 2), fa.space("c", 1)
S, Y, X = fa.wigner("S", R, Fraction(1, 2)), fa.gaussian("Y", R, R, Fraction(1, 2)), fa.gaussian("X", R, C)
SIGNS, ONE = fa.diagonal("D", R, [-1, 1]), fa.identity(R)
BERT = fa.architecture("bert-base", n_tokens=512)
LAYERS = {
    "gaussian": BERT.replace(inputs="gaussian"),
    "gaussian, tied": BERT.replace(inputs="gaussian", tie="key-value"),
    "correlated": BERT.replace(tie=fa.KeyValueCorrelation(Fraction(1, 2))),
    "latent": fa.architecture("deepseek-v3", n_tokens=2048),
}


def outside(law, x):
    return x[~np.any([(x >= a) & (x <= b) for a, b in law.edges], axis=0)]


@pytest.mark.parametrize("name", LAYERS)
def test_every_point_of_ten_decades_starts_from_the_table(name, monkeypatch):
    """No point is followed from above, and all are right: by integration of the density."""
    law = fa.law(LAYERS[name])
    right = law.edges[-1][1]
    x = outside(law, np.concatenate([np.geomspace(1e-10, 1e5, 1500) * right, -np.geomspace(1e-10, 1e5, 300) * right]))
    monkeypatch.setattr(Axis, "classify", lambda *_: pytest.fail("a point was not in the table"))
    m = law.stieltjes(x)
    assert not m.imag.any()
    for k in range(0, x.size, 150):
        total = law.integrate(lambda t, x=x[k]: 1 / (t - x))
        assert m[k].real == pytest.approx(total, rel=1e-10)


def test_inner_gaps_and_atoms_against_many_digits():
    attention = fa.Attention.from_ratios(Fraction(1, 4), None, None, n_heads=16, output="attention")
    for law in (fa.law(attention, route="pencil"), fa.law(X @ X.T + ONE, of="self-adjoint")):
        ends = [x for band in law.edges for x in band]
        points = [ends[0] * (1 - 1e-9), ends[0] / 3, 1e-7, -1e-7, -3.0, ends[-1] * (1 + 1e-9), 50.0, 1.0 + 1e-4]
        if len(law.edges) == 2:
            points += [(ends[1] + ends[2]) / 2, ends[1] + 1e-8, ends[2] - 1e-8]
        for x in points:
            if law.density(x) == 0:
                assert law.stieltjes(x).real == pytest.approx(float(law.stieltjes(x, digits=30)), rel=1e-7)


def test_zero_in_an_inner_gap():
    law = fa.law(S + 3 * SIGNS, of="self-adjoint")
    assert np.abs(law.stieltjes([0.0, 1e-300, -1e-300])).max() < 1e-15  # the law is even
    assert law.stieltjes(1e-5).real == pytest.approx(1e-5 * law.integrate(lambda t: t**-2.0), rel=1e-8)
    wide = fa.law(SIGNS + S / 10 + 3 * ONE, of="self-adjoint")
    for x in (0.0, 1e-300, -1e-30, 0.5):
        assert wide.stieltjes(x).real == pytest.approx(wide.integrate(lambda t, x=x: 1 / (t - x)), rel=1e-13)
    assert abs(wide.stieltjes(3.0)) < 1e-13  # m vanishes there
    assert fa.law(X, of="cogram").stieltjes([0.0, 1e-300, -1e-300]) == pytest.approx(1.0, rel=1e-13)


def test_tiny_and_huge_points_with_an_atom_at_zero():
    law = fa.law(X)
    x = np.array([1e-300, -1e-300, 1e-30, -1e-20])
    assert law.stieltjes(x) * x == pytest.approx(-0.5, rel=1e-13)
    assert law.stieltjes([1e200, -1e200]) == pytest.approx([-1e-200, 1e-200])


def test_at_and_beside_an_edge():
    law = fa.law(BERT.replace(inputs="gaussian"))
    for band in law.edges:
        for x, outwards in zip(band, (-1, 1), strict=True):
            at = law.stieltjes(x)
            assert at.imag == 0
            near = law.stieltjes(x * (1 + outwards * np.array([1e-12, 1e-10, 1e-8])))
            assert np.abs(near / at - 1) == pytest.approx(np.abs(near[0] / at - 1) * np.array([1, 10, 100]), rel=0.01)


@pytest.mark.parametrize("z", [-1.0, -1e-9, -1e-13, -1e-20, -1e-100, -1e-300, 1e-9, 1e-16, 1e-300, 1e-20j,
                               -1e-17 + 1e-18j, 1e-15 - 1e-17j])
def test_beside_a_hard_edge(z):
    """Square Marchenko–Pastur: m = −1/2 + √(1/4 − 1/z), with the sign that makes Im m·Im z > 0."""
    root = np.sqrt(0.25 - 1 / complex(z))  # the principal root: right off the support
    if np.isreal(z) and np.real(z) > 0:
        root = 1j * np.sqrt(1 / z - 0.25)
    assert abs(fa.law(Y).stieltjes(z) / (root - 0.5) - 1) < 1e-11


def test_beside_hard_edges_of_higher_order():
    for ratios, heads in (((1, 1, 1), 1), ((1, 2, 2), 1), ((2, 1, 1), 3)):
        spec = fa.Attention.from_ratios(*ratios, n_heads=heads)
        closed, words = fa.law(spec), fa.law(spec, route="pencil")
        for x in (-1e-6, -1e-14, -1e-20, -1e-30, 1e-12, 1e-20):
            assert abs(words.stieltjes(x) / closed.stieltjes(x) - 1) < 1e-9


def test_the_hard_edge_itself_is_refused():
    with pytest.raises(InputError, match="hard edge"):
        fa.law(Y).stieltjes(0.0)


# Ends of bands that other scales or powers hid -----------------------------------------------------------------------


def test_a_law_far_from_zero():
    assert np.array(fa.law(S + 10**5 * ONE, of="self-adjoint").edges) == pytest.approx(
        np.array([[99998, 100002]]), rel=1e-14
    )
    assert np.array(fa.law(S + 10**5 * ONE).edges) == pytest.approx(np.array([[99998.0**2, 100002.0**2]]), rel=1e-13)


def test_singular_values_that_start_like_a_root():
    """S + 2 has eigenvalues λ ∈ [0, 4] of density √(λ(4 − λ))/2π; its squared singular values are λ²."""
    law = fa.law(S + 2 * ONE)
    assert law.edge_exponents == ((Fraction(-1, 4), Fraction(1, 2)),)
    x = np.array([1e-10, 1e-4, 1.0, 10.0, 15.9])
    root = np.sqrt(x)
    assert law.density(x) == pytest.approx(np.sqrt(root * (4 - root)) / (4 * np.pi * root), rel=1e-10)
    own = fa.law(S + 2 * ONE, of="self-adjoint")
    assert own.edge_exponents == ((Fraction(1, 2), Fraction(1, 2)),)
    assert own.edges == ((0.0, 4.0),)

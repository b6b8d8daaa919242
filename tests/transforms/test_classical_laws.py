"""Laws with names: Fuss-Catalan, arcsine, semicircle plus a coin, projections."""

from __future__ import annotations

import pytest
import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.theory.symbols import Q, S, W
from freeattn.theory.transforms import (
    Dilation,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    MarchenkoPastur,
    Semicircle,
)

R = sp.Rational
COIN = Discrete((-1, 1), (R(1, 2), R(1, 2)))


@pytest.mark.parametrize("s", range(1, 7))
def test_fuss_catalan_moments(s: int) -> None:
    law = FreeProduct((MarchenkoPastur(1),) * s)
    expected = tuple(sp.binomial((s + 1) * n, n) / (s * n + 1) for n in range(1, 11))
    assert law.moments(10) == expected
    assert law.mass_off_zero == 1


@pytest.mark.parametrize("s", range(1, 7))
def test_fuss_catalan_right_edge(s: int) -> None:
    """x(ψ) = (1 + ψ)^{s+1}/ψ has its minimum at ψ = 1/s, with value (s+1)^{s+1}/s^s."""
    curve = FreeProduct((MarchenkoPastur(1),) * s).uniformization()
    x = sp.cancel(1 / curve.chi)
    critical = [q for q in sp.real_roots(sp.Poly(sp.fraction(sp.cancel(sp.diff(x, Q)))[0], Q)) if q > 0]
    assert [x.subs(Q, q) for q in critical] == [R((s + 1) ** (s + 1), s**s)]


def test_two_coins_give_the_arcsine_law() -> None:
    law = FreeSum((COIN, COIN))
    expected = tuple(sp.binomial(n, n // 2) if n % 2 == 0 else sp.Integer(0) for n in range(1, 13))
    assert law.moments(12) == expected
    assert [weight for _, weight in law.atoms() if weight != 0] == []


def test_two_coins_have_no_single_parameter() -> None:
    with pytest.raises(NotCoveredError):
        FreeSum((COIN, COIN)).uniformization()


def test_coin_has_the_expected_cumulants() -> None:
    """κ_{2n} = (−1)^{n−1} Catalan(n−1), from R(z) = (√(1 + 4z²) − 1)/(2z)."""
    z = sp.Symbol("z")
    series = sp.series((sp.sqrt(1 + 4 * z**2) - 1) / (2 * z), z, 0, 10).removeO()
    assert COIN.free_cumulants(10) == tuple(series.coeff(z, n - 1) for n in range(1, 11))


@pytest.mark.parametrize("variance", [1, R(1, 4), 3])
def test_semicircle_and_coin_satisfy_a_cubic(variance: sp.Expr) -> None:
    """G((x − vG)² − 1) = x − vG: the semicircle moves the argument of the coin's G(u) = u/(u² − 1) by vG."""
    curve = FreeSum((Semicircle(variance), COIN)).uniformization()
    x = 1 / curve.chi
    g = (1 + curve.psi) * curve.chi
    shifted = x - variance * g
    assert sp.cancel(sp.together(g * (shifted**2 - 1) - shifted)) == 0


def test_projection() -> None:
    t = sp.Symbol("t", positive=True)
    law = Discrete((0, 1), (1 - R(2, 7), R(2, 7)))
    assert sp.cancel(law.s_transform(W) - (1 + W) / (R(2, 7) + W)) == 0
    assert law.mass_off_zero == R(2, 7)
    relation = law.s_relation()
    assert sp.cancel(relation.subs(S, (1 + W) / (R(2, 7) + W))) == 0
    symbolic = Discrete((0, 1), (1 - t, t)).s_transform(W)
    assert sp.cancel(symbolic - (1 + W) / (t + W)) == 0


def test_corner_of_a_free_poisson_law() -> None:
    """A corner of trace t of π_s has cumulants t^{n−1}·s (Nica-Speicher, lecture 14)."""
    t, s = R(2, 5), R(3, 2)
    law = FreeProduct((Discrete((0, 1), (1 - t, t)), FreePoisson(s)))
    corner = tuple(m / t for m in law.moments(6))
    assert corner == Dilation(FreePoisson(s / t), t).moments(6)


def test_products_commute_and_associate() -> None:
    a, b, c = MarchenkoPastur(R(1, 3)), FreePoisson(R(5, 2)), Discrete((1, 4), (R(1, 2), R(1, 2)))
    first = FreeProduct((a, b, c))
    assert first.moments(6) == FreeProduct((c, FreeProduct((b, a)))).moments(6)


def test_sums_of_semicircles_and_free_poissons() -> None:
    assert FreeSum((Semicircle(2), Semicircle(3))).moments(8) == Semicircle(5).moments(8)
    assert FreeSum((FreePoisson(R(1, 2)), FreePoisson(R(1, 3)))).moments(8) == FreePoisson(R(5, 6)).moments(8)


def test_semicircle_moments_are_catalan_numbers() -> None:
    expected = tuple(
        sp.catalan(n // 2) * 2 ** (n // 2) if n % 2 == 0 else sp.Integer(0) for n in range(1, 11)
    )
    assert Semicircle(2).moments(10) == expected

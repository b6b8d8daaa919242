"""When the law of attention splits into two bands.

With fewer key coordinates than tokens (γ_K < 1) the keys see only a share γ_K of the directions, and for many heads the
law of the attention matrices splits: a lower band of mass 1 − γ_K and an upper one of mass γ_K. The polynomial
P(z, m) = 0 of the law (arXiv 2610.10033, section 3) follows by rule; ends of bands are among the zeros of its
discriminant in m, because two roots m meet there.

This script takes h = 16 heads of softmax at β = 1 and finds

1. the four edges at γ_K = 1/4 from the discriminant, which is not how `freeattn.law` finds them, and compares;
2. the γ_K at which the two bands merge: there two zeros of the discriminant meet.
"""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

import freeattn as fa
from freeattn.theory.symbols import C, M, Z

HEADS = 16
DIGITS = 30


def layer(gamma_key: object) -> fa.Attention:
    return fa.Attention.from_ratios(gamma_key=gamma_key, n_heads=HEADS, output="attention")


def discriminant(gamma_key: object) -> sp.Poly:
    """The part of disc_m P(z, m) that can vanish at an edge off 0, as a polynomial in z."""
    polynomial = fa.derive(layer(gamma_key)).polynomial()
    factors = sp.factor_list(sp.discriminant(polynomial, M))[1]
    (part,) = [factor for factor, _ in factors if factor.has(Z) and factor != Z]
    return sp.Poly(part, Z)


def real_roots(polynomial: sp.Poly) -> list[sp.Float]:
    c = 1 / (sp.E - 1)  # θ₂/θ₁ of softmax at β = 1
    numbers = sp.Poly([coefficient.subs(C, c).evalf(2 * DIGITS) for coefficient in polynomial.all_coeffs()], Z)
    roots = numbers.nroots(n=DIGITS, maxsteps=200)
    return sorted(root for root in roots if abs(sp.im(root)) < sp.Float(10) ** (-DIGITS // 2))


def edges_at_a_quarter() -> None:
    gamma_key = Fraction(1, 4)
    law = fa.law(layer(gamma_key)).normalized()
    found = [float(root) for root in real_roots(discriminant(gamma_key)) if root > 0]
    known = [edge for band in law.edges for edge in band]
    print("edges at γ_K = 1/4, from the discriminant:", ", ".join(f"{x:.10f}" for x in found))
    assert len(known) == 4
    assert all(min(abs(x / edge - 1) for x in found) < 1e-13 for edge in known)
    assert [round(mass, 12) for mass in law.band_masses] == [0.75, 0.25]


def merging_point() -> float:
    """Bisection in γ_K for the change from four positive real zeros to two; exact rational γ_K throughout."""
    low, high = Fraction(1, 4), Fraction(1)
    while high - low > Fraction(1, 2**20):
        middle = (low + high) / 2
        split = len([root for root in real_roots(discriminant(middle)) if root > 0]) == 4
        low, high = (middle, high) if split else (low, middle)
    return float(low)


def main() -> None:
    edges_at_a_quarter()
    limit = merging_point()
    print(f"h = {HEADS}, β = 1: two bands for γ_K below {limit:.6f}")
    below, above = (fa.law(layer(Fraction(limit) + shift)) for shift in (Fraction(-1, 1000), Fraction(1, 1000)))
    assert abs(limit - 0.487735) < 1e-5
    assert (len(below.edges), len(above.edges)) == (2, 1)


if __name__ == "__main__":
    main()

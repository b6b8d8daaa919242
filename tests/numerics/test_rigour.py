"""What proofs and many digits survive: bad scales, starts that are not numbers, contexts that users change."""

from __future__ import annotations

import math
import subprocess
import sys

import flint
import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import Ball, about
from freeattn.numerics.certificates import CertifiedBall
from freeattn.numerics.certify import certifier_of
from freeattn.numerics.dyson_tables import DysonTables, Read, SectorTable
from freeattn.numerics.fold_proofs import prove_fold
from freeattn.numerics.folds import Fold
from freeattn.numerics.root_proofs import prove
from freeattn.numerics.trace_balls import TraceBalls

TRIALS = 400


def exact_inverse(matrix):
    entries = [[flint.fmpq(*float(v).as_integer_ratio()) for v in row] for row in matrix]
    inverse = flint.fmpq_mat(entries).inv()
    return [[inverse[i, j] for j in range(len(entries))] for i in range(len(entries))]


def test_bounds_of_inverses_hold_for_badly_scaled_matrices():
    """A − uE at both ends of the interval of u, E as bad as it can be for one entry; exact inverses."""
    rng, accepted = np.random.default_rng(7), 0
    for _ in range(TRIALS):
        size = int(rng.integers(2, 5))
        scale = 10.0 ** rng.uniform(-6, 6, size)
        matrix = rng.normal(size=(size, size)) + 2 * np.eye(size)
        matrix = (matrix + matrix.T) * scale[:, None] * scale
        near = np.linalg.inv(matrix)
        i, j = rng.integers(0, size, 2)
        energy = -np.outer(np.sign(near[i]), np.sign(near[:, j])) * np.abs(matrix)
        sector = SectorTable(matrix, np.zeros((size, size)), np.array([0]), energy[None], np.ones(size))
        read = (Read(0, 0, 0, 1.0),)
        balls = TraceBalls(DysonTables((sector,), (read,), read, (((0, 1.0),),)))
        width = 10.0 ** rng.uniform(-5, 0)
        try:
            found = balls.inverses(Ball(np.zeros(1), np.full(1, width)), about(np.zeros(())), near[None])
        except CertificationError:
            continue
        accepted += 1
        for end in (-width, width):
            inverse = exact_inverse(matrix - end * energy)
            for p in range(size):
                for q in range(size):
                    middle, radius = (flint.fmpq(*float(part[0, p, q]).as_integer_ratio()) for part in found)
                    # the entries of A − uE are themselves rounded: 1e-12 of the radius of a ball that is far wider
                    assert abs(inverse[p][q] - middle) <= radius * flint.fmpq(10**12 + 1, 10**12)
    assert accepted > TRIALS / 4


@pytest.fixture(scope="module")
def system():
    certifier = certifier_of(fa.law(fa.Attention.from_ratios(2, 1, 1, n_heads=2), route="pencil")._exact)
    return certifier.system(30)[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200, 0.0])
def test_starts_that_are_no_roots(system, value):
    start = np.full(system.balls.count, value + 1j * value)
    with pytest.raises(CertificationError):
        prove(system, start, (flint.fmpq(2), flint.fmpq(1)))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200, 0.0])
def test_starts_that_are_no_folds(system, value):
    flat = np.full(system.balls.count, value)
    with pytest.raises(CertificationError):
        prove_fold(system, Fold(2.0, flat, flat))


@pytest.mark.parametrize("route", ["transform", "pencil"])
def test_precision_set_through_a_result_changes_nothing_later(route):
    """Results belong to contexts that nothing is computed in: a user may set their precision."""
    law = fa.law(fa.architecture("bert-base", n_tokens=512), route=route)
    expected = {digits: str(law.stieltjes(2.0, digits=digits)) for digits in (20, 30, 45, 60)}
    for digits in range(16, 100):
        law.stieltjes(2.5, digits=digits).context.dps = 5
    fresh = fa.law(fa.architecture("bert-base", n_tokens=512), route=route)
    for digits, text in expected.items():
        assert str(law.stieltjes(2.0, digits=digits)) == text
        assert str(fresh.stieltjes(2.0, digits=digits)) == text


def test_precision_set_through_a_ball_changes_no_certificate():
    law = fa.law(fa.architecture("bert-base", n_tokens=512))
    before = law.certify(2.0)
    assert isinstance(before.stieltjes, CertifiedBall)
    before.density.midpoint.context.dps = 3
    after = law.certify(2.5).density
    assert after.radius < 1e-20 * after.midpoint
    assert after.contains(law.stieltjes(2.5, digits=40).imag / after.midpoint.context.pi)


def test_certificates_of_closed_laws_load_no_compiled_loops():
    """Loading them takes seconds, and compiling a minute: too long for one proof."""
    script = (
        "import sys, freeattn as fa\n"
        "fa.law(fa.architecture('bert-base', n_tokens=512)).certify(2.0)\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)

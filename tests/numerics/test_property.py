"""Random specifications: the density alone, on nodes chosen here, gives 1 − atom and exact moments."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from law_quadrature import mass_and_moments

import freeattn as fa
from freeattn.model.attention import OUTPUTS

TOLERANCE = 1e-8
STRATA = ("free", "one head", "equal", "nearly equal", "gaps")
SEEDS = tuple(range(250))  # pinned: seed k belongs to stratum k mod 5
QUICK = 30  # seeds of the fast suite, all strata alike


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def random_spec(seed: int) -> fa.Attention:
    """γ's log-uniform in [0.05, 20], h in 1…128, β in [0.05, 2.5], with and without tie, all four outputs."""
    rng, stratum = random.Random(seed), STRATA[seed % len(STRATA)]
    output, tied = rng.choice(OUTPUTS), rng.random() < 0.4
    heads, beta = rng.choice([2, 4, 8, 12, 32, 64, 96, rng.randint(1, 128)]), rng.uniform(0.05, 2.5)
    gammas: list[Any] = [log_uniform(rng, 0.05, 20) for _ in range(3)]
    if stratum == "one head":
        heads = 1
    if stratum == "equal":
        heads, gammas = equal(rng, gammas)
    if stratum == "nearly equal":
        heads, gammas = nearly_equal(rng, gammas)
    if stratum == "gaps":
        output, tied, heads, beta = (
            rng.choice(OUTPUTS),
            False,
            rng.choice([16, 64, 128]),
            rng.uniform(0.6, 1.6),
        )
        gammas = [log_uniform(rng, 0.05, 0.5), log_uniform(rng, 5, 20), log_uniform(rng, 5, 20)]
    sharing = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
    key, value, out = gammas
    return fa.Attention.from_ratios(
        key,
        None if tied or output not in ("mha", "values") else value,
        out if output == "mha" else None,
        n_heads=heads,
        n_kv_heads=sharing,
        beta=beta,
        output=output,
        tie="key-value" if tied else "none",
    )


def equal(rng: random.Random, gammas: list[Any]) -> tuple[int, list[Any]]:
    """2, 3 or 4 of {1, h, γ_V, γ_O} equal (and γ_K with them half of the time, for ties)."""
    how_many, heads = rng.choice([2, 3, 4]), rng.randint(1, 8)
    if how_many == 4:
        heads, common = 1, 1
    elif how_many == 3:
        common = rng.choice([1, heads])
    else:
        common = rng.choice([1, heads, Fraction(rng.randint(1, 40), 20)])
    key, _, out = gammas
    return heads, [
        common if rng.random() < 0.5 else key,
        common,
        common if how_many > 2 or rng.random() < 0.5 else out,
    ]


def nearly_equal(rng: random.Random, gammas: list[Any]) -> tuple[int, list[Any]]:
    """The same with each ratio moved by a relative ±1e-6."""
    heads, moved = equal(rng, gammas)
    million = 10**6
    step = [Fraction(million + rng.choice([-1, 1]), million) for _ in moved]
    return heads, [g * s if isinstance(g, (int, Fraction)) else g for g, s in zip(moved, step, strict=True)]


def check(seed: int) -> None:
    spec = random_spec(seed)
    found, exact = mass_and_moments(fa.law(spec))
    np.testing.assert_allclose(found, exact, rtol=TOLERANCE, err_msg=f"seed {seed}: {spec}")


@pytest.mark.parametrize("seed", SEEDS[:QUICK])
def test_density_of_a_random_specification(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS[QUICK:])
def test_density_of_more_random_specifications(seed: int) -> None:
    check(seed)


def test_the_seeds_cover_what_they_should() -> None:
    specs = [random_spec(seed) for seed in SEEDS]
    assert len(specs) >= 200
    assert {spec.output for spec in specs} == set(OUTPUTS)
    assert {spec.tie.value for spec in specs} == {"none", "key"}
    assert sum(spec.n_heads == 1 for spec in specs) >= 40
    assert sum(spec.gamma_key < 1 for spec in specs) >= 60
    assert sum(len(fa.law(spec).edges) > 1 for spec in specs[4:QUICK:5]) >= 2

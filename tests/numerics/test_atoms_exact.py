"""The atom at 0: rank argument, closed formula, limit of −z·m(z), and exact ranks of small integer matrices."""

from __future__ import annotations

import dataclasses
import importlib.util
import random
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sympy as sp

import freeattn as fa
from freeattn.model.letters import Copies, Letter, Space
from freeattn.numerics.exact import exact_law
from freeattn.theory.attention_words import words_of
from freeattn.theory.rank import generic_rank
from freeattn.theory.splitting import split

TESTS = Path(__file__).parents[1]
COVERED = ("orthogonal", "key-value", "attention", "head-sum", "values")
SEEDS = 1000
LIMITS = 60
LIMIT_TOLERANCE = 1e-10
DRAWS = 4  # a few choices of small integers: one may happen to have less than the generic rank


def module(path: str) -> ModuleType:
    """A script of another folder of tests."""
    found = importlib.util.spec_from_file_location(Path(path).stem, TESTS / path)
    assert found is not None
    assert found.loader is not None
    loaded = importlib.util.module_from_spec(found)
    found.loader.exec_module(loaded)
    return loaded


layer = module("benchmarks/robustness.py").layer
value_of = module("pencil/exact.py").value_of


def covered(seed: int) -> fa.Attention:
    return layer(random.Random(seed), COVERED[seed % len(COVERED)])


def words_with_numbers(spec: fa.Attention) -> tuple[Any, dict[Any, Any]]:
    """The words of a layer and a number for each symbol, sizes in units of n_tokens."""
    words = words_of(spec)
    numbers = dict(words.values)
    c = exact_law(spec).numbers(15)[words.thetas[0].theta_2] if spec.covered_by_transforms else sp.Rational(1, 3)
    for pair in words.thetas:  # only whether θ₁ − θ₂ and θ₂ are 0 matters to a rank
        numbers[pair.theta_1], numbers[pair.theta_2] = sp.Integer(1), sp.Rational(int(c.p), int(c.q))
    return words.expression, numbers


def atom_by_rank(spec: fa.Attention) -> Fraction:
    return 1 - generic_rank(*words_with_numbers(spec))


def atom_by_formula(spec: fa.Attention) -> Fraction:
    return sum((Fraction(atom.weight) for atom in exact_law(spec).atoms if atom.location == 0), Fraction(0))


@pytest.mark.parametrize("count", [120, pytest.param(SEEDS, marks=pytest.mark.slow)])
def test_the_rank_argument_gives_the_closed_formula(count: int) -> None:
    found = [(atom_by_rank(spec), atom_by_formula(spec)) for spec in map(covered, range(count))]
    assert all(rank == formula for rank, formula in found)
    assert sum(rank > 0 for rank, _ in found) > count / 4
    assert sum(rank == 0 for rank, _ in found) > count / 20


@pytest.mark.parametrize("seed", range(LIMITS))
def test_the_stieltjes_transform_has_that_atom(seed: int) -> None:
    """−z·m(z) at z = −ε: to order ε over the left edge, or ε^{1/k} next to a hard edge."""
    spec = covered(10_000 + seed)
    law = fa.law(spec)
    z = -Fraction(1, 10**60) * Fraction(law.edges[0][0] or law.edges[-1][1])
    atom = float(-z.numerator * law.stieltjes(z, digits=30) / z.denominator)
    assert abs(atom - float(atom_by_formula(spec))) < LIMIT_TOLERANCE


def small(rng: random.Random, kind: str) -> fa.Attention:
    """A layer of one kind with sizes of a few units."""
    n, heads = rng.randint(2, 7), rng.choice([1, 2, 3])
    fields: dict[str, Any] = {"n_tokens": n, "d_model": rng.randint(1, 4) * 2, "beta": 1, "n_heads": heads}
    fields["d_key"] = rng.randint(1, 4)
    if kind not in ("attention", "head-sum", "key-value", "gaussian key-value", "values key-value"):
        fields["d_value"] = rng.randint(1, 4)
    if kind in ("attention", "head-sum", "values"):
        fields["output"] = kind
    else:
        fields["d_out"] = rng.randint(1, 8)
    if "gaussian" in kind or kind in ("covariance", "residual"):
        fields["inputs"] = "gaussian"
    else:
        fields["d_model"] = n + rng.randint(0, 3)
    if kind == "covariance":
        fields["inputs"] = fa.FeatureCovariance([0, 3], [Fraction(1, 2), Fraction(1, 2)])
    if "key-value" in kind:
        fields["tie"] = "key-value"
    if kind == "correlated":
        fields |= {"tie": fa.KeyValueCorrelation(Fraction(1, 2)), "d_value": fields["d_key"]}
    if kind == "gaussian output-key":
        fields |= {"tie": "output-key", "d_value": fields["d_key"], "d_out": fields["d_model"]}
    if "latent" in kind:
        fields["latent"] = fa.Latent(rng.randint(1, 3), shared=rng.random() < 0.5)
    if kind == "residual":
        fields |= {"residual": 1, "d_out": fields["d_model"]}
    if rng.random() < 0.3:
        fields["scores"] = "linear"
    if rng.random() < 0.3:
        fields["n_kv_heads"] = 1
    return fa.Attention(**fields)


SMALL = (
    "orthogonal", "key-value", "gaussian", "gaussian key-value", "gaussian output-key", "correlated", "latent",
    "gaussian latent", "covariance", "residual", "attention", "head-sum", "values",
)


def whole(value: Any, numbers: dict[Any, Any], n_tokens: int, rng: random.Random) -> Any:
    """An expression with whole numbers of rows, columns and copies, and a small integer for each coefficient."""
    if isinstance(value, tuple):
        items = [whole(item, numbers, n_tokens, rng) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    given = [f.name for f in dataclasses.fields(value) if f.init]
    fields = {name: whole(getattr(value, name), numbers, n_tokens, rng) for name in given}
    if isinstance(value, Space) and not value.parts:
        size = sp.Symbol(value.name, positive=True) if value.size is None else sp.sympify(value.size)
        fields["size"] = integer(n_tokens * size.xreplace(numbers))
    if isinstance(value, Copies):
        fields["count"] = integer(sp.sympify(value.count).xreplace(numbers))
    if isinstance(value, Letter):
        fields["variance"] = 1
    if "coefficient" in fields:
        fields["coefficient"] = rng.choice([-3, -2, -1, 1, 2, 3])
    return dataclasses.replace(value, **fields)


def integer(value: sp.Expr) -> int:
    assert value.is_Integer, value
    return int(value)


@pytest.mark.parametrize("seed", range(8 * len(SMALL)))
def test_small_integer_matrices_have_that_rank(seed: int) -> None:
    rng = random.Random(seed)
    spec = small(rng, SMALL[seed % len(SMALL)])
    expression, numbers = words_with_numbers(spec)
    written = split(expression, numbers, rank_only=True)
    known = {**numbers, **{s: sp.Rational(v.numerator, v.denominator) for s, v in written.sizes.items()}}
    matrix = whole(written.expression, known, int(spec.n_tokens), rng)
    found = max(value_of(matrix, draw).rank() for draw in range(DRAWS))
    assert found == spec.n_tokens * generic_rank(expression, numbers), spec

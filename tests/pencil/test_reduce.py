"""The reduced systems: how few unknowns they have, what these mean, and that they say the same as closed forms."""

from __future__ import annotations

import time
from fractions import Fraction

import models
import numpy as np
import pytest
import sympy as sp
import test_simulation
from test_dyson import POINTS, all_traces, evaluated, residuals

from freeattn.model.expression import gaussian
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory import symbols as sym
from freeattn.theory.dyson import dyson_of
from freeattn.theory.elimination import eliminate_variables
from freeattn.theory.generic import generic_point
from freeattn.theory.reduce import scalar_system
from freeattn.theory.relations import relations_of
from freeattn.theory.self_energy import CORNER

N, P = space("n", 20), space("p", 30)
X = gaussian("X", N, P, Fraction(1, 30))
SIZES = {models.n: 40, models.d: 80, models.d_key: 4, models.d_value: 6, models.d_out: 50, models.h: 3,
         models.theta_1: Fraction(17, 10), models.theta_2: 1}


def nine():
    """A word of nine different letters on ten spaces."""
    places = [space(f"s{k}") for k in range(10)]
    word = gaussian("A0", places[0], places[1])
    for k in range(1, 9):
        word = word @ gaussian(f"A{k}", places[k], places[k + 1])
    return word


def grouped():
    """Keys and values shared in G groups of q heads."""
    groups = copies("groups", models.G)
    return models.orthogonal(heads=copies("heads", models.q, within=groups), shared=groups)


def head_sum(shared):
    """Σ_r (Q_r K_rᵀ + W_r), with keys of each head, or one key matrix for all heads."""
    heads = copies("heads", models.h)
    query = gaussian("Q", models.TOKENS, models.KEY, 1, heads)
    key = gaussian("K", models.TOKENS, models.KEY, 1, None if shared else heads)
    noise = gaussian("W", models.TOKENS, models.TOKENS, (models.theta_1 - models.theta_2) / models.n, heads)
    scale = sp.sqrt(models.theta_2) / sp.sqrt(models.d_key * models.n)
    return heads.sum(scale * query @ key.T + noise)


MODELS = {
    "orthogonal": (models.orthogonal, 1), "orthogonal K = V": (lambda: models.orthogonal(True), 2),
    "grouped": (grouped, 1), "nine letters": (nine, 1), "Gaussian": (models.gaussian_input, 2),
    "residual": (test_simulation.residual, 3), "latent": (test_simulation.shared_latent, 3),
    "all tied": (test_simulation.all_tied, 6), "X Xᵀ X": (lambda: X @ X.T @ X, 4),
    "X Xᵀ X Xᵀ": (lambda: X @ X.T @ X @ X.T, 7), "head sum": (lambda: head_sum(False), 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_number_of_unknowns(name):
    expression, count = MODELS[name][0](), MODELS[name][1]
    start = time.perf_counter()
    scalar = scalar_system(dyson_of(expression))
    assert time.perf_counter() - start < 5  # seconds are measured by the benchmark; this is a guard against explosion
    assert len(scalar.unknowns) == len(scalar.equations) == count
    assert scalar.output == scalar.unknowns[0] == sp.Symbol("g_x_x")


@pytest.mark.parametrize("name", MODELS)
def test_system_is_closed_and_ordered(name):
    """Definitions use what comes before them; equations use nothing else; every symbol has a meaning."""
    system = dyson_of(MODELS[name][0]())
    scalar = scalar_system(system)
    known = {*scalar.unknowns, *scalar.parameters, sym.Z}
    for symbol, value in scalar.definitions:
        assert value.free_symbols <= known
        known.add(symbol)
    assert all(equation.free_symbols <= known for equation in scalar.equations)
    assert {system.symbol(trace) for trace in system.entering} <= known
    words = [scalar.meaning(s) for s in (*scalar.unknowns, *(symbol for symbol, _ in scalar.definitions))]
    assert not [word for word in words if "_" in word.split(" ")[0]]


@pytest.mark.parametrize("name", ["orthogonal", "Gaussian", "latent", "residual"])
def test_nothing_is_divided_by_a_parameter_that_may_be_zero(name):
    """θ₂ = 0 for even score functions, and θ₁ = θ₂ for linear ones: definitions stay finite."""
    scalar = scalar_system(dyson_of(MODELS[name][0]()))
    for values in ({models.theta_2: 0}, {models.theta_1: models.theta_2}):
        for _, value in scalar.definitions:
            assert sp.fraction(sp.together(value))[1].subs(values) != 0


def test_a_symbol_of_unknown_sign_counts_as_positive():
    size = sp.Symbol("c")
    word = size * gaussian("A", N, P) @ gaussian("B", P, N)
    assert len(scalar_system(dyson_of(word)).unknowns) == 1


@pytest.mark.parametrize("name", ["orthogonal", "orthogonal K = V", "Gaussian"])
def test_solutions_solve_the_reduced_system(name):
    assert max(residuals(MODELS[name][0](), SIZES)) < 1e-10


@pytest.mark.parametrize("name", ["X Xᵀ X", "X Xᵀ X Xᵀ"])
def test_solutions_of_repeated_letters_solve_the_reduced_system(name):
    assert max(residuals(MODELS[name][0]())) < 1e-10


@pytest.mark.parametrize("model", [test_simulation.residual, test_simulation.shared_latent])
def test_solutions_of_variants_solve_the_reduced_system(model):
    assert max(residuals(model(), test_simulation.SIZES)) < 1e-9


@pytest.mark.parametrize("name", ["Gaussian", "X Xᵀ X", "orthogonal K = V"])
def test_equations_leave_no_freedom(name):
    """Newton's method with a numerical Jacobian returns to the solution from a disturbed start."""
    system = dyson_of(MODELS[name][0]())
    scalar, values = scalar_system(system), SIZES
    solution = DysonSolver(system, values).solve(POINTS)
    known = all_traces(system, solution, values)
    exact = np.array([known[u][1] for u in scalar.unknowns])
    run = sp.lambdify([*scalar.unknowns, sym.Z], nested(scalar, values), "numpy")
    found = exact * (1 + 1e-4 * np.arange(1, len(exact) + 1))
    for _ in range(12):
        value, step = np.array(run(*found, POINTS[1])), 1e-7
        jacobian = np.array([(np.array(run(*(found + step * found[k] * unit), POINTS[1])) - value) / (step * found[k])
                             for k, unit in enumerate(np.eye(len(found)))]).T
        found = found - np.linalg.solve(jacobian, value)
    assert np.max(np.abs(found / exact - 1)) < 1e-8


def nested(scalar, values):
    """The equations with all definitions put in."""
    known = {}
    for symbol, value in scalar.definitions:
        known[symbol] = value.subs(values).xreplace(known)
    return [equation.subs(values).xreplace(known) for equation in scalar.equations]


def test_a_wrong_trace_violates_the_equations():
    system = dyson_of(models.gaussian_input())
    scalar = scalar_system(system)
    known = all_traces(system, DysonSolver(system, SIZES).solve(POINTS), SIZES)
    known[scalar.unknowns[1]] = 1.01 * known[scalar.unknowns[1]]
    for symbol, value in scalar.definitions:
        known[symbol] = evaluated(value.subs(SIZES), known)[0]
    sizes = [evaluated(equation.subs(SIZES), known) for equation in scalar.equations]
    assert max(float(np.max(np.abs(number) / size)) for number, size in sizes) > 1e-4


@pytest.mark.parametrize("name", ["orthogonal", "Gaussian", "latent", "X Xᵀ X Xᵀ", "all tied"])
def test_every_relation_vanishes_at_a_generic_point(name):
    system = dyson_of(MODELS[name][0]())
    relations = relations_of(system)
    point = generic_point(system, relations)
    assert None not in point.numbers
    for polynomial in relations.polynomials:
        assert not point.is_nonzero(*point.value(polynomial))
        assert point.is_nonzero(*point.value(polynomial + 1))


def test_fewest_unknowns_by_trying_all_single_ones():
    """With Gaussian input one unknown beside m is needed: m alone does not determine the rest."""
    system = dyson_of(models.gaussian_input())
    relations = relations_of(system)
    point = generic_point(system, relations)
    output = relations.variables.index(system.symbol(CORNER))
    everything = range(len(relations.variables))
    assert len(eliminate_variables(point, [output], list(everything)).unknowns) == 2


def test_closed_form_of_attention_with_gaussian_input():
    """One scalar σ = ηψ/h beside m: s(1−eR)² + yRL²(1+hs)(1+s/κ) = 0, on the solutions of the reduced system."""
    sizes, z = {**SIZES, models.h: 3}, POINTS
    n, d, d_key, d_value, d_out, h = (float(sizes[s]) for s in (models.n, models.d, models.d_key, models.d_value,
                                                               models.d_out, models.h))
    theta_1, theta_2 = 1.7, 1.0
    m = DysonSolver(dyson_of(models.gaussian_input()), sizes).stieltjes(z)
    eta, kappa, nu, omega = n / d, d_key / d, d_value / d, d_out / d
    psi, scaled = -(1 + z * m), m * d / n  # units of d: z → (n/d)z
    sigma = eta * psi / h
    e = (theta_1 - theta_2) * d / n * eta * scaled
    y = kappa * theta_2 * d**2 / (d_key * n) * eta * scaled
    big_n, big_l = 1 + eta + sigma, 1 + eta + 2 * sigma
    t = (omega / h + sigma) * (1 + sigma / nu) * (1 + sigma) * (eta + sigma)
    r = t / big_n
    s = (sigma + e * t) / (1 - e * r)
    first, second = s * (1 - e * r) ** 2, y * r * big_l**2 * (1 + h * s) * (1 + s / kappa)
    assert np.max(np.abs(first + second) / (np.abs(first) + np.abs(second))) < 1e-10


def renamed(scalar, values):
    """Definitions and equations with counts replaced, as rational functions in normal form."""
    pairs = [*scalar.definitions, *((sp.S.Zero, equation) for equation in scalar.equations)]
    return [(symbol, sp.cancel(sp.together(value.subs(values)))) for symbol, value in pairs]


def test_groups_of_heads_that_share_keys_and_values_change_nothing():
    """GQA: the reduced system of G groups of q heads is that of G·q heads."""
    ungrouped, shared = scalar_system(dyson_of(models.orthogonal())), scalar_system(dyson_of(grouped()))
    assert shared.unknowns == ungrouped.unknowns
    together = {models.h: models.G * models.q}
    assert renamed(shared, {}) == renamed(ungrouped, together)
    assert renamed(shared, {}) != renamed(ungrouped, {models.h: models.G})


def test_groups_change_nothing_with_gaussian_input_either():
    groups = copies("groups", models.G)
    alone = scalar_system(dyson_of(gaussian_heads(copies("heads", models.h), None)))
    heads = copies("heads", models.q, within=groups)
    assert renamed(scalar_system(dyson_of(gaussian_heads(heads, groups))), {}) == renamed(
        alone, {models.h: models.G * models.q})


def gaussian_heads(heads, groups):
    """Heads on Gaussian input, key and value maps of each head or of each group."""
    x, owner = gaussian("X", models.TOKENS, models.MODEL), groups or heads
    query, key = gaussian("WQ", models.MODEL, models.KEY, 1, heads), gaussian("WK", models.MODEL, models.KEY, 1, owner)
    value, out = gaussian("WV", models.MODEL, models.VALUE, 1, owner), gaussian("O", models.VALUE, models.OUT, 1, heads)
    noise = gaussian("W", models.TOKENS, models.TOKENS, 1, heads)
    total = heads.sum((x @ query @ key.T @ x.T + noise) @ x @ value @ out)
    return groups.sum(total) if groups else total


def test_one_key_matrix_for_all_heads_changes_the_head_sum():
    own, shared = (scalar_system(dyson_of(head_sum(kind))) for kind in (False, True))
    assert renamed(own, {}) != renamed(shared, {})
    sizes = {**SIZES, models.h: 4}
    laws = [DysonSolver(dyson_of(head_sum(kind)), sizes).stieltjes(POINTS) for kind in (False, True)]
    assert np.max(np.abs(laws[0] / laws[1] - 1)) > 0.01


@pytest.mark.parametrize("count", [1, 10**6, models.h])
def test_number_of_heads_costs_nothing(count):
    scalar = scalar_system(dyson_of(models.gaussian_input(copies("heads", count))))
    assert len(scalar.unknowns) == 2

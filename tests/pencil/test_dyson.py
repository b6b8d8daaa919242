"""Dyson systems and scalar systems: their form, their zero pattern, and that numbers solve both."""

from __future__ import annotations

from fractions import Fraction

import models
import numpy as np
import pytest
import sympy as sp
import test_simulation
from copied import double_sum, families, gram

from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory import symbols as sym
from freeattn.theory.dyson import dyson_of
from freeattn.theory.reduce import scalar_system

N, P = space("n", 20), space("p", 30)
POINTS = np.array([0.3 + 0.2j, 1.5 + 0.1j, 4 + 1j])


def residuals(expression, values=None, of="gram"):
    """Relative residuals of the scalar equations at the numerical solution."""
    system, values = dyson_of(expression, of), values or {}
    scalar, solution = scalar_system(system), DysonSolver(system, values).solve(POINTS)
    known = all_traces(system, solution, values)
    arguments = [known[u] for u in scalar.unknowns]
    for equation in scalar.equations:
        terms = sp.Add.make_args(sp.expand(equation.subs(values)))
        numbers = sp.lambdify([*scalar.unknowns, sym.Z], terms, "numpy")(*arguments, POINTS)
        yield float(np.max(np.abs(sum(numbers)) / sum(np.abs(number) for number in numbers)))


def test_marchenko_pastur_is_two_equations():
    rows, columns = sp.symbols("n p", positive=True)
    scalar = scalar_system(dyson_of(gaussian("X", space("n", rows), space("p", columns), 1 / columns)))
    g_x, g_y = sp.symbols("g_x_x g_y1_y1")
    assert scalar.unknowns == (g_x, g_y)
    assert scalar.output == g_x
    expected = [g_x * (-sym.Z - g_y) - 1, g_y * (-1 - rows / columns * g_x) - 1]
    assert [sp.expand(a - b) for a, b in zip(scalar.equations, expected, strict=True)] == [0, 0]
    assert scalar.parameters == (rows, columns)
    assert {a.name for a in scalar.assumptions} == {"Gaussian letters", "spaces grow together"}


def test_attention_with_gaussian_input_has_the_traces_that_are_known():
    system = dyson_of(models.gaussian_input())
    entering = {str(system.symbol(trace)) for trace in system.entering}
    assert {"g_x_x", "g_y4_y4", "g_w4_w4", "g_y4_w4", "g_y1_y1", "g_w3_w3", "g_y5_y5", "g_w3_y5"} <= entering
    assert len(entering) == 16
    assert sorted(len(sector.blocks) for sector in system.sectors) == [1, 1, 2, 2, 2, 2, 4]
    assert [str(place) for place in system.spaces] == ["n", "d", "d_key", "d_value", "d_out"]


def all_traces(system, solution, values):
    """All traces at the numerical solution, from the inverses of the small matrices."""
    entering = [system.symbol(trace) for trace in system.entering]
    inverses = []
    for sector in system.sectors:
        averaged = 0
        for node in sector.nodes:
            matrix = sp.lambdify([*entering, sym.Z], system.matrix(sector, node).subs(values), "numpy")
            averaged += float(node.weight) * np.array([np.linalg.inv(np.array(matrix(*u, z), dtype=complex))
                                                       for u, z in zip(solution.traces, POINTS, strict=True)])
        inverses.append(averaged)
    known = {}
    for trace in sorted(system.traces, key=lambda t: -t.level):
        for sector, inverse in zip(system.sectors, inverses, strict=True):
            scope = system.pencil.blocks[trace.row].scope[: trace.level]
            if sector.scope == scope and trace.row in sector.blocks:
                i, j = sector.blocks.index(trace.row), sector.blocks.index(trace.column)
                entry = system.inverse(sector)[i, j].subs(values)
                symbol = system.symbol(trace)
                rest = sp.lambdify(list(known), entry.subs(symbol, 0), "numpy")(*known.values())
                known[symbol] = (inverse[:, i, j] - rest) / float(entry.coeff(symbol))
    return known


@pytest.mark.parametrize("count", [1, 12])
def test_scalar_equations_of_attention_hold_at_the_numerical_solution(count):
    values = {models.n: 40, models.d: 80, models.d_key: 4, models.d_value: 6, models.d_out: 50,
              models.theta_1: Fraction(17, 10), models.theta_2: 1}
    heads = copies("heads", count)
    assert max(residuals(models.gaussian_input(heads), values)) < 1e-11
    assert max(residuals(models.orthogonal(heads=heads), values)) < 1e-11


@pytest.mark.parametrize("model", [gram, double_sum])
def test_scalar_equations_hold_where_traces_between_copies_survive(model):
    expression = model(families(3)) / 100
    assert max(residuals(expression)) < 1e-11


def test_large_and_small_matrices_together_give_a_complete_system():
    """Keys equal to values and outputs: a matrix of five blocks, whose parts within a head are in one of four."""
    values = {**test_simulation.SIZES, models.theta_1: Fraction(17, 10)}
    expression = test_simulation.all_tied()
    assert not [name for name in map(str, scalar_system(dyson_of(expression)).parameters) if name.startswith("g_")]
    assert max(residuals(expression, values)) < 1e-9


def dense():
    """Ten blocks on one space, all coupled: too many for closed inverses."""
    s, x = wigner("S", N, Fraction(1, 80)), gaussian("X", N, N, Fraction(1, 80))
    return (s + x) ** 2 @ (s - 2 * x.T) @ s + s @ x @ s + s + x @ s


def test_large_matrices_keep_all_their_traces_and_quadratic_equations():
    system = dyson_of(dense())
    scalar = scalar_system(system)
    assert max(len(sector.blocks) for sector in system.sectors) > 4
    assert len(scalar.unknowns) == len(scalar.equations) == len(system.traces)
    degrees = [sp.Poly(e, *scalar.unknowns, sym.Z).total_degree() for e in scalar.equations]
    assert max(degrees) == 2
    assert max(residuals(dense())) < 1e-11


def test_letters_on_different_spaces_of_equal_size_do_not_mix():
    same, other = space("a", 20), space("b", 20)
    left = dyson_of(gaussian("X", same, same) @ gaussian("Y", same, other))
    for trace in left.traces:
        assert left.pencil.blocks[trace.row].space == left.pencil.blocks[trace.column].space


def test_matrix_and_inverse_are_each_others_inverse_at_the_numerical_solution():
    system = dyson_of(gaussian("X", N, P, Fraction(1, 30)) @ gaussian("Y", P, N, Fraction(1, 20)))
    solution = DysonSolver(system).solve(POINTS)
    known = [(system.symbol(t), complex(v)) for t, v in zip(system.entering, solution.traces[0], strict=True)]
    for matrix, inverse in system.equations:
        if inverse.free_symbols <= {symbol for symbol, _ in known}:
            product = (matrix * inverse).subs([*known, (sym.Z, complex(POINTS[0]))])
            assert np.allclose(np.array(product, dtype=complex), np.eye(product.rows), atol=1e-12)

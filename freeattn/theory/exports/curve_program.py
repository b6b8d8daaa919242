"""The program of a law that is a rational curve."""

from __future__ import annotations

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.theory.exports.program import CurveProgram, Heading, Inputs, Pair
from freeattn.theory.symbols import THETA_2
from freeattn.theory.system import ScalarSystem
from freeattn.theory.transforms.uniformization import Branch, LeafPair

__all__ = ["curve_program"]


def curve_program(system: ScalarSystem, heading: Heading, inputs: Inputs) -> CurveProgram:
    """The program of a system with a rational parametrization.

    Raises:
        NotCoveredError: for a system without one.
    """
    curve = system.parametrization
    if curve is None:
        raise NotCoveredError("a program of a law without a rational parametrization; its polynomial is in to_dict()")
    zero = {s: v for s, v in inputs.assignments if s == THETA_2 and v == 0}  # leaves that this takes away are constant
    leaves, pairs = _leaves(curve.branch, curve.unknown, zero)
    q = curve.unknown
    point = sp.Mul(*(base**power for base, power in curve.point))
    return CurveProgram(
        heading=heading, inputs=inputs, unknown=q, point=curve.point,
        stieltjes=sp.Mul(*(base**power for base, power in curve.stieltjes)),
        residue=sp.factor(sp.cancel(sp.together(q * point)).subs(q, 0)),
        psi=curve.psi, tested=curve.branch is not None,
        start=sp.Integer(1) if curve.branch is None else curve.branch.start,
        leaves=leaves, pairs=pairs, factors=() if curve.branch is None else curve.branch.factors,
    )


def _leaves(
    branch: Branch | None, q: sp.Symbol, zero: dict[sp.Symbol, sp.Expr]
) -> tuple[tuple[tuple[sp.Expr, sp.Expr], ...], tuple[Pair, ...]]:
    """The leaves that are there: none whose value does not depend on q."""
    leaves, pairs = [], []
    for leaf in () if branch is None else branch.leaves:
        if isinstance(leaf, LeafPair):
            if sp.cancel(sp.together(leaf.product.subs(zero))).has(q):
                pairs.append(Pair(leaf.total, leaf.product, leaf.rate))
        elif sp.cancel(sp.together(leaf.value.subs(zero))).has(q):
            leaves.append((leaf.point, leaf.value))
    return tuple(leaves), tuple(pairs)

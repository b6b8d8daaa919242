"""The route by transforms: from an architecture or a law expression to a polynomial, with every stage kept.

Attention → Gaussian equivalent → law expression → transforms → scalar equation → polynomial. Stages are in the standard
symbols γ_K, γ_V, γ_O, h, θ₁, θ₂, c; what the symbols are worth for one specification is data beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import LawExpression, law_of
from freeattn.theory.branch import BRANCH_RULE, branch_of
from freeattn.theory.equivalent import GaussianEquivalent, equivalent_of
from freeattn.theory.exports.curve_program import curve_program
from freeattn.theory.exports.heading import heading_of
from freeattn.theory.exports.program import CurveProgram, inputs_of
from freeattn.theory.exposition import steps_of
from freeattn.theory.forms import expanded, primitive
from freeattn.theory.law_names import nodes_of
from freeattn.theory.mean_one import SCALAR_RULE, ScalarEquation, relation_of, scalar_equation
from freeattn.theory.record import to_record
from freeattn.theory.stages import Stages, Transform
from freeattn.theory.steps import Step
from freeattn.theory.system import ScalarSystem, system_of
from freeattn.theory.transforms import Image, Law

__all__ = ["TransformDerivation", "transform_derivation"]


@dataclass(frozen=True, repr=False)
class TransformDerivation(Stages):
    """Every stage from a specification (or a law expression) to the polynomial of its law, and its written forms."""

    def __repr__(self) -> str:
        return f"<Derivation of {self.expression.rule.name}, {len(self.steps)} steps: print(derivation.text())>"

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The derivation as numbered steps: a sentence and equations each."""
        return steps_of(self)

    @property
    def program(self) -> CurveProgram:
        """The rational curve, for exports to other languages.

        Raises:
            NotCoveredError: for a law without one, or with a parameter that is infinite.
        """
        heading = heading_of(f"Limiting spectral law: {self.expression.rule.name}.", self.steps, self.rules)
        return curve_program(
            self.system, heading, inputs_of(self.system.parameters, self.value_of, self.approximate)
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: every equation as srepr, LaTeX and text, the assumptions, rules and values."""
        return to_record(self, self.steps)


def transform_derivation(source: Attention | Law) -> TransformDerivation:
    """The derivation of the closed law of a layer, or of a law expression.

    Raises:
        NotCoveredError: when no closed law is known for it.
    """
    if isinstance(source, Attention):
        return _derived(source, law_of(source), equivalent_of(source))
    assumed = {a: None for rule in source.rules for a in rule.assumptions}
    return _derived(source, LawExpression(source, (), source.rule, tuple(assumed)), None)


@lru_cache(maxsize=64)
def _derived(
    source: Attention | Law, expression: LawExpression, equivalent: GaussianEquivalent | None
) -> TransformDerivation:
    law = expression.law
    scalar = None if law.mean.is_nonpositive else scalar_equation(law)
    system = _system(law, scalar)
    rules = [*law.rules, *([SCALAR_RULE] if scalar is not None else []), BRANCH_RULE]
    if equivalent is not None:
        rules = [equivalent.rule, expression.rule, *rules]
    assumed = (*expression.assumptions, *(a for rule in rules for a in rule.assumptions))
    return TransformDerivation(
        source=source, expression=expression, equivalent=equivalent,
        assumptions=tuple(dict.fromkeys(assumed)), rules=tuple(dict.fromkeys(rules)),
        transforms=tuple(_transform(node) for node in nodes_of(law)),
        mean=law.mean, scalar=scalar, system=system, branch=branch_of(law, system), atoms=law.atoms(),
        values=_values(expression, equivalent),
    )


def _transform(node: Law) -> Transform:
    s, r = node.s_transform(sym.W), node.r_transform(sym.Z)
    own = isinstance(node, Image) and s is None and r is None
    return Transform(node, s, r, relation_of(node) if own else None, node.rule)


def _values(expression: LawExpression, equivalent: GaussianEquivalent | None) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    if equivalent is None or not equivalent.exact:
        return expression.values
    first, second = equivalent.theta_1, equivalent.theta_2
    ratio = sp.cancel(second / first)
    return (*expression.values, (sym.THETA_1, first), (sym.THETA_2, second), (sym.C, ratio))


def _system(law: Law, scalar: ScalarEquation | None) -> ScalarSystem:
    """The rational curve, or the scalar equation itself with unknown w where no rational parameter is known."""
    try:
        return system_of(law)
    except NotCoveredError:
        if scalar is None:
            raise
    point = -sym.Z / law.mean.subs(sym.THETA_2, sym.C * sym.THETA_1)
    terms = [(sp.Integer(1), scalar.polynomial().subs(sym.LAMBDA, point))]
    equation = primitive(expanded(terms, (sym.W, sym.Z))).as_expr()
    parameters = tuple(sorted(equation.free_symbols - {sym.W, sym.Z}, key=str))
    assumed = {a: None for rule in law.rules for a in rule.assumptions}
    return ScalarSystem((sym.W,), (equation,), (sym.W - 1) / sym.Z, parameters, tuple(assumed))

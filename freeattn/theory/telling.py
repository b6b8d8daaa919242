"""The equations that tell what a derivation found: the law, and a system that determines m(z)."""

from __future__ import annotations

from freeattn.theory.derivation import Derivation
from freeattn.theory.steps import Equation, Vanishing

__all__ = ["telling_equations"]

_FIRST = ("law", "model")  # the law in the algebra, or the matrix as a polynomial
_SYSTEMS = ("curve", "stieltjes", "scalar", "reduced")  # steps with a complete system, the first that there is
_FEW = 6  # definitions of other traces that are shown: beyond, they say less than they take
_IN_WORDS = ("letter-", "unknown-", "meaning-")  # names of equations that say in words what a symbol is


def telling_equations(derivation: Derivation) -> tuple[Equation | Vanishing, ...]:
    """What is studied, then the equations of the step that determines m(z), without what is said in words."""
    steps = {step.name: step.equations for step in derivation.steps}
    system = next((name for name in _SYSTEMS if name in steps), "")
    found = [equation for name in (*_FIRST, system) for equation in _formulas(steps.get(name, ()))]
    defined = _formulas(steps.get("definitions", ()))
    return (*found, *(defined if len(defined) <= _FEW else ()))


def _formulas(equations: tuple[Equation | Vanishing, ...]) -> list[Equation | Vanishing]:
    return [equation for equation in equations if not equation.name.startswith(_IN_WORDS)]

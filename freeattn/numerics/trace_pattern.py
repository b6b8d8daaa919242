"""Which traces may differ from zero once iε is added to the constant part of a Dyson equation.

The zero pattern of an equation is closed under what its own constant part and self-energy create. The proof that a root
is the physical one adds iε to every block: that must create no trace for which the equation has no unknown.
"""

from __future__ import annotations

from freeattn.theory.dyson import DysonSystem
from freeattn.theory.self_energy import Trace

__all__ = ["keeps_pattern"]


def keeps_pattern(system: DysonSystem) -> bool:
    """Whether iε on the diagonal creates no trace: a step from a block to its partner leads from traces to traces."""
    traces, partners = set(system.traces), system.pencil.partners
    return all(
        Trace(min(partners[here], there), max(partners[here], there), level) in traces
        for row, column, level in traces
        for here, there in ((row, column), (column, row))
    )

"""The key numbers of one law, to be set beside those of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, final

from freeattn.display import ShownAsTables
from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.numerics.law import SpectralLaw
from freeattn.predict.flow import arrival_time
from freeattn.predict.inputs import atom_at_zero, spectral_law
from freeattn.predict.parameters import parameter_count
from freeattn.predict.readouts import degrees_of_freedom, ridge_error
from freeattn.predict.shape import (
    condition_number,
    entropy_rank,
    participation_ratio,
    rank_fraction,
    spike_gap,
    stable_rank,
)

__all__ = ["Summary", "shape_numbers", "summary"]


@final
class Summary(dict[str, Any], ShownAsTables):
    """Key numbers by name, in the order in which they are told; notebooks show them as a table."""

    shown_as: ClassVar[str] = "summary"


def summary(law: SpectralLaw, *, penalty: float = 1e-4, noise: float = 0.1, level: float = 0.1) -> Summary:
    """Sizes, ratios, β, parameters, mean, edges and atom of a layer's law, and what is predicted from it.

    Edges and predictions are those of the law of mean one; β is a tuple for heads that do not have the same. None
    stands for what the layer does not have: a ridge error without an output map, a time of arrival at a level that is
    not above the plateau, parameters without sizes, a gap that is not covered.

    Raises:
        InputError: for values that are not allowed.
    """
    law = spectral_law(law)
    spec = law.spec if isinstance(law.spec, Attention) else None
    bands = [(low / law.mean, high / law.mean) for low, high in law.edges]
    ratios = {name: getattr(spec, name, None) for name in ("gamma_key", "gamma_value", "gamma_out")}
    return Summary({
        "n_tokens": getattr(spec, "n_tokens", None),
        **ratios,
        "beta": None if spec is None else spec.betas[0] if len(spec.betas) == 1 else spec.betas,
        "parameters": None if spec is None or spec.ratios else parameter_count(spec),
        "mean": law.mean,
        "left_edge": bands[0][0] if bands else None,
        "right_edge": bands[-1][1] if bands else None,
        "bands": len(bands),
        "atom": atom_at_zero(law),
        "degrees_of_freedom": degrees_of_freedom(law, penalty),
        "ridge_error": None if ratios["gamma_out"] is None else ridge_error(law, penalty, noise),
        "arrival_time": arrival_time(law, level) if level > atom_at_zero(law) else None,
        **shape_numbers(law),
    })


def shape_numbers(law: SpectralLaw) -> dict[str, Any]:
    """Condition number, effective ranks and gap; None for a gap that is not covered or needs a number of tokens."""
    sized = isinstance(law.spec, Attention) and law.spec.n_tokens is not None
    return {
        "condition_number": condition_number(law),
        "stable_rank": stable_rank(law),
        "participation_ratio": participation_ratio(law),
        "entropy_rank": entropy_rank(law),
        "rank_fraction": rank_fraction(law),
        "spike_gap": _where_covered(lambda: spike_gap(law)) if sized else None,
    }


def _where_covered(number: Callable[[], float]) -> float | None:
    try:
        return number()
    except NotCoveredError:
        return None

"""Predictions from a law as facts and curves; what is not covered is said, not left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from freeattn.errors import ConvergenceError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.numerics.law import SpectralLaw
from freeattn.predict.flow import arrival_time, flow_loss
from freeattn.predict.parameters import parameter_count
from freeattn.predict.readouts import best_penalty, degrees_of_freedom, ridge_error
from freeattn.predict.shape import (
    condition_number,
    entropy_rank,
    participation_ratio,
    rank_fraction,
    spike_gap,
    stable_rank,
)
from freeattn.report.data import Curve, Fact

__all__ = ["Predictions", "predictions"]

_PENALTIES = np.logspace(-6, 2, 97)
_TIMES = np.logspace(-2, 5, 85)
_PENALTY = 1e-4  # of the degrees of freedom in the table
_LEVEL = 0.1  # of the loss whose time of arrival is told


class Predictions(NamedTuple):
    """Facts and curves; a curve is None where it is not covered."""

    facts: tuple[Fact, ...]
    ridge: Curve | None
    freedom: Curve | None
    loss: Curve | None


def predictions(law: SpectralLaw, spec: Attention, noise: float) -> Predictions:
    """Ridge regression, gradient flow and shape, in the unit of the law of mean one."""
    has_map = spec.gamma_out is not None
    ridge = _curve(_PENALTIES, lambda at: ridge_error(law, at, noise)) if has_map else None
    facts = [_sized(spec, "parameters", lambda: parameter_count(spec)), *_ridge_facts(law, noise, has_map)]
    plateau = float(1 - rank_fraction(law))
    facts.append(Fact("plateau of the loss of gradient flow", plateau))
    if plateau < _LEVEL:
        facts.append(_fact(f"time at which the loss is {_LEVEL:g}", lambda: arrival_time(law, _LEVEL)))
    else:
        facts.append(Fact(f"time at which the loss is {_LEVEL:g}", None, "the loss never falls below its plateau"))
    facts += [
        _fact("condition number s_max/s_min", lambda: condition_number(law)),
        _fact("stable rank over n", lambda: stable_rank(law)),
        _fact("participation ratio over n", lambda: participation_ratio(law)),
        _fact("entropy rank over n", lambda: entropy_rank(law)),
        _fact("rank over n", lambda: rank_fraction(law)),
        _sized(spec, "gap s₁²/s₂² to the leading direction, not centered", lambda: spike_gap(law)),
    ]
    return Predictions(
        tuple(facts), ridge, _curve(_PENALTIES, lambda at: degrees_of_freedom(law, at)),
        _curve(_TIMES, lambda at: flow_loss(law, at)),
    )


def _ridge_facts(law: SpectralLaw, noise: float, has_map: bool) -> list[Fact]:
    facts = [
        _fact(f"degrees of freedom per token at penalty {_PENALTY:g}", lambda: degrees_of_freedom(law, _PENALTY)),
    ]
    if not has_map:
        return [*facts, Fact("error of ridge regression", None, "this output has no output map")]
    best = float(best_penalty(law, noise))
    return [
        *facts,
        _fact(f"error of ridge regression at penalty {_PENALTY:g}", lambda: ridge_error(law, _PENALTY, noise)),
        Fact("best penalty of ridge regression", best),
        _fact("error of ridge regression at the best penalty", lambda: ridge_error(law, best, noise)),
    ]


def _sized(spec: Attention, name: str, number: Callable[[], Any]) -> Fact:
    """A fact that needs sizes."""
    return Fact(name, None, "needs sizes") if spec.ratios is not None else _fact(name, number)


def _fact(name: str, number: Callable[[], Any]) -> Fact:
    try:
        return Fact(name, number())
    except (NotCoveredError, ConvergenceError) as error:
        return Fact(name, None, str(error))


def _curve(at: Any, values: Callable[[Any], Any]) -> Curve | None:
    try:
        return Curve.of(at, values(at))
    except (NotCoveredError, ConvergenceError):
        return None

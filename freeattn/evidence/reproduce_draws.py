"""What is drawn of the layers of a figure: tasks whose stored results are eigenvalues, from which all else follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from freeattn.evidence.draws import child_seed, layer_task, task_of
from freeattn.evidence.features import Features, draw_features
from freeattn.evidence.weights import Matrix
from freeattn.model.attention import Attention
from freeattn.runs import Result, Task

__all__ = ["FEATURES", "SPECTRA", "Kind", "Spectra", "features_of_draw"]


class Spectra(NamedTuple):
    """Squared singular values of one draw, ascending, zeros exact."""

    softmax: Matrix
    equivalent: Matrix


@final
@dataclass(frozen=True)
class Kind:
    """What is drawn of a layer.

    Attributes:
        task: one draw, from a specification, a seed and the number of the draw.
        read: from its result to a value with methods.
    """

    task: Callable[[Attention, int, int], Task]
    read: Callable[[Result, Attention], Any]


def features_of_draw(spec: Attention, seed: int, draw: int) -> Result:
    """Eigenvalues of MHA MHAᵀ of softmax attention, mean included, with the shares of centered targets."""
    found = draw_features(spec, child_seed(seed, draw))
    return {"values": found.values, "shares": found.shares}


def _features_task(spec: Attention, seed: int, draw: int) -> Task:
    return task_of("features of a layer", features_of_draw, spec, seed, draw)


def _read_spectra(result: Result, spec: Attention) -> Spectra:
    del spec
    return Spectra(result["softmax"], result["equivalent"])


def _read_features(result: Result, spec: Attention) -> Features:
    return Features(result["values"], result["shares"], spec.d_out)


SPECTRA = Kind(layer_task, _read_spectra)
FEATURES = Kind(_features_task, _read_features)

"""One draw of a layer as a task: pure functions of a specification's form, a seed and the number of the draw.

They stand at the top of a module, take and return plain values and arrays, and so run in any process and are kept in
any store; what is kept are eigenvalues, from which every statistic follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from freeattn.evidence.features import Features, draw_features
from freeattn.evidence.sampling import sample
from freeattn.evidence.weights import Matrix
from freeattn.model.attention import Attention
from freeattn.runs.task import Task

__all__ = ["FEATURES", "SPECTRA", "Kind", "Spectra", "features_of_draw", "spectra_of_draw"]


class Spectra(NamedTuple):
    """Squared singular values of one draw, ascending, zeros exact."""

    softmax: Matrix
    equivalent: Matrix


@final
@dataclass(frozen=True)
class Kind:
    """What is drawn of a layer.

    Attributes:
        statistic: its name, a part of the key of results.
        function: the draw, from a form, a seed and the number of the draw.
        read: from the stored result to a value with methods.
    """

    statistic: str
    function: Callable[[dict[str, Any], int, int], dict[str, Any]]
    read: Callable[[dict[str, Any], Attention], Any]

    def task(self, spec: Attention, seed: int, draw: int) -> Task:
        """The task of one draw; its key is all that the result depends on."""
        form = spec.to_dict()
        key = {"statistic": self.statistic, "spec": form, "seed": seed, "draw": draw}
        return Task(key, self.function, (form, seed, draw))


def spectra_of_draw(form: dict[str, Any], seed: int, draw: int) -> dict[str, Any]:
    """Squared singular values of the centered output, from softmax and from its Gaussian equivalent."""
    found = sample(Attention.from_dict(form), _child(seed, draw))
    return {"softmax": found.softmax, "equivalent": found.equivalent}


def features_of_draw(form: dict[str, Any], seed: int, draw: int) -> dict[str, Any]:
    """Eigenvalues of MHA MHAᵀ of softmax attention, mean included, with the shares of centered targets."""
    found = draw_features(Attention.from_dict(form), _child(seed, draw))
    return {"values": found.values, "shares": found.shares}


def _child(seed: int, draw: int) -> np.random.SeedSequence:
    """What SeedSequence(seed).spawn(…)[draw] would be."""
    return np.random.SeedSequence(seed, spawn_key=(draw,))


def _read_spectra(result: dict[str, Any], spec: Attention) -> Spectra:
    del spec
    return Spectra(result["softmax"], result["equivalent"])


def _read_features(result: dict[str, Any], spec: Attention) -> Features:
    return Features(result["values"], result["shares"], spec.d_out)


SPECTRA = Kind("spectra", spectra_of_draw, _read_spectra)
FEATURES = Kind("features", features_of_draw, _read_features)

"""One draw of softmax attention, diagonalized, against its law.

The layer has the ratios of bert-base with 512 tokens, at twice the size, and so the same law. The simulation is plain
numpy: with orthogonal tokens X Xᵀ = d_model·1, so queries, keys and values are independent N(0, 1) matrices.
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import numpy as np
from protocol import repeated, serve, timed
from run_freeattn import forget

import freeattn as fa
from freeattn.evidence.compare import LawTable, as_spectrum, ks_distance, relative_w1

POINTS = 1000
STOP_AFTER = 40.0  # seconds: no further draw after so many
BASE = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "d_out": 768}


def layer(n_tokens: int) -> fa.Attention:
    """The ratios of bert-base with 512 tokens; heads stay twelve."""
    scaled = {name: size if name == "n_heads" else size * n_tokens // 512 for name, size in BASE.items()}
    return fa.Attention(**scaled)


def draw(spec: fa.Attention, seed: int) -> np.ndarray:
    """The output M = [A_1^⊥ V_1, …, A_h^⊥ V_h] W^O of softmax attention at β = 1, rows of A^⊥ centered."""
    rng, n, heads = np.random.default_rng(seed), int(spec.n_tokens), int(spec.n_heads)
    output = np.zeros((n, int(spec.d_out)))
    for _ in range(heads):
        queries, keys = (rng.standard_normal((n, int(spec.d_key))) for _ in range(2))
        weights = np.exp(queries @ keys.T / math.sqrt(int(spec.d_key)))
        weights /= weights.sum(axis=1, keepdims=True)
        weights -= 1 / n
        values = rng.standard_normal((n, int(spec.d_value)))
        mixing = rng.standard_normal((int(spec.d_value), int(spec.d_out))) / math.sqrt(heads * int(spec.d_value))
        output += weights @ values @ mixing
    return output


def spectrum(output: np.ndarray) -> np.ndarray:
    return as_spectrum(np.maximum(np.linalg.eigvalsh(output @ output.T), 0.0))


def by_law(spec: fa.Attention) -> fa.SpectralLaw:
    law = fa.law(spec)
    law.density(np.linspace(law.edges[0][0], law.edges[-1][1], POINTS + 2)[1:-1])
    return law


def one(spec: fa.Attention, law: fa.SpectralLaw, table: LawTable, seed: int) -> dict[str, dict[str, float]]:
    """Times and errors of one draw, and the time of the law with empty caches."""
    output, drawing = timed(lambda: draw(spec, seed))
    values, diagonalizing = timed(lambda: spectrum(output))
    forget()
    building = timed(lambda: by_law(spec))[1]
    return {
        "seconds": {"draw": drawing, "diagonalize": diagonalizing, "law": building},
        "errors": {
            "ks": ks_distance(values, table),
            "w1": relative_w1(values, table),
            "mean": abs(float(values.mean()) / law.mean - 1),
            "left": abs(float(values[0]) / law.edges[0][0] - 1),
            "right": abs(float(values[-1]) / law.edges[-1][1] - 1),
        },
    }


def measure(request: dict[str, Any]) -> dict[str, Any]:
    spec, seeds = layer(request["n_tokens"]), itertools.count()
    law = by_law(spec)
    table = LawTable.of(law, request["n_tokens"])
    runs = repeated(lambda: one(spec, law, table, next(seeds)), request["repeats"], STOP_AFTER)
    medians = {
        part: {name: statistics.median(run[part][name] for run in runs) for name in runs[0][part]}
        for part in ("seconds", "errors")
    }
    return {"n_tokens": request["n_tokens"], **medians, "runs": len(runs)}


if __name__ == "__main__":
    serve(measure)

"""Times of freeattn itself, in one warm process.

Every stage is run once before the clock starts. Then, up to `repeats` times: all caches are emptied, the law is built
anew, and each stage is timed once. What is reported is the median.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from protocol import repeated, serve, timed
from run_freeattn import forget

import freeattn as fa

DIGITS, POINTS = 50, 1000
STOP_AFTER = 10.0  # seconds: no further run of a model after so many
BERT = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "d_out": 768}
MODELS: dict[str, Callable[[], fa.Attention]] = {
    "orthogonal MHA": lambda: fa.Attention(**BERT),
    "Gaussian MHA": lambda: fa.Attention(**BERT, inputs="gaussian"),
    "K = V": lambda: fa.Attention(**BERT, tie="key-value"),
    "correlated K, V (ρ = 1/2)": lambda: fa.Attention(**BERT, tie=fa.KeyValueCorrelation(Fraction(1, 2))),
    "DeepSeek-V3, 4096 tokens": lambda: fa.architecture("deepseek-v3", n_tokens=4096),
}


def stages(model: Callable[[], fa.Attention]) -> dict[str, float]:
    """Seconds of each stage, caches empty before derivation and before building the law."""
    forget()
    seconds = {"derive": timed(lambda: fa.derive(model()).equations)[1]}
    forget()
    law, seconds["law"] = timed(lambda: fa.law(model()))
    left, right = law.edges[0]
    grid = np.linspace(left, law.edges[-1][1], POINTS + 2)[1:-1]
    middle = Fraction((left + right) / 2)
    seconds["density"] = timed(lambda: law.density(grid))[1]
    seconds["edges"] = timed(lambda: law.edges_to(DIGITS))[1]  # before a value to as many digits, which needs them
    seconds["value"] = timed(lambda: law.density(float(middle), digits=DIGITS))[1]
    seconds["certified"] = timed(lambda: law.certify(float(middle)))[1]
    return seconds


def measure(request: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for name, model in MODELS.items():
        stages(model)
        runs = repeated(lambda model=model: stages(model), request["repeats"], STOP_AFTER)
        medians = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
        rows.append({"model": name, **medians, "runs": len(runs)})
    return {"rows": rows}


if __name__ == "__main__":
    serve(measure)

"""Degrees, sizes and times of algebraic curves and exact moments: `python tests/benchmarks/algebra.py [name]`.

Seconds of processor time once the equation is derived: the curve, and m_1 … m_30 in numbers.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import freeattn as fa
from freeattn.errors import NotCoveredError
from freeattn.theory.derive import derive
from freeattn.theory.moments import moments
from freeattn.theory.symbols import THETA_1, THETA_2

SIZES = {"n_tokens": 5, "d_model": 7, "n_heads": 2, "d_key": 3}
WIDE = {**SIZES, "d_value": 4, "d_out": 6}
GAUSSIAN = {**WIDE, "inputs": "gaussian"}
TIED = {**SIZES, "d_out": 6, "tie": "key-value"}
CASES = {
    "attention": {**SIZES, "output": "attention"},
    "values": {**SIZES, "d_value": 4, "output": "values"},
    "MHA": WIDE,
    "K = V": TIED,
    "shared latent": {**WIDE, "latent": fa.Latent(6)},
    "latent of queries": {**WIDE, "query_latent": fa.Latent(6)},
    "correlated K and V": {**SIZES, "d_out": 6, "tie": fa.KeyValueCorrelation(Fraction(1, 2))},
    "K = V and O = Kᵀ": {**SIZES, "tie": "key-value-output"},
    "O = Kᵀ": {**SIZES, "tie": "output-key"},
    "attention, Gaussian input": {**SIZES, "output": "attention", "inputs": "gaussian"},
    "MHA, Gaussian input": GAUSSIAN,
    "K = V, Gaussian input": {**TIED, "inputs": "gaussian"},
    "shared latent, Gaussian input": {**GAUSSIAN, "latent": fa.Latent(6)},
    "values, Gaussian input": {**SIZES, "d_value": 4, "output": "values", "inputs": "gaussian"},
    "correlated K and V, Gaussian input": {
        **SIZES, "d_out": 6, "tie": fa.KeyValueCorrelation(Fraction(3, 5)), "inputs": "gaussian",
    },
    "O = Kᵀ, Gaussian input": {**SIZES, "tie": "output-key", "inputs": "gaussian"},
    "K = V and O = Kᵀ, Gaussian input": {**SIZES, "tie": "key-value-output", "inputs": "gaussian"},  # out of reach
}
NO_NOISE = ("MHA, Gaussian input", "K = V, Gaussian input")


def row(name: str, fields: dict, ratio: Fraction) -> str:
    spec = fa.Attention(**fields)
    derivation = derive(spec, route="pencil")
    begin = time.process_time()
    try:
        curve = derivation.curve(values={"c": ratio})
    except NotCoveredError as error:
        return f"| {name} | {error} | | | | |"
    seconds = time.process_time() - begin
    begin = time.process_time()
    moments(derivation.dyson, 30, {**derivation.numbers, THETA_1: 2, THETA_2: 1})
    series = time.process_time() - begin
    digits = max(len(str(abs(c))) for _, _, c in curve.terms)
    degrees = f"({curve.degree_z}, {curve.degree_m})"
    return f"| {name} | {degrees} | {len(curve.terms)} | {digits} | {seconds:.2f} | {series:.2f} |"


def main() -> None:
    print("| model | degrees in z, m | terms | digits | curve, s | m_30, s |")
    print("|---|---|---|---|---|---|")
    for name, fields in CASES.items():
        if all(word in name for word in sys.argv[1:]):
            print(row(name, fields, Fraction(1, 3)), flush=True)
            if name in NO_NOISE:
                print(row(f"{name}, no noise", fields, Fraction(1)), flush=True)


if __name__ == "__main__":
    main()

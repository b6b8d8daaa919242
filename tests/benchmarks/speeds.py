"""Times of laws that are built once: densities, values to many digits, proofs, edges, on both backends.

    python tests/benchmarks/speeds.py [--random 32] [--repeats 7] [--json FILE]

One thread, warm process, medians of CPU time in milliseconds. Points are 2,000 real ones over ten decades up to the
right edge; the complex z is 7/10 of the right edge plus 0.1i. `law` is the time of a law that was not seen before, of a
kind that was: derivation, bands, edges and checks; `all edges` is what of this remains when the equation, moments and
atoms are known: numbers into the equation, the search for bands, their edges to double rounding, and the masses of the
bands, which tell that none is missing; `real m` is the Stieltjes transform at the same points; `edge` is one edge, with
what is done once for that many digits, of a law that has proved a value before. Last, medians over random layers of
every kind (`robustness.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np

import freeattn as fa
from freeattn.errors import FreeattnError
from freeattn.numerics.backends import backend
from freeattn.numerics.exact import ExactLaw
from freeattn.numerics.exact_words import engine_of
from freeattn.numerics.translated import engine_of_curve

EDGE_DIGITS = 20  # rounded once to a double, as by `SpectralLaw.edges`
BACKENDS = ("numpy", "compiled")
POINTS, DECADES = 2000, 10
COLUMNS = (
    "law", "all edges", "densities", "real m", "m, 50 digits", "m, 500 digits", "proof of m",
    "edge, 50 digits", "edge, 200 digits", "proof of an edge, 50 digits", "proof of an edge, 200 digits",
)


def layers():
    """Name ↦ (layer for a number that makes it new, route)."""
    base = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}

    def bert(**fields):
        return lambda k: fa.Attention(**base | {"d_out": 768 + k} | fields)

    return {
        "orthogonal tokens": (bert(), "transform"),
        "orthogonal tokens, pencil": (bert(), "pencil"),
        "Gaussian tokens": (bert(inputs="gaussian"), None),
        "K = V": (bert(tie="key-value"), "transform"),
        "K = V, pencil": (bert(tie="key-value"), "pencil"),
        "K = V, Gaussian tokens": (bert(tie="key-value", inputs="gaussian"), None),
        "correlated K and V": (bert(tie=fa.KeyValueCorrelation(Fraction(1, 2))), None),
        "DeepSeek-V3": (lambda k: fa.architecture("deepseek-v3", n_tokens=2048 + k), None),
    }


def milliseconds(run, repeats=1):
    """Median of several runs; `run` gets the number of the run."""
    found = []
    for k in range(repeats):
        start = time.process_time()
        run(k)
        found.append(1e3 * (time.process_time() - start))
    return statistics.median(found)


def edges_of(law):
    return max(2 * len(law.edges) - sum(a == 0 for a, _ in law.edges), 1)


def located(law):
    """All edges of a law whose equation is known, to double rounding, found anew."""
    exact = law._exact
    engine = engine_of_curve(exact.curve) if isinstance(exact, ExactLaw) else engine_of(exact)
    return engine.masses, engine.bands(EDGE_DIGITS)


def new_edges(build, digits, proved, repeats):
    """One edge of laws whose edges were not asked for to so many digits."""
    found = []
    for k in range(repeats):
        law = build(100 + k)
        law.certify(1j)
        ask = law.certify_edges if proved else law.edges_to
        found.append(milliseconds(lambda _, ask=ask: ask(digits)) / edges_of(law))
    return statistics.median(found)


def measured(build, repeats):
    """Every column of one law."""
    law = build(0)
    largest = law.edges[-1][1]
    x = np.geomspace(largest * 10.0**-DECADES, largest, POINTS)
    z = 0.7 * largest + 0.1j
    law.stieltjes(x)  # what is made once for a law
    few = max(repeats // 2, 1)
    fresh = [build(200 + k) for k in range(repeats)]
    times = (
        milliseconds(lambda k: build(1 + k).edges, repeats),
        milliseconds(lambda k: located(fresh[k]), repeats),
        milliseconds(lambda _: law.density(x), repeats),
        milliseconds(lambda _: law.stieltjes(x), repeats),
        milliseconds(lambda k: law.stieltjes(z * (1 + k / 64), digits=50), 3 * repeats),
        milliseconds(lambda k: law.stieltjes(z * (1 + k / 64), digits=500), repeats),
        milliseconds(lambda k: law.certify(z * (1 + k / 64)), 3 * repeats),
        *(new_edges(build, digits, proved, few) for proved in (False, True) for digits in (50, 200)),
    )
    return dict(zip(COLUMNS, times, strict=True))


def random_layers(count):
    """Medians over random layers: the time of a law, of an edge, and of proved edges; and how many were refused."""
    from robustness import KINDS, layer  # the folder of a script is on its path

    rng, rows, refused = random.Random(5), [], 0
    for k in range(count):
        spec = layer(rng, KINDS[k % len(KINDS)])
        try:
            row = [milliseconds(lambda _, spec=spec: fa.law(spec).edges)]
            law = fa.law(spec)
            row.append(milliseconds(lambda _, law=law: located(law)))
            law.certify(1j)
            row += [milliseconds(lambda _, law=law, d=d: law.edges_to(d)) / edges_of(law) for d in (50, 200)]
            row += [milliseconds(lambda _, law=law, d=d: law.certify_edges(d)) / edges_of(law) for d in (50, 200)]
            rows.append(row)
        except FreeattnError:
            refused += 1
    columns = [name for name in COLUMNS if name == "law" or "edge" in name]  # in the order of the rows
    return {name: statistics.median(row[k] for row in rows) for k, name in enumerate(columns)}, refused


def run_here(options):
    fa.law(fa.Attention(n_tokens=8, d_model=8, n_heads=1, d_key=8, d_value=8, inputs="gaussian")).density(1.0)
    result = {name: measured(lambda k, make=make, route=route: fa.law(make(k), route=route), options.repeats)
              for name, (make, route) in layers().items()}
    if options.random:
        medians, refused = random_layers(options.random)
        result[f"{options.random} random layers ({refused} refused)"] = medians
    return {"backend": backend(), "load": os.getloadavg()[0], "milliseconds": result}


def run_in_processes(options):
    found = []
    for name in BACKENDS:
        command = [sys.executable, __file__, "--backend", name, "--random", str(options.random),
                   "--repeats", str(options.repeats)]
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        done = subprocess.run(command, env=os.environ | threads | {"FREEATTN_BACKEND": name}, stdout=subprocess.PIPE,
                              text=True, check=True)
        found.append(json.loads(done.stdout))
    return found


def table(result):
    lines = [f"| {result['backend']} | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, times in result["milliseconds"].items():
        cells = [f"{times[column]:.2g}" if column in times and times[column] < 9.5 else
                 f"{times[column]:.0f}" if column in times else "" for column in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=BACKENDS, help=argparse.SUPPRESS)
    parser.add_argument("--random", type=int, default=32, metavar="N", help="random layers, 0 for none")
    parser.add_argument("--repeats", type=int, default=7, metavar="N")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if options.backend:
        json.dump(run_here(options), sys.stdout)
        return
    results = run_in_processes(options)
    for result in results:
        print(table(result), end="\n\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

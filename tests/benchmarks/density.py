"""Times that users feel, against the limits the project sets itself.

    python tests/benchmarks/density.py [--json] [--repeats N]

Density: 1000 points in a warm process. For K/V-independent laws the law is built before the clock starts;
for K = V the clock includes building it, from a specification that was not seen before. Start-up: wall time
of fresh processes, and of `import freeattn` as `python -X importtime` reports it. Every number is the best of
several. Exit status 1 when a limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import freeattn as fa

POINTS = 1000
HEAVY = ("scipy", "sympy", "matplotlib")
INDEPENDENT_LIMIT, TIED_LIMIT = 0.050, 0.300  # seconds
IMPORT_LIMIT, HELP_LIMIT, COMMAND_LIMIT = 0.3, 0.6, 1.5  # --help: 0.3 s on top of the import

INDEPENDENT = {
    "mha (bert-base, 512 tokens)": fa.architecture("bert-base", n_tokens=512),
    "attention, two bands": fa.Attention.from_ratios(Fraction(1, 4), n_heads=16, output="attention"),
    "values": fa.Attention.from_ratios(Fraction(3, 4), Fraction(5, 2), n_heads=4, output="values"),
    "mha, hard edge": fa.Attention.from_ratios(2, 1, 1, n_heads=1),
    "head sum": fa.Attention.from_ratios(Fraction(1, 2), n_heads=8, output="head-sum"),
}
TIED: dict[str, dict[str, Any]] = {
    "K = V, values": {"n_heads": 4, "output": "values"},
    "K = V, mha": {"n_heads": 4, "output": "mha"},
}


def best(run: Callable[[int], float], repeats: int) -> float:
    return min(run(k) for k in range(repeats))


def grid(law: fa.SpectralLaw) -> Any:
    return np.linspace(law.edges[0][0], law.edges[-1][1], POINTS + 2)[1:-1]


def independent(spec: fa.Attention, repeats: int) -> float:
    law = fa.law(spec)
    x = grid(law)

    def run(_: int) -> float:
        start = time.perf_counter()
        law.density(x)
        return time.perf_counter() - start

    return best(run, repeats)


def tied(fields: dict[str, Any], repeats: int) -> float:
    """Each run builds a law that is new (γ_K moved a little), so that no cache answers."""

    def run(k: int) -> float:
        key, out = Fraction(3, 2) + Fraction(k, 1000), 2 if fields["output"] == "mha" else None
        start = time.perf_counter()
        law = fa.law(fa.Attention.from_ratios(key, None, out, tie="key-value", **fields))
        law.density(grid(law))
        return time.perf_counter() - start

    run(repeats)  # warm up: imports and symbolic work that a process does once
    return best(run, repeats)


def wall(command: list[str], repeats: int) -> float:
    def run(_: int) -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - start

    return best(run, repeats)


def import_time(repeats: int) -> tuple[float, list[str]]:
    """(seconds of `import freeattn`, heavy packages it loaded)."""
    command = [sys.executable, "-X", "importtime", "-c", "import freeattn"]
    reports = [
        subprocess.run(command, check=True, capture_output=True, text=True).stderr for _ in range(repeats)
    ]
    rows = re.findall(r"import time:\s*\d+ \|\s*(\d+) \|\s*(\S+)", reports[0])
    heavy = sorted({name.split(".")[0] for _, name in rows} & set(HEAVY))
    times = [
        int(us)
        for report in reports
        for us, name in re.findall(r"\|\s*(\d+) \|\s*(freeattn)\s*$", report, re.M)
    ]
    return min(times) / 1e6, heavy


def measure(repeats: int) -> list[dict[str, Any]]:
    rows = [
        {"what": f"density, {name}", "seconds": independent(spec, repeats), "limit": INDEPENDENT_LIMIT}
        for name, spec in INDEPENDENT.items()
    ]
    rows += [
        {"what": f"law and density, {name}", "seconds": tied(fields, repeats), "limit": TIED_LIMIT}
        for name, fields in TIED.items()
    ]
    seconds, heavy = import_time(repeats)
    loaded = f" (loads {', '.join(heavy)})" if heavy else ""
    rows.append(
        {"what": "import freeattn" + loaded, "seconds": seconds, "limit": 0.0 if heavy else IMPORT_LIMIT}
    )
    program = [sys.executable, "-m", "freeattn"]
    rows.append(
        {"what": "freeattn --help", "seconds": wall([*program, "--help"], repeats), "limit": HELP_LIMIT}
    )
    command = [*program, "law", "bert-base", "--n-tokens", "512"]
    rows.append(
        {
            "what": " ".join(["freeattn", *command[3:]]),
            "seconds": wall(command, repeats),
            "limit": COMMAND_LIMIT,
        }
    )
    return [{**row, "within": row["seconds"] <= row["limit"]} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description="Times that users feel, against the project's limits.")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    parser.add_argument("--repeats", type=int, default=5, help="best of so many (default 5)")
    options = parser.parse_args()
    rows = measure(options.repeats)
    if options.json:
        print(json.dumps({"points": POINTS, "repeats": options.repeats, "rows": rows}, indent=2))
    else:
        for row in rows:
            mark = "" if row["within"] else "   over the limit"
            print(
                f"{row['what']:<46} {1e3 * row['seconds']:8.1f} ms   limit {1e3 * row['limit']:6.0f} ms{mark}"
            )
    return 0 if all(row["within"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

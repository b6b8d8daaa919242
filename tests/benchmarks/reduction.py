"""How far the Dyson equation of each variant reduces, and how long that takes: the table of docs/derivations.md.

    python tests/benchmarks/reduction.py [--json]

Traces of blocks that are not zero; those that enter the self-energy; unknowns after reduction; the time from the
expression to the reduced system, in seconds, the best of three; the degrees of the polynomial P(z, m) where known.
Exit status 1 when a limit is exceeded: 2 s for a variant of attention, 1 s for a word.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import sympy as sp

from freeattn.model.expression import Expression, gaussian
from freeattn.model.letters import Copies, copies, space
from freeattn.theory import symbols as sym
from freeattn.theory.dyson import dyson_of
from freeattn.theory.reduce import scalar_system

VARIANT_LIMIT, WORD_LIMIT = 2.0, 1.0
REPEATS = 3

n, d, d_key, d_value, d_out, h, rank = sp.symbols("n d d_key d_value d_out h r", positive=True)
TOKENS, MODEL, KEY, VALUE, OUT, RANK = (space(str(size), size) for size in (n, d, d_key, d_value, d_out, rank))
HEADS = copies("heads", h)
X = gaussian("X", TOKENS, MODEL)


def layer(tie: str = "", noise: bool = True, heads: Copies = HEADS, shared: Copies | None = None,
          latent: bool = False, mark: str = "") -> Expression:
    """Σ_r (X Q_r K_rᵀ Xᵀ + W_r) X V_r O_r, summed over one family of heads."""
    owner = shared or heads
    down = gaussian("D", MODEL, RANK, 1 / d)

    def projection(name: str, columns: Any) -> Expression:
        if latent:
            return down @ gaussian(f"U{name}{mark}", RANK, columns, 1 / rank, owner)
        return gaussian(f"{name}{mark}", MODEL, columns, 1 / d, owner)

    query, key = gaussian(f"Q{mark}", MODEL, KEY, 1 / d, heads), projection("K", KEY)
    value = key if "K = V" in tie else projection("V", KEY if "O" in tie else VALUE)
    width = value.columns
    out = key.T if "O" in tie else gaussian(f"O{mark}", width, OUT, 1 / (h * d_value), heads)
    matrix = sp.sqrt(sym.THETA_2 / d_key) / n * X @ query @ key.T @ X.T
    if noise:
        matrix = matrix + gaussian(f"W{mark}", TOKENS, TOKENS, (sym.THETA_1 - sym.THETA_2) / n**2, heads)
    total = heads.sum(matrix @ X @ value @ out)
    return shared.sum(total) if shared else total


def groups() -> Expression:
    """Keys and values shared by the heads of a group."""
    outer = copies("groups", sp.Symbol("G", positive=True))
    return layer(heads=copies("heads", sp.Symbol("q", positive=True), within=outer), shared=outer)


def families() -> Expression:
    """Two families of heads with letters of their own."""
    return layer(mark="1") + layer(heads=copies("others", sp.Symbol("h_2", positive=True)), mark="2")


def nine() -> Expression:
    """A word of nine different letters."""
    places = [space(f"s{k}") for k in range(10)]
    word = gaussian("A1", places[0], places[1])
    for k in range(1, 9):
        word = word @ gaussian(f"A{k + 1}", places[k], places[k + 1])
    return word


ROWS: dict[str, tuple[Callable[[], Expression], float, str]] = {
    "attention, Gaussian input": (layer, VARIANT_LIMIT, "(16, 20)"),
    "… without noise": (lambda: layer(noise=False), VARIANT_LIMIT, "(8, 9)"),
    "K = V": (lambda: layer("K = V"), VARIANT_LIMIT, "(19, 26) at h = 1"),
    "K = V without noise": (lambda: layer("K = V", noise=False), VARIANT_LIMIT, "(13, 15)"),
    "O = Kᵀ": (lambda: layer("O"), VARIANT_LIMIT, ""),
    "K = V and O = Kᵀ": (lambda: layer("K = V, O"), VARIANT_LIMIT, ""),
    "keys and values shared in groups": (groups, VARIANT_LIMIT, "(16, 20)"),
    "two families of unequal heads": (families, VARIANT_LIMIT, ""),
    "keys and values from a shared latent": (lambda: layer(latent=True), VARIANT_LIMIT, ""),
    "X Xᵀ X": (lambda: X @ X.T @ X, WORD_LIMIT, "8"),
    "X Xᵀ X Xᵀ": (lambda: X @ X.T @ X @ X.T, WORD_LIMIT, "16"),
    "nine different letters": (nine, WORD_LIMIT, "10"),
}


def measured(build: Callable[[], Expression]) -> dict[str, Any]:
    """Counts, and the best time of several."""
    best = float("inf")
    for _ in range(REPEATS):
        dyson_of.cache_clear()
        scalar_system.cache_clear()
        start = time.perf_counter()
        system = dyson_of(build())
        scalar = scalar_system(system)
        best = min(best, time.perf_counter() - start)
    return {"traces": len(system.traces), "entering": len(system.entering), "unknowns": len(scalar.unknowns),
            "seconds": round(best, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    rows = {
        name: {**measured(build), "limit": limit, "degree": degree} for name, (build, limit, degree) in ROWS.items()
    }
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        print("| variant | traces | entering | unknowns | seconds | degree |\n|---|---|---|---|---|---|")
        for name, row in rows.items():
            print(f"| {name} | {row['traces']} | {row['entering']} | {row['unknowns']} | {row['seconds']} "
                  f"| {row['degree']} |")
    return int(any(row["seconds"] > row["limit"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())

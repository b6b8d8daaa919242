"""Random layers of every kind: how much of a law has a certificate, and is every certificate right?

    python tests/benchmarks/certificates.py --count 160 --seed 0 [--json FILE]

The layers are those of `robustness.py`. Of each law four things are to be certified: m at a random complex z, m and the
density at a random x inside a band, m at a random x in a gap or beyond the support, and all edges to 50 digits. A ball
that does not contain the value to 90 digits counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter

from robustness import KINDS, layer

import freeattn as fa
from freeattn.errors import FreeattnError

THINGS = ("complex z", "band", "gap", "edges")
DIGITS = 90


def points(rng, law):
    """(thing, point): off the axis, inside a band, in a gap or beyond the support."""
    left, right = rng.choice(law.edges)
    inside = left + (right - left) * rng.uniform(0.02, 0.98)
    between = [(a, b) for (_, a), (b, _) in zip(law.edges, law.edges[1:], strict=False)]
    top = law.edges[-1][1]
    low, high = rng.choice([*between, (1.01 * top, 10 * top), (-top, -1e-3 * top)])
    scale = top * 10 ** rng.uniform(-4, 0.5)
    off = complex(scale * rng.choice([-1, 1]), top * 10 ** rng.uniform(-4, 0.5))
    return (("complex z", off), ("band", inside), ("gap", low + (high - low) * rng.uniform(0.05, 0.95)))


def judged_point(law, z):
    """Verdict of one point: proved, wrong, or the refusal."""
    try:
        proof = law.certify(z)
    except FreeattnError as error:
        return f"{type(error).__name__}: {error}"
    try:
        known = law.stieltjes(z, digits=DIGITS)
    except FreeattnError:  # proved, where the other has no value
        return "proved"
    return "proved" if proof.stieltjes.contains(known) else f"WRONG at {z!r}"


def judged_edges(law):
    """Verdict of the edges."""
    try:
        proof = law.certify_edges(50)
    except FreeattnError as error:
        return f"{type(error).__name__}: {error}"
    known = [x for band in law.edges_to(DIGITS) for x in band if x]
    right = all(edge.x.contains(x) for edge, x in zip(proof.edges, known, strict=True))
    return "proved" if right else "WRONG"


def verdicts(rng, spec):
    """The verdict of each thing."""
    law = fa.law(spec)
    return {**{thing: judged_point(law, z) for thing, z in points(rng, law)}, "edges": judged_edges(law)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows, proved, asked = [], Counter(), Counter()
    for number in range(options.count):
        kind = KINDS[number % len(KINDS)]
        spec = layer(rng, kind)
        try:
            found = verdicts(rng, spec)
        except FreeattnError as error:
            print(f"{number} {kind}: no law: {error}", flush=True)
            continue
        rows.append({"number": number, "kind": kind, "verdicts": found, "spec": spec.to_dict()})
        asked[kind] += 1
        for thing, verdict in found.items():
            proved[kind, thing] += verdict == "proved"
            if verdict != "proved":
                print(f"{number} {kind}: {thing}: {verdict[:160]}", flush=True)
    print(f"| {'layers':21} | number | {' | '.join(THINGS)} |")
    for kind in KINDS:
        print(f"| {kind:21} | {asked[kind]:6} | {' | '.join(str(proved[kind, thing]) for thing in THINGS)} |")
    total = [sum(proved[kind, thing] for kind in KINDS) for thing in THINGS]
    print(f"| {'all':21} | {sum(asked.values()):6} | {' | '.join(map(str, total))} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

"""Random layers of every kind: is each law right, or an honest error?

    python tests/benchmarks/robustness.py --count 200 --seed 0 [--json FILE]

Ratios are log-uniform in [1/50, 50], heads 1 … 256, β in [1/50, 3], some ratios are made equal or equal up to 1e-6, and
scores without noise or without signal occur. A law counts as right when mass and atoms add up to 1, and its first three
moments by integration are the exact ones, all to 1e-8, and its Stieltjes transform in the upper half-plane has Im m > 0
and is the integral of its density and atoms. Where a closed law exists too, both routes must agree to 1e-10.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import Counter
from fractions import Fraction

import freeattn as fa
from freeattn.errors import FreeattnError

TOLERANCE = 1e-8
HEIGHTS = (0.3 + 0.5j, 2 + 1j)  # z over the mean
KINDS = (
    "orthogonal", "key-value", "gaussian", "gaussian key-value", "output-key", "gaussian output-key", "correlated",
    "latent", "latents and positions", "gaussian latent", "covariance", "unequal heads", "residual", "attention",
    "head-sum", "values",
)


def log_uniform(rng, low=1 / 50, high=50.0):
    return Fraction(math.exp(rng.uniform(math.log(low), math.log(high)))).limit_denominator(10_000)


def ratios(rng):
    """γ_K, γ_V, γ_O and tokens per width, some of them equal or nearly so."""
    found = [log_uniform(rng) for _ in range(4)]
    if rng.random() < 0.25:
        target = rng.choice([Fraction(1), *found])
        nearly = rng.choice([Fraction(1), 1 + Fraction(1, 10**6), 1 - Fraction(1, 10**6)])
        found[rng.randrange(4)] = target * nearly
    return found


def unequal(rng):
    """A layer with two kinds of heads, by sizes."""
    n_tokens, d_model = rng.randrange(50, 2000), rng.randrange(50, 2000)
    heads = [
        fa.Heads(rng.choice([1, 2, 8, 30]), rng.randrange(2, 200), rng.randrange(2, 200), rng.choice([None, 0.5, 1.5]))
        for _ in range(2)
    ]
    return fa.Attention(n_tokens=n_tokens, d_model=d_model, heads=heads, inputs="gaussian", beta=1,
                        d_out=rng.randrange(20, 3000))


def layer(rng, kind):
    """A random layer of one kind."""
    if kind == "unequal heads":
        return unequal(rng)
    key, value, out, tokens = ratios(rng)
    n_heads = rng.choice([1, 2, 4, 12, 64, 256])
    fields = {"beta": log_uniform(rng, 1 / 50, 3), "n_heads": n_heads}
    if rng.random() < 0.15:
        fields["scores"] = rng.choice(["linear", "relu"])
    gaussian = "gaussian" in kind
    if gaussian or kind in ("covariance", "residual"):
        fields["inputs"] = "gaussian"
    else:
        tokens = min(tokens, 1 / tokens)
    if kind in ("attention", "head-sum", "values"):
        fields["output"] = kind
    if kind == "covariance":
        fields["inputs"] = fa.FeatureCovariance([log_uniform(rng, 0.1, 10) for _ in range(3)])
    if "key-value" in kind:
        fields["tie"] = "key-value"
    if "output-key" in kind:
        fields["tie"] = rng.choice(["output-key", "key-value-output"])
    if kind == "correlated":
        fields["tie"] = fa.KeyValueCorrelation(Fraction(rng.randrange(-99, 100), 100))
    if "latent" in kind:
        fields["latent"] = fa.Latent(log_uniform(rng), shared=rng.random() < 0.7)
    if kind == "latents and positions":
        fields["query_latent"] = fa.Latent(log_uniform(rng))
        fields["position_width"] = key / n_heads / rng.choice([2, 3, 10])
    if kind == "residual":
        fields["residual"] = log_uniform(rng, 0.1, 10)
    if "tie" in fields:
        value = key
    if "output-key" in kind or kind == "residual":
        out = 1 / tokens
    given = {"gamma_key": key, "tokens_per_width": tokens}
    given |= {"gamma_value": value} if fields.get("output", "mha") in ("mha", "values") else {}
    given |= {"gamma_out": out} if "output" not in fields else {}
    return fa.Attention.from_ratios(**given, **fields)


def transform_error(law, z):
    """m(z) against ∫ dν/(x − z), relative; infinite where Im m is not positive."""
    m = complex(law.stieltjes(z))
    found = complex(law.integrate(lambda x: (1 / (x - z)).real), law.integrate(lambda x: (1 / (x - z)).imag))
    return abs(found / m - 1) if m.imag > 0 else math.inf


def judged(spec):
    """(verdict, detail) of one layer."""
    try:
        law = fa.law(spec)
        exact = law.moments(3)
        errors = [abs(law.integrate(lambda x, k=k: x**k) / m - 1) for k, m in enumerate(exact, 1)]
        mass = abs(sum(law.band_masses) + sum(float(atom.weight) for atom in law.atoms) - 1)
        worst = max([mass, *errors, *(transform_error(law, exact[0] * place) for place in HEIGHTS)])
        if worst > TOLERANCE:
            return "WRONG", f"off by {worst:.1e}"
        if spec.covered_by_transforms:
            law.check()
        return "right", f"{worst:.1e}"
    except FreeattnError as error:
        return type(error).__name__, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows, verdicts, seconds = [], Counter(), []
    for number in range(options.count):
        kind = KINDS[number % len(KINDS)]
        spec = layer(rng, kind)
        started = time.perf_counter()
        verdict, detail = judged(spec)
        seconds.append(time.perf_counter() - started)
        verdicts[kind, verdict] += 1
        row = {"kind": kind, "verdict": verdict, "detail": detail, "seconds": seconds[-1], "spec": spec.to_dict()}
        rows.append(row)
        if verdict != "right":
            print(f"{number} {kind}: {verdict}: {detail[:200]}\n    {spec.to_dict()}", flush=True)
    print(f"{'kind':24} {'right':>6} {'errors':>7} {'wrong':>6}")
    for kind in KINDS:
        counts = {verdict: count for (name, verdict), count in verdicts.items() if name == kind}
        right, wrong = counts.pop("right", 0), counts.pop("WRONG", 0)
        print(f"{kind:24} {right:6d} {sum(counts.values()):7d} {wrong:6d}")
    seconds.sort()
    print(f"seconds: median {seconds[len(seconds) // 2]:.2f}, longest {seconds[-1]:.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

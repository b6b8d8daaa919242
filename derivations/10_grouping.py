"""Sharing keys and values in groups of heads (GQA, MQA) leaves the law as it is, except for the sum of heads."""

from __future__ import annotations

from pathlib import Path

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_KV, THETA_1, THETA_2

CASES = (("mha", "none"), ("mha", "key-value"), ("values", "none"), ("values", "key-value"), ("attention", "none"))


def same_systems(output: str, tie: str, inputs: str) -> bool:
    """Whether any number of key/value heads gives the system that heads with keys and values of their own have."""
    grouped = fa.symbolic_spec(output=output, tie=tie).replace(inputs=inputs)
    plain = grouped.replace(n_kv_heads=grouped.n_heads)
    return fa.derive(grouped, route="pencil").system == fa.derive(plain, route="pencil").system


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(), route="pencil")
    for inputs in ("orthogonal", "gaussian"):
        assert all(same_systems(output, tie, inputs) for output, tie in CASES)
        assert not same_systems("head-sum", "none", inputs)
    head_sum = fa.derive(fa.symbolic_spec(output="head-sum"))
    steps = (
        Step("equal", "Equal systems", prose(
            "The number of groups has cancelled: neither the equation nor any definition of a trace holds it. Group "
            "sizes enter as multiplicities, and only their product, the number of heads, is left. The system is the "
            "one of heads with keys and values of their own, symbol by symbol, and so are its physical solution and "
            "its law. The same holds for attention matrices, for attention times values, for $K_r=V_r$ within heads, "
            "with or without an output map, and for all of these on Gaussian input."
        )),
        Step("exception", "The exception", prose(
            "The sum of the heads is an output whose law sees groups, through the width of distinct keys. Its "
            "second moment of mean one is"
        ), (Equation("head-sum", GAMMA_KV, head_sum.value_of(GAMMA_KV)),
            Equation("head-sum-moment", formula("m_2"), head_sum.normalized_moments(2)[1]))),
    )
    layer = fa.Attention(n_tokens=12, d_model=12, n_heads=4, n_kv_heads=2, d_key=3, d_value=6, d_out=9)
    values = {THETA_1: 2, THETA_2: 1}
    by_pencil = fa.derive(layer, route="pencil").moments(3)[2].subs(values)
    closed = fa.derive(layer.replace(n_kv_heads=4), route="transform").moments(3)[2].subs(values)
    pinned = Pinned(
        "Third moment with two groups of two heads, $\\gamma_K=1$, $\\gamma_V=2$, $\\gamma_O=3/4$, $\\theta_1=2$, "
        "$\\theta_2=1$", by_pencil, closed, "the closed law of four heads without groups", 0,
    )
    return Document.of(
        derivation, "10_grouping", "Grouped keys and values",
        "When heads share keys and values in groups of any size, the laws of multi-head attention, of attention times "
        "values and of the attention matrices stay as they are, also with $K_r=V_r$ in each head; that of the sum of "
        "heads does not. The proof compares the systems that the matrix Dyson equation reduces to.", pinned, *steps,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))

"""What a layer is: its fields, the initialization that was published for it, and what the theory leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from freeattn.errors import FreeattnError
from freeattn.model.architectures import architectures
from freeattn.model.attention import Attention
from freeattn.model.initialization import initial_beta
from freeattn.report.data import Fact
from freeattn.report.tables import spec_rows

__all__ = ["architecture_facts"]


def architecture_facts(spec: Attention) -> tuple[Fact, ...]:
    """The fields of a layer as in the tables of a law, then how its weights are published to start."""
    facts = [Fact("output", spec.output)]
    for name, exact, number in spec_rows(spec):
        facts.append(Fact(name, " = ".join(dict.fromkeys(text for text in (exact, number) if text))))
    return (*facts, *_initialization(spec))


def _initialization(spec: Attention) -> Iterator[Fact]:
    record = next((one for one in architectures() if one.name == spec.name), None)
    if record is None:
        return
    start = record.init
    parts = [f"standard deviation {start.std}"] if start.std else []
    parts += [f"queries {start.q_std}"] if start.q_std else []
    parts += [f"output map {start.out_proj_std}"] if start.out_proj_std else []
    parts += [f"cut off at {start.cutoff:g} of them"] if start.cutoff else []
    yield Fact("initialization", "; ".join([start.scheme, *parts]), f"basis: {start.basis}")
    try:
        initial = initial_beta(record)
    except FreeattnError as error:
        yield Fact("initial beta", "not known", str(error))
    else:
        yield Fact("initial beta", initial.value, "; ".join(filter(None, (initial.rule, initial.note))))
    yield Fact("source", record.source)

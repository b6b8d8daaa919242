"""New weights for a module, without touching the random state of torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from freeattn.adapters.module_kind import ModuleKind

__all__ = ["RESETS", "reset_module"]

RESETS = ("own", "unit")


def reset_module(torch: Any, kind: ModuleKind, module: Any, how: str, seed: np.random.SeedSequence) -> None:
    """Draw weights anew: "own" by the library's initialization, "unit" with iid N(0, 1/rows) entries.

    At unit scale queries, keys, values and latents of tokens with unit entries have unit entries, so that
    β = score scale·√d_key, 1 for most layers; biases are 0 and weights of norms 1.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(int(seed.generate_state(1, np.uint64)[0]) >> 1)
        if how == "own":
            kind.reset(torch, module)
            return
        for name, parameter in module.named_parameters():
            _unit(parameter, name, module.get_submodule(name.rpartition(".")[0]))


def _unit(parameter: Any, name: str, owner: Any) -> None:
    if parameter.dim() == 2:
        features_first = type(owner).__name__ == "Conv1D"  # GPT-2 stores features × columns
        parameter.normal_(0, 1 / math.sqrt(parameter.shape[0 if features_first else 1]))
    elif name.endswith("weight"):
        parameter.fill_(1)
    else:
        parameter.zero_()

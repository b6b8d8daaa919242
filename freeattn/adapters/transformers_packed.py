"""`GPT2Attention` of transformers: queries, keys and values from one packed matrix, stored as features × columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, final

from freeattn.adapters.module_kind import Behaviour, ModuleKind, bias_phrases
from freeattn.adapters.module_reading import Gains, ModuleReading
from freeattn.adapters.transformers_library import attend, initialize, refuse_cross_attention
from freeattn.adapters.weight_matrices import as_array, gain

__all__ = ["TransformersPacked"]


@final
class TransformersPacked(ModuleKind):
    """Learned positions are added to the tokens before this module."""

    library: ClassVar[str] = "transformers"
    classes: ClassVar[tuple[str, ...]] = ("GPT2Attention",)

    def read(self, module: Any) -> ModuleReading:
        refuse_cross_attention(module)
        query, key, value = (as_array(part) for part in module.c_attn.weight.chunk(3, dim=1))
        output = as_array(module.c_proj.weight)
        width, heads, head = int(module.embed_dim), int(module.num_heads), int(module.head_dim)
        score = gain(query) * gain(key) * float(module.scaling) * head**0.5
        return ModuleReading(
            kind=type(module).__name__,
            sizes={"d_model": width, "n_heads": heads, "d_key": head, "d_value": head, "d_out": width},
            gains=Gains(score=score, value=gain(value), output=gain(output)),
            matrices=tuple(
                (f"W_{name}", part, heads) for name, part in zip("QKVO", (query, key, value, output.T), strict=True)
            ),
            not_modelled=tuple(_phrases(module)), causal=bool(module.is_causal), token_widths=(width,) * 3,
        )

    def run(self, torch: Any, module: Any, tokens: tuple[Any, Any, Any], behaviour: Behaviour) -> Any:
        return attend(torch, module, tokens[0], behaviour, positions=False)

    def reset(self, torch: Any, module: Any) -> None:
        del torch
        initialize(module, module.config)


def _phrases(module: Any) -> Iterator[str]:
    query, *others = module.c_attn.bias.chunk(3)
    yield from bias_phrases(query, (*others, module.c_proj.bias))
    if module.is_causal:
        yield "causal mask"
    if module.attn_dropout.p or module.resid_dropout.p:
        yield "dropout"

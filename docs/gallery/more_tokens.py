"""Gaussian tokens need not fit into the model's space. With 384 tokens of width 256 a third of the singular values is
0, an atom that the law has exactly."""

import freeattn as fa

sizes = {"n_tokens": 384, "d_model": 256, "n_heads": 4, "d_key": 64, "d_value": 64}
spec = fa.Attention(inputs="gaussian", **sizes)
law = fa.law(spec)
draws = [fa.sample(spec, seed) for seed in (0, 1, 2, 3)]
fa.save_figure(law.plot(sample=draws), "more_tokens.svg")
print(law)

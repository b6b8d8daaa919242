"""BERT-base at 512 tokens: the limiting law over the squared singular values of two draws of real softmax attention."""

import freeattn as fa

spec = fa.architecture("bert-base", n_tokens=512)
draws = [fa.sample(spec, seed) for seed in (0, 1)]
fa.save_figure(fa.law(spec).plot(sample=draws, log=True), "bert_base.svg")

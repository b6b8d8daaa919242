"""BERT-base at 512 tokens: the limiting law over the squared singular values of two draws of real softmax attention."""

import freeattn as fa
from freeattn.report import save_law_plot

spec = fa.architecture("bert-base", n_tokens=512)
draws = [fa.sample(spec, seed).softmax for seed in (0, 1)]
save_law_plot(fa.law(spec), "bert_base.svg", samples=draws, log=True)

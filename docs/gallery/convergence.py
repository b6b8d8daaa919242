"""Distances between simulated attention, its Gaussian equivalent and the law, at three sizes with the same ratios.
Those of the equivalent fall like 1/n; softmax comes more slowly."""

import freeattn as fa

spec = fa.Attention(n_tokens=128, d_model=128, n_heads=2, d_key=64, output="attention")
found = fa.converge(spec, sizes=[64, 128, 256], draws=6)
fa.save_figure(fa.plot_convergence(found), "convergence.svg")
print(found)

"""Four heads of attention at three inverse temperatures, each law divided by its mean. As β grows, scores count less
(θ₂/θ₁ falls), and the law tends to that of independent entries."""

from fractions import Fraction

import freeattn as fa

laws = {}
for beta in (Fraction(1, 2), 1, 2):
    spec = fa.Attention.from_ratios(gamma_key=1, n_heads=4, output="attention", beta=beta)
    laws[f"β = {float(beta):g}"] = law = fa.law(spec)
    edge = law.normalized().edges[-1][1]
    print(f"β = {float(beta):g}: mean {law.mean:.4g}, right edge {edge:.4g} means")
fa.save_figure(fa.plot_laws(laws, normalized=True, log=False), "temperature.svg")

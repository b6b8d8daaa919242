"""Four heads of attention at three inverse temperatures, each law divided by its mean. As β grows, scores count less
(θ₂/θ₁ falls), and the law tends to that of independent entries."""

from fractions import Fraction

from matplotlib.figure import Figure

import freeattn as fa
from freeattn.report import plot_law

figure = Figure(figsize=(9, 3), layout="constrained")
for ax, beta in zip(figure.subplots(1, 3), (Fraction(1, 2), 1, 2), strict=True):
    spec = fa.Attention.from_ratios(gamma_key=1, n_heads=4, output="attention", beta=beta)
    law = fa.law(spec)
    plot_law(law, ax, normalized=True, log=False)
    ax.set_title(f"β = {float(beta):g}")
    edge = law.normalized().edges[-1][1]
    print(f"β = {float(beta):g}: mean {law.mean:.4g}, right edge {edge:.4g} means")
figure.savefig("temperature.svg")

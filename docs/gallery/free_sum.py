"""Two attention matrices added in general position, one of them rotated at random. Left the law of one of them, right
the law of the sum."""

from matplotlib.figure import Figure

import freeattn as fa
from freeattn.report import plot_law

spec = fa.Attention(n_tokens=512, d_model=512, n_heads=4, d_key=32, output="attention")
one = fa.law(spec)
laws = {"μ": one, "μ ⊞ μ": fa.free_sum(one, one)}
figure = Figure(figsize=(9, 3), layout="constrained")
for ax, (title, law) in zip(figure.subplots(1, 2), laws.items(), strict=True):
    plot_law(law, ax, log=True)
    ax.set_title(title)
    print(f"{title}: mean {law.mean:.4f}, {len(law.edges)} bands")
figure.savefig("free_sum.svg")

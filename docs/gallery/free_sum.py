"""Two attention matrices added in general position, one of them rotated at random. Left the law of one of them, right
the law of the sum."""

import freeattn as fa

spec = fa.Attention(n_tokens=512, d_model=512, n_heads=4, d_key=32, output="attention")
one = fa.law(spec)
laws = {"μ": one, "μ ⊞ μ": fa.free_sum(one, one)}
figure = fa.new_figure(1, 2)
for ax, (title, law) in zip(figure.axes, laws.items(), strict=True):
    law.plot(ax, log=True, title=title)
    print(f"{title}: mean {law.mean:.4f}, {len(law.edges)} bands")
fa.save_figure(figure, "free_sum.svg")

"""Training loss of gradient flow on the features of three layers. With the output narrower than the sequence, part of
the target is never reached: the loss ends on a plateau, the atom of the law at 0."""

import freeattn as fa

spec = fa.Attention(n_tokens=1024, d_model=1024, n_heads=16, d_key=64, d_value=64, d_out=2048)
laws = {f"d_out = {width}": fa.law(spec.replace(d_out=width)) for width in (512, 1024, 2048)}
fa.save_figure(fa.plot_losses(laws), "losses.svg")
for name, law in laws.items():
    print(f"{name}: plateau {1 - float(fa.predict.rank_fraction(law)):g}")

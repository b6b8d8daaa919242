"""Error of ridge regression on the features of a layer, over widths of keys and values. It peaks where the values of
all heads together are as wide as the sequence is long; wider keys lower the peak."""

import freeattn as fa

spec = fa.Attention(n_tokens=256, d_model=512, n_heads=8, d_key=32, d_value=32, d_out=512)
widths = {"d_key": [8, 16, 32, 64, 128], "d_value": [4, 8, 16, 32, 64, 128]}
table = fa.sweep(spec, widths, ["ridge_error"])
ax = fa.plot_sweep(table, "ridge_error", "d_key", "d_value", log=True)
fa.save_figure(ax, "ridge_map.svg")

"""Keys of fewer coordinates than tokens leave directions that they do not reach. With 16 heads and γ_K = 1/4 these
three quarters of the directions have a band of their own."""

from fractions import Fraction

import freeattn as fa

spec = fa.Attention.from_ratios(gamma_key=Fraction(1, 4), n_heads=16, output="attention")
law = fa.law(spec)
draws = [fa.sample(spec.with_sizes(512), seed).equivalent for seed in (0, 1)]
fa.save_figure(law.plot(sample=draws, log=True), "two_bands.svg")
print("masses of the bands:", [round(mass, 12) for mass in law.band_masses])

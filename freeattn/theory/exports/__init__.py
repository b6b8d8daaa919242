"""Laws as programs in other languages: one language-free program, and a printer for each language."""

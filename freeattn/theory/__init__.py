"""Which equation the law obeys: laws as an algebra, their transforms, and the derivation that uses them."""

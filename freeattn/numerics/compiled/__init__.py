"""The numerics of Dyson equations as compiled loops over points (extra `fast`: numba)."""

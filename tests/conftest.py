"""One BLAS thread for the tests: threads that wait for a busy core slow small factorizations a hundredfold."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# SPDX-License-Identifier: Apache-2.0
"""Linear algebra: matrix products, a solver, singular values, matrix by vector."""
import numpy as np

rng = np.random.default_rng(1)
a = rng.random((300, 300))


def round_of_work():
    b = a @ a
    np.linalg.solve(a, b[:, 0])
    np.linalg.svd(a[:80, :80])
    np.linalg.eigh(a[:100, :100] + a[:100, :100].T)
    return a.T @ b[:, 0]


while True:
    round_of_work()

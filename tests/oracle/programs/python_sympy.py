# SPDX-License-Identifier: Apache-2.0
"""SymPy: expansion, factors, derivatives, integrals."""
from sympy import diff, expand, factor, integrate, sin, symbols
from sympy.core.cache import clear_cache

x, y = symbols("x y")
while True:
    clear_cache()
    factor(expand((x + y) ** 6 * (x - 2 * y) ** 3))
    integrate(x ** 3 * sin(x), x)
    diff(sin(x * y) ** 3 / (x + y), x, 2)

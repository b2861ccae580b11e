# SPDX-License-Identifier: Apache-2.0
"""Big integers by GMP."""
import gmpy2

a, b = gmpy2.mpz(3) ** 20000, gmpy2.mpz(7) ** 15000


def round_of_work():
    c = a * b
    gmpy2.gcd(c % a, b)
    gmpy2.isqrt(c)
    return len(str(b))


while True:
    round_of_work()

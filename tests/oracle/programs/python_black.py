# SPDX-License-Identifier: Apache-2.0
"""Black on a module of the standard library: compiled by mypyc where the wheel is."""
import textwrap

import black

with open(textwrap.__file__) as file:
    source = file.read()
while True:
    black.format_str(source.replace("'", '"', 10), mode=black.Mode())

# SPDX-License-Identifier: Apache-2.0
"""
Programs that are linked with a library of a language, and have copies of its variables: their code addresses them
directly.
"""

import os
import re
import subprocess

# Keys of threads begin at 0, which is also what the library's own variable holds while the copy has the key.
KEY = """#include <pthread.h>
static pthread_key_t key;
__attribute__((constructor)) static void take_key(void) { pthread_key_create(&key, 0); }
"""


def link(directory, source, library, *variables):
    """The program with code that refers to the variables; it has to have copies of them."""
    refers = KEY + "".join(
        f"extern char {name}[];\nchar *refers_{i}(void);\nchar *refers_{i}(void) {{ return {name}; }}\n"
        for i, name in enumerate(variables)
    )
    path = os.path.join(directory, "refers.c")
    with open(path, "w") as f:
        f.write(refers)
    program = os.path.join(directory, "program")
    subprocess.run(["gcc", "-O2", "-fPIE", "-pie", "-o", program, source, path, library], check=True)
    relocations = subprocess.run(["readelf", "-rW", program], text=True, capture_output=True, check=True).stdout
    copies = re.findall(r"R_X86_64_COPY +\w+ (\w+)", relocations)
    assert set(variables) <= set(copies), copies
    return program

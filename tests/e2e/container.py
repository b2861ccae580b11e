# SPDX-License-Identifier: Apache-2.0
"""
Runs a program as a container runtime does: another root, read-only, with a /proc, /sys and /dev of its own; some
capabilities and no others; calls that a seccomp profile refuses. Not a test itself. As a program it takes one argument,
the JSON of Container.
"""

import contextlib
import ctypes
import json
import os
import signal
import struct
import sys

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID = 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x20000000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
SET_PDEATHSIG, CAPBSET_DROP, SET_NO_NEW_PRIVS, SET_SECCOMP = 1, 24, 38, 22
CALLS = {
    "openat": 257,
    "perf_event_open": 298,
    "bpf": 321,
    "process_vm_readv": 310,
    "kcmp": 312,
    "ptrace": 101,
    "pidfd_open": 434,
    "setns": 308,
    "sched_setscheduler": 144,
    "mlock": 149,
    "prlimit64": 302,
    "setpriority": 141,
}  # of x86-64
CAPABILITIES = {
    "DAC_READ_SEARCH": 2,
    "SYS_PTRACE": 19,
    "SYS_ADMIN": 21,
    "SYSLOG": 34,
    "PERFMON": 38,
    "BPF": 39,
    "CHECKPOINT_RESTORE": 40,
}
LAST_CAPABILITY = 40

libc = ctypes.CDLL(None, use_errno=True)


def container(
    root, *, capabilities=(), out=None, inside="/out", refused=(), join=None, pid_namespace=False, env=None, proc=None
):
    """
    The words before a program of root. out: a directory that is seen as inside, the only place that can be written to;
    join: a process whose pid namespace is used; pid_namespace: a new one; proc: options that /proc is mounted with.
    """
    return [
        sys.executable,
        os.path.abspath(__file__),
        json.dumps(
            {
                "root": root,
                "capabilities": list(capabilities),
                "out": out,
                "inside": inside,
                "refused": list(refused),
                "join": join,
                "pid_namespace": pid_namespace,
                "env": env or {},
                "proc": proc,
            }
        ),
    ]


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind, flags, data=None):
    check(
        libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, data and data.encode()),
        f"mount {target}",
    )


def fill_root(root, out, inside, proc):
    """Its own mounts, as the OCI's runtime specification lists them."""
    mount("none", "/", None, PRIVATE | REC)
    mount(root, root, None, BIND | REC)
    for name in "proc", "sys", "dev":
        os.makedirs(f"{root}/{name}", exist_ok=True)
    mount("proc", f"{root}/proc", "proc", NOSUID | NODEV, proc)
    mount("sysfs", f"{root}/sys", "sysfs", RDONLY | NOSUID | NODEV)
    with contextlib.suppress(OSError):  # a machine without cgroup v2 has no such directory
        mount("cgroup2", f"{root}/sys/fs/cgroup", "cgroup2", RDONLY | NOSUID | NODEV)
    mount("tmpfs", f"{root}/dev", "tmpfs", NOSUID, "mode=755")
    os.mkdir(f"{root}/dev/shm")
    for name, minor in ("null", 3), ("zero", 5), ("urandom", 9):
        os.mknod(f"{root}/dev/{name}", 0o20666, os.makedev(1, minor))
    if out:
        os.makedirs(root + inside, exist_ok=True)
        mount(out, root + inside, None, BIND)
    mount("none", root, None, REMOUNT | BIND | RDONLY)


def refuse(calls):
    """EPERM from those, as containerd's and CRI-O's profiles answer."""
    numbers = [CALLS[name] for name in calls]
    code = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # the call's number
    code += [struct.pack("HBBI", 0x15, len(numbers) - i, 0, n) for i, n in enumerate(numbers)]
    code += [struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000), struct.pack("HBBI", 0x06, 0, 0, 0x00050001)]
    bytes_ = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(bytes_))
    check(libc.prctl(SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0), "seccomp")


def limit(capabilities):
    kept = sum(1 << CAPABILITIES[name] for name in capabilities)
    for number in range(LAST_CAPABILITY + 1):
        if not kept >> number & 1:
            check(libc.prctl(CAPBSET_DROP, number, 0, 0, 0), "capability")
    check(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def end_with_parent():
    check(libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "parent's end")


def main(config, command):
    end_with_parent()
    if config["join"]:
        with open(f"/proc/{config['join']}/ns/pid") as namespace:
            check(libc.setns(namespace.fileno(), NEWPID), "setns")
    check(libc.unshare(NEWNS | NEWCGROUP | NEWUTS | NEWIPC | (NEWPID if config["pid_namespace"] else 0)), "unshare")
    child = os.fork() if config["join"] or config["pid_namespace"] else 0
    if child:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, _: os.kill(child, n))
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
    end_with_parent()
    fill_root(config["root"], config["out"], config["inside"], config["proc"])
    os.chroot(config["root"])
    os.chdir(config["inside"] if config["out"] else "/")
    limit(config["capabilities"])
    if config["refused"]:
        refuse(config["refused"])
    os.execve(command[0], command, {"PATH": "/usr/bin", "HOME": config["inside"], **config["env"]})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])

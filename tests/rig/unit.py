# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A program under the system call filter of its unit: a call that the unit refuses ends it by SIGSYS.
As a program: unit.py FILTER COMMAND..."""
import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER_MODE = 22, 38, 2
ALLOW, KILL_PROCESS = 0x7fff0000, 0x80000000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def setting(unit, key):
    from rig.paths import ROOT  # not for the program
    return re.findall(rf"^{key}=(.*)$", (ROOT / f"packaging/systemd/{unit}.service").read_text(), re.M)


@functools.cache
def calls_of(word):
    """The system calls of one of systemd's groups, or the one of this name."""
    if not word.startswith("@"):
        return frozenset([word])
    told = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True,
                          check=True).stdout
    words = [line.strip() for line in told.split("\n")[1:] if line.strip() and not line.strip().startswith("#")]
    return frozenset().union(*map(calls_of, words))


def allowed_calls(unit):
    allowed = set()
    for words in setting(unit, "SystemCallFilter"):
        calls = set().union(*map(calls_of, words.lstrip("~").split()))
        allowed = allowed - calls if words.startswith("~") else allowed | calls
    return allowed


@functools.cache
def filter_of(unit):
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
    for name in allowed_calls(unit):
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # else of another architecture, or newer than the library
            assert lib.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, 0, None) == 0, name
    with tempfile.TemporaryFile() as out:
        assert lib.seccomp_export_bpf(context, out.fileno()) == 0
        out.seek(0)
        return out.read()


def confined(unit, folder):
    """What to write before a command so that it has the unit's system calls alone; nothing without systemd's tools."""
    if not shutil.which("systemd-analyze"):
        return []
    file = folder / f"{unit}.filter"
    file.write_bytes(filter_of(unit))
    return [sys.executable, "-I", __file__, str(file)]


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as f:
        bpf = f.read()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(Program(len(bpf) // 8, bpf))):
        sys.exit(f"{sys.argv[1]}: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])

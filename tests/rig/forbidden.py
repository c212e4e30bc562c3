# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A program that may not make a system call, as in a container: the call fails with an error of choice."""
import ctypes
import platform
import struct

NUMBERS = {"x86_64": {"perf_event_open": 298}, "aarch64": {"perf_event_open": 241}}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06     # of classic BPF: a word at an offset, a comparison, an answer
ALLOW, ERRNO = 0x7fff0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def known():
    return platform.machine() in NUMBERS


def forbid(call, error):
    """For preexec_fn."""
    number = NUMBERS[platform.machine()][call]
    code = b"".join(struct.pack("HBBI", *word) for word in (
        (LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error), (RETURN, 0, 0, ALLOW)))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        program = _Program(len(code) // 8, code)
        if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
            raise OSError(ctypes.get_errno(), "seccomp")
    return apply

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Resource limits of a program under test."""
import os
import resource


def limits(memory=None, cpu=None):
    """For preexec_fn: memory in bytes of address space, cpu in seconds. The shadow of the address sanitizer takes
    terabytes of addresses: `make check-asan`, which sets its options, goes without the former."""
    wanted = {resource.RLIMIT_AS: None if "ASAN_OPTIONS" in os.environ else memory, resource.RLIMIT_CPU: cpu}

    def apply():
        for what, most in wanted.items():
            if most:
                resource.setrlimit(what, (most, most))
    return apply

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Another host: a network namespace of its own, with a cable to this one."""
import ctypes
import ipaddress
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*words, check=True):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=check)


class Elsewhere:
    """`here` is this host's address, as seen from there; `there` is that host's. For a `with` statement; OSError where
    there can be none."""

    def __init__(self):
        self.name = f"tpy{os.getpid()}"
        # RFC 2544's network for tests, of which each process has four addresses.
        first = int(ipaddress.ip_address("198.18.0.0")) + 4 * (os.getpid() % 32768)
        self.here, self.there = (str(ipaddress.ip_address(first + i)) for i in (1, 2))

    def __enter__(self):
        if ip("netns", "add", self.name, check=False).returncode:
            raise OSError("no network namespace can be made here")
        ip("link", "add", f"{self.name}a", "type", "veth", "peer", "name", f"{self.name}b", "netns", self.name)
        for where, end, address in (([], "a", self.here), (["-n", self.name], "b", self.there)):
            ip(*where, "address", "add", f"{address}/30", "dev", self.name + end)
            ip(*where, "link", "set", self.name + end, "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        ip("link", "delete", f"{self.name}a", check=False)
        ip("netns", "delete", self.name)

    def enter(self):
        """For the calling thread: what it connects from now on, it connects from there."""
        with open(f"/run/netns/{self.name}") as space:
            if LIBC.setns(space.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def threads(self, count):
        return ThreadPoolExecutor(count, initializer=self.enter)

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A registry whose upkeep is quick, and nodes of one order that differ as nodes do."""
import collections
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading

import pytest
from registry_rig import POSTGRES, USER, Registry
from rig import clones
from rig.cluster import as_user, free_ports, port_open
from rig.machines import CACHE
from rig.processes import descendants, wait_until

BASE = CACHE / "machines" / "intel-2x8.xml"
INTERVAL = 2  # seconds between two passes
LOCK = 1953460331  # of registry/upkeep/upkeep.c


EACH = {"nic": 3, "core": 16, "dimm": 2}  # of them in a node: numbers so far apart lack the same one


def clone(number, variant="none"):
    """The XML of node cn000000 and so on; nic, core, dimm or pci: less of one, or elsewhere."""
    return clones.clone(BASE, number, variant)


def alike(first, count, variant):
    """Documents of nodes that differ from the others in the same way."""
    numbers = range(first, first + count * EACH[variant], EACH[variant])
    return {name(i): clone(i, variant) for i in numbers}


def relinked(xml, speed=b"2.500000"):
    """A card runs at another speed: no value that may differ between twins."""
    out, done = re.subn(rb'(pci_busid="0000:81:00.0"[^>]* pci_link_speed=")[^"]*', rb"\g<1>" + speed, xml)
    assert done
    return out


def name(number):
    return f"cn{number:06d}"


@contextlib.contextmanager
def upkept(prepare=lambda registry, stack: None, **settings):
    """prepare is called before anything is started; what it puts on the stack is undone after all has ended."""
    if os.geteuid():
        pytest.skip("needs root: daemons run as several users")
    with tempfile.TemporaryDirectory(prefix="tpy", dir="/tmp") as folder, contextlib.ExitStack() as stack:
        r = Registry(folder)
        with r.config.open("a") as config:
            for key, value in {"UpkeepInterval": INTERVAL, **settings}.items():
                config.write(f"{key}={str(value).format(folder=folder)}\n")
        try:
            prepare(r, stack)
            yield r.start()
        finally:
            for extra in [n for n in r.daemons if n.startswith("topiaryd-")]:
                r.stop(extra)
            r.end()


class session:
    """A psql that stays where its statements brought it."""

    def __init__(self, registry, statements):
        command = as_user(USER, [str(POSTGRES / "psql"), "-h", str(registry.folder / "pg"), "-d", "topiary", "-At"])
        self.psql = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        self.tell(statements)

    def tell(self, statements):
        self.psql.stdin.write(f"{statements};\nSELECT 'there';\n")
        self.psql.stdin.flush()
        while self.psql.stdout.readline() != "there\n":
            assert self.psql.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.psql.communicate("\\q\n", timeout=200)


def at_rest(registry):
    """No topiaryd does its upkeep: the lock is somebody else's."""
    return session(registry, f"SELECT pg_advisory_lock({LOCK})")


# Of no node, and older than any history is kept: delete_history deletes it in each pass.
EXPIRED = ("INSERT INTO past SELECT '2000-01-01', '2000-01-02', layout, xml_bytes, sha256, 'expired', "
           "diff FROM node LIMIT 1 RETURNING 'inserted'")
TRIES = ("SELECT application_name, query_start FROM pg_stat_activity WHERE query = 'SELECT "
         f"pg_try_advisory_lock({LOCK})'")


def upkeep_ran(registry):
    """
    Each step of a full pass began and ended meanwhile. A pass that deletes the first row may have begun before; it has
    ended, and another one has come as far as delete_history, when the second row is deleted too.
    """
    for _ in range(2):
        assert registry.sql(EXPIRED).startswith("inserted"), "no node to copy"
        assert wait_until(lambda: number(registry, "SELECT count(*) FROM past WHERE node = 'expired'") == 0,
                          15 * INTERVAL), \
            registry.log("topiaryd")


def upkeep_tried(registry, daemons):
    """While upkeep is at_rest: each of so many topiaryd has followed the bases of others, and then found the lock
    held."""
    begin, tries = registry.sql("SELECT now()"), set()

    def each_twice():  # the first try may have begun before
        tries.update(filter(None, registry.sql(f"{TRIES} AND query_start > '{begin}'").split("\n")))
        by_daemon = collections.Counter(line.split("|")[0] for line in tries)
        return len(by_daemon) == daemons and min(by_daemon.values()) > 1
    assert wait_until(each_twice, 15 * INTERVAL), tries


def holding(registry, node):
    """The node's row is another transaction's."""
    return session(registry, f"BEGIN; SELECT 1 FROM node WHERE name = '{node}' FOR UPDATE")


def start_second(registry):
    """One more topiaryd on the same database."""
    port = free_ports(1)[0]
    config = registry.folder / "second.conf"
    config.write_text(registry.config.read_text().replace(f":{registry.port}", f":{port}")
                      .replace("state/snapshot", "state/snapshot2")
                      .replace("dbname=topiary", "dbname=topiary application_name=second"))
    registry.daemon("topiaryd-2",
                    as_user(USER, [str(registry.folder / "topiaryd"), "--config",
                                   str(config)]), lambda: port_open(port))
    return port


def kill_topiaryd(registry):
    """It is gone when the last of its threads is, and listens until then."""
    registry.stop("topiaryd", signal.SIGKILL)
    assert wait_until(lambda: not port_open(registry.port), 10)
    registry.start_topiaryd()


def number(registry, query):
    return int(registry.sql(query))


def all_there(registry, documents):
    """Every node's document is given back to the byte."""
    return [node for node, xml in documents.items() if registry.get(f"/v1/nodes/{node}/topology").body != xml] == []


def pss(pid):
    """Bytes of a process and of all below it, what they share counted once."""
    total = 0
    for one in (pid, *descendants(pid)):
        rollup = f"/proc/{one}/smaps_rollup"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(rollup, encoding="ascii") as f:
            total += sum(int(line.split()[1]) << 10 for line in f if line.startswith("Pss:"))
    return total


@contextlib.contextmanager
def memory_below(registry, most, name="topiaryd"):
    """The daemon and the processes below it never have more bytes than that meanwhile, or with the address sanitizer's
    shadow and quarantine three times as many."""
    peak, over = 0, threading.Event()
    most *= 3 if "ASAN_OPTIONS" in os.environ else 1

    def watch():
        nonlocal peak
        while not over.wait(0.1):
            daemon = registry.daemons.get(name)
            peak = max(peak, pss(daemon.pid) if daemon else 0)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    assert 0 < peak < most, f"{name}: {peak >> 20} MiB"

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What a restored backup does not have comes back by itself: each node asks every hour, by the hash of the file that it
wrote at boot."""
import re
import subprocess
import time

import pytest
from registry_rig import BUILD, POSTGRES, SMALL, USER, machine, run
from rig import command
from rig.cluster import as_user
from rig.processes import wait_until
from rig.unit import confined, setting


def unit_options():
    """What the timer's unit gives the agent."""
    return setting("topiary-recheck", "ExecStart")[0].split()[1:]


class Node:
    """By default, which this registry's other nodes have changed, its TopologyFile has no serial numbers."""

    def __init__(self, registry, name, serial):
        self.registry, self.name = registry, name
        self.file = registry.folder / "run" / f"{name}.xml"
        self.config = registry.folder / f"{name}.conf"
        self.config.write_text(registry.config.read_text().replace("run/topology.xml", f"run/{name}.xml")
                               .replace("PublishSerials=yes\n", ""))
        self.boot(serial)

    def agent(self, *options):
        return subprocess.run([*confined("topiary-recheck", self.registry.folder), BUILD / "topiary-agent",
                               "--config", self.config, "--node", self.name, *options],
                              capture_output=True, text=True, timeout=120, check=False)

    def boot(self, serial):
        self.xml = machine(SMALL, self.name, serial)
        source = self.registry.folder / "source.xml"
        source.write_bytes(self.xml)
        for how in "--local", "--once":     # another node's file is written only if that is asked for
            done = self.agent("--input", source, how)
            assert done.returncode == 0, done.stderr

    def is_there(self):
        return self.registry.get(f"/v1/nodes/{self.name}/topology").body == self.xml


def documents_sent(registry):
    found = re.search(r'topiary_requests_total\{method="PUT",route="/v1/nodes/\*/topology",code="2xx"\} (\d+)',
                      registry.get("/metrics").body.decode())
    return int(found.group(1)) if found else 0


def restore(registry, dump):
    registry.stop("topiaryd")
    for words in ([POSTGRES / "dropdb"], [POSTGRES / "createdb", "-O", USER]):
        run(as_user("postgres", [*words, "-h", registry.folder / "pg", "topiary"]), cwd="/")
    run(as_user(USER, [POSTGRES / "psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", registry.folder / "pg",
                       "-d", "topiary"]), input=dump, cwd="/")
    registry.start_topiaryd()
    assert wait_until(lambda: registry.get("/healthz").status == 200, 60)


def test_restored_registry_is_whole_again(registry):
    kept = [Node(registry, f"kept{i}", i) for i in range(3)]
    changed = Node(registry, "changed", 50)
    dump = run(as_user(USER, [POSTGRES / "pg_dump", "-h", registry.folder / "pg", "topiary"]), cwd="/")
    changed.boot(51)
    new = [Node(registry, f"new{i}", 60 + i) for i in range(3)]
    nodes = [*kept, changed, *new]
    assert all(n.is_there() for n in nodes)
    restore(registry, dump)
    assert [n.name for n in nodes if not n.is_there()] == ["changed", "new0", "new1", "new2"]
    files = {n.name: n.file.stat().st_ino for n in nodes}
    before = documents_sent(registry)
    said = {n.name: n.agent(*unit_options()) for n in nodes}
    assert all(done.returncode == 0 for done in said.values()), said
    assert all(n.is_there() for n in nodes)
    assert documents_sent(registry) - before == 4, "the others were asked about by their hash alone"
    assert ([name for name, done in said.items() if done.stderr]
            == ["changed", "new0", "new1", "new2"]), "what is well is not logged"
    assert {n.name: n.file.stat().st_ino for n in nodes} == files, "the node's file is read and not written anew"


def test_asking_again_does_not_count_as_a_boot(registry):
    node = Node(registry, "steady", 70)
    before = registry.get("/v1/nodes/steady").json()
    time.sleep(1.1)  # the time is told in seconds
    assert node.agent(*unit_options()).returncode == 0
    after = registry.get("/v1/nodes/steady").json()
    assert after["last_boot"] == before["last_boot"] and after["seq"] > before["seq"]


def test_asking_looks_at_no_hardware(registry):
    """hwloc would read thousands of files of /sys, beside a job that runs."""
    node = Node(registry, "quiet", 80)
    trace = registry.folder / "trace"
    command = ["strace", "-f", "-e", "trace=openat,open", "-o", trace, BUILD / "topiary-agent", "--config", node.config,
               "--node", "quiet"]
    run([*command, *unit_options()])
    opened = trace.read_text()
    assert str(node.file) in opened
    assert len(re.findall(r'"/sys/(?:devices|class|bus)', opened)) <= 2, opened


def test_serial_numbers_stay(registry):
    """The file for everybody has none; that for root alone is asked about. One of an earlier release, or without a
    complete one because PublishSerials was yes, is not sent."""
    node = Node(registry, "serial", 81)
    complete = node.file.with_suffix(".xml.complete")
    assert b"DMIProductSerial" not in node.file.read_bytes() and complete.stat().st_mode & 0o777 == 0o600
    assert (node.agent(*unit_options()).stderr, node.is_there()) == ("", True)
    kept = node.config.read_text()
    node.config.write_text(kept + "PublishSerials=yes\n")
    node.boot(81)
    assert not complete.exists()
    node.config.write_text(kept)
    done = node.agent(*unit_options())
    assert done.returncode == 0 and node.is_there()
    assert re.search(f"serial: not rechecked: {complete} was not written at this boot, because topiary-agent was of an "
                     "earlier release or PublishSerials was yes; .*restart", done.stderr), done.stderr


def test_file_of_another_node_is_left_alone(registry, tmp_path):
    node = Node(registry, "other", 82)
    before = node.file.read_bytes()
    for bad, text in (("empty", b""), ("cut", node.xml[:2000]), ("text", b"hello")):
        (tmp_path / bad).write_bytes(text)
        for how in "--once", "--local":
            done = node.agent("--input", tmp_path / bad, how)
            assert done.returncode == 1 and str(tmp_path / bad) in done.stderr and done.stderr.count("\n") == 1
    (tmp_path / "good").write_bytes(machine(SMALL, "other", 83))
    assert node.agent("--input", tmp_path / "good", "--once").returncode == 0
    assert node.file.read_bytes() == before


@pytest.mark.parametrize("options", [["--recheck", "--local"], ["--recheck", "--input", "x.xml"]])
def test_conflicting_options(registry, options):
    assert "--recheck" in command.run(BUILD / "topiary-agent", "--config", registry.config, *options, status=64).stderr


def test_node_without_its_file(registry):
    node = Node(registry, "bare", 90)
    for file in node.file, node.file.with_suffix(".xml.complete"):
        file.unlink()
    done = node.agent(*unit_options())
    assert done.returncode == 1 and str(node.file) in done.stderr and done.stderr.count("\n") == 1

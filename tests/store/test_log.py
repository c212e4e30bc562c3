# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Log levels of topiaryd, topiary-agent and topiary: what each level says, and that -v means debug."""
import os
import re
import signal
import uuid

import pytest

from registry_rig import SMALL, machine
from rig.command import run
from rig.paths import BUILD
from rig.processes import wait_until

REQUEST = r"PUT /v1/nodes/{}/{}: status {}, \d+ bytes, \d+\.\d ms"


def since(registry, mark):
    return registry.log("topiaryd")[mark:]


def document(node, serial):
    return machine(SMALL.replace("Core:1", "Core:3"), node, serial)


def export(registry):
    """A node whose document is a base, one whose document is fields of it, and one whose hash is known."""
    registry.sql("TRUNCATE node, past, class, base, layout, shape CASCADE")
    assert registry.put("first", document("first", 1)).json()["stored"] == "base"
    assert registry.put("other", document("other", 2)).json()["stored"] == "fields"
    assert registry.ask("other", document("other", 2)).json()["stored"] == "known"


def test_debug(registry, configured):
    mark = len(registry.log("topiaryd"))
    configured(LogLevel="debug")
    export(registry)
    for line in (REQUEST.format("first", "topology", 200), REQUEST.format("other", "boot", 200),
                 r"first: encoded as base, parsed, base \d+, \d+ bytes",
                 r"other: encoded as fields, matched without parsing, base \d+, \d+ bytes",
                 r"other: hash known", r"transaction with 1 exports: committed after \d+\.\d ms"):
        assert wait_until(lambda wanted=line: re.search(wanted, since(registry, mark)),
                          30), (line, since(registry, mark))


def test_an_export_is_decompressed_once(registry, configured):
    """A node that becomes what another class is: encoded for that class, then again for its own."""
    configured(LogLevel="debug")
    export(registry)
    assert registry.put("big", machine(SMALL.replace("Core:1", "Core:5"), "big", 3)).json()["stored"] == "base"
    mark = len(registry.log("topiaryd"))
    assert registry.put("other", machine(SMALL.replace("Core:1", "Core:5"), "other", 4)).status == 200
    assert wait_until(lambda: re.search(REQUEST.format("other", "topology", 200), since(registry, mark)), 30)
    log = since(registry, mark)
    assert log.count("other: encoded as ") == 2 and log.count("other: decompressed ") == 1, log


@pytest.mark.parametrize("level, stored", [("info", True), ("warning", False), ("ERROR", False)])
def test_levels(registry, configured, level, stored):
    mark = len(registry.log("topiaryd"))
    configured(LogLevel=level)
    export(registry)
    registry.stop("topiaryd")
    log = since(registry, mark)
    assert ("first: shape" in log) == stored and ("listening on" in log) == stored, log
    assert "PUT /v1" not in log and "encoded as" not in log and "transaction with" not in log, log


def test_a_level_that_does_not_exist(registry, configured):
    with pytest.raises(RuntimeError, match="LogLevel=loud: .*error, warning, info or debug"):
        configured(LogLevel="loud")
    registry.daemons.pop("topiaryd", None)


def test_hangup_is_logged_and_ignored(registry):
    """By topiaryd and by its parser, which a terminal signals, too."""
    mark, daemon = len(registry.log("topiaryd")), registry.daemons["topiaryd"]
    os.killpg(daemon.pid, signal.SIGHUP)
    assert wait_until(lambda: "SIGHUP ignored: restart topiaryd" in since(registry, mark) or not daemon.alive(), 30)
    assert daemon.alive() and registry.put("hangup", document("hangup", 9)).status == 200


def test_requests_that_fail_alike_are_one_line(registry):
    """As exports of all nodes do while PostgreSQL is down."""
    registry.stop("postgres", signal.SIGINT)
    mark = len(registry.log("topiaryd"))
    try:
        for i in range(12):
            assert registry.put(f"down{i}", document(f"down{i}", i)).status == 503
    finally:
        registry.start_postgres()
    lines = re.findall(r"^topiaryd: (?:down\d+: )?PostgreSQL: .*", since(registry, mark), re.M)
    assert len(lines) == 1, lines


def test_priorities_under_systemd(registry):
    """Each line begins with its priority for the journal (sd-daemon(3))."""
    done = run(BUILD / "topiary-agent", "-v", "--local", "--config", registry.config, "--node", "local", "--input",
               os.devnull, env={**os.environ, "JOURNAL_STREAM": "1:1"}, status=1)
    assert done.stderr.startswith("<3>local: "), done.stderr


def test_agent(registry, tmp_path):
    file = tmp_path / "new.xml"
    file.write_bytes(document(f"a{uuid.uuid4().hex[:8]}", 3))
    quiet, loud = registry.agent("quiet", file, "--once"), registry.agent("loud", file, "--once", "-v")
    assert quiet.returncode == loud.returncode == 0, (quiet.stderr, loud.stderr)
    assert "PUT" not in quiet.stderr
    assert re.search(r"loud: PUT /v1/nodes/loud/boot, 0 bytes: status 202\n", loud.stderr), loud.stderr
    assert re.search(r"loud: PUT /v1/nodes/loud/topology, \d+ bytes: status 200\n", loud.stderr), loud.stderr


@pytest.mark.parametrize("words", [["-v", "nodes"], ["nodes", "-v"]])
def test_command(registry, words):
    done = registry.topiary(*words, "--json", status=0)
    url = re.escape(f"http://127.0.0.1:{registry.port}")
    assert re.fullmatch(rf"topiary: GET {url}/v1/nodes: status 200, \d+ bytes, \d+ ms\n", done.stderr)
    plain = registry.topiary("nodes", "--json")
    assert (plain.stdout, plain.stderr) == (done.stdout, "")

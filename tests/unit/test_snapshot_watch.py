# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary snapshot --watch against an HTTP server that answers as told: the file changes only for the better."""
import http.server
import signal
import subprocess
import threading

import pytest

from rig.paths import BUILD
from rig.processes import wait_until
from rig.unit import confined

GOOD = "topiary-snapshot 1\nshape s1 Package:2 Core:4 PU:2\nnodes cn[1-9] s1\nend\n"
EMPTY = "topiary-snapshot 1\nend\n"
BETTER = GOOD.replace("cn[1-9]", "cn[1-99]")
pytestmark = pytest.mark.slow


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("If-None-Match")))
        status, text = server.answer
        if status == 200 and self.headers.get("If-None-Match") == f'"{hash(text)}"':
            status, text = 304, ""
        self.send_response(status)
        if status == 200:
            self.send_header("ETag", f'"{hash(text)}"')
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def registry():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.asked, server.answer = [], (200, GOOD)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def watch(registry, tmp_path):
    """As its unit runs it: topiary.conf names the file."""
    path, log, config = tmp_path / "files/snapshot", tmp_path / "files/log", tmp_path / "topiary.conf"
    path.parent.mkdir()
    config.write_text(f"SnapshotFile={path}\nSnapshotPoll=1\nRegistryURL=http://127.0.0.1:{registry.server_port}\n")
    with open(log, "w", encoding="utf-8") as stderr:
        process = subprocess.Popen([*confined("topiary-snapshot", tmp_path), BUILD / "topiary", "snapshot", "--watch",
                                    "--config", config], stderr=stderr)
    process.path, process.log = path, log
    yield process
    process.kill()
    process.wait()


def wait_for(what, seconds=15):
    assert wait_until(what, seconds), "nothing came of it"


def holds(watch, text):
    return watch.path.exists() and watch.path.read_text() == text


def asked_again(registry, times=2):
    before = len(registry.asked)
    wait_for(lambda: len(registry.asked) >= before + times)


def test_follows_the_registry(registry, watch):
    wait_for(lambda: holds(watch, GOOD))
    written = watch.path.stat().st_mtime_ns
    asked_again(registry)
    assert watch.path.stat().st_mtime_ns == written
    assert registry.asked[0] == ("/v1/snapshot", None) and registry.asked[-1] == ("/v1/snapshot", f'"{hash(GOOD)}"')
    registry.answer = (200, BETTER)
    wait_for(lambda: holds(watch, BETTER))
    watch.path.unlink()
    wait_for(lambda: holds(watch, BETTER))
    watch.path.write_text(BETTER.replace("9", "8", 1))
    wait_for(lambda: holds(watch, BETTER))


def test_leaves_an_equal_file_alone(registry, watch):
    wait_for(lambda: holds(watch, GOOD))
    registry.answer = (200, GOOD + "# again\n")
    wait_for(lambda: holds(watch, GOOD + "# again\n"))
    written = watch.path.stat().st_ino
    registry.answer = (500, "")
    asked_again(registry, 1)
    registry.answer = (200, GOOD + "# again\n")
    asked_again(registry)
    assert watch.path.stat().st_ino == written


@pytest.mark.parametrize("answer, says", [
    ((503, "{}"), "status 503"),
    ((200, BETTER.replace("end\n", "")), "truncated"),
    ((200, EMPTY), "topiary snapshot --force -o"),
])
def test_keeps_the_file_in_trouble(registry, watch, answer, says):
    wait_for(lambda: holds(watch, GOOD))
    registry.answer = answer
    asked_again(registry)
    assert holds(watch, GOOD)
    registry.answer = (200, BETTER)
    wait_for(lambda: holds(watch, BETTER))
    wait_for(lambda: "is kept up to date again" in watch.log.read_text())
    log = watch.log.read_text()
    assert log.count(says) == 1 and log.count("is kept up to date again") == 1
    assert sorted(entry.name for entry in watch.path.parent.iterdir()) == ["log", "snapshot"]


def test_empty_only_by_force(registry, tmp_path):
    path = tmp_path / "snapshot"
    command = [BUILD / "topiary", "snapshot", "-o", path, "--config", "/dev/null", "--url",
               f"http://127.0.0.1:{registry.server_port}"]
    subprocess.run(command, check=True)
    registry.answer = (200, EMPTY)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "without nodes" in done.stderr and path.read_text() == GOOD
    subprocess.run([*command, "--force"], check=True)
    assert path.read_text() == EMPTY


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_at_once(registry, watch, number):
    wait_for(lambda: holds(watch, GOOD))
    watch.send_signal(number)
    assert watch.wait(100) == 0


def test_ends_while_nobody_answers(tmp_path):
    process = subprocess.Popen([BUILD / "topiary", "snapshot", "--watch", "-o", tmp_path / "snapshot", "--config",
                                "/dev/null", "--url", "http://127.0.0.1:1"], stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline(), "nobody answers"
    process.terminate()
    assert process.wait(100) == 0
    assert process.stderr.read() == "" and not list(tmp_path.iterdir())

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The clock is set back by an hour under a topiaryd that serves: nothing takes an hour longer."""
import shutil
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from registry_rig import BUILD, SMALL, USER, Registry, machine, running
from rig.cluster import as_user
from rig.processes import wait_until

PATIENCE = 600  # seconds; a slow client has half a minute


class SetRegistry(Registry):
    """Its topiaryd has a clock of its own."""

    def __init__(self, folder):
        super().__init__(folder)
        self.clock = self.folder / "clock"
        self.clock.write_bytes(bytes(8))
        shutil.copy(BUILD / "tests/set_clock.so", self.folder)

    def set_clock(self, seconds):
        with open(self.clock, "r+b") as f:
            f.write(struct.pack("q", seconds))

    def start_topiaryd(self):
        command = ["env", f"SET_CLOCK={self.clock}", f"LD_PRELOAD={self.folder}/set_clock.so",
                   str(self.folder / "topiaryd"), "--config", str(self.config)]
        self.daemon("topiaryd", as_user(USER, command), self.listening)


registry = running(SetRegistry)


def set_back(registry):
    """By an hour, then by more: whatever waits for a time of day has it an hour off by then."""
    for step in range(5):
        registry.set_clock(-3600 * (step + 1))
        time.sleep(0.5)


def is_sent_away(sock):
    """A byte now and then, so that the client is never idle."""
    sock.settimeout(1)
    for _ in range(PATIENCE):
        try:
            sock.sendall(b"x")
            if sock.recv(1) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_slow_clients_are_dropped(registry):
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        clients = []
        for head in (b"", b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\nX-Long: ", b"GET /v1/nodes"):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", registry.port)))
            sock.sendall(head)
            clients.append(pool.submit(is_sent_away, sock))
        set_back(registry)
        assert all(client.result() for client in clients)
    assert registry.get("/healthz").status == 200


def test_snapshot_is_tried_again(registry):
    """What could not be written is written a second after it can be."""
    state = registry.snapshot.parent
    state.chmod(0o555)
    assert registry.put("cn1", machine(SMALL, "cn1", 1)).status == 200
    assert wait_until(lambda: "cannot update" in registry.log("topiaryd"), 120)
    set_back(registry)
    state.chmod(0o755)
    assert wait_until(lambda: "cn1" in registry.snapshot_text(), 120)

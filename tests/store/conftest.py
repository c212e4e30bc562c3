# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from registry_rig import SMALL, Registry, machine, running  # noqa: E402
from rig.elsewhere import Elsewhere  # noqa: E402


registry = running(Registry)


@pytest.fixture
def configured(registry):
    """topiaryd with other settings, and with its own again afterwards."""
    text = registry.config.read_text()

    def start(**settings):
        registry.stop("topiaryd")
        registry.config.write_text("".join(line + "\n" for line in text.split("\n") if line
                                           and line.split("=")[0] not in settings) +
                                   "".join(f"{key}={value}\n" for key, value in settings.items()))
        registry.start_topiaryd()
    yield start
    if "topiaryd" in registry.daemons:
        registry.stop("topiaryd")
    registry.config.write_text(text)
    registry.start_topiaryd()


@pytest.fixture(scope="session")
def elsewhere():
    try:
        with Elsewhere() as other:
            yield other
    except OSError as why:
        pytest.skip(str(why))


@pytest.fixture
def intact(registry):
    """A node stored before the test is byte for byte there after it, and topiaryd serves."""
    xml = machine(SMALL, "witness", 1)
    assert registry.put("witness", xml).status == 200
    daemon = registry.daemons["topiaryd"]
    yield registry
    assert daemon.alive()
    assert registry.get("/healthz").status == 200
    assert registry.get("/v1/nodes/witness/topology").body == xml
    assert registry.put("after", machine(SMALL, "after", time_serial())).status == 200


def time_serial():
    return int.from_bytes(os.urandom(3), "big") % 1000000

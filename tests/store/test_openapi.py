# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""docs/openapi.yaml is what topiaryd does: schemathesis makes requests of it, good and bad, and compares the answers
with it."""
import os
import re
import subprocess

import pytest
from registry_rig import ROOT, SMALL, machine
from rig.machines import CACHE

VERSION = "4.32.5"
VENV = CACHE / f"schemathesis-{VERSION}"
DOCUMENT = ROOT / "docs/openapi.yaml"
NODES = ("cn1", "cn2", "cn3")

# What the document cannot say: how the brackets of a host list pair, and which time zones PostgreSQL does not take
# (+16:21).
CONFIG = """
[[operations]]
include-operation-id = ["listNodes", "listFacts", "getTopology", "getFabric", "getJob"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "400", "401", "403", "404"]
"""
KNOWN_NODE = f"""
[parameters]
"path.node" = "{NODES[2]}"
"""


@pytest.fixture(scope="module")
def schemathesis():
    program = VENV / "bin" / "st"
    if not program.exists():
        subprocess.run(["python3", "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
                        f"schemathesis=={VERSION}"],
                       check=True)
    return program


@pytest.fixture(scope="module")
def nodes(registry):
    """Three nodes, one that drifts and has a past."""
    for i, node in enumerate(NODES):
        assert registry.put(node, machine(SMALL, node, i)).status == 200
    other = machine("Package:2 [NUMANode] L3Cache:2 L2Cache:4 Core:1 PU:1", NODES[2], 2)
    assert registry.put(NODES[2], other).status == 200
    cables = (f"CA 1 1 0x11 4x EDR - SW 1 1 0xa1 ( '{NODES[0]} mlx5_0' - 'MF0;leaf:MSX/U1' )\nCA 1 1 0x21 4x EDR - SW "
              "1 2 0xa1 ( 'x y' - 'leaf' )\n")
    registry.topiary("fabric", "import", "-", input=cables, status=0)
    return registry


@pytest.mark.parametrize("config, examples", [("", 10), (KNOWN_NODE, 4)], ids=["any names", "a known node"])
def test_schemathesis(schemathesis, nodes, tmp_path, config, examples):
    (tmp_path / "schemathesis.toml").write_text(CONFIG + config)
    done = subprocess.run(
        [schemathesis, "--config-file", tmp_path / "schemathesis.toml", "run", DOCUMENT, "--url",
         f"http://127.0.0.1:{nodes.port}", "--checks", "all", "--generation-deterministic", "--max-examples",
         str(examples), "--no-color", "--suppress-health-check", "all"],
        cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300,
        check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert nodes.get("/healthz").status == 200


def test_served_as_it_is(registry):
    got = registry.get("/v1/openapi.yaml")
    assert got.body == DOCUMENT.read_bytes() and got.headers["Content-Type"] == "application/yaml"


def test_every_route_is_documented(registry):
    """The routes that the metrics name are those of the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    routes = set(re.findall(r'route="(/[^"]*)"', registry.get("/metrics").body.decode()))
    assert len(routes) > 10
    for route in routes:
        assert re.search(rf"\n  {re.escape(route)}:\n".replace(r"\*", r"\{\w+\}"), text), route

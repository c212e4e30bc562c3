# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Alert rules and dashboard: Prometheus' own tool reads and tries them, and what they ask for is what topiaryd
tells."""
import json
import re
import subprocess

import pytest
from registry_rig import SMALL, machine
from rig.paths import ROOT
from rig.processes import wait_until

FOLDER = ROOT / "packaging" / "monitoring"
ALERTS = (FOLDER / "alerts.yml").read_text()
QUERIES = [target["expr"] for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]
           for target in panel["targets"]]


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_are_raised_where_they_should_be():
    promtool("check", "rules", "alerts.yml")
    promtool("test", "rules", "alerts_test.yml")


def test_every_alert_is_tried():
    assert (set(re.findall(r"- alert: (\w+)", ALERTS))
            == set(re.findall(r'alertname="(\w+)"', (FOLDER / "alerts_test.yml").read_text())))


def test_dashboards_queries_are_read(tmp_path):
    """As rules, which promtool checks; the variables are Grafana's."""
    rules = [{"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m").replace("$instance", ".*")}
             for number, query in enumerate(QUERIES)]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(path))


@pytest.mark.parametrize("text", [ALERTS, "\n".join(QUERIES)], ids=["alerts", "dashboard"])
def test_queried_metrics_exist(registry, text):
    def told():
        return set(re.findall(r"^# TYPE (\w+)", registry.get("/metrics").body.decode(), re.MULTILINE))

    assert registry.put("cn1", machine(SMALL, "cn1", 1)).status == 200
    asked = {re.sub("_bucket$", "", name) for name in re.findall(r"\btopiary_\w+", text)}
    assert asked and wait_until(lambda: asked <= told(), 60, 0.5), asked - told()

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""topiary-monitor's file for node_exporter, read by Prometheus' own parser, and the dashboard that is of its values."""
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from rig.command import run
from rig.paths import BUILD, ROOT
from rig.processes import Daemon, wait_until

DASHBOARD = json.loads((ROOT / "packaging" / "monitoring" / "grafana-nodes.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
SAMPLE = re.compile(r'^(\w+)(?:\{domain="(\w+)"(?:,device="([^"]+)")?(?:,jobid="\d+")?\})? (\S+)$', re.M)


@pytest.fixture(name="monitor")
def fixture_monitor(tmp_path):
    """monitor(lines of topiary.conf): a topiary-monitor with a RunDir of its own."""
    started = []

    def start(*lines):
        conf = tmp_path / "topiary.conf"
        conf.write_text("\n".join([f"RunDir={tmp_path}/run", "MonitorMetricsInterval=1", *lines]) + "\n")
        started.append(Daemon.run("topiary-monitor", [BUILD / "topiary-monitor", "--config", conf], tmp_path / "log"))
        return started[-1]
    yield start
    for daemon in started:
        daemon.stop()


def samples(path):
    """{(metric, domain or device): value}, of a file that promtool accepts."""
    text = path.read_text()
    done = run("promtool", "check", "metrics", input=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (text.count("\n") == len(text.splitlines())
            == len(SAMPLE.findall(text)) + text.count("# HELP ") + text.count("# TYPE "))
    return {(metric, device or domain): float(value) for metric, domain, device, value in SAMPLE.findall(text)}


def busy_of_the_machine():
    """(busy, all) hundredths of seconds of all PUs."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, idle, wait, irq, soft = map(int, f.readline().split()[1:8])
    return user + nice + system + irq + soft, user + nice + system + idle + wait + irq + soft


def test_values_are_the_kernels(monitor, tmp_path):
    path = tmp_path / "topiary.prom"
    path.write_text("topiary_node_busy_ratio 7\n")
    before = busy_of_the_machine()
    daemon = monitor(f"MonitorMetrics={path}", "MonitorMetricsInterval=2")
    assert wait_until(lambda: not path.exists(), 10, 0.01), "what an earlier one left"
    assert wait_until(path.exists, 30, 0.01)
    after = busy_of_the_machine()
    found = samples(path)
    busy = [value for (metric, _), value in found.items() if metric == "topiary_node_busy_ratio"]
    assert busy and all(0 <= value <= 1 for value in busy)
    # The kernel's hundredths end at different moments.
    assert sum(busy) / len(busy) == pytest.approx((after[0] - before[0]) / (after[1] - before[1]), abs=0.2)
    assert abs(found["topiary_monitor_written_timestamp_seconds", ""] - time.time()) < 10
    assert found["topiary_monitor_interval_seconds", ""] == pytest.approx(2, abs=0.5)
    assert found["topiary_monitor_steps_recorded", ""] == 0
    memory = {domain: value for (metric, domain), value in found.items() if metric == "topiary_node_memory_used_bytes"}
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory and 0 < sum(memory.values()) <= 1.1 * total
    assert len(found) <= 43 and not any("job" in metric for metric, _ in found)
    assert path.stat().st_mode & 0o7777 == 0o644
    daemon.stop()
    assert [p.name for p in tmp_path.glob("*.prom*")] == [], "removed at the end, and nothing beside"


def test_file_is_whole_at_any_time(monitor, tmp_path):
    path = tmp_path / "topiary.prom"
    monitor(f"MonitorMetrics={path}")
    assert wait_until(path.exists, 30, 0.01)
    seen = set()
    for _ in range(2000):
        text = path.read_text()
        assert text.endswith("\n") and "topiary_monitor_written_timestamp_seconds " in text
        seen.add(text)
        if len(seen) > 2:
            break
        time.sleep(0.002)
    assert len(seen) > 1


def test_killed_monitor_leaves_the_time_of_its_values(monitor, tmp_path):
    path = tmp_path / "topiary.prom"
    daemon = monitor(f"MonitorMetrics={path}")
    assert wait_until(path.exists, 30, 0.01)
    daemon.stop(signal.SIGKILL)
    written = samples(path)["topiary_monitor_written_timestamp_seconds", ""]
    assert written <= time.time()
    monitor(f"MonitorMetrics={path}")
    assert wait_until(lambda: path.exists()
                      and samples(path)["topiary_monitor_written_timestamp_seconds", ""] > written, 30)


@pytest.mark.parametrize("line, said", [
    ("MonitorMetrics=/etc/hostname", "MonitorMetrics=/etc/hostname: expected an absolute path that ends in .prom"),
    ("MonitorMetrics=/nonexistent/x.prom", "/nonexistent/x.prom: No such file or directory; tried again every 1 s"),
])
def test_steps_are_recorded_without_it(monitor, tmp_path, line, said):
    daemon = monitor(line)
    assert wait_until(lambda: said in (tmp_path / "log").read_text(), 30)
    time.sleep(1.5)
    assert daemon.alive() and (tmp_path / "log").read_text().count(said) == 1


@pytest.mark.parametrize("line, said", [("MonitorMetricsSet=all", "MonitorMetricsSet=all: expected sw, cpu, power, "
                                         "net or gpu, or several joined by +"),
                                        ("MonitorMetricsSet=cpu+", "MonitorMetricsSet=cpu+: expected sw"),
                                        ("MonitorMetricsInterval=0", "MonitorMetricsInterval=0"),
                                        ("MonitorMetricsJobs=1", "expected yes or no")])
def test_bad_setting_is_refused(tmp_path, line, said):
    conf = tmp_path / "topiary.conf"
    conf.write_text(line + "\n")
    done = run(BUILD / "topiary-monitor", "--config", conf)
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1


def physical_devices():
    """The Ethernet devices that are hardware, as they were before each of the values of the file."""
    net = Path("/sys/class/net")
    return [path.name for path in net.iterdir() if (path / "device").exists()
            and (path / "type").read_text().strip() == "1"]


def test_network_devices_are_the_kernels(monitor, tmp_path):
    """All that this machine's devices transfer is in the values: none is lost between two of them."""
    path = tmp_path / "topiary.prom"
    monitor(f"MonitorMetrics={path}", "MonitorMetricsSet=power+net+gpu")
    assert wait_until(path.exists, 30, 0.01)
    found = samples(path)
    devices = {device for (metric, device) in found if metric == "topiary_node_net_received_bytes_per_second"}
    assert devices == set(physical_devices())
    for way in ("received", "sent"):
        assert (sum(found[f"topiary_node_net_{way}_bytes_per_second", device] for device in devices)
                == pytest.approx(found.get((f"topiary_node_ethernet_{way}_bytes_per_second", "machine"), 0),
                                 rel=0.2, abs=10000))
    log = (tmp_path / "log").read_text()
    if not Path("/sys/bus/event_source/devices/power").exists() and not Path("/sys/class/powercap").exists():
        assert log.count("; no power: no PMU power, no powercap") == 1


# --- the dashboard

def test_dashboards_queries_are_read(tmp_path):
    """As rules, which promtool checks; the variables are Grafana's."""
    rules = [{"record": f"query:{number}", "expr": query.replace("$instance", ".*")}
             for number, query in enumerate(QUERIES)]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run("promtool", "check", "rules", path, status=0)


def test_queried_metrics_exist(monitor, tmp_path):
    """Hardware counters are not on every machine: of those the names are the events'."""
    path = tmp_path / "topiary.prom"
    monitor(f"MonitorMetrics={path}", "MonitorMetricsSet=cpu")
    assert wait_until(path.exists, 30)
    source = (ROOT / "lib" / "monitor" / "events.c").read_text()
    events = re.findall(r'^\t\{ "(\w+)", "\w*", [A-Z]+\(', source, re.M)
    assert len(set(events)) == 11 and events[0] == "busy"
    sources = "\n".join(path.read_text() for path in (ROOT / "lib" / "monitor").glob("source_*.c"))
    above = re.findall(r'"((?:memory|disk|net|ethernet|package|dram|gpu)_\w+)"', sources)
    assert len(set(above)) == 15
    can_be = ({f"topiary_node_{name}_per_second" for name in events[1:]} | {"topiary_node_job_pus"}
              | {f"topiary_node_{name}_{unit}" for name in above
                 for unit in ("bytes", "bytes_per_second", "watts", "ratio")})
    told = {metric for metric, _ in samples(path)}
    asked = set(re.findall(r"\btopiary_\w+", "\n".join([*QUERIES, json.dumps(DASHBOARD["templating"])])))
    assert asked <= told | can_be
    assert told <= asked, "and each is shown"

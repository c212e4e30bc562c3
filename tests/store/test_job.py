# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Summaries of jobs' traces: what they hold, whose they are, and what is refused."""
import json
import os
import shutil
import subprocess

import pytest
from registry_rig import BUILD, zstd
from rig.cluster import as_user
from rig.processes import wait_until
from upkeep_rig import upkept

TICKS = 20
MACHINE = "Package:2 [numa] L3:1 Core:2 PU:2"
USERS = ("nobody", "games")
GOOD = b'{"nodes":1,"metrics":[]}'


@pytest.fixture(scope="module", name="registry")
def fixture_registry():
    if os.geteuid():
        pytest.skip("needs root: daemons run as several users")
    with upkept(KeepHistory=7) as r:
        r.topiary = shutil.copy(BUILD / "topiary", r.folder)
        yield r


@pytest.fixture(scope="module", name="traces")
def fixture_traces(registry):
    """{node: file}, readable by every user."""
    folder = registry.folder / "traces"
    folder.mkdir(mode=0o755)
    for i in range(24):
        subprocess.run([BUILD / "tests" / "trace_make", folder / f"cn{i}.trace", MACHINE, str(TICKS + i), f"cn{i}"],
                       check=True, capture_output=True, timeout=60)
        (folder / f"cn{i}.trace").chmod(0o644)
    return {f"cn{i}": folder / f"cn{i}.trace" for i in range(24)}


def job(registry, *words, user=None, status=0):
    command = [str(w) for w in (registry.topiary, "job", *words, "--config", registry.config)]
    done = subprocess.run(as_user(user, command) if user else command, capture_output=True, text=True, timeout=120,
                          cwd="/", check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def shown(registry, name, user=None):
    return json.loads(job(registry, "show", name, "--json", user=user).stdout)["summaries"]


def put(registry, name, body, user="nobody", encoding="zstd", **other):
    cred = registry.sign(registry.claim(other.pop("about", name), body, **{"purpose": "job", **other}), user)
    return registry.request("PUT", f"/v1/jobs/{name}", zstd(body), Authorization=f"Munge {cred}",
                            Content_Encoding=encoding)


def test_summary_has_what_the_traces_have(registry, traces):
    job(registry, "send", "17.0", *traces.values(), user="nobody")
    row, = shown(registry, "17.0", "nobody")
    summary = row["summary"]
    assert (row["step"], summary["nodes"], summary["pus"], summary["omitted"]) == ("0", len(traces), 8 * len(traces), 0)
    assert summary["ticks"] == sum(TICKS + i for i in range(len(traces)))
    objects = {}
    for node, path in traces.items():
        done = subprocess.run([registry.topiary, "trace", "summary", path, "--level=NUMANode", "--json"],
                              capture_output=True, check=True)
        for m in json.loads(done.stdout)["metrics"]:
            objects.setdefault(m["metric"], []).append((m["average"], m["total"], f"{node} NUMANode {m['object']}"))
    assert len(objects) == len(summary["metrics"]) == 7
    for m in summary["metrics"]:
        due = sorted(objects[m["metric"]])
        assert m["total"] == (None if m["metric"] == "memory_used" else sum(total for _, total, _ in due))
        assert m["average"] == pytest.approx(sum(x for x, _, _ in due) / len(due), rel=1e-4)
        for end, extreme in (("least", due[0][0]), ("most", due[-1][0])):
            assert m[end] == pytest.approx(extreme, rel=1e-4)
            assert m[f"{end}_at"] in [at for x, _, at in due if x == extreme]


def test_table(registry, traces):
    job(registry, "send", "18", traces["cn0"], user="nobody")
    lines = job(registry, "show", "18", user="nobody").stdout.splitlines()
    assert lines[0].startswith("18 by uid 65534: 1 node(s), 8 PUs, 20.0 s")
    assert any(line.split()[0] == "cycles" and "cn0 NUMANode" in line for line in lines[3:])
    metric = {"metric": "busy", "level": "NUMANode", "unit": "%", "total": 1500000000, "average": 75.0, "least": 50.0,
              "least_at": "cn0 NUMANode 0", "most": 100.0, "most_at": "cn0 NUMANode 1"}
    assert put(registry, "18.1", json.dumps({"nodes": 1, "metrics": [metric]}).encode()).status == 200
    assert job(registry, "show", "18.1", user="nobody").stdout.splitlines()[-1].split() == [
        *"busy NUMANode 75.00 50.00 cn0 NUMANode 0 100.00 cn0 NUMANode 1 % 1.500 s".split()]


def test_ranks_of_a_node_are_one_node(registry, traces):
    job(registry, "send", "19", traces["cn1"], traces["cn0"], traces["cn1"], user="nobody")
    summary = shown(registry, "19", "nobody")[0]["summary"]
    assert (summary["nodes"], summary["pus"]) == (2, 24)


def test_each_user_has_rows_of_his_own(registry):
    """A user who claims another's job neither replaces nor sees what that one sent; administrators see both."""
    for nodes, user in enumerate(USERS, 1):
        assert put(registry, "20.0", b'{"nodes":%d,"metrics":[]}' % nodes, user).status == 200
    for nodes, user in enumerate(USERS, 1):
        assert [row["summary"]["nodes"] for row in shown(registry, "20", user)] == [nodes]
    assert sorted(row["summary"]["nodes"] for row in shown(registry, "20")) == [1, 2]
    assert put(registry, "20.0", b'{"nodes":3}', "games").status == 200
    assert [row["summary"]["nodes"] for row in shown(registry, "20", "games")] == [3]
    assert registry.get("/v1/jobs/20").status == 401
    assert "no summary that you sent" in job(registry, "show", "21", user="nobody", status=1).stderr


@pytest.mark.parametrize("body, status, why", [
    (b'{"nodes":1', 422, "not the summary"), (b'[1]', 422, "not the summary"), (b'', 422, ""),
    (b'{"a":"\\u0000"}', 422, "backslash"),
    (b'{"a":"\x1b[2J"}', 422, "printable"), ('{"a":"é"}'.encode(), 422, "printable"),
    (b'{"a":"' + 2560 * b"x" + b'"}', 413, "at most 2560"),
    (b'[' * 2560, 422, "not the summary"), (b'{"a":1e999999}', 422, "not the summary"),
    (b'{"a":[1e200]}', 422, "out of range"), (b'{"a":1e-99}', 422, "out of range"),
    (b'{"nodes":"x"}', 422, "out of range"), (b'{"nodes":1.5}', 422, "out of range"),
    (b'{"metrics":[{"total":"x"}]}', 422, "out of range"), (b'{"nodes":1,"nodes":2}', 422, "duplicate"),
], ids=["cut", "no object", "empty", "NUL", "escape", "UTF-8", "long", "nested", "number", "large", "small", "word",
        "part of a node", "word of a metric", "twice"])
def test_bad_summary(registry, body, status, why):
    answer = put(registry, "30", body)
    assert answer.status == status and why in answer.json()["error"]
    assert put(registry, "30", GOOD).status == 200


def test_numbers_that_are_written_out(registry):
    """jsonb would keep thousands of digits of them."""
    for number in (b"1e-16383", b"0e-16383", b"1e-400", b"0e131071"):
        assert put(registry, "34", b'{"seconds":%s,"metrics":[{}]}' % number).status == 200
        assert registry.sql("SELECT summary->>'seconds' FROM job_summary WHERE job = 34") in ("0", "0.0")
        assert registry.sql("SELECT seconds FROM topiary_job_metrics WHERE job = 34") == "0"


@pytest.mark.parametrize("name", ["0", "x", "1.", "1.x y", "1.0.0", "12345678901", "1.aaaaaaaaaaaaaaaa"])
def test_bad_job(registry, name):
    assert put(registry, name.replace(" ", "%20"), GOOD, about="1").status == 400


def test_bad_credential(registry):
    assert put(registry, "31", GOOD, about="32").status == 403
    assert put(registry, "31", GOOD, purpose="export").status == 403
    assert put(registry, "31", GOOD, seq=1).status == 403
    assert put(registry, "31", GOOD, sha256="0" * 64).status == 422
    assert put(registry, "31", GOOD, encoding="identity").status == 415
    assert registry.request("PUT", "/v1/jobs/31", zstd(GOOD), Content_Encoding="zstd").status == 401


def test_bad_files(registry, traces, tmp_path):
    other = tmp_path / "no.trace"
    other.write_text("none")
    for files, word in (((traces["cn0"], tmp_path / "gone"), "gone"), ((other,), "no.trace")):
        assert word in job(registry, "send", "33", *files, status=1).stderr
    assert not shown(registry, "33")
    for words in (("show",), ("send",), ("show", "1", "2"), ("tell", "1"), ("show", "../nodes")):
        job(registry, *words, status=64)


def test_quota(registry, configured):
    """Of a user and a day; other users have their own."""
    registry.sql("DELETE FROM job_summary")
    configured(JobSummaries=2)
    assert [put(registry, str(i), GOOD).status for i in (40, 41, 42)] == [200, 200, 429]
    assert put(registry, "42", GOOD, "games").status == 200
    registry.sql("UPDATE job_summary SET stored = stored - interval '25 hours'")
    assert put(registry, "42", GOOD).status == 200


def test_old_summaries_are_deleted(registry):
    assert put(registry, "50", GOOD).status == 200 and put(registry, "51", GOOD).status == 200
    registry.sql("UPDATE job_summary SET stored = now() - interval '8 days' WHERE job = 50")
    assert wait_until(lambda: registry.sql("SELECT count(*) FROM job_summary WHERE job = 50") == "0", 60)
    assert registry.sql("SELECT count(*) FROM job_summary WHERE job = 51") == "1"


def test_sql(registry, traces):
    job(registry, "send", "60", traces["cn0"], user="nobody")
    assert registry.sql("SELECT count(*), count(total), min(nodes) FROM topiary_job_metrics WHERE job = 60") == "7|6|1"

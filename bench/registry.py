#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The registry's figures in BENCHMARKS.md, each one command: real topiaryd, PostgreSQL and munged, storms of nodes made
on the fly."""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("bench", "tests", "tests/store")]

import sheet as sheets  # noqa: E402
import storms  # noqa: E402
from registry_rig import BUILD, POSTGRES, USER, run  # noqa: E402
from rig.cluster import as_user  # noqa: E402
from rig.processes import wait_until  # noqa: E402

MB = 1e6
# Where the figure is what a core can do, nodes are not asked to come one after another.
AT_ONCE = {"StormRate": 100000}
READERS = {"readers": 2, "reader_pause": 50}


@contextmanager
def registry(**settings):
    with tempfile.TemporaryDirectory(prefix="tpb", dir="/tmp") as folder:
        r = storms.Stormy(folder, **settings)
        try:
            yield r.start()
        finally:
            r.end()


class Storms(sheets.Sheet):
    """Figures of storms of nodes."""

    def storm(self, name, report, cpu, memory, within=""):
        """What every storm tells; within: how many seconds it may take."""
        nodes, own = report["acknowledged"], report["cpu_seconds"]
        self.add(f"{name}: exports acknowledged", nodes, f"of {report['agents']}", goal="all")
        self.add(f"{name}: time until the last acknowledgement", report["seconds"], "s",
                 goal=within and f"below {within}")
        self.add(f"{name}: nodes acknowledged per second", report["per_second"], "/s")
        self.add(f"{name}: exports retried", report["retries"], "")
        for part, seconds in cpu.items():
            self.add(f"{name}: CPU time of {part}", seconds / max(nodes, 1) * 1e3, "ms/node")
        self.add(f"{name}: CPU time of the simulated nodes", own / max(nodes, 1) * 1e3, "ms/node")
        self.add(f"{name}: acknowledgement latency, p50", report["ack"] and report["ack"]["p50_ms"], "ms")
        self.add(f"{name}: acknowledgement latency, p99", report["ack"] and report["ack"]["p99_ms"], "ms")
        self.add(f"{name}: peak memory of topiaryd", memory / MB, "MB", goal="below 512")
        if report["last_reason"]:
            self.add(f"{name}: the last reason of a retry: {report['last_reason']}", None, "")
        if report["reads"]:
            self.add(f"{name}: latency of reading one node meanwhile, p50", report["reads"]["p50_ms"], "ms")
            self.add(f"{name}: latency of reading one node meanwhile, p99", report["reads"]["p99_ms"], "ms",
                     goal="below 50")
            self.add(f"{name}: reads failed meanwhile", report["read_failures"], f"of {report['reads']['count']}",
                     goal="0")


def server_cpu(cpu):
    return cpu["topiaryd"] + cpu["postgres"] + cpu["munged"]


# --- ingest: what a core does

def ingest(sheet, args):
    with registry(**AT_ONCE) as r:
        def rate(name, **how):
            report, cpu, memory = r.measured(lambda: r.storm(args.base, agents=args.documents, pad=args.pad, **how))
            sheet.storm(name, report, cpu, memory)
            if report["documents"]:
                sheet.add(f"{name}: size of the XML", report["xml_bytes"] / report["documents"] / 1e3, "kB")
            return report["acknowledged"] / server_cpu(cpu)
        one = rate("new documents of identical nodes")
        own = rate("new documents, each of different structure", distinct_structure=True, first=500000)
        known = rate("documents that the registry has already", mode="hash", seed=2)
        unit, slowest = "/CPU second", "as many as of different structure"
        sheet.add("new documents, each of different structure: nodes ingested per CPU second", own, unit)
        sheet.add("new documents of identical nodes: nodes ingested per CPU second", one, unit,
                  than={slowest: one / own})
        sheet.add("documents that the registry has already: nodes ingested per CPU second", known, unit,
                  than={slowest: known / own}, goal="at least 5,000")
        sheet.add("new documents of identical nodes: nodes ingested per CPU second, without the preceding hash request",
                  1 / (1 / one - 1 / known), unit, goal="at least 1,000")


# --- storm: a cluster boots

def load(sheet, r, args, bases, name, nodes, within="", **how):
    """So many nodes boot for the first time."""
    report, cpu, memory = r.measured(lambda: r.storm(bases, agents=nodes, deadline=args.deadline,
                                                     threads=args.threads, **how))
    sheet.storm(name, report, cpu, memory, within)
    return report


def kinds(args):
    return {"pad": args.pad, "variants": args.variants}


def second_boot(sheet, r, args, nodes, mode="hash"):
    """All of them boot again, unchanged, or a tenth of them repaired."""
    changed = "a tenth of them repaired" if mode == "mixed" else "unchanged"
    load(sheet, r, args, args.base, f"{nodes} nodes boot again, {changed}", nodes, within=300, window=args.window,
         mode=mode, seed=2, **kinds(args), **READERS)


def storm(sheet, args):
    name, how = f"{args.agents} nodes boot", {"window": args.window, **kinds(args)}
    if args.mode == "full":
        with registry() as r:
            load(sheet, r, args, args.base, name, args.agents, within=60, **how, **READERS)
        return
    with registry(**AT_ONCE) as r:
        load(sheet, r, args, args.base, name, args.agents, **how)
        second_boot(sheet, r, args, args.agents, args.mode)


# --- size: what PostgreSQL holds

SIZES = ("SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
         "'public'::regnamespace ORDER BY relname")


def sizes(r):
    tables = {name: int(size) for name, size in (line.split("|") for line in r.sql(SIZES).split("\n"))}
    return tables, int(r.sql("SELECT pg_database_size(current_database())"))


def settled_sizes(r):
    r.sql("VACUUM ANALYZE")
    return sizes(r)


def diff_bytes(r, nodes, sample=300):
    """Of a node's difference from its base, by the registry's own word."""
    chance = random.Random(1)
    told = [r.get(f"/v1/nodes/cn{chance.randrange(nodes):06d}").json() for _ in range(sample)]
    told = sorted(node["stored_bytes"] for node in told if node.get("stored") != "base")
    return sum(told) / len(told), told[len(told) // 2], told[len(told) * 99 // 100]


STORED = "SELECT stored, count(*) FROM topiary_nodes GROUP BY 1 ORDER BY 1"


def tell_size(sheet, r, when, report, before):
    (empty_tables, empty), (tables, full) = before, settled_sizes(r)
    nodes, xml = report["acknowledged"], report["xml_bytes"] / max(report["documents"], 1)
    mean, middle, tail = diff_bytes(r, nodes)
    for kind, count in (line.split("|") for line in r.sql(STORED).split("\n")):
        sheet.add(f"{when}: nodes stored as {kind}", int(count), f"of {nodes}")
    for name, total in tables.items():
        sheet.add(f"{when}: size of table {name}", (total - empty_tables.get(name, 0)) / nodes, "B/node")
    sheet.add(f"{when}: stored delta, mean", mean, "B/node")
    sheet.add(f"{when}: stored delta, p50", middle, "B/node")
    sheet.add(f"{when}: stored delta, p99", tail, "B/node")
    sheet.add(f"{when}: database size, all tables and indexes", (full - empty) / nodes, "B/node",
              than={"smaller than the XML": xml / ((full - empty) / nodes)})


def let_upkeep_work(r, calm=20, patience=900):
    """topiaryd looks after its bases at once and not in ten minutes, until nothing has changed for some seconds."""
    r.stop("topiaryd")
    with r.config.open("a") as f:
        f.write("UpkeepInterval=5\n")
    r.start_topiaryd()
    began = since = time.monotonic()
    told = r.sql(STORED)
    while time.monotonic() - since < calm and time.monotonic() - began < patience:
        time.sleep(2)
        now = r.sql(STORED)
        since, told = (since, told) if now == told else (time.monotonic(), now)
    return since - began


def tell_sizes(sheet, r, report, before):
    """As the nodes came, and after topiaryd's upkeep chose bases anew."""
    tell_size(sheet, r, "after the first boot", report, before)
    sheet.add("maintenance: time until nothing changes", let_upkeep_work(r), "s")
    tell_size(sheet, r, "after maintenance", report, before)


def size(sheet, args):
    sheet.of = "" if args.variants else "no structural variants: "
    with registry(**AT_ONCE) as r:
        before, start = sizes(r), storms.memory_of(r.daemons["topiaryd"].pid)
        report = load(sheet, r, args, args.base, f"{args.nodes} nodes boot", args.nodes, **kinds(args))
        sheet.add("memory of topiaryd before the first boot", start / MB, "MB")
        sheet.add("memory of topiaryd after the first boot", storms.memory_of(r.daemons["topiaryd"].pid) / MB, "MB",
                  goal="below 512")
        tell_sizes(sheet, r, report, before)


def fleet(sheet, args):
    """What `storm --mode hash`, `size`, `snapshot` and `reads` tell, of one load."""
    with registry(**AT_ONCE) as r:
        before = sizes(r)
        report = load(sheet, r, args, args.base, f"{args.nodes} nodes boot", args.nodes, window=args.window,
                      **kinds(args))
        tell_sizes(sheet, r, report, before)
        tell_snapshot(sheet, r, args.nodes)
        tell_reads(sheet, r, args.nodes)
        second_boot(sheet, r, args, args.nodes)


# --- ablate: what each part of the storage saves, without it

PARTS = {"": "all parts", "fields": "without fields", "patches": "without patches",
         "rebase_patches": "without rebase_patches", "rebase_layouts": "without rebase_layouts",
         "baseline_vote": "without baseline_vote", "rebase_accepted": "without rebase_accepted"}
STORED_AS = ("SELECT count(*) FILTER (WHERE f.kind = 'base'), count(*) FILTER (WHERE f.kind = 'fields'), "
             "count(*) FILTER (WHERE f.kind = 'patch'),"
             " sum(octet_length(n.diff)) FROM node n JOIN layout f ON f.id = n.layout")
ROWS = ("SELECT (SELECT count(*) FROM base), (SELECT count(*) FROM layout WHERE kind = 'fields'), "
        "(SELECT count(*) FROM drift)")
ABLATED = ("Storage | nodes as base, fields, patch | bases | field layouts | delta B/node | database B/node | "
           "drifting | CPU ms/node, boot | maintenance | boot again")


def boot_for_ablation(r, args, odd):
    """Of each machine first a node that lacks a part, if odd, and then all others: the number of nodes."""
    storms_of = [r.storm([base], agents=1, first=900000 + i, pad=args.pad, variants=100)
                 for i, base in enumerate(args.base) if odd]
    storms_of.append(r.storm(args.base, agents=args.nodes, deadline=args.deadline, threads=args.threads, **kinds(args)))
    return sum(report["acknowledged"] for report in storms_of)


def without(part, args, odd):
    """One row: the fleet boots at a topiaryd without that part, its upkeep runs until nothing changes, and the fleet
    boots again, unchanged."""
    os.environ["TOPIARY_WITHOUT"] = part
    with registry(**AT_ONCE) as r:
        r.stop("topiaryd")
        shutil.copy(BUILD / "bench/topiaryd_ablate", r.folder / "topiaryd")
        r.start_topiaryd()
        _, empty = sizes(r)
        nodes, boot, _ = r.measured(lambda: boot_for_ablation(r, args, odd))
        before = r.cpu()["postgres"]
        let_upkeep_work(r)
        after = r.cpu()  # topiaryd was started again, and postgres was not
        *kinds_of, delta = map(int, r.sql(STORED_AS).split("|"))
        bases, layouts, drifting = r.sql(ROWS).split("|")
        _, full = settled_sizes(r)
        _, again, _ = r.measured(lambda: r.storm(args.base, agents=args.nodes, deadline=args.deadline,
                                                 threads=args.threads, mode="hash", seed=2, **kinds(args)))
    cpu = (boot["topiaryd"] + boot["postgres"], after["topiaryd"] + after["postgres"] - before,
           again["topiaryd"] + again["postgres"])
    return (PARTS[part], ", ".join(map(str, kinds_of)), bases, layouts, f"{delta / nodes:.1f}",
            f"{(full - empty) / nodes:,.0f}", drifting, *(f"{seconds / nodes * 1e3:.2f}" for seconds in cpu))


def ablate(sheet, args):
    for odd in (False, True):
        sheet.add(f"{args.nodes} nodes boot" + (", of each machine one that lacks a part first" if odd else ""), None,
                  "")
        rows = []
        for part in PARTS:
            rows.append(without(part, args, odd))
            if not sheet.quiet:
                print(*rows[-1], sep=" | ", flush=True)
        sheet.add_table(sheets.lines(ABLATED, "---|" + "|".join(["---:"] * 9), rows))


# --- compare: the same clones stored in every way

def clone_files(folder, base, count, pad, variants):
    """Nodes cn000000 ... in a folder; of each hundred so many lack something, or have it elsewhere."""
    def make(number):
        variant = ("nic", "core", "dimm", "pci")[number % 4] if (number * 37 + 50) % 100 < variants else "none"
        command = [BUILD / "tests/clone", "--variant", variant, "--pad", str(pad), base, str(number)]
        path = folder / f"cn{number:06d}.xml"
        path.write_bytes(run(command))
        return path
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(make, range(count)))


class Plain:
    """A database of one table, as somebody without a registry would make one."""

    def __init__(self, r, name, column, storage="EXTENDED"):
        self.r, self.name = r, name
        run(as_user("postgres", ["createdb", "-h", r.folder / "pg", "-O", USER, name]), cwd="/")
        self.sql(f"CREATE TABLE node (name text PRIMARY KEY, xml {column} NOT NULL);"
                 f"ALTER TABLE node ALTER COLUMN xml SET STORAGE {storage}")

    def sql(self, text):
        return run(as_user(USER, ["psql", "-h", self.r.folder / "pg", "-d", self.name, "-Atq", "-v", "ON_ERROR_STOP=1",
                                  "-f", "-"]),
                   input=text.encode(), cwd="/").decode().strip()

    def insert(self, nodes):
        """One transaction a node; seconds and CPU seconds of PostgreSQL."""
        began, cpu = time.monotonic(), storms.seconds_of(self.r.daemons["postgres"].pid)
        self.sql("".join(f"INSERT INTO node VALUES ('{name}', {literal});\n" for name, literal in nodes))
        return time.monotonic() - began, storms.seconds_of(self.r.daemons["postgres"].pid) - cpu

    def bytes(self):
        self.sql("VACUUM node")
        return int(self.sql("SELECT pg_total_relation_size('node')"))


def hex_literal(data):
    return f"'\\x{data.hex()}'::bytea"


def compare_raw(sheet, r, files):
    plain = Plain(r, "raw", "text")
    seconds, cpu = plain.insert((f.stem, "'" + f.read_text().replace("'", "''") + "'") for f in files)
    name, each = "PostgreSQL, the XML itself (TOAST)", plain.bytes() / len(files)
    sheet.add(f"{name}: size", each, "B/node")
    sheet.add(f"{name}: time", seconds / len(files) * 1e3, "ms/node")
    sheet.add(f"{name}: CPU", cpu / len(files) * 1e3, "ms/node")
    return each


def compare_zstd(sheet, r, files, folder):
    folder.mkdir()
    began = time.monotonic()
    run(["zstd", "-q", "-19", "--output-dir-flat", folder, *files])
    seconds = time.monotonic() - began
    plain = Plain(r, "zstd", "bytea", "EXTERNAL")
    inserted, _ = plain.insert((f.stem, hex_literal((folder / f"{f.name}.zst").read_bytes())) for f in files)
    name, each = "PostgreSQL, each XML by zstd -19", plain.bytes() / len(files)
    sheet.add(f"{name}: size", each, "B/node")
    sheet.add(f"{name}: time", (seconds + inserted) / len(files) * 1e3, "ms/node")
    return each


def compress_dir(files, folder):
    """hwloc-compress-dir on copies of the files, into folder/packed; its seconds."""
    source, packed = folder / "source", folder / "packed"
    for part in (source, packed):
        part.mkdir(parents=True)
    for f in files:
        shutil.copy(f, source)
    began = time.monotonic()
    subprocess.run(["hwloc-compress-dir", source, packed], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def compare_hwloc(sheet, files, folder, wanted):
    """hwloc-compress-dir, on fewer nodes: it looks at all that it has done for each further one."""
    n, half = len(files), compress_dir(files[:len(files) // 2], folder / "half")
    seconds = compress_dir(files, folder)
    packed, again = folder / "packed", folder / "again"
    again.mkdir()
    subprocess.run(["hwloc-compress-dir", "-R", packed, again], check=False, stdout=subprocess.DEVNULL)
    whole = sum((again / f.name).exists() and (again / f.name).read_bytes() == f.read_bytes() for f in files)
    bases = sum((packed / f.name).exists() for f in files)
    square = max(0.0, (seconds - 2 * half) / (n * n / 2))
    expected = square * wanted ** 2 + (seconds - square * n * n) / n * wanted
    name = f"hwloc-compress-dir ({n} nodes)"
    total = sum(f.stat().st_size for f in packed.iterdir())
    sheet.add(f"{name}: size", total / n, "B/node")
    sheet.add(f"{name}: time", seconds / n * 1e3, "ms/node")
    sheet.add(f"{name}: time for {wanted} nodes", expected, "s, extrapolated")
    sheet.add(f"{name}: stored whole, because hwloc cannot express the difference", bases, f"of {n}")
    sheet.add(f"{name}: restored byte for byte", whole, f"of {n}")
    return total / n


def compare_pack(sheet, files, alternatives):
    began = time.monotonic()
    done = run([BUILD / "topiary", "pack", "--json", *files])
    seconds, totals = time.monotonic() - began, json.loads(done)["totals"]
    sheet.add("topiary pack: time", seconds / len(files) * 1e3, "ms/node")
    sheet.add("topiary pack: bases", totals["bases"], f"of {len(files)}")
    each = (totals["base_bytes"] + totals["diff_bytes"]) / len(files)
    told_by(sheet, "topiary pack: size, bases and field layouts included", each, alternatives)
    told_by(sheet, "topiary pack: stored delta", totals["diff_bytes"] / max(totals["diffs"], 1), alternatives)


def told_by(sheet, name, each, alternatives):
    """A size beside each of the others."""
    sheet.add(name, each, "B/node",
              than={f"smaller than {other}": theirs / each for other, theirs in alternatives.items()})


def compare_registry(sheet, r, files, alternatives):
    empty_tables, empty = sizes(r)
    seq = time.time_ns()

    def put(item):
        number, f = item
        return r.put(f.stem, f.read_bytes(), seq=seq + number).status

    def put_all():
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(put, enumerate(files)))
    statuses, cpu, _ = r.measured(put_all)
    let_upkeep_work(r)
    tables, full = settled_sizes(r)
    same = sum(r.get(f"/v1/nodes/{f.stem}/topology").body == f.read_bytes() for f in files)
    name, each = "Topiary", (full - empty) / len(files)
    diffs = [r.get(f"/v1/nodes/{f.stem}").json() for f in files]
    diffs = [d["stored_bytes"] for d in diffs if d.get("stored") != "base"]
    sheet.add(f"{name}: stored", statuses.count(200), f"of {len(files)}")
    sheet.add(f"{name}: restored byte for byte", same, f"of {len(files)}", goal="all")
    sheet.add(f"{name}: CPU time of topiaryd and PostgreSQL", (cpu["topiaryd"] + cpu["postgres"]) / len(files) * 1e3,
              "ms/node")
    for table, total in sorted(tables.items(), key=lambda item: -item[1])[:3]:
        sheet.add(f"{name}: of that, table {table}", (total - empty_tables[table]) / len(files), "B/node")
    told_by(sheet, f"{name}: database size, all tables and indexes", each, alternatives)
    told_by(sheet, f"{name}: stored delta", sum(diffs) / len(diffs), alternatives)


def compare(sheet, args):
    for base in args.base[:2]:
        with registry(**AT_ONCE) as r:
            home = r.folder / "files"
            home.mkdir(mode=0o755)
            files = clone_files(home, base, args.nodes, args.pad, args.variants)
            sheet.of = f"{Path(base).stem}: "
            sheet.add("XML", sum(f.stat().st_size for f in files) / len(files), "B/node")
            alternatives = {
                "the XML in PostgreSQL": compare_raw(sheet, r, files),
                "zstd -19": compare_zstd(sheet, r, files, r.folder / "zst"),
                "hwloc-compress-dir": compare_hwloc(sheet, files[:args.hwloc_nodes], r.folder / "hwloc", args.nodes),
            }
            compare_pack(sheet, files, alternatives)
            compare_registry(sheet, r, files, alternatives)


# --- snapshot: what slurmctld reads

SHAPES = ("Package:{p} [NUMANode] L3Cache:{l} L2Cache:{c} Core:1 PU:{t}", "Package:{p} [NUMANode] Core:{c} PU:{t}")


def shape_bases(folder, count):
    """So many machines of different shapes."""
    bases = []
    for number in range(count):
        text = SHAPES[number % 2].format(p=1 + number // 2 % 4, l=1 + number % 5, c=4 + 2 * number, t=1 + number % 2)
        bases.append(folder / f"shape{number}.xml")
        bases[-1].write_bytes(run(["lstopo-no-graphics", "--input", text, "--of", "xml", "-"]))
    return bases


def tell_snapshot(sheet, r, nodes):
    wait_until(lambda: f"{nodes - 1:06d}" in r.snapshot_text(), 60, 1)
    seconds, body = [], b""
    for _ in range(5):
        began = time.monotonic()
        body = r.get("/v1/snapshot").body
        seconds.append(time.monotonic() - began)
    sheet.add("snapshot: shapes", len(re.findall(rb"^shape ", body, re.M)), "")
    sheet.add("snapshot: size", len(body) / 1e3, "kB")
    sheet.add("snapshot: lines", body.count(b"\n"), "")
    sheet.add("snapshot: GET /v1/snapshot, median of 5", sorted(seconds)[2] * 1e3, "ms")


def snapshot(sheet, args):
    with registry(**AT_ONCE) as r:
        load(sheet, r, args, shape_bases(r.folder, args.shapes), f"{args.nodes} nodes of {args.shapes} shapes boot",
             args.nodes)
        tell_snapshot(sheet, r, args.nodes)


# --- reads: what is answered meanwhile, and in SQL

READERS_OF_LISTS = 12
LISTS = ("/v1/nodes", "/v1/facts?fact=Address", "/v1/facts?fact=DMIProductSerial")
# A leaf for 40 hosts, each with one adapter of its node. Named otherwise than the nodes, so that GUIDs alone tell which
# is which.
FABRIC = """
WITH host AS MATERIALIZED (SELECT 'host' || row_number() OVER (ORDER BY node) AS name,
                                  row_number() OVER (ORDER BY node) / 40 AS leaf, guid
                           FROM (SELECT node, min(guid) AS guid FROM fabric_guid GROUP BY node) g)
SELECT fabric_keep(jsonb_build_object(
	'text', '', 'planes', '[{"kind": "tree"}]'::jsonb,
	'switches', (SELECT jsonb_agg(DISTINCT jsonb_build_object('name', 'leaf' || leaf, 'rank', 0)) FROM host),
	'hosts', (SELECT jsonb_agg(jsonb_build_object(
		'name', name, 'adapters', jsonb_build_array(jsonb_build_object('guid', guid)))) FROM host),
	'links', (SELECT jsonb_agg(jsonb_build_object('a', 'leaf' || leaf, 'b', name, 'cables', 1)) FROM host)), 0)"""
QUERIES = {"which node has this MAC address": "MAC", "which nodes are below which leaf switch": "leaf",
           "which nodes are in no fabric": "no fabric"}


def answer_times(r, paths, seconds):
    """Of requests one after another, in milliseconds."""
    got, until = {path: [] for path in paths}, time.monotonic() + seconds
    while time.monotonic() < until:
        for path in paths:
            began, answer = time.monotonic(), r.get(path)
            got[path].append((time.monotonic() - began) * 1e3)
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status} {answer.body}")
    return got


@contextmanager
def readers_of_lists(r):
    over = threading.Event()

    def read(path):
        while not over.is_set():
            over.wait(r.get(path).status != 200)
    with ThreadPoolExecutor(READERS_OF_LISTS) as pool:
        for i in range(READERS_OF_LISTS):
            pool.submit(read, LISTS[i % len(LISTS)])
        try:
            yield
        finally:
            over.set()


def tell_reads(sheet, r, nodes, seconds=20):
    node = f"cn{nodes // 2:06d}"
    paths = {"/healthz": "/healthz", "/readyz": "/readyz", f"/v1/nodes/{node}": "one node"}
    for when, busy in (("no other readers", nullcontext()),
                       (f"{READERS_OF_LISTS} readers of lists and facts", readers_of_lists(r))):
        with busy:
            for path, times in answer_times(r, paths, seconds).items():
                sheet.add(f"{when}: response time of {paths[path]}, p50", sorted(times)[len(times) // 2], "ms")
                sheet.add(f"{when}: response time of {paths[path]}, maximum", max(times), "ms")
    r.sql(FABRIC)
    r.sql("ANALYZE")
    address = r.sql(f"SELECT value FROM topiary_facts WHERE node = '{node}' AND fact = 'Address' ORDER BY line LIMIT 1")
    questions = dict(re.findall(r"^## (.*?)\n.*?```sql\n(.*?)```", (storms.ROOT / "docs/sql.md").read_text(),
                                re.M | re.S))
    for name, word in QUERIES.items():
        query = next(text for title, text in questions.items() if word in title)
        began = time.monotonic()
        _, cpu, _ = r.measured(lambda query=query: r.sql(re.sub(r"'Address', '[^']*'",
                                                                f"'Address', '{address}'", query)))
        sheet.add(f"time of the query in docs/sql.md: {name}", time.monotonic() - began, "s")
        sheet.add(f"CPU time of PostgreSQL, query in docs/sql.md: {name}", cpu["postgres"], "s")


def reads(sheet, args):
    with registry(**AT_ONCE) as r:
        load(sheet, r, args, args.base, f"{args.nodes} nodes boot", args.nodes, window=args.window, **kinds(args))
        tell_reads(sheet, r, args.nodes)


# --- jobs: a summary a job, no row a sample

SUMMARY_GOAL_BYTES, SUMMARY_GOAL_US = 2560, 30


def job_traces(folder, nodes):
    for i in range(nodes):
        run([BUILD / "tests/trace_make", folder / f"cn{i}.trace", "Package:2 [numa] L3:8 Core:8 PU:2", "60", f"cn{i}"])
    return [folder / f"cn{i}.trace" for i in range(nodes)]


def jobs(sheet, args):
    with registry() as r, tempfile.TemporaryDirectory() as folder:
        traces = job_traces(Path(folder), args.nodes)
        begin, before = time.monotonic(), r.cpu()
        for i in range(args.sent):
            run([BUILD / "topiary", "job", "send", str(i + 1), *traces, "--config", r.config])
        sent = {part: (seconds - before[part]) / args.sent for part, seconds in r.cpu().items()}
        sheet.add(f"topiary job send of {args.nodes} traces of 256 PUs: time", (time.monotonic() - begin) / args.sent,
                  "s")
        sheet.add("a summary: CPU time of topiaryd, PostgreSQL and munged", server_cpu(sent) * 1e3, "ms")
        text = r.sql("SELECT summary::text FROM job_summary LIMIT 1")
        sheet.add("a summary: bytes of JSON", len(text), "", goal=f"at most {SUMMARY_GOAL_BYTES}")
        before = r.cpu()["postgres"]
        r.sql("INSERT INTO job_summary SELECT i, '0', i % 500, now() - i * interval '1 s', "
              f"'{text}' FROM generate_series(1000, {999 + args.rows}) i")
        stored = r.cpu()["postgres"] - before
        sheet.add(f"{args.rows} rows in one statement: CPU time of PostgreSQL a row", stored / args.rows * 1e6, "us",
                  goal=f"at most {SUMMARY_GOAL_US}")
        sheet.add("a row with its indexes: bytes in the database",
                  int(r.sql("SELECT pg_total_relation_size('job_summary') / count(*) FROM job_summary")), "")


# --- kill: nothing acknowledged is lost

def kill(sheet, args):
    with registry() as r:
        exports, retries, wrong = storms.kill_rounds(r, args.base, args.times, args.seed,
                                                     tell=lambda line: sheet.quiet or print(line, flush=True))
        sheet.add(f"{args.times} kills: exports acknowledged", exports, "")
        sheet.add(f"{args.times} kills: exports retried", retries, "")
        sheet.add(f"{args.times} kills: acknowledged exports lost, duplicated or changed", len(wrong), "", goal="0")
        for line in wrong[:20]:
            sheet.add(line, None, "")


# --- the command

# fleet tells what snapshot and reads do.
PLANS = ("ingest", "storm", "fleet", "size --variants 0", "compare", "jobs", "kill")


def every(sheet, args):
    for plan in PLANS:
        one = parser().parse_args([*plan.split(), *(["--base", *map(str, args.base)] if args.given_bases else [])])
        one.base = args.base
        sheet.begin(plan)
        COMMANDS[one.command](sheet, one)


COMMANDS = {"ingest": ingest, "storm": storm, "size": size, "fleet": fleet, "compare": compare, "snapshot": snapshot,
            "reads": reads, "jobs": jobs, "kill": kill, "ablate": ablate, "all": every}
NODES = ("nodes", 100000, "nodes to load")
WINDOW = ("window", 5, "seconds in which they boot")
VARIANTS = ("variants", 5, "percent of nodes that lack a part or have it elsewhere")
OPTIONS = {
    "ingest": (("documents", 2000, "documents of each sort"),),
    "storm": (("agents", 10000, "nodes that boot"), WINDOW, VARIANTS),
    "size": (NODES, VARIANTS),
    "fleet": (NODES, WINDOW, VARIANTS),
    "compare": (("nodes", 1000, "clones of each base"), ("hwloc-nodes", 64, "of them for hwloc-compress-dir"),
                VARIANTS),
    "snapshot": (NODES, ("shapes", 20, "of so many shapes")),
    "reads": (NODES, WINDOW, VARIANTS),
    "jobs": (("nodes", 64, "of a job"), ("sent", 20, "summaries sent"), ("rows", 100000, "rows inserted at once")),
    "kill": (("times", 200, "kills"), ("seed", 1, "of when and whom")),
    "ablate": (("nodes", 2000, "nodes of each fleet"), VARIANTS),
    "all": (),
}
EVERY = (("pad", 120000, "grow each document to about so many bytes"), ("threads", 64, "exchanges at a time"),
         ("deadline", 3600, "seconds until a storm is given up"))


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    commands = p.add_subparsers(dest="command", required=True)
    for name, options in OPTIONS.items():
        c = commands.add_parser(name, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        c.add_argument("--base", nargs="+", default=None, help="machines to make nodes from")
        sheets.options(c)
        for option, value, text in (*options, *EVERY):
            c.add_argument(f"--{option}", type=int, default=value, help=text)
        if name == "storm":
            c.add_argument("--mode", choices=("full", "hash", "mixed"), default="full",
                           help="the first boot; a second one, all unchanged; or a tenth repaired")
    return p


def main():
    args = parser().parse_args()
    if os.geteuid():
        sys.exit("registry.py: needs root: daemons run as several users")
    if not (POSTGRES and (BUILD / "bench/storm").exists()):
        sys.exit(f"registry.py: PostgreSQL or {BUILD}/bench/storm is missing: run make built")
    args.given_bases = args.base is not None
    args.base = args.base or storms.machines()
    sheet = Storms("registry.py", "## In short\n", quiet=args.json or args.markdown)
    if args.command != "all":
        sheet.begin(" ".join(sys.argv[1:]))
    COMMANDS[args.command](sheet, args)
    sheet.finish(args)


if __name__ == "__main__":
    main()

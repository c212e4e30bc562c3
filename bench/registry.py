#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The registry's figures in BENCHMARKS.md: real topiaryd, PostgreSQL and munged, storms of nodes made on the fly."""
import json
import random
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from common import Part, cpu_seconds, main, percentile
import storms
from registry_rig import BUILD, POSTGRES, USER, run
from rig.clones import clone
from rig.cluster import as_user

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


def server_cpu(cpu):
    return cpu["topiaryd"] + cpu["postgres"] + cpu["munged"]


def load(sheet, r, args, name, nodes, within=None, **how):
    """So many nodes boot: its report and the CPU seconds of each part. within: how many seconds it may take."""
    report, cpu, memory = r.measured(lambda: r.storm(bases(args), agents=nodes, pad=args.pad, threads=64,
                                                     deadline=args.deadline, **how))
    done, reads = report["acknowledged"], report["read_us"]
    sheet.add(f"{name}: exports acknowledged", done, f"of {report['agents']}", "all", report["last_reason"])
    sheet.add(f"{name}: time until the last acknowledgement", report["seconds"], "s",
              f"below {within}" if within else "")
    sheet.add(f"{name}: nodes acknowledged per second", report["per_second"], "/s")
    sheet.add(f"{name}: exports retried", report["retries"])
    for part, seconds in {**cpu, "the simulated nodes": report["cpu_seconds"]}.items():
        sheet.add(f"{name}: CPU time of {part}", seconds / max(done, 1) * 1e3, "ms/node")
    for share in (50, 99) if done else ():
        sheet.add(f"{name}: acknowledgement latency, p{share}", percentile(report["ack_us"], share / 100) / 1e3, "ms")
    sheet.add(f"{name}: peak memory of topiaryd", memory / MB, "MB", "below 512")
    if reads:
        sheet.add(f"{name}: latency of reading one node meanwhile, p99", percentile(reads, 0.99) / 1e3, "ms",
                  "below 50")
        sheet.add(f"{name}: reads failed meanwhile", report["read_failures"], f"of {len(reads)}", "0")
    return report, cpu


def bases(args):
    return args.base if args.base != [""] else storms.machines()


# --- ingest: what a core does

def ingest(sheet, args):
    with registry(**AT_ONCE) as r:
        def rate(name, **how):
            report, cpu = load(sheet, r, args, name, args.documents, **how)
            return report["acknowledged"] / server_cpu(cpu)
        one = rate("new documents of identical nodes")
        own = rate("new documents, each of different structure", distinct=True, first=500000)
        known = rate("documents that the registry has already", mode="hash", seed=2)
    for name, value, goal in (
            ("new documents, each of different structure: nodes ingested per CPU second", own, "at least 180"),
            ("new documents of identical nodes: nodes ingested per CPU second", one, "at least 1,200"),
            ("documents that the registry has already: nodes ingested per CPU second", known, "at least 5,000"),
            ("new documents of identical nodes: nodes ingested per CPU second, without the preceding hash request",
             1 / (1 / one - 1 / known), "at least 1,000")):
        sheet.add(name, value, "/CPU second", goal, f"{value / own:.1f} times as many as of different structure")


# --- storm and fleet: a cluster boots, and what PostgreSQL holds then

def storm(sheet, args):
    with registry() as r:
        load(sheet, r, args, f"{args.agents} nodes boot", args.agents, within=60, window=5, variants=args.variants,
             **READERS)


STORED = "SELECT stored, count(*) FROM topiary_nodes GROUP BY 1 ORDER BY 1"


def database_size(r):
    r.sql("VACUUM ANALYZE")
    return int(r.sql("SELECT pg_database_size(current_database())"))


def stored_deltas(r, names):
    """Bytes of the nodes' differences from their bases, by the registry's own word."""
    told = [r.get(f"/v1/nodes/{name}").json() for name in names]
    return sorted(node["stored_bytes"] for node in told if node.get("stored") != "base")


def tell_size(sheet, r, report, empty):
    nodes, each = report["acknowledged"], (database_size(r) - empty) / report["acknowledged"]
    chance = random.Random(1)
    deltas = stored_deltas(r, [f"cn{chance.randrange(nodes):06d}" for _ in range(300)])
    sheet.add("after maintenance: stored delta, mean", sum(deltas) / len(deltas), "B/node", "",
              f"p50 {deltas[len(deltas) // 2]}, p99 {deltas[len(deltas) * 99 // 100]}")
    sheet.add("after maintenance: database size, all tables and indexes", each, "B/node", "",
              f"{report['xml_bytes'] / max(report['documents'], 1) / each:.1f} times smaller than the XML")


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


def fleet(sheet, args):
    with registry(**AT_ONCE) as r:
        empty = database_size(r)
        report, _ = load(sheet, r, args, f"{args.nodes} nodes boot", args.nodes, window=5, variants=args.variants)
        let_upkeep_work(r)
        tell_size(sheet, r, report, empty)
        load(sheet, r, args, f"{args.nodes} nodes boot again, unchanged", args.nodes, within=300, window=5, mode="hash",
             seed=2, variants=args.variants, **READERS)


# --- compare: the same clones stored in every way

def clone_files(folder, base, count, pad, variants):
    """Nodes cn000000 ... in a folder; of each hundred so many lack something, or have it elsewhere."""
    def make(number):
        variant = ("nic", "core", "dimm", "pci")[number % 4] if (number * 37 + 50) % 100 < variants else "none"
        path = folder / f"cn{number:06d}.xml"
        path.write_bytes(clone(base, number, variant, pad))
        return path
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(make, range(count)))


def in_plain_table(sheet, r, name, column, values):
    """A table as somebody without a registry would make one, one transaction a node: bytes of each."""
    def sql(text):
        return run(as_user(USER, [POSTGRES / "psql", "-h", r.folder / "pg", "-d", column, "-Atq", "-v",
                                  "ON_ERROR_STOP=1", "-f", "-"]), input=text.encode(), cwd="/").decode().strip()
    run(as_user("postgres", [POSTGRES / "createdb", "-h", r.folder / "pg", "-O", USER, column]), cwd="/")
    sql(f"CREATE TABLE node (name text PRIMARY KEY, xml {column} NOT NULL);"
        f"ALTER TABLE node ALTER COLUMN xml SET STORAGE {'EXTENDED' if column == 'text' else 'EXTERNAL'}")
    cpu = cpu_seconds(r.daemons["postgres"].pid)
    sql("".join(f"INSERT INTO node VALUES ('{node}', {value});\n" for node, value in values.items()))
    cpu = cpu_seconds(r.daemons["postgres"].pid) - cpu
    sql("VACUUM node")
    each = int(sql("SELECT pg_total_relation_size('node')")) / len(values)
    sheet.add(f"{name}: size", each, "B/node")
    sheet.add(f"{name}: CPU time of PostgreSQL", cpu / len(values) * 1e3, "ms/node")
    return each


def by_zstd(r, files):
    folder = r.folder / "zst"
    folder.mkdir()
    run(["zstd", "-q", "-19", "--output-dir-flat", folder, *files])
    return {f.stem: f"'\\x{(folder / f'{f.name}.zst').read_bytes().hex()}'::bytea" for f in files}


def by_hwloc(sheet, files, folder):
    """hwloc-compress-dir, on fewer nodes: it looks at all that it has done for each further one."""
    source, packed, again = (folder / part for part in ("source", "packed", "again"))
    for part in (source, packed, again):
        part.mkdir(parents=True)
    for f in files:
        shutil.copy(f, source)
    began = time.monotonic()
    subprocess.run(["hwloc-compress-dir", source, packed], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    subprocess.run(["hwloc-compress-dir", "-R", packed, again], check=False, stdout=subprocess.DEVNULL)
    whole = sum((again / f.name).exists() and (again / f.name).read_bytes() == f.read_bytes() for f in files)
    name = f"hwloc-compress-dir ({len(files)} nodes)"
    each = sum(f.stat().st_size for f in packed.iterdir()) / len(files)
    sheet.add(f"{name}: size", each, "B/node")
    sheet.add(f"{name}: time", seconds / len(files) * 1e3, "ms/node")
    sheet.add(f"{name}: restored byte for byte", whole, f"of {len(files)}")
    return each


def in_registry(sheet, r, files):
    """The database's size and the stored delta, of a node."""
    empty, seq = database_size(r), time.time_ns()

    def put_all():
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda item: r.put(item[1].stem, item[1].read_bytes(), seq=seq + item[0]).status,
                                 enumerate(files)))
    statuses, cpu, _ = r.measured(put_all)
    let_upkeep_work(r)
    same = sum(r.get(f"/v1/nodes/{f.stem}/topology").body == f.read_bytes() for f in files)
    sheet.add("Topiary: stored", statuses.count(200), f"of {len(files)}")
    sheet.add("Topiary: restored byte for byte", same, f"of {len(files)}", "all")
    sheet.add("Topiary: CPU time of topiaryd and PostgreSQL", (cpu["topiaryd"] + cpu["postgres"]) / len(files) * 1e3,
              "ms/node")
    deltas = stored_deltas(r, [f.stem for f in files])
    return (database_size(r) - empty) / len(files), sum(deltas) / len(deltas)


def compare(sheet, args):
    for base in bases(args)[:2]:
        with registry(**AT_ONCE) as r:
            home = r.folder / "files"
            home.mkdir(mode=0o755)
            files = clone_files(home, base, args.nodes, args.pad, args.variants)
            sheet.of = f"{Path(base).stem}: "
            sheet.add("XML", sum(f.stat().st_size for f in files) / len(files), "B/node")
            others = {
                "the XML in PostgreSQL": in_plain_table(
                    sheet, r, "PostgreSQL, the XML itself (TOAST)", "text",
                    {f.stem: "'" + f.read_text().replace("'", "''") + "'" for f in files}),
                "zstd -19": in_plain_table(sheet, r, "PostgreSQL, each XML by zstd -19", "bytea", by_zstd(r, files)),
                "hwloc-compress-dir": by_hwloc(sheet, files[:64], r.folder / "hwloc"),
            }
            packed = json.loads(run([BUILD / "topiary", "pack", "--json", *files]))["totals"]
            database, delta = in_registry(sheet, r, files)
            for name, each in (
                    ("topiary pack: size, bases and field layouts included",
                     (packed["base_bytes"] + packed["diff_bytes"]) / len(files)),
                    ("Topiary: database size, all tables and indexes", database), ("Topiary: stored delta", delta)):
                sheet.add(name, each, "B/node", "", ", ".join(f"{theirs / each:.1f} times smaller than {other}"
                                                             for other, theirs in others.items()))


# --- kill: nothing acknowledged is lost

def kill(sheet, args):
    with registry() as r:
        exports, retries, wrong = storms.kill_rounds(r, bases(args), args.times, args.seed,
                                                     tell=lambda line: print(line, flush=True))
    sheet.add(f"{args.times} kills: exports acknowledged", exports)
    sheet.add(f"{args.times} kills: exports retried", retries)
    sheet.add(f"{args.times} kills: acknowledged exports lost, duplicated or changed", len(wrong), "", "0",
              "; ".join(wrong[:5]))


EVERY = {"base": ([""], "machines to make nodes from; without this, those of packaging/setup"),
         "pad": (120000, "grow each document to about so many bytes"), "deadline": (3600, "seconds for a storm")}
VARIANTS = {"variants": (5, "percent of nodes that lack a part or have it elsewhere"), **EVERY}
PARTS = {
    "ingest": Part(ingest, "nodes ingested per CPU second", {"documents": (2000, "of each sort"), **EVERY}),
    "storm": Part(storm, "a cluster boots within 5 s", {"agents": (10000, "nodes that boot"), **VARIANTS}),
    "fleet": Part(fleet, "a large cluster boots twice; the size of the database",
                  {"nodes": (100000, "nodes that boot"), **VARIANTS}),
    "compare": Part(compare, "the same documents stored in every way",
                    {"nodes": (1000, "of each machine"), **VARIANTS}),
    "kill": Part(kill, "boot storms while topiaryd or PostgreSQL are killed",
                 {"times": (40, "kills"), "seed": (1, "of when and whom"), **EVERY}),
}

if __name__ == "__main__":
    main(__doc__, PARTS, ("ingest", "storm", "fleet", "compare", "kill"), needs=["storm"])

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The database is replaced under a running topiaryd: by a dump, by a standby without the last commits, by an older copy
of its files."""
import shutil
import signal
import subprocess

import pytest
from registry_rig import POSTGRES, SMALL, USER, machine, run
from rig.cluster import as_user
from rig.processes import wait_until
from test_fabric import CABLES, Fabric
from upkeep_rig import alike, all_there, clone, kill_topiaryd, name, upkept

KINDS = {"a": SMALL.replace("L2Cache:4", "L2Cache:6"), "b": SMALL.replace("Package:2", "Package:4"), "w": SMALL}


def nodes(kind, count=5):
    return {f"{kind}{i}": machine(KINDS[kind], f"{kind}{i}", i) for i in range(count)}


def boot(registry, documents):
    """As the agent does: the question first. How each is stored."""
    stored = {}
    for node, xml in documents.items():
        answer = registry.ask(node, xml)
        if answer.status == 202:
            answer = registry.put(node, xml)
        assert answer.status == 200, answer.body
        stored[node] = answer.json()["stored"]
    return stored


def server(registry, command, *args, **how):
    return run(as_user("postgres", [str(POSTGRES / command), "-h", str(registry.folder / "pg"), *map(str, args)]),
               cwd="/", **how)


def data(registry, name="data"):
    return registry.folder / "pg" / name


def copy_of(registry, source, to):
    shutil.rmtree(to, ignore_errors=True)
    run(["cp", "-a", source, to])


# Each gives a function that brings back what there was when it was called.

def restore(registry, dump, *options):
    """Upkeep may hold a table this moment: then PostgreSQL may end either of the two."""
    command = as_user("postgres", [str(POSTGRES / "pg_restore"), "-h", str(registry.folder / "pg"),
                                   "-d", "topiary", *options])
    said = []

    def restored():
        done = subprocess.run(command, input=dump.read_bytes(), capture_output=True, check=False, cwd="/")
        said.append(done.stderr.decode())
        return done.returncode == 0
    assert wait_until(restored, 60), said[-1]


def dropped_and_restored(registry):
    dump = registry.folder / "dump"
    dump.write_bytes(server(registry, "pg_dump", "-Fc", "topiary"))

    def back():
        server(registry, "dropdb", "--force", "topiary")
        # Else topiaryd could make its tables in the empty database first.
        server(registry, "psql", "-c", f'CREATE DATABASE topiary OWNER "{USER}" CONNECTION LIMIT 0')
        restore(registry, dump)
        server(registry, "psql", "-c", "ALTER DATABASE topiary CONNECTION LIMIT -1")
    return back


def restored_clean(registry):
    """The connections stay open."""
    dump = registry.folder / "dump"
    dump.write_bytes(server(registry, "pg_dump", "-Fc", "topiary"))
    return lambda: restore(registry, dump, "--clean", "--single-transaction")


def promoted(registry):
    """A standby that did not get the last commits takes over: a new timeline."""
    copy = data(registry, "standby")
    shutil.rmtree(copy, ignore_errors=True)
    server(registry, "pg_basebackup", "-D", copy, "-c", "fast", "-X", "fetch")

    def back():
        registry.stop("postgres", signal.SIGINT)
        (copy / "standby.signal").touch()
        shutil.chown(copy / "standby.signal", "postgres", "postgres")
        use(registry, copy)
        registry.start_postgres()
        server(registry, "psql", "-d", "topiary", "-c", "SELECT pg_promote()")
    return back


def use(registry, folder):
    """Let this be the server's data; what was is kept aside."""
    shutil.rmtree(data(registry, "former"), ignore_errors=True)
    data(registry).rename(data(registry, "former"))
    folder.rename(data(registry))


def rolled_back(registry):
    """The file system goes back to a snapshot: even the timeline is the same."""
    registry.stop("postgres", signal.SIGINT)
    copy_of(registry, data(registry), data(registry, "snapshot"))
    registry.start_postgres()

    def back():
        registry.stop("postgres", signal.SIGQUIT)
        use(registry, data(registry, "snapshot"))
        registry.start_postgres()
    return back


WAYS = [dropped_and_restored, restored_clean, promoted, rolled_back]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request):
    return request.param


@pytest.fixture
def registry():
    with upkept(UpkeepInterval=86400) as r:
        yield r


def told_right(registry, documents):
    """Each document, shape and class, the snapshot and drift are those of these nodes."""
    assert all_there(registry, documents)
    rows = {n["node"]: n for n in registry.get("/v1/nodes").json()["nodes"]}
    assert set(documents) <= set(rows)
    for kind in {node[0] for node in documents}:
        assert len({rows[n]["shape"] for n in documents if n[0] == kind}) == 1
    assert len({rows[n]["shape"] for n in documents}) == len({node[0] for node in documents})
    assert registry.get("/v1/drift").json()["drift"] == []
    text = registry.get("/v1/snapshot").body.decode()
    for kind in {node[0] for node in documents}:
        assert f"{kind}[0-4]" in text, text


def test_nodes_boot_again(registry, way):
    """The dump lacks a kind of node; another kind boots after it was restored, and gets its numbers."""
    boot(registry, nodes("w"))
    back = way(registry)
    boot(registry, nodes("a"))
    back()
    assert wait_until(lambda: registry.get("/healthz").status == 200, 60)
    documents = {}
    for kind in "bawb":
        documents |= nodes(kind)
        boot(registry, nodes(kind))
        assert all_there(registry, documents), kind
    told_right(registry, documents)
    kill_topiaryd(registry)
    told_right(registry, documents)
    assert set(boot(registry, documents).values()) == {"known"}


def metric(registry, wanted):
    return [float(line.split()[1]) for line in registry.get("/metrics").body.decode().split("\n")
            if line.startswith(f"{wanted} ")]


def drifts(registry, documents):
    return {node: registry.get(f"/v1/nodes/{node}/drift").json()["changes"] for node in documents}


@pytest.mark.parametrize("again", [("other", "nic", "core", "like"), ("core", "like", "nic", "other")], ids="-".join)
def test_patches_and_drift(registry, again):
    """Nodes that lack something: patches, and a class, that the dump lacks. In two orders."""
    kinds = {"like": {name(i): clone(i) for i in range(3)}, "nic": alike(100, 3, "nic"), "core": alike(200, 3, "core"),
             "other": nodes("b")}
    documents = {node: xml for kind in kinds.values() for node, xml in kind.items()}
    boot(registry, kinds["like"])
    back = restored_clean(registry)
    told = {}
    for kind in ("nic", "core", "other"):
        boot(registry, kinds[kind])
        told |= drifts(registry, kinds[kind])
    assert all(told[node] for node in kinds["nic"] | kinds["core"])
    back()
    for kind in again:
        boot(registry, kinds[kind])
    for _ in range(2):
        assert all_there(registry, documents)
        assert drifts(registry, told) == told
        kill_topiaryd(registry)


def test_an_accepted_class_is_lost(registry):
    """Its number is given to another kind's class; the base at hand is believed to be of it."""
    like, odd = {name(i): clone(i) for i in range(3)}, alike(100, 3, "nic")
    first = next(iter(odd))
    boot(registry, like | {first: odd[first]})
    back = restored_clean(registry)
    registry.topiary("accept", first, status=0)
    back()
    boot(registry, nodes("b"))
    boot(registry, odd)
    assert all_there(registry, like | odd | nodes("b"))
    assert {n["class"] for n in registry.get("/v1/nodes").json()["nodes"] if n["node"] in odd | like} == {"c1"}
    assert all(drifts(registry, odd).values())


def test_an_old_primary_runs_on(registry):
    """It was not stopped when the standby was promoted, and is the first to be found: nothing is stored there."""
    boot(registry, nodes("w"))
    back = promoted(registry)
    back()
    assert wait_until(lambda: registry.put("a0", nodes("a")["a0"]).status == 200, 60)
    assert metric(registry, "topiary_database_timeline") == [2]
    assert registry.log("topiaryd").count("the database has been replaced") == 1
    registry.stop("postgres", signal.SIGINT)
    promoted_data = data(registry).rename(data(registry, "promoted"))
    data(registry, "former").rename(data(registry))
    registry.start_postgres()
    answer = registry.put("b0", nodes("b")["b0"])
    assert answer.status == 503 and "old primary" in answer.json()["error"], answer.body
    assert metric(registry, "topiary_database_refused_total")[0] > 0
    assert registry.get("/v1/nodes/w0/topology").body == nodes("w")["w0"], "reads go on"
    registry.stop("postgres", signal.SIGINT)
    use(registry, promoted_data)
    registry.start_postgres()
    assert wait_until(lambda: registry.put("b0", nodes("b")["b0"]).status == 200, 60)
    assert all_there(registry, nodes("w") | {n: nodes(n[0])[n] for n in ("a0", "b0")})


def test_the_fabrics_file_follows(registry, tmp_path):
    """A version's number is given again to another fabric; then there is none at all."""
    fabric = Fabric(registry, tmp_path)
    boot(registry, nodes("w"))
    none = restored_clean(registry)
    fabric.imported(CABLES)
    assert wait_until(registry.fabric.exists, 60)
    first = registry.fabric.read_bytes()
    none()
    fabric.imported(CABLES[:-3])
    assert wait_until(lambda: registry.fabric.exists() and registry.fabric.read_bytes() not in (b"", first), 60)
    none()
    boot(registry, nodes("b"))
    assert wait_until(lambda: not registry.fabric.exists(), 60)

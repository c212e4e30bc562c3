# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""`topiary advise` on what steps left: their nodes together, where tasks were, and a matrix that maps better."""
import json
import random
import re

import pytest
from rig.command import topiary, trace_made

MACHINE = "Package:2 [numa] L3:1 Core:4 PU:2"
SNAPSHOT = f"""\
topiary-snapshot 1
shape S {MACHINE.replace("[numa]", "[NUMANode]").replace("L3:1", "L3Cache:1")}
nodes cn[1-4] S
end
"""
CORES, RANKS = 8, 16


def advise(folder, *words, status=0):
    return topiary("advise", *words, cwd=folder, status=status, env={
        "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "SLURM_CONF": "/dev/null", "TOPIARY_CONF": "/dev/null"})


def checks(folder, *words):
    """{kind: check} of the only step."""
    step, = json.loads(advise(folder, *words, "--json").stdout)["steps"]
    return {check["kind"]: check for check in step["checks"]}


def task(rank, cores, **more):
    """A task on these cores; each core has the PUs 2n and 2n + 1."""
    return {"rank": rank, "cores": ",".join(map(str, cores)),
            "cpus_os": ",".join(f"{2 * c},{2 * c + 1}" for c in cores),
            "numa": ",".join(sorted({str(c // 4) for c in cores})), "memory": "default", "gpu": None, "nic_far": None,
            **more}


def leave(folder, node, tasks, nodes=1, trace=None, busy=None, **head):
    """What a step leaves of a node, in topiary-7.0."""
    step = folder / "topiary-7.0"
    step.mkdir(exist_ok=True)
    lines = [{"tasks": 1, "step": "7.0", "node": node, "nodes": nodes, "cores": f"0-{CORES - 1}", **head}, *tasks]
    (step / f"{node}.tasks").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if trace:
        trace_made(step / f"{node}.trace", MACHINE, trace, node, busy=busy or 0)
    return step


def ring(n):
    return "".join(" ".join(str(int((a - b) % n in (1, n - 1))) for b in range(n)) + "\n" for a in range(n))


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    (tmp_path / "snapshot").write_text(SNAPSHOT)
    (tmp_path / "ring").write_text(ring(RANKS))
    return tmp_path


def leave_order(folder, order, **head):
    """Ranks in this order on the cores of two nodes."""
    for i, node in enumerate(("cn1", "cn2")):
        leave(folder, node, [task(rank, [core]) for core, rank in enumerate(order[CORES * i:CORES * (i + 1)])], 2,
              **head)


def test_nodes_of_a_step(folder):
    for i in range(1, 4):
        leave(folder, f"cn{i}", [task(2 * i, [0, 1, 2, 3], gpu="1 far" if i > 1 else "0 near"),
                                 task(2 * i + 1, [4, 5, 6, 7])], 3, trace=20 + i)
    found = checks(folder, "7")
    assert (found["far GPU"]["result"], found["far GPU"]["node"], found["far GPU"]["nodes"]) == ("found", "cn2", 2)
    assert found["far GPU"]["evidence"] == "rank 4 is on cores 0-3 and has GPU 1 far"
    assert found["far memory"]["nodes"] == 3 and found["far memory"]["evidence"].startswith("25 % of the memory")
    assert found["idle cores"]["missing"] == "busy" and found["shared cores"]["result"] == "none"
    said = advise(folder, "7.0").stdout
    assert said.startswith("step 7.0: 3 nodes, 23.0 s: 2 of 5 checks found something\n")
    assert "far GPU     cn2: rank 4 is on cores 0-3 and has GPU 1 far (on 2 of 3 nodes)\n" in said
    assert "\nnot checked, for lack of the event, trace or file: outside threads, idle cores, " in said
    assert advise(folder, "topiary-7.0", "--brief").stdout == (
        "step 7.0: rank 4 is on cores 0-3 and has GPU 1 far on cn2: give each rank the GPU near its cores: "
        "--topo-tasks=auto (and 1 more: topiary advise 7.0)\n")


@pytest.mark.parametrize("kind, tasks, evidence", [
    ("shared cores", [task(0, [0]), task(1, [1]), task(2, [1])],
     "ranks 1 and 2 are bound to core 1, while 6 of 8 cores have no rank"),
    ("shared cores", [task(0, range(4)), task(1, range(4))],
     "ranks 0 and 1 are bound to cores 0-3, while 4 of 8 cores have no rank"),
    ("far policy", [task(0, [0, 1], memory="bind:1"), task(1, [4], memory="bind:1")],
     "rank 0 is at NUMA node 0, and its memory is bound to 1"),
    ("far NIC", [task(r, [r], nic_far="mlx5_0 (mlx5_1 is near)") for r in range(3)],
     "rank 0 is on core 0 and uses the far mlx5_0 (mlx5_1 is near) (3 of 3 ranks are as far)"),
    ("far GPU", [task(0, [0], gpu="0 far,1 far\x1b[2J")], "rank 0 is on core 0 and has GPU 0 far,1 far?[2J"),
])
def test_where_tasks_were(folder, kind, tasks, evidence):
    """Without a trace, too: a step that was too short for one, or a node without topiary-monitor."""
    leave(folder, "cn1", tasks)
    found = checks(folder, "7.0")
    assert {k for k, check in found.items() if check["result"] == "found"} == {kind}
    assert found[kind]["evidence"] == evidence


@pytest.mark.parametrize("placed, words", [
    ("gpu, in a part of the job's cores", "srun without -c"), ("gpu", "--gres-flags=enforce-binding"),
    (None, "--topo-tasks=auto"),
])
def test_advice_is_what_helps(folder, placed, words):
    """Not the option that was given; nor more cores for a step that had all of its job."""
    first = task(0, [0], gpu="0 near", placed=placed and "gpu")
    leave(folder, "cn1", [first, task(1, [1], gpu="1 far", placed=placed)])
    remedy = checks(folder, "7.0")["far GPU"]["remedy"]
    assert [word in remedy for word in ("srun without -c", "--gres-flags", "--topo-tasks")].count(True) == 1
    assert words in remedy


@pytest.mark.parametrize("tasks", [
    [task(r, range(8)) for r in range(4)], [task(r, [r % 8]) for r in range(16)], [task(0, [0, 1])],
    [task(0, [0], gpu="0 far,1 near")], [task(0, [0, 4], memory="bind:1")], [task(0, [0], memory="interleave:1")],
], ids=["unbound", "more ranks than cores", "one rank", "a near GPU", "bound to one of two", "interleaved"])
def test_what_is_no_fault(folder, tasks):
    leave(folder, "cn1", tasks)
    assert not [kind for kind, check in checks(folder, "7").items() if check["result"] == "found"]


@pytest.mark.parametrize("busy, found", [
    ([0.9, 0.9, 0.2], {"uneven nodes": "the cores of cn3 were busy for 20 % of the time, those of the median node for "
                                       "90 %"}),
    ([0.2, 0.9], {"uneven nodes": "the cores of cn1 were busy for 20 % of the time, those of the median node for "
                                  "90 %"}),
    ([0.7, 0.9, 0.7], {"slow node": r"cn2 ran at 2\.\d\d GHz, the median node at 3\.\d\d GHz"}),
    ([0.9, 0.7], {}), ([0.85, 0.9, 0.8], {}), ([0.1, 0.3, 0.3], {}), ([None, 0.9, 0.9], {}),
])
def test_nodes_are_compared(folder, busy, found):
    """A node that idles or is slow beside others, though nothing on it is wrong."""
    for i, part in enumerate(busy, 1):
        leave(folder, f"cn{i}", [], len(busy), trace=20, busy=part)
    seen = {kind: check for kind, check in checks(folder, "7").items() if kind in ("uneven nodes", "slow node")}
    said = {kind: check["evidence"] for kind, check in seen.items() if check["result"] == "found"}
    assert said.keys() == found.keys() and all(re.fullmatch(found[kind], text) for kind, text in said.items()), said
    # A core of two PUs has a clock if it works for half of a PU's time.
    assert (seen["slow node"]["missing"] == "cycles on three nodes") == (sum((part or 0) > 0.25 for part in busy) < 3)


def test_a_matrix_that_maps_better(folder):
    """A ring over two nodes: in order nothing is gained, in a random order much is."""
    draw = random.Random(16)
    for _ in range(25):
        leave_order(folder, range(RANKS))
        found = checks(folder, "7", "--matrix=ring", "--snapshot=snapshot")
        assert found["mapping"]["result"] == "none"
        leave_order(folder, draw.sample(range(RANKS), RANKS))
        found = checks(folder, "7", "--matrix=ring", "--snapshot=snapshot")
        assert found["mapping"]["result"] == "found" and "--topo-matrix" in found["mapping"]["remedy"]


def test_gain_is_that_of_map(folder):
    order = [r // 2 + RANKS // 2 * (r % 2) for r in range(RANKS)]
    leave_order(folder, order)
    found = checks(folder, "7", "--matrix=ring", "--snapshot=snapshot")["mapping"]["evidence"]
    best = json.loads(topiary("map", "--matrix=ring", "--snapshot=snapshot", "--nodes=cn[1-2]", "--explain=json",
                              status=0, cwd=folder).stderr)
    assert f", {best['cost']:.4g} as topiary map places them" in found
    place = {rank: at for at, rank in enumerate(order)}
    cost = sum(2 * (100 if a // 8 != b // 8 else 20 if a // 4 != b // 4 else 2)
               for a, b in ((place[r], place[(r + 1) % RANKS]) for r in range(RANKS)))
    assert f"cost {cost} where the ranks are" in found


@pytest.mark.parametrize("change, words, missing", [
    (lambda f: leave(f, "cn1", [task(r, [r]) for r in range(8)], 2), [], "--matrix"),
    (lambda f: leave(f, "cn1", [task(r, [r]) for r in range(8)], capture=f"{f}/none"), [], "--matrix"),
    (lambda f: leave(f, "cn1", [task(r, [r]) for r in range(8)], 2, capture=f"{f}/ring"), [],
     "7.0: NODE.tasks of 1 of its 2 nodes is missing"),
    (lambda f: leave(f, "cn1", [task(r, range(8)) for r in range(8)], capture=f"{f}/ring"), [],
     "no snapshot, neither from the file"),
])
def test_mapping_is_not_judged(folder, change, words, missing):
    change(folder)
    found = checks(folder, "7", *words)["mapping"]
    assert found["result"] == "not checked" and found["missing"].startswith(missing), found


@pytest.mark.parametrize("tasks, words, error", [
    ([task(r, [r]) for r in range(8)], ["--matrix=none"], "none: No such file or directory"),
    ([task(r, [0]) for r in range(8)], ["--matrix=ring", "--snapshot=snapshot"],
     "7.0: the ranks of cn1 are not bound to cores of their own"),
    ([task(r, [r + 1]) for r in range(8)], ["--matrix=ring", "--snapshot=snapshot"],
     "cn1: core list '1-8': invalid at '8' (the node has 8 cores)"),
    ([task(8 * r, [r]) for r in range(8)], ["--matrix=ring", "--snapshot=snapshot"],
     "7.0: cn1.tasks has rank 8, and all nodes have 8 ranks together"),
    ([], ["--matrix=ring", "--snapshot=snapshot"], "7.0: no ranks in its files NODE.tasks"),
])
def test_matrix_that_was_named_is_an_error(folder, tasks, words, error):
    leave(folder, "cn1", tasks)
    done = advise(folder, "7", *words, status=1)
    assert error in done.stderr and done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.parametrize("text, error", [
    ("", "not a list of a step's tasks"), ("{}\n", "not a list of a step's tasks"), ("[1]\n", "not a list"),
    ('{"tasks":1}\n{"rank":"x"}\n', "line 2: a task without a rank"),
    ('{"tasks":1}\n{"rank":0}\n{"rank":0}\n', "rank 0 twice"),
    ('{"tasks":1}\n' + "".join(f'{{"rank":{i},"cpus_os":"65535","cores":"65535"}}\n' for i in range(4000)),
     "line 2050: its lists of PUs, cores and NUMA nodes are too long"),
    ('{"tasks":1}\nx\n', "line 2: not a list"), ('{"tasks":2}\n', "line 1: not a list"),
], ids=["empty", "object", "list", "no rank", "rank twice", "long", "no list", "too few"])
def test_damaged_tasks_are_one_warning(folder, text, error):
    leave(folder, "cn1", [], trace=20)
    (folder / "topiary-7.0" / "cn1.tasks").write_text(text)
    done = advise(folder, "7")
    assert done.stderr.count("\n") == 1 and error in done.stderr and "far memory" in done.stdout


def test_short_trace_is_one_warning(folder):
    leave(folder, "cn1", [task(0, [0], gpu="1 far")], trace=3)
    done = advise(folder, "7")
    assert "cn1.trace: 3 ticks, advice needs at least 10; run longer, or record more often (hz)\n" in done.stderr
    assert done.stderr.count("\n") == 1 and "far GPU" in done.stdout
    assert "step 7.0: 1 node, 3.0 s: 1 of 4" in done.stdout
    assert "fewer cores (a trace that can be judged), mapping (--matrix)\n" in done.stdout


def test_node_that_cannot_be_judged_is_counted(folder):
    leave(folder, "cn1", [], nodes=2, trace=20)
    (leave(folder, "cn2", [], nodes=2, trace=3) / "cn2.tasks").unlink()
    done = advise(folder, "7")
    assert done.stdout.startswith("step 7.0: 1 of 2 nodes, 20.0 s: ") and "cn2.trace: 3 ticks" in done.stderr


def test_steps_of_a_job_in_order(folder):
    for step in ("10", "9", "batch"):
        leave(folder, "cn1", [task(0, [0], gpu="1 far")]).rename(folder / f"topiary-7.{step}")
    leave(folder, "cn1", []).rename(folder / "topiary-77.0")
    (folder / "topiary-7.x").mkdir()
    for word, steps in ("7", ["7.9", "7.10", "7.batch"]), ("7.10", ["7.10"]):
        assert [step["step"] for step in json.loads(advise(folder, word, "--json").stdout)["steps"]] == steps


@pytest.mark.parametrize("words, status, error", [
    ([], 64, "JOB, JOB.STEP or FOLDER is required"), (["7", "8"], 64, "Too many arguments"),
    (["7", "--snapshot=x"], 64, "--snapshot requires --matrix"),
    (["8"], 1, "8: no topiary-8.* with traces here"), (["7.1"], 1, "7.1: no topiary-7.1 with traces here"),
    (["none"], 1, "none: No such file or directory"), ([".."], 1, ""), (["7x"], 1, "7x: No such file"),
])
def test_wrong_words(folder, words, status, error):
    leave(folder, "cn1", [])
    assert error in advise(folder, *words, status=status).stderr

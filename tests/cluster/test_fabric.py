# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The fabric beside a running Slurm: its topology.conf is taken and told the same; jobs are mapped by it, and drawn
into it."""
import json
import re
import shutil
import subprocess

import pytest
from rig import Cluster, mpi
from rig.ask import wait_running
from rig.paths import BUILD
from rig.processes import wait_until
from whole.judge import Hardware, Record, conf_of, least

NODES = {"cn1": "amd-4x16", "cn2": "amd-4x16", "cn3": "intel-2x8"}
# cn1 and cn2 on a leaf switch, cn3 and a host that is no node of Slurm's on another, two spines.
LINKS = [("cn1", "leaf1"), ("cn2", "leaf1"), ("cn3", "leaf2"), ("login1", "leaf2"), ("leaf1", "spine1"),
         ("leaf1", "spine2"),
         ("leaf2", "spine1"), ("leaf2", "spine2")]


def discovered():
    """As ibnetdiscover -p has it."""
    guids, ports, lines = {}, {}, []

    def end(name):
        ports[name] = ports.get(name, 0) + 1
        guid = guids.setdefault(name, 0xa0 + len(guids))
        return f"{'CA' if name[:2] in ('cn', 'lo') else 'SW'} 1 {ports[name]} 0x{guid:016x}"

    for a, b in LINKS:
        description = f"{a} mlx5_0" if a[:2] in ("cn", "lo") else a
        lines.append(f"{end(a)} 4x EDR - {end(b)} ( '{description}' - '{b}' )\n")
    return "".join(lines)


def export(path, *options):
    return subprocess.run([BUILD / "topiary", "fabric", "export", "--format=slurm", *options, path],
                          capture_output=True, text=True, check=True, timeout=60).stdout


def told(text):
    """What each switch joins, without order."""
    found = {}
    for name, rest in re.findall(r"^SwitchName=(\S+) (.*)$", text, re.MULTILINE):
        found[name] = {key: value for key, value in re.findall(r"(Nodes|Switches)=(\S+)", rest)}
    return found


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    path = tmp_path_factory.mktemp("fabric") / "discovered.txt"
    path.write_text(discovered())
    return export(path, "--nodes", "cn[1-3]")


@pytest.fixture(scope="module")
def tree(folders, topology):
    with Cluster(folders(), NODES, stock=True, registry=False, conf="TopologyPlugin=topology/tree\n",
                 files={"topology.conf": topology}) as it:
        yield it


def test_slurmctld_reports_the_same_topology(tree, topology, tmp_path):
    shown = tree.command(["scontrol", "show", "topology"]).stdout
    switches = told(shown)
    assert {name: rest.get("Nodes") for name, rest in switches.items() if not rest.get("Switches")} == \
        {"leaf1": "cn[1-2]", "leaf2": "cn3"}, shown
    assert switches["tier1-0"] == {"Nodes": "cn[1-3]", "Switches": "leaf[1-2]"}, shown
    assert told(topology) == {"leaf1": {"Nodes": "cn[1-2]"}, "leaf2": {"Nodes": "cn3"},
                              "tier1-0": {"Switches": "leaf[1-2]"}}
    # What slurmctld runs with is read back, and written the same.
    again = tmp_path / "topology.conf"
    again.write_text((tree.folder / "etc" / "topology.conf").read_text())
    assert export(again) == topology


def test_slurmctld_accepts_the_export(tree):
    log = (tree.folder / "log" / "slurmctld.log").read_text()
    assert not re.search(r"(error|fatal|WARNING).*(switch|topology)", log, re.IGNORECASE), log
    assert "topology" in log


def test_a_job_that_needs_one_switch_gets_one(tree):
    number, state, _ = tree.job("true", "-N2", "--switches=1@10:00", "--exclusive")
    assert state == "COMPLETED"
    assert "NodeList=cn[1-2]" in tree.command(["scontrol", "show", "job", str(number)]).stdout


def test_audit_of_stock_slurm(tree):
    """As any user, with nothing of Topiary's enabled: on what each job is, and the least that its number needs."""
    machines = {node: Hardware(xml) for node, xml in tree.xml.items()}
    confs = {node: conf_of(tree.command(["scontrol", "-o", "show", "node", node]).stdout) for node in NODES}
    topologies = []
    for node, xml in tree.xml.items():
        (tree.folder / "work" / f"{node}.xml").write_text(xml)
        topologies.append(f"--topology={node}={tree.folder}/work/{node}.xml")
    program = shutil.copy(tree.build / "topiary", tree.folder / "work")
    running = []
    for options in ("-n8 -w cn1", "-n3 -w cn1", "-n2 -c4 -w cn2", "-n1 -w cn3", "-n12 -w cn1", "-n5 -w cn3",
                    "-N2 -n6 -w cn[1-2]", "-N2 -n4 -w cn[1,3]"):
        running.append(tree.batch("sleep 300", "--output=/dev/null", *options.split()).stdout.strip())
        wait_running(tree, running[-1])
    told = json.loads(tree.command([program, "audit", "--json", *topologies], user="nobody").stdout)
    records = {number: Record(tree.command(["scontrol", "-o", "-d", "show", "job", number]).stdout, confs).cores
               for number in running}
    tree.command(["scancel", *running])
    said = {job["job"]: job for job in told["jobs"]}
    assert said.keys() == records.keys() and not told["not_audited"] and not told["nodes_with_hidden_jobs"]
    for number, cores in records.items():
        assert said[number]["cores"] == sum(map(len, cores.values()))
        for level in ("package", "numa", "l3"):
            on = needs = 0
            for node, mine in cores.items():
                domains = machines[node].partition(level)
                on += sum(bool(domain & mine) for domain in domains)
                needs += least(domains, frozenset(range(confs[node].cores)), len(mine))
            here = said[number].get(level, {"on": 0, "needs": 0})
            assert (here["on"], here["needs"]) == (on, needs), (number, level, cores)
    assert [(said[running[i]]["switch"]["on"], said[running[i]]["switch"]["needs"]) for i in (0, 6, 7)] == \
        [(1, 1), (1, 1), (2, 1)]
    # The first had whole nodes to choose from, for as long as slurmctld remembers all jobs that ended since.
    package = told["levels"]["package"]
    assert package["better_was_free"] + package["unknown"] > 0


# Slurm's order of nodes is not that of the leaf switches: cn1 and cn3 are on one, cn2 and cn4 on another.
APART = "".join(f"SwitchName=leaf{leaf} Nodes={nodes}\n" for leaf, nodes in (("A", "cn1,cn3"), ("B", "cn2,cn4"))) + \
    "SwitchName=top Switches=leafA,leafB\n"
# Ranks 0 and 1 exchange much, and so do 2 and 3.
PAIRS = "0 100 1 1\n100 0 1 1\n1 1 0 100\n1 1 100 0\n"
FOUR = ("-w", "cn[1-4]", "-N4", "--ntasks=4", "--ntasks-per-node=1")


@pytest.fixture(scope="module")
def mapped(folders):
    with Cluster(folders(), {f"cn{i}": "intel-2x8" for i in range(1, 5)}) as it:
        (it.folder / "work" / "pairs").write_text(PAIRS)
        yield it


def imported(cluster, text):
    """The fabric as topiaryd publishes it once this was imported."""
    path, published = cluster.folder / "work" / "net", cluster.folder / "registry" / "fabric"
    before = published.read_text() if published.exists() else ""
    path.write_text(text)
    said = cluster.topiary("fabric", "import", path).stdout
    assert re.match(r"version \d+(: |, unchanged: )", said)
    assert ", unchanged: " in said or wait_until(lambda: published.exists() and published.read_text() != before, 10)
    return published.read_text()


def below_a_switch(hosts):
    """Are the ranks of both pairs?"""
    return ({frozenset((hosts[0], hosts[1])), frozenset((hosts[2], hosts[3]))}
            == {frozenset(("cn1", "cn3")), frozenset(("cn2", "cn4"))})


def mapping(cluster, *words):
    """Where the ranks of a job go, as the command tells it inside the job, and what that costs."""
    script = f"topiary map --matrix pairs --explain=json {' '.join(words)} 2>&1"
    output = cluster.output(script, *FOUR)
    return ({int(rank): host for rank, host in re.findall(r"^(\d) (cn\d) ", output, re.M)},
            json.loads(output[output.index("{"):]))


def test_a_job_is_mapped_by_the_registrys_fabric(mapped):
    """Without --arch, on a node that has the published file alone; and by the rank file of --topo-matrix."""
    _, flat = mapping(mapped)
    assert flat["network_levels"] == 0 and flat["cost"] == flat["block"]
    imported(mapped, APART)
    hosts, costs = mapping(mapped)
    assert costs["network_levels"] == 2
    assert below_a_switch(hosts)
    # Two heavy pairs below their switches at 100 a unit, four light ones across at 200, there and back; by block the
    # heavy ones cross.
    assert (costs["cost"], costs["block"]) == (2 * (2 * 100 * 100 + 4 * 200), 2 * (2 * 100 * 200 + 2 * 100 + 2 * 200))
    _, named = mapping(mapped, "--arch", "net")
    assert named["cost"] == costs["cost"] and named["network_levels"] == 2
    output = mapped.output("cat $TOPIARY_RANKFILE", *FOUR, "--topo-matrix=pairs")
    assert below_a_switch({int(rank): host for rank, host in re.findall(r"^rank (\d)=(cn\d) ", output, re.M)}), output


ALL_CORES = "env -u SLURM_CPUS_PER_TASK -u SLURM_TRES_PER_TASK"
HOSTS = "srun -l sh -c 'echo $SLURMD_NODENAME $SLURM_CPU_BIND_TYPE'; cat $OMPI_MCA_orte_default_hostfile"


def test_ranks_in_the_order_of_the_fabric(mapped):
    """With no matrix: leaf switch by leaf switch from the job's first node on; Slurm binds the tasks."""
    imported(mapped, APART)
    output = mapped.output(f"{HOSTS}; echo places=$TOPIARY_PLACES", *FOUR, "--topo-order=fabric")
    hosts = [host for _, host in sorted(re.findall(r"^(\d): (cn\d)", output, re.M))]
    assert hosts[:2] == ["cn1", "cn3"] and sorted(hosts[2:]) == ["cn2", "cn4"], output
    assert re.findall(r"^(cn\d) \d+$", output, re.M) == hosts and "places=\n" in output, output
    # Two pairs below a switch at 100, two across at 200; of each tree two of three edges are across, in both orders.
    assert re.search(r"topiary: job \d+: ranks are in the order of the network: costs between neighbours of the ring "
                     "600, in Slurm's order 800, of the trees 1000, in Slurm's order 1000$", output, re.M), output
    output = mapped.output("srun --ntasks=2 -N2 -l sh -c 'echo $SLURMD_NODENAME'", *FOUR, "--topo-order=fabric")
    assert "topiary: srun does not follow the job's rank map: --ntasks" in output, output


@pytest.mark.parametrize("name, daemon", [("openmpi", None), ("openmpi_5", "prted"), ("mpich", "hydra_pmi_proxy"),
                                          ("intel", "hydra_bstrap_proxy")])
def test_launchers_that_number_ranks_before_are_named(mapped, name, daemon):
    imported(mapped, APART)
    try:
        mpirun = getattr(mpi, name)().mpirun[0]
    except mpi.Missing as why:
        pytest.skip(f"NOT TESTED: {why}")
    output = mapped.output(f"export HYDRA_IFACE=lo I_MPI_HYDRA_IFACE=lo PRTE_MCA_prte_keep_loopback=1; "
                           f"{ALL_CORES} {mpirun} -n 4 hostname", *FOUR, "--topo-order=fabric", "--topo-place=compact")
    assert sorted(re.findall(r"^cn\d$", output, re.M)) == [f"cn{node}" for node in range(1, 5)], output
    applied = "" if name != "mpich" else "--topo-place, "
    assert re.findall("topiary: not applied.*", output) == ([] if not daemon else [
        f"topiary: not applied to the ranks that {daemon} starts: {applied}--topo-order; to apply them use srun"])


@pytest.mark.parametrize("options, words", [
    (["--topo-order=leaf"], "--topo-order=leaf: expected off or fabric"),
    (["--topo-order=fabric", "--topo-matrix=auto"], "--topo-order=fabric and --topo-matrix exclude each other"),
])
def test_order_is_refused_at_submission(mapped, options, words):
    done = mapped.batch("true", *options, check=False)
    assert done.returncode and words in done.stderr, done.stderr


def test_fabric_without_a_node_is_reported(mapped):
    imported(mapped, APART.replace(",cn4", ""))
    output = mapped.output(HOSTS, *FOUR, "--topo-order=fabric")
    assert sorted(re.findall(r"^\d: cn\d", output, re.M)) == [f"{rank}: cn{rank + 1}" for rank in range(4)], output
    assert len(re.findall("topiary: .*", output)) == 1, output
    assert "ranks stay in Slurm's order: topiary: map: cn4: this node is not in the network" in output, output
    output = mapped.output("topiary map --matrix pairs --explain=json", *FOUR)
    assert "cn4: this node is not in the network; mapping without the network" in output
    assert '"network_levels":0' in output


def test_a_jobs_nodes_are_coloured(mapped):
    imported(mapped, APART)
    number = mapped.batch("sleep 60", "-w", "cn[2-3]", "-N2").stdout.strip()
    try:
        assert wait_until(lambda: mapped.job_state(number) == "RUNNING", 30)
        dot = mapped.topiary("fabric", "export", "--format=dot", "--job", number).stdout
    finally:
        mapped.command(["scancel", number])
    assert sorted(re.findall('<td bgcolor="#f6a04d">(.*?)</td>', dot)) == ["cn2", "cn3"]
    assert sorted(re.findall("<td>(.*?)</td>", dot)) == ["cn1", "cn4"]
    assert "job 999999" in mapped.topiary("fabric", "export", "--format=dot", "--job", "999999", check=False).stderr

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What a step gets on machines of which slurm.conf or hwloc says less, or other, than usual."""
import re
import subprocess

import pytest
from rig import Cluster
from rig.ask import expand, reports, ring, wait_running
from rig.cluster import SLURM_RELEASE
from rig.processes import wait_until


def drawn(synthetic):
    return subprocess.run(["lstopo-no-graphics", "-i", synthetic, "--of", "xml", "-"], check=True, timeout=60,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def with_cpuless(xml):
    """One NUMA node more, without CPUs, as hwloc has CXL memory and that of some GPUs."""
    node = ('<object type="Group" cpuset="0x0" complete_cpuset="0x0" nodeset="0x2" complete_nodeset="0x2" '
            'gp_index="901" kind="1001" subkind="0">\n<object type="NUMANode" os_index="1" cpuset="0x0" '
            'complete_cpuset="0x0" nodeset="0x2" complete_nodeset="0x2" gp_index="902" '
            'local_memory="4294967296"/>\n</object>\n')
    machine = re.search(r'<object type="Machine".*?>\n', xml)[0]
    xml = xml.replace(machine, machine.replace('nodeset="0x00000001"', 'nodeset="0x00000003"'))
    at = xml.rindex("</object>")
    return xml[:at] + node + xml[at:]


MACHINES = {
    "a1": "power-2x4", **dict.fromkeys(["cn0", "cn1", "cn3", "cn6", "cn7", "cn9"], "intel-2x8"), "cn8": "power-2x4",
    "cn4": re.sub(r'(<object type="NUMANode" os_index="1".*?) local_memory="\d+"', r"\1",
                  drawn("Package:2 [NUMANode(memory=8GiB)] Core:4 PU:1")),
    "cn5": drawn("[NUMANode(memory=4GiB)] [NUMANode(memory=4GiB)] Package:1 Core:4 PU:1"),
    "cn2": with_cpuless(drawn("[NUMANode(memory=8GiB)] Package:1 Core:4 PU:1")),
}
WORDS = {**dict.fromkeys(["cn0", "cn7"], "CoresPerSocket=16 ThreadsPerCore=1"), "cn1": "ThreadsPerCore=1",
         "cn6": "CoresPerSocket=6", "cn8": "ThreadsPerCore=2", "cn9": "Gres=gpu:1"}
# Later releases of Slurm refuse Cores= of less than a socket.
NEAR = 0 if SLURM_RELEASE < (24, 11) else "0-7"


@pytest.fixture(scope="module")
def whole(folders):
    with Cluster(folders(), MACHINES, registry=False, nodes=WORDS, conf="GresTypes=gpu\n", files={
            "gres.conf": f"NodeName=cn9 Name=gpu File={{folder}}/cn9gpu Cores={NEAR}\n"}) as made:
        yield made


def report(cluster, *options):
    return reports(cluster.command(["srun", "-Q", "--topo-report=json", *options, "true"], user="nobody").stderr)


@pytest.mark.parametrize("cores, kept", [("-n4", True), ("-n2", False)])
def test_numa_node_without_cpus(cluster, cores, kept):
    """hwloc ends a program that removes it where nothing else is removed."""
    tasks, said = report(cluster, "-w", "cn2", cores, "--topo-place=compact")
    assert [task["cpus_os"] for task in tasks] == [str(cpu) for cpu in range(len(tasks))] and not said
    nodes = cluster.command(["srun", "-Q", "-w", "cn2", cores, "sh", "-c", "grep -c NUMANode.*local $HWLOC_XMLFILE"],
                            user="nobody").stdout.split()
    assert nodes == [str(1 + kept)] * len(tasks)


@pytest.mark.parametrize("node, ranks, options", [
    ("cn1", 4, "-c2"), ("cn1", 8, ""), ("cn3", 4, "-c4"),
])
def test_map_uses_all_cores_where_slurm_hides_threads(cluster, node, ranks, options):
    matrix = cluster.folder / "work" / "ring"
    matrix.write_text(ring(ranks))
    output = cluster.output("srun --topo-report=json python3 -c pass -m mod", "-w", node, f"-n{ranks}",
                            f"--topo-matrix={matrix}", *options.split())
    tasks, said = reports(output)
    assert len(tasks) == ranks, output
    assert not [line for line in said if "not bound" in line or "no rank file" in line], said
    cpus = [expand(task["cpus_os"]) for task in tasks]
    # PUs n and n + 16 are of one core.
    cores = [{cpu % 16 for cpu in of} for of in cpus]
    assert [len(of) for of in cores] == [8 // ranks] * ranks, cpus
    assert len(set.union(*cores)) == 8, cpus


@pytest.mark.parametrize("option", ["--threads-per-core=1", "--hint=nomultithread"])
def test_map_of_a_job_that_uses_one_thread_of_each_core(cluster, option):
    """Slurm binds the tasks of srun itself then; the rank file is for mpirun."""
    matrix = cluster.folder / "work" / "ring"
    matrix.write_text(ring(4))
    output = cluster.output("cat $TOPIARY_RANKFILE; srun true", "-w", "cn3", f"--topo-matrix={matrix}", "-n4",
                            "-c2", option)
    slots = re.findall(r"^rank \d+=cn3 slot=(\S+)$", output, re.M)
    assert [len(expand(of)) for of in slots] == [2] * 4, output
    assert output.count("tasks are on the nodes of the rank map, but keep the CPUs of Slurm's own binding") == 1


@pytest.mark.parametrize("place, tasks, cpus", [("compact", 4, 2), ("scatter", 2, 3), ("mem", 8, 1)])
def test_tasks_use_all_cores_where_slurm_hides_threads(cluster, place, tasks, cpus):
    of, said = report(cluster, "-w", "cn1", f"-n{tasks}", f"-c{cpus}", f"--topo-place={place}")
    cores = [{cpu % 16 for cpu in expand(task["cpus_os"])} for task in of]
    assert len(of) == tasks and all(len(own) >= cpus for own in cores), (of, said)
    assert len(set.union(*cores)) == sum(map(len, cores))


@pytest.mark.parametrize("options, wanted", [
    ("-w cn4 -n8 --topo-membind=interleave", ["interleave:0"] * 8),
    ("-w cn4 -n8 --topo-membind=bind,job", ["bind:0"] * 8),
    ("-w cn5 -n2 --topo-membind=bind", ["bind:0-1"] * 2),
    ("-w cn5 -n2 --topo-membind=off", ["default"] * 2),
    ("-w cn5 -n2 --topo-membind=dram,strict", ["bind:0-1"] * 2),
])
def test_memory_of_numa_nodes_without_and_of_several(cluster, options, wanted):
    """A NUMA node without memory is in no policy; several of one tier with the same cores are all."""
    tasks, said = report(cluster, "--topo-place=compact", *options.split())
    assert [task["memory"] for task in tasks] == wanted and not said


@pytest.mark.parametrize("words, pus", [("-w cn6 -n16", range(16)), ("-w cn6 -n8", range(16, 24)),
                                        ("-w cn8 -n4 -c2", range(16))])
def test_required_placement_where_slurm_has_fewer_cores_or_threads(cluster, words, pus):
    """Twelve cores are the first ones of the machine: eight of its first package and four of the second."""
    told, said = report(cluster, *words.split(), "--topo-place=compact", "--topo-fit=require", "--topo-level=package")
    assert {cpu for task in told for cpu in expand(task["cpus_logical"])} == set(pus) and not said


@pytest.mark.parametrize("tasks, kept", [(6, True), (7, True), (5, False)])
def test_path_whose_cores_have_a_thread_to_spare(cluster, tasks, kept):
    """Slurm by itself fills the first node: four tasks there, and two, which need one core, on the other."""
    done = cluster.command(["salloc", "-Q", "-wcn3,cn6", "-N2", f"-n{tasks}", "--topo-request=/package=1/core=2", "sh",
                            "-c", "scontrol -d -o show job $SLURM_JOB_ID"], user="nobody", check=kept)
    # Nodes with the same cores are in one group of the record.
    found = {len({cpu // 2 for cpu in expand(cpus)}) for cpus in re.findall(r"CPU_IDs=(\S+)", done.stdout)}
    assert found == {2} if kept else "cannot be divided evenly" in done.stderr, done


def test_path_that_only_other_nodes_than_the_named_one_hold(cluster):
    """The task's two CPUs are two cores of cn1 and one of cn3."""
    done = cluster.batch("true", "-w", "cn3", "-n1", "-c2", "--topo-request=/package=1/core=2", check=False)
    assert "requests exactly 2 cores on each node, but 1 task needs 1 there: " in done.stderr, done


def test_near_memory_for_each_cpu_on_nodes_with_different_threads(cluster):
    """For the other node Slurm keeps as many tasks as a core of the first has threads, whatever cores it is offered."""
    memory = int(re.search(r"RealMemory=(\d+)", cluster.command(["scontrol", "show", "node", "a1"]).stdout)[1])
    done = cluster.command(["salloc", "-Q", "-wcn1,a1", "-N2", "-n4", "--topo-mem=require",
                            f"--mem-per-cpu={memory // 2 // 24}", "sh", "-c", "scontrol -d -o show job $SLURM_JOB_ID"],
                           user="nobody", timeout=60)
    found = {node: {cpu // (4 if node == "a1" else 1) for cpu in expand(cpus)} for node, cpus in
             re.findall(r"Nodes=(\w+) CPU_IDs=(\S+)", done.stdout)}
    assert sorted(map(len, found.values())) == [1, 3], done.stdout


def test_required_placement_where_slurm_has_threads_as_cores_is_refused(cluster):
    """Which CPUs such a core has is not known."""
    done = cluster.batch("true", "-w", "cn7", "-n2", "--topo-fit=require", check=False)
    assert done.returncode and ("node cn7 has 2 sockets, 32 cores and 32 CPUs in slurm.conf, but 16 cores and 32 CPUs "
                                "in the snapshot" in done.stderr), done.stderr
    number, _, _ = cluster.job("true", "-w", "cn7", "-n2")
    assert "; node cn7 has 2 sockets, 32 cores" in cluster.topiary("why", number, user="nobody").stdout


@pytest.fixture
def offline(cluster):
    """CPUs of a node go offline: offline(node, CPUs). slurmd was started before and still has them."""
    changed = []

    def go(node, gone):
        env = cluster.node_env(node)
        cluster.end(f"slurmd.{node}")
        changed.append(node)
        cpus = [cpu for cpu in expand(env["RIG_CPUS"]) if cpu not in gone]
        cluster.start_slurmd(node, {**env, "RIG_PRESENT": env["RIG_CPUS"], "RIG_CPUS": ",".join(map(str, cpus))})
        assert wait_until(cluster.nodes_idle, 60)

    yield go
    for node in changed:
        cluster.end(f"slurmd.{node}")
        cluster.start_slurmd(node)
        assert wait_until(cluster.nodes_idle, 60)


def test_cpus_that_went_offline_are_left_out(cluster, offline):
    """The others of the step are used: without SMT siblings, without a whole core, and again when they are back."""
    before, said = report(cluster, "-w", "cn3", "-n4", "-c4", "--topo-place=compact")
    assert [task["cpus_os"] for task in before] == ["0-1,16-17", "2-3,18-19", "4-5,20-21", "6-7,22-23"] and not said
    offline("cn3", range(16, 32))
    tasks, said = report(cluster, "-w", "cn3", "-n4", "-c4", "--topo-place=compact")
    assert [task["cpus_os"] for task in tasks] == ["0-1", "2-3", "4-5", "6-7"] and not said
    offline("cn3", [3, 19])
    tasks, said = report(cluster, "-w", "cn3", "-n1", "-c8", "--topo-place=compact")
    assert [task["cpus_os"] for task in tasks] == ["0-2,16-18"] and not said


def test_a_map_with_a_core_offline_is_not_followed(cluster, offline):
    matrix = cluster.folder / "work" / "ring"
    matrix.write_text(ring(8))
    offline("cn3", [9, 25])
    output = cluster.output("srun true", "-w", "cn3", "-n8", "-c4", f"--topo-matrix={matrix}")
    assert "not bound by it on this node: a core of the step is offline" in output, output


def test_former_name_of_an_option_is_said_once(cluster):
    tasks, said = report(cluster, "-w", "cn5", "-n2", "--topo-mems=strict")
    assert [task["memory"] for task in tasks] == ["bind:0-1"] * 2
    assert len(said) == 1 and "--topo-mems=strict is now --topo-membind=bind,job" in said[0], said


@pytest.mark.parametrize("options, fewer", [("", True), ("-c1", False), ("-c4", False)])
def test_step_without_the_cpus_of_its_job_is_told(cluster, options, fewer):
    output = cluster.output(f"env -u SRUN_CPUS_PER_TASK srun {options} --topo-place=compact true", "-w", "cn3",
                            "-n2", "-c4")
    assert output.count("each task has 1 CPU, and the job was submitted with -c4") == fewer, output


def test_step_without_a_core_near_its_gpu(cluster):
    """Slurm enforces binding of a job by socket, and of a step by core: it then names no cores of the step."""
    load = cluster.batch("sleep 100", "-w", "cn9", "-n2", "--topo-fit=off").stdout.split()[-1]
    wait_running(cluster, load)
    output = cluster.output("srun sh -c 'echo has $(hwloc-calc -i $HWLOC_XMLFILE -N core all) cores'", "-w", "cn9",
                            "-n1", "-c4", "--gres=gpu:1", "--gres-flags=enforce-binding")
    cluster.command(["scancel", load])
    assert "has 2 cores" in output, output


@pytest.mark.parametrize("packages, refused", [(2, True), (1, False)])
def test_package_without_the_gpu_of_the_job(cluster, packages, refused):
    """With enforce-binding Slurm takes off the cores of a socket that no GPU is near."""
    done = cluster.command(["salloc", "-Q", "-I20", "-w", "cn9", "-N1", "-n1", f"-c{4 * packages}", "--gpus=1",
                            "--gres-flags=enforce-binding", f"--topo-request=/package={packages}/core=2", "true"],
                           user="nobody", check=False)
    assert ("cannot be met: with --gres-flags=enforce-binding" in done.stderr) == refused == done.returncode, done

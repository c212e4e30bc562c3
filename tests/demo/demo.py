# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The demo: up starts the cluster, unless it is running, and runs a job on it; down stops and removes it."""
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rig import Cluster, MachineError, RigError, processes  # noqa: E402
from rig.ask import cores_of  # noqa: E402

processes.left_running = True
STATE = Path(os.environ.get("CACHE", ROOT / ".cache")) / "demo"
PICTURE = STATE.parent / "demo.svg"
NODES = {"cn1": "amd-4x16", "cn2": "amd-4x16", "cn3": "amd-4x16", "cn4": "amd-4x16", "cn5": "intel-2x8",
         "cn6": "intel-2x8", "cn7": "uneven-2x6", "cn8": "arm-2x64", "cn9": None}
RANKS, STENCIL = 16, "4x2x2"

JOB = """\
echo "$SLURM_JOB_ID: $SLURM_NTASKS tasks on $SLURM_JOB_NODELIST; this is $SLURMD_NODENAME"
env | grep -E '^(HWLOC_(XMLFILE|THISSYSTEM)|OMPI_MCA_orte_default_hostfile)=' | sort
echo
echo "\\$ lstopo-no-graphics --of console"
lstopo-no-graphics --of console --no-io --no-icaches
echo
echo "\\$ topiary map --explain"
topiary map --matrix {matrix} --format openmpi --explain 2>&1 >/dev/null
echo
echo "\\$ mpirun ./where"
mpirun {folder}/bin/where
echo
echo "\\$ srun -Q ./where"
srun -Q {folder}/bin/where
"""
# As at sites whose MPIs are built with PMIx, Debian's among them: srun starts their programs.
# Nodes of one machine need folders of their own for it.
CONF = "MpiDefault=pmix\nTmpFS={folder}/nodes/%n\n"

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code, text):
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


class Step:
    """One step: what happens and why, what it showed, how long it took."""

    count = 0

    def __init__(self, title, why):
        Step.count += 1
        self.title = title
        print(f"\n{paint('1;34', f'{Step.count}. {title}')}\n   {why}", flush=True)

    def __enter__(self):
        self.began = time.monotonic()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            print(paint("32", f"   done in {time.monotonic() - self.began:.1f} s"), flush=True)

    def show(self, text, command=None):
        if command:
            print("   " + paint("2", f"$ {command}"))
        for line in text.rstrip().split("\n"):
            print("   " + line, flush=True)


def folder_of_state():
    return Path(os.readlink(STATE)) if STATE.is_symlink() else None


def remove():
    """End what runs and remove its folder. Whether there was anything."""
    folder = folder_of_state()
    if not folder:
        return False
    cluster = Cluster.attach(folder) if folder.is_dir() else None
    if cluster:
        cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)
    STATE.unlink()
    return True


def halt():
    """End what runs; its folder stays, for its logs."""
    folder = folder_of_state()
    cluster = Cluster.attach(folder) if folder else None
    if cluster:
        cluster.stop()


def new_cluster():
    """In a folder below /tmp: other users must reach it, and the paths of sockets are short. .cache/demo points
    there."""
    remove()
    STATE.parent.mkdir(exist_ok=True)
    STATE.symlink_to(tempfile.mkdtemp(prefix="topiary-demo-"))
    return Cluster(folder_of_state(), NODES, build=os.environ.get("TOPIARY_BUILD", ROOT / "build"), conf=CONF)


def start(cluster):
    with Step("Services", "A munged, a PostgreSQL server and a topiaryd, all private to this demo."):
        cluster.prepare()
        cluster.start_munge()
        cluster.start_registry()
    with Step("Nodes boot",
              f"{len(NODES)} agents discover their hardware, export it and exit when the registry has "
              "acknowledged it.") as step:
        cluster.start_agents()
        for node in NODES:
            step.show((cluster.folder / "log" / f"agent.{node}.log").read_text().strip() or f"{node}: acknowledged")
    with Step("Slurm", "slurmctld with the select plugin, and a slurmd for each node, each with its own host name and "
              "hardware.") as step:
        cluster.start_slurm()
        step.show(cluster.command(["sinfo", "-N", "-o", "%6N %11X %14Y %16Z %T"]).stdout, "sinfo -N")


def running_cluster():
    folder = folder_of_state()
    cluster = Cluster.attach(folder) if folder else None
    return cluster if cluster and cluster.alive() else None


def show_registry(cluster):
    with Step("The registry",
              "One base for each kind of node; further nodes of that kind are stored as a few bytes, "
              "restored byte for byte.") as step:
        step.show(cluster.topiary("nodes").stdout, "topiary nodes")
        step.show(cluster.topiary("shapes").stdout, "topiary shapes")


def run_job(cluster):
    matrix = cluster.folder / "work" / "stencil.txt"
    cluster.topiary("matrix", "--generate", f"stencil3d:{STENCIL}", "-o", matrix)
    options = ["-N2", f"--ntasks={RANKS}", f"--topo-matrix={matrix}"]
    with Step("A job", f"An ordinary user submits {RANKS} ranks of a {STENCIL} stencil with their communication "
              "matrix; the script has no Topiary command.") as step:
        number, state, output = cluster.job(JOB.format(folder=cluster.folder, matrix=matrix), *options)
        step.show(output, f"sbatch {' '.join(options)} job.sh")
        if state != "COMPLETED":
            raise RigError("job", f"{number} ended as {state}", cluster.folder / "log" / "slurmctld.log")
    return number


def show_cores(cluster, number):
    cores = cores_of(cluster, number)
    with Step("The cores",
              "Whole domains: the allocated cores share caches and memory, and no other domain is cut.") as step:
        step.show("\n".join(f"{node}: cores {','.join(map(str, mine))}" for node, mine in cores.items()),
                  f"scontrol -d show job {number}")
        step.show(cluster.topiary("why", "-v", number).stdout, f"topiary why -v {number}")
    return cores


def draw(cluster, cores):
    first = min(cores)
    mine = ",".join(map(str, cores[first]))
    with Step("A drawing", f"The topology of {first} in the registry, with the cores of the job coloured.") as step:
        drawn = cluster.folder / "work" / "demo.svg"
        cluster.topiary("show", first, "--svg", "--cores", mine, "-o", drawn)
        shutil.copy(drawn, PICTURE)
        step.show(str(PICTURE), f"topiary show {first} --svg --cores {mine} -o demo.svg")


def boot_with(cluster, node, xml):
    (cluster.folder / "nodes" / node / "machine.xml").write_text(xml)
    cluster.command(cluster.agent_command(node))


def lose_memory(cluster, node="cn6"):
    """A node boots with half of a NUMA node's memory, and is mended."""
    whole = (cluster.folder / "nodes" / node / "machine.xml").read_text()
    less = re.sub(r'(<object type="NUMANode" os_index="1"[^>]* '
                  r'local_memory=")(\d+)', lambda m: f"{m[1]}{int(m[2]) // 2}", whole, count=1)
    with Step("A change", f"{node} boots with half of the memory of one NUMA node missing, which the registry reports "
              "at once; then it is repaired.") as step:
        boot_with(cluster, node, less)
        step.show(cluster.topiary("drift").stdout, "topiary drift")
        boot_with(cluster, node, whole)
        step.show(cluster.topiary("history", node).stdout, f"topiary history {node}")


def up():
    began = time.monotonic()
    cluster = running_cluster()
    if cluster:
        print(f"The cluster is running in {cluster.folder}.")
    else:
        cluster = new_cluster()
        start(cluster)
    show_registry(cluster)
    number = run_job(cluster)
    draw(cluster, show_cores(cluster, number))
    lose_memory(cluster)
    env = cluster.env()
    print(f"\n{paint('1', 'The demo completed')} in {time.monotonic() - began:.1f} s. The cluster keeps running; "
          "to use it:\n"
          f"   export SLURM_CONF={env['SLURM_CONF']} TOPIARY_CONF={env['TOPIARY_CONF']} "
          f"PATH={cluster.folder}/bin:$PATH\n"
          "   make demo-down ends and removes it.")


def down():
    print("The demo was removed." if remove() else "There is no demo.")


def main():
    actions = {"up": up, "down": down}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit("usage: demo up|down")
    if os.geteuid():
        sys.exit("demo: must be run as root: it starts daemons of several users")
    try:
        actions[sys.argv[1]]()
    except (RigError, MachineError) as error:
        halt()
        sys.exit(paint("31", f"demo: {error}"))
    except KeyboardInterrupt:
        remove()
        sys.exit(130)


if __name__ == "__main__":
    main()

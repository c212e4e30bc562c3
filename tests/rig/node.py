# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A node from the inside: its log, and its RunDir without room."""
import os
import re
import subprocess
from contextlib import contextmanager

from .processes import wait_until

STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+\] ")


def whole_lines(text):
    """The lines of a log that slurmd and slurmstepd share. Each writes a line in two where its ring buffer wraps
    (Slurm's common/cbuf.c), and what the other wrote meanwhile stands between: a line without a stamp goes back to the
    last line that has a stamp in its midst."""
    *rest, last = text.split("\n")
    lines = []
    for line in rest:
        torn = (None if STAMP.match(line)
                else next((at for at in reversed(range(len(lines))) if STAMP.search(lines[at], 1)), None))
        if torn is None:
            lines.append(line)
        else:
            cut = STAMP.search(lines[torn], 1).start()
            lines[torn:torn + 1] = [lines[torn][:cut] + line, lines[torn][cut:]]
    return [*lines, last]


@contextmanager
def log_of(cluster, node):
    """What slurmd and slurmstepd write into the node's log meanwhile, as a list of lines."""
    path, lines = cluster.folder / "log" / f"slurmd.{node}.log", []
    size = path.stat().st_size
    yield lines
    with open(path, errors="replace", newline="\n") as log:
        log.seek(size)
        lines += whole_lines(log.read())


@contextmanager
def configured(cluster, lines):
    """With more lines in topiary.conf."""
    conf = cluster.folder / "etc" / "topiary.conf"
    plain = conf.read_text()
    conf.write_text(plain + lines)
    try:
        yield
    finally:
        conf.write_text(plain)


@contextmanager
def cgroups_removed(above, node):
    """Slurm leaves a node's own cgroup: its name has the node's in it, so that no other cluster's is meant."""
    try:
        yield
    finally:
        for made in above.glob(f"*{node}*"):
            for inner, _, _ in os.walk(made, topdown=False):
                os.rmdir(inner)


@contextmanager
def preloaded(cluster, node, library):
    """The node's slurmd is started again with this library, and at the end without it."""
    def restart(env):
        cluster.end(f"slurmd.{node}")
        cluster.start_slurmd(node, env)
        assert wait_until(cluster.nodes_idle, 60)

    own = cluster.node_env(node)
    try:
        restart({**own, "LD_PRELOAD": " ".join([str(library), *filter(None, [own.get("LD_PRELOAD")])])})
        yield
    finally:
        restart(own)


@contextmanager
def own_disk(folder, size):
    """The folder, as it is, in a file system of its own."""
    with_copy = subprocess.run(["tar", "c", "-C", folder, "--exclude=./[0-9]*", "."], capture_output=True,
                               check=True).stdout
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", folder], check=True)
    try:
        subprocess.run(["tar", "x", "-C", folder, "--exclude=./cache"], input=with_copy, check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def little_room(folder):
    """The folder, as it is, in a file system of its own that is full."""
    with own_disk(folder, "1m"):
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        yield

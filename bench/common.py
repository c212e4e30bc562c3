# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""What all benchmarks share: the command line, figures as they are measured, results as CSV and in BENCHMARKS.md, CPU
time and memory of processes, and clusters side by side."""
import argparse
import collections
import csv
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("tests", "tests/store")]

from rig.paths import BUILD  # noqa: E402

COLUMNS = ("command", "figure", "value", "unit", "goal", "comparison")
TICK = os.sysconf("SC_CLK_TCK")
# A command of a benchmark. options: {name: (default, help) or (default, help, choices)}; a list takes several values.
Part = collections.namedtuple("Part", "run help options")


# --- figures

class Sheet:
    def __init__(self):
        self.rows, self.command, self.of = [], "", ""

    def begin(self, command):
        self.command, self.of = command, ""
        print(f"\n# {command}", flush=True)

    def add(self, what, value, unit="", goal="", beside=""):
        """A figure; beside: what was measured beside it."""
        self.rows.append((self.command, self.of + what, shown(value), unit, goal, beside))
        more = "; ".join(filter(None, (goal and f"goal: {goal}", beside)))
        print(f"{self.of + what:62} {shown(value):>10} {unit:18} {more}".rstrip(), flush=True)

    def table(self, head, rows):
        """More than figures: printed as it is, and kept as one figure a cell. The first column is the rows' name."""
        rows = [[shown(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        for row in (head, *rows):
            print("  ".join(cell.rjust(width) if i else cell.ljust(width)
                            for i, (cell, width) in enumerate(zip(row, widths))).rstrip(), flush=True)
        self.rows += [(self.command, f"{self.of}{name}: {column}", cell, "", "", "")
                      for name, *cells in rows for column, cell in zip(head[1:], cells)]


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{max(0, min(3, 3 - len(str(int(abs(value))))))}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_csv(path, rows):
    """A release's results: those of the commands that were measured in the place of what the file has of them."""
    found = {}
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            for row in list(csv.reader(file))[1:]:
                found.setdefault(row[0], []).append(row)
    for command in {row[0]: None for row in rows}:
        found[command] = [row for row in rows if row[0] == command]
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(row for some in found.values() for row in some)])


def write_into(path, rows):
    """The rows of BENCHMARKS.md's tables that have a figure of these, by its name and command."""
    new = {(row[1], f"`{row[0]}`"): (f"{row[2]} {row[3]}".strip(), row[5]) for row in rows}
    lines = path.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        cells = line.strip("| ").split(" | ")
        if len(cells) == 5 and (cells[0], cells[4]) in new:
            cells[1], beside = new[cells[0], cells[4]]
            lines[i] = f"| {' | '.join([*cells[:3], beside or cells[3], cells[4]])} |"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the command line

def parser_of(doc, parts):
    parser = argparse.ArgumentParser(description=doc)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, part in (*parts.items(), ("all", Part(None, "all of them, as BENCHMARKS.md has them", {}))):
        c = commands.add_parser(name, help=part.help, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for option, (default, text, *choices) in part.options.items():
            many = isinstance(default, list)
            how = {"action": "store_true"} if default is False else {
                "type": type(default[0] if many else default), "default": default, "nargs": "+" if many else None,
                "choices": choices[0] if choices else None}
            c.add_argument(f"--{option}", help=text, **how)
        c.add_argument("--csv", type=Path, metavar="FILE", help="put the results into this file of a release")
        c.add_argument("--into", type=Path, metavar="FILE", help="put the figures into the tables of this file")
    return parser


def main(doc, parts, plans, needs=(), root=True):
    """plans: what `all` runs. needs: programs of build/bench. Exits with 1 if a part returns that."""
    program, parser = Path(sys.argv[0]).name, parser_of(doc, parts)
    args, failed, sheet = parser.parse_args(), 0, Sheet()
    if root and os.geteuid():
        sys.exit(f"{program}: needs root: daemons run as several users")
    for name in needs:
        if not (BUILD / "bench" / name).exists():
            sys.exit(f"{program}: {BUILD}/bench/{name} is missing: make bench-NAME-PART builds it")
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--csv", "--into"):
        own.add_argument(option)
    for plan in plans if args.command == "all" else [shlex.join(own.parse_known_args()[1])]:
        one = parser.parse_args(shlex.split(plan))
        sheet.begin(f"bench/{program} {plan}")
        failed |= parts[one.command].run(sheet, one) or 0
    if args.csv:
        write_csv(args.csv, sheet.rows)
    if args.into:
        write_into(args.into, sheet.rows)
    sys.exit(failed)


# --- what others publish

def git_at(folder, repository, commit, *last):
    """What git prints for `last`, in a folder that has this commit of a repository of GitHub. RuntimeError: why not."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch = ["fetch", "-q", "--depth=1", "--filter=blob:none", f"https://github.com/{repository}", commit]
    for words in (["init", "-q"], fetch, last):
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{repository}: git {words[0]}: {done.stderr.decode().strip()}")
    return done.stdout


# --- processes

def family(pid):
    """A process and all below it: {pid: fields of /proc/PID/stat from the state on}, in one pass."""
    stats, below = {}, collections.defaultdict(list)
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="latin-1") as f:
                fields = f.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        stats[int(entry)] = fields
        below[int(fields[1])].append(int(entry))
    members = [pid]
    for one in members:
        members += below[one]
    return {one: stats[one] for one in members if one in stats}


def cpu_seconds(pid):
    """Of a process and of all below it, those that ended included."""
    return sum(sum(map(int, fields[11:15])) for fields in family(pid).values()) / TICK


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory_of(pid):
    """Proportional set size of a process and all below it, in bytes: what they take of the machine together."""
    total = 0
    for one in family(pid):
        try:
            with open(f"/proc/{one}/smaps_rollup", encoding="ascii") as f:
                total += sum(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def timed(words, limit=None, core=None):
    """What a program said, and its seconds of CPU time; core: the one that it may use."""
    before = cpu_of_children()
    pin = None if core is None else lambda: os.sched_setaffinity(0, [core])
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=limit, check=False,
                          preexec_fn=pin)
    return done, cpu_of_children() - before


# --- statistics, and what is compared

def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def synthetic(shape):
    """The XML of a machine that hwloc makes of a line."""
    return subprocess.run(["lstopo-no-graphics", "--input", shape, "--of", "xml", "-"], check=True,
                          capture_output=True, text=True).stdout


def side_by_side(makers, work, where="/tmp"):
    """{name: what work() of its cluster returns}, of clusters that run at the same time and so disturb each other
    alike. makers: {name: makes one in a folder}."""
    found, failures = {}, []

    def one(name, cluster):
        try:
            found[name] = work(cluster)
        except Exception as e:      # reported by the thread that waits
            failures.append(e)
    with ExitStack() as stack:
        threads = []
        for name, make in makers.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tpt", dir=where))
            threads.append(threading.Thread(target=one, args=(name, stack.enter_context(make(folder)))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return {name: found[name] for name in makers}

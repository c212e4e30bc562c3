# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The programs that bench/apps.py runs: where their sources are, how each is built, and with what parameters it runs.

Nothing of them is changed. Sets are small, since each message costs the simulator some 40 microseconds, and few time
steps, since all are alike.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """repository: of GitHub. build: shell lines in the folder `inside`; $CC, $CXX and $F77 are SMPI's compilers."""
    repository: str
    commit: str
    inside: str
    build: str


NPB_FLAGS = 'MPIFC="$F77" FFLAGS="$FLAGS -std=legacy -fallow-invalid-boz" MPICC="$CC" CFLAGS="$FLAGS"'
PRK_FLAGS = "-I../include -DRADIUS=2 -DSTAR=1 -DDOUBLE=1 -DRESTRICT_KEYWORD=0 -DLOOPGEN=0 -DVERBOSE=0"

SOURCES = {
    "NPB": Source("LLNL/NPB", "35cd0e4a895da7dea0316fac34b4da9ab5d7cba5", "NPB3.4/NPB3.4-MPI", f"""
        cp config/make.def.template config/make.def && mkdir -p bin
        for made in cg.S mg.S ft.S is.S lu.A bt.A sp.A; do
            make ${{made%.*}} CLASS=${{made#*.}} {NPB_FLAGS} || exit
        done
        sed -i s/niter=15/niter=1/ CG/npbparams.h && make -C sys && rm CG/*.o && make cg CLASS=S {NPB_FLAGS}"""),
    "miniGhost": Source("Mantevo/miniGhost", "c2102b521568a74862fa5abb074b1fc8041fc222", "ref", """
        make -f makefile.mpi.gnu CC="$CC" FC="$F77" LD="$F77" \\
            OPT_F="$FLAGS -fallow-argument-mismatch -ffree-line-length-none" \\
            CFLAGS="$FLAGS -D_MG_MPI -D_MG_REAL8 -D_MG_INT4 -Df2c_" """),
    "LULESH": Source("LLNL/LULESH", "3e01c40b3281aadb7f996525cdd4a3354f6d3801", ".", """
        make CXX="$CXX -DUSE_MPI=1" CXXFLAGS="$FLAGS -I." LDFLAGS= """),
    "CoMD": Source("ECP-copa/CoMD", "3d48396b77ca8caa3124bc2391f9139c3ffb556c", "src-mpi", """
        cp Makefile.vanilla Makefile
        make CC="$CC" OPTFLAGS="$FLAGS" """),
    "miniFE": Source("Mantevo/miniFE", "c79e0f7f7afdd6c8191936efce7a668316159cc3", "ref/src", """
        make CC="$CC" CXX="$CXX" CFLAGS="$FLAGS" """),
    "ParRes": Source("ParRes/Kernels", "04248b66a03d7f5edba8d54c9ae7834dd718027a", "common", f"""
        for made in Stencil/stencil Synch_p2p/p2p Transpose/transpose; do
            $CC $FLAGS {PRK_FLAGS} -o ${{made#*/}} ../MPI1/$made.c MPI_bail_out.c wtime.c -lm || exit
        done"""),
}


@dataclass(frozen=True)
class Program:
    """path: below the folder of sources; inputs: ((file, its text), ...), in the folder in which it runs."""
    source: str
    what: str
    path: str
    ranks: int
    line: str = ""
    inputs: tuple = ()
    size: str = ""

    @property
    def kind(self):
        return f"{self.source} {self.what}".strip()

    @property
    def name(self):
        return f"{self.kind} {self.size}{self.line}, {self.ranks} ranks"

    @property
    def words(self):
        return self.line.split()

    @property
    def files(self):
        return dict(self.inputs)


def of(source, what, path, *more):
    folder = f"{source}-{SOURCES[source].commit[:12]}"
    return Program(source, what, f"{folder}/{SOURCES[source].inside}/{path}", *more)


def lu_input(side, steps):
    return "".join(f"c\nc\n{value}\n" for value in (
        "1 250", steps, 2.0, 1.2, "1e-8 1e-8 1e-8 1e-8 1e-8", f"{side} {side} {side}"))


def npb():
    def one(name, ranks, size="class S", inputs=()):
        return of("NPB", name.upper(), f"bin/{name}.{'A' if size[0].isdigit() else 'S'}.x", ranks, "", inputs, size)
    yield from (one(name, ranks) for name in ("cg", "ft") for ranks in (16, 32))
    yield from (one("is", ranks) for ranks in (8, 16))
    yield from (one("mg", ranks, "class S", (("mg.input", "5\n32 32 32\n1\n0 0 0 0 0 0 0 0\n"),))
                for ranks in (16, 32))
    yield from (one("lu", ranks, f"{side}^3", (("inputlu.data", lu_input(side, 1)),))
                for ranks, side in ((16, 12), (16, 24), (32, 25), (32, 32), (64, 24)))
    for name in ("bt", "sp"):
        yield from (one(name, ranks, f"{side}^3", ((f"input{name}.data", f"1\n0.001\n{side} {side} {side}\n"),))
                    for ranks, side in ((16, 12), (16, 20), (36, 18), (49, 21)))


def minighost():
    """The paper's: "grid sizes, stencil patterns, schemes of communication, number of variables, etc"."""
    grids = {16: (4, 2, 2), 24: (4, 3, 2), 48: (4, 4, 3), 64: (4, 4, 4)}
    chosen = [(16, 10, 21, 8, 1), (16, 11, 22, 12, 4), (16, 10, 23, 16, 2), (16, 11, 22, 10, 9), (16, 10, 22, 24, 3),
              (24, 10, 21, 12, 5), (24, 11, 22, 8, 2), (24, 10, 23, 10, 8), (24, 11, 23, 16, 2), (24, 11, 23, 20, 2),
              (48, 10, 21, 10, 4), (48, 11, 22, 12, 1), (48, 10, 23, 8, 4), (48, 11, 21, 8, 3), (48, 10, 22, 12, 2),
              (48, 11, 21, 16, 2), (64, 10, 21, 8, 2), (64, 11, 22, 10, 1), (64, 10, 23, 8, 3), (64, 11, 23, 8, 2),
              (16, 10, 21, 20, 3), (16, 11, 21, 8, 3), (16, 11, 23, 12, 5), (24, 10, 22, 10, 3), (24, 10, 22, 12, 7),
              (24, 11, 21, 16, 4), (48, 10, 22, 8, 6), (48, 11, 23, 10, 1)]
    for ranks, method, pattern, side, count in chosen:
        yield of("miniGhost", "", "miniGhost.x", ranks, f"--nx {side} --ny {side} --nz {side} --num_vars {count} "
                 f"--num_tsteps {max(1, 64 // ranks)} --stencil {pattern} --comm_method {method} --scaling 2 "
                 + " ".join(f"--np{axis} {n}" for axis, n in zip("xyz", grids[ranks])))


def programs():
    yield from npb()
    yield from minighost()
    yield from (of("LULESH", "", "lulesh2.0", ranks, f"-s {side} -i {steps}") for ranks, side, steps in (
        (8, 6, 10), (8, 12, 6), (27, 4, 4), (27, 7, 3), (27, 10, 2), (64, 4, 1), (64, 6, 1), (64, 8, 1)))
    yield from (of("CoMD", "", "../bin/CoMD-mpi", ranks, f"-x {x} -y {y} -z {z} -i {i} -j {j} -k {k} -N 1")
                for ranks, x, y, z, i, j, k in (
                    (8, 8, 8, 8, 2, 2, 2), (12, 12, 8, 8, 3, 2, 2), (16, 16, 8, 8, 4, 2, 2)))
    yield from (of("miniFE", "", "miniFE.x", ranks, f"-nx {side} -ny {side} -nz {side}")
                for ranks, side in ((8, 10), (16, 6), (16, 8), (24, 6)))
    yield from (of("ParRes", "stencil", "stencil", ranks, f"{steps} {side}") for ranks, side, steps in (
        (16, 128, 20), (16, 512, 6), (24, 240, 12), (32, 256, 8), (48, 192, 8), (64, 256, 5)))
    yield from (of("ParRes", "p2p", "p2p", ranks, f"{steps} {wide} {high}") for ranks, wide, high, steps in (
        (16, 256, 64, 3), (32, 512, 48, 2), (48, 480, 32, 2), (64, 1024, 24, 1)))
    yield from (of("ParRes", "transpose", "transpose", ranks, f"{steps} {side}")
                for ranks, side, steps in ((16, 256, 4), (24, 480, 2), (32, 512, 1)))

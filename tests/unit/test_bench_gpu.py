# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""The benchmark of copies between GPUs and NUMA nodes: with a driver of the test's own, whose GPUs are host memory."""
import ctypes.util
import os
import re
import subprocess

import pytest
from rig.paths import BUILD, ROOT

HERE = [name for name in ("cuda", "amdhip64") if ctypes.util.find_library(name)]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", ROOT / "tests/rig/cuda.c"], check=True)
    return folder


def measure(driver, gpus, *args):
    return subprocess.run([BUILD / "bench" / "gpu", *args], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": str(driver), "RIG_CUDA_GPUS": str(gpus)})


def test_each_gpu_with_each_numa_node(driver):
    done = measure(driver, 2, "8")
    found = re.findall(r"^(\S+) +NUMA (\d+) +(\w+) +([\d.]+) +([\d.]+)$", done.stdout, re.M)
    nodes = {n for _, n, *_ in found}
    assert (done.returncode, done.stderr) == (0, "")
    assert {(gpu, node) for gpu, node, *_ in found} == {(f"0000:0{i}:00.0", n) for i in (1, 2) for n in nodes}
    assert nodes and all(float(to) > 0 and float(back) > 0 for *_, to, back in found)
    assert {near for _, _, near, *_ in found} <= {"near", "far", "unknown"}


def test_without_a_gpu(driver):
    done = measure(driver, 0)
    assert (done.returncode, done.stderr) == (77, "")
    assert done.stdout == "not measured: neither libcuda.so.1 nor libamdhip64.so has a GPU here\n"


@pytest.mark.skipif(bool(HERE), reason="this machine has a driver of GPUs")
def test_without_a_driver(tmp_path):
    assert measure(tmp_path, 1).returncode == 77

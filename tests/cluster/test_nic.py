# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""--topo-nic: a task's environment names the network devices near to it, and the stacks keep to them."""
import json
import re
from contextlib import contextmanager

import pytest
from rig.ask import advised
from rig.node import configured

OMNI_PATH = "0208 [8086:24f0] [8086:24f0] 11"
ETHERNET = "0200 [8086:1521] [8086:1521] 01"
SHOW = 'printf "%s %s\\n" $SLURM_LOCALID "$(env | grep -E "^(HFI|PSM2|FI|UCX)_" | sort | tr "\\n" " ")"'


def adapter(gp, bus, card, *os_devices):
    """A PCI device with OS devices: (hwloc's number of their type, name)."""
    inside = "".join(f'<object type="OSDev" gp_index="{gp + i}" name="{name}" osdev_type="{kind}"/>'
                     for i, (kind, name) in enumerate(os_devices, 1))
    return (f'<object type="PCIDev" gp_index="{gp}" pci_busid="{bus}" pci_type="{card}" '
            f'pci_link_speed="15.75">{inside}</object>\n')


def hfi(unit, bus):
    return adapter(90000 + 10 * unit, bus, OMNI_PATH, (3, f"hfi1_{unit}"), (2, f"ib{unit}"))


def plugged(xml, package, device):
    """The topology with a device below a package."""
    start = [m.end() for m in re.finditer(r'<object type="Package"[^>]*>', xml)][package]
    at = xml.index("<object", start)
    return xml[:at] + device + xml[at:]


@contextmanager
def export_with(cluster, node, *devices):
    """The node's export with other devices, (package, XML) each, as if it had them."""
    file = cluster.topology_file(node)
    whole = file.read_text()
    xml = whole
    for package, device in devices:
        xml = plugged(xml, package, device)
    file.write_text(xml)
    try:
        yield
    finally:
        file.write_text(whole)


@pytest.fixture
def loopback(cluster):
    """On this very machine the only network device as fast as that is the loopback."""
    with export_with(cluster, "cn5", (0, adapter(90000, "0000:00:00.1", ETHERNET, (2, "lo")))):
        yield


def srun(cluster, *words, env=None):
    done = cluster.command(["srun", *words], user="nobody", env=cluster.env(**env) if env else None)
    return done.stdout, done.stderr


def domains(text):
    return set(re.findall(r"domain: (\S+)", text))


def tcp_devices(text):
    return set(re.findall(r"tcp/(\S+)", text))


@pytest.mark.usefixtures("loopback")
def test_libfabric_keeps_to_the_device(cluster):
    everywhere = domains(srun(cluster, "-w", "cn5", "fi_info", "-p", "tcp")[0])
    here = domains(srun(cluster, "-w", "cn5", "--topo-nic=one,strict", "fi_info", "-p", "tcp")[0])
    assert here == {"lo"}
    assert everywhere > here, "this machine has no other interface to tell the difference by"


@pytest.mark.usefixtures("loopback")
def test_ucx_keeps_to_the_device(cluster):
    everywhere = tcp_devices(srun(cluster, "-w", "cn5", "ucx_info", "-p", "-u", "t")[0])
    here = tcp_devices(srun(cluster, "-w", "cn5", "--topo-nic=one,strict", "ucx_info", "-p", "-u", "t")[0])
    assert here == {"lo"}
    assert everywhere > here, "this machine has no other interface to tell the difference by"


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("option, env, want", [
    (None, {}, ""),
    ("one,strict", {}, "FI_TCP_IFACE=lo UCX_MAX_EAGER_RAILS=1 UCX_MAX_RNDV_RAILS=1 UCX_NET_DEVICES=lo"),
    ("one,strict", {"UCX_MAX_RNDV_RAILS": "2", "FI_TCP_IFACE": "eth7"}, "FI_TCP_IFACE=eth7 UCX_MAX_RNDV_RAILS=2"),
])
def test_exports_what_the_user_left_open(cluster, option, env, want):
    words = [f"--topo-nic={option}"] if option else []
    out, _ = srun(cluster, "-w", "cn5", *words, "sh", "-c", SHOW, env=env)
    assert out.strip() == f"0 {want}".strip()


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("option, want", [("auto", "lo near"), ("off", None)])
def test_report_names_the_device(cluster, option, want):
    _, err = srun(cluster, "-w", "cn5", f"--topo-nic={option}", "--topo-report=json", "true")
    assert [json.loads(line)["nic"] for line in err.splitlines() if line.startswith("{")] == [want]


@pytest.mark.usefixtures("loopback")
def test_steps_inside_a_step_choose_anew(cluster):
    script = ("srun --topo-nic=one,strict --overlap sh -c 'echo $FI_TCP_IFACE; srun --overlap sh -c \"echo "
              "inner:\\$FI_TCP_IFACE\"'")
    _, state, output = cluster.job(script, "-w", "cn5", "-n1")
    assert (state, output) == ("COMPLETED", "lo\ninner:\n")


@pytest.mark.usefixtures("loopback")
def test_several_planes_are_never_restricted(cluster):
    with configured(cluster, "NicPlanes = 2\n"):
        out, err = srun(cluster, "-w", "cn5", "--topo-nic=all,strict", "sh", "-c", SHOW)
    assert (out.strip(), err) == ("0", "")


def test_nearest_device_may_be_outside_of_the_step(cluster):
    """One core of package 0; the only adapter is in package 3."""
    with export_with(cluster, "cn1", (3, hfi(0, "0000:af:00.0"))):
        out, err = srun(cluster, "-w", "cn1", "-n1", "--topo-nic=auto", "sh", "-c", SHOW)
    assert (out.strip(), err) == ("0 HFI_UNIT=0", "")


def test_each_task_has_the_device_near_to_it(cluster):
    """Adapters in packages 0 and 3, a task in each package: in the others each has the one or the other, evenly."""
    with export_with(cluster, "cn1", (3, hfi(1, "0000:af:00.0")), (0, hfi(0, "0000:18:00.0"))):
        out, err = srun(cluster, "-w", "cn1", "-n4", "-c16", "--topo-place=scatter:package",
                        "--topo-nic=one", "sh", "-c", "echo $SLURM_LOCALID $HFI_UNIT")
    units = dict(line.split() for line in out.splitlines())
    assert (units["0"], units["3"], err) == ("0", "1", "")
    assert sorted(units.values()) == ["0", "0", "1", "1"]


def test_advice_about_a_far_device(cluster):
    with export_with(cluster, "cn1", (3, hfi(1, "0000:af:00.0")), (0, hfi(0, "0000:18:00.0"))):
        bad = advised(cluster, "cn1", "-n1", "--topo-place=compact", env={"HFI_UNIT": "1"})
        assert bad["far NIC"] == "rank 0 is on core 0 and uses the far hfi1_1 (hfi1_0 is near)"
        for options, env in (["--topo-nic=auto"], {}), ([], {"HFI_UNIT": "0"}), ([], {}):
            assert "far NIC" not in advised(cluster, "cn1", "-n1", "--topo-place=compact", *options, env=env)


def test_node_without_devices(cluster):
    out, err = srun(cluster, "-w", "cn4", "-n2", "--topo-nic=all,strict", "sh", "-c", SHOW)
    assert (sorted(out.split()), err) == (["0", "1"], "")


def test_invalid_value_is_refused(cluster):
    done = cluster.command(["srun", "-w", "cn1", "--topo-nic=two", "true"], user="nobody", check=False)
    assert (done.returncode and "--topo-nic=two: invalid value, expected one of: off, auto, one, local, all"
            in done.stderr)

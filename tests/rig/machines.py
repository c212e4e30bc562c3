# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Real machines: topologies that packaging/setup exported from hwloc's own corpus, and nodes made from them."""
import random
import re

from rig.paths import CACHE


class MachineError(Exception):
    """A topology that cannot be used."""


def machines():
    """Names of all machines at hand."""
    return sorted(path.stem for path in (CACHE / "machines").glob("*.xml"))


def machine(name):
    """The XML of a machine."""
    path = CACHE / "machines" / f"{name}.xml"
    if not path.exists():
        raise MachineError(f"{path} is missing: run packaging/setup")
    return path.read_text(encoding="utf-8")


def os_indexes(xml):
    """OS indices of the CPUs in a topology."""
    return sorted(int(i) for i in re.findall(r'<object type="PU" os_index="(\d+)"', xml))


def memory_indexes(xml):
    """OS indices of the NUMA nodes in a topology."""
    return sorted(int(i) for i in re.findall(r'<object type="NUMANode" os_index="(\d+)"', xml))


def individual(xml, host):
    """The same machine as another node of its series: its own name, serial numbers, UUID and hardware addresses."""
    chance = random.Random(host)

    def address(found):
        low = ":".join(f"{chance.randrange(256):02x}" for _ in range(3))
        return found.group(1) + found.group(2)[:-8] + low + found.group(3)

    xml = re.sub(r'(<info name="Address" value=")([0-9a-f]{2}(?::[0-9a-f]{2})+)(")', address, xml)
    xml = re.sub(r'(<info name="(?:NodeGUID|SysImageGUID|Port\dGID\d)" value="[^"]*:)[0-9a-f]{4}(")',
                 lambda m: f"{m.group(1)}{chance.randrange(65536):04x}{m.group(2)}", xml)
    xml = re.sub(r' +<info name="(?:HostName|DMIProductSerial|DMIProductUUID)" value="[^"]*"/>\n', "", xml)
    own = {"DMIProductSerial": f"{chance.randrange(10**9, 10**10)}",
           "DMIProductUUID": "-".join(f"{chance.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12)),
           "HostName": host}
    if 'version="3' in xml:  # hwloc 3 has it beside the objects
        xml = re.sub(r"  <memtier|  <pci_locality|</topology>", lambda m: '  <info name="HostName" '
                     f'value="{own.pop("HostName")}"/>\n{m.group()}',
                     xml, count=1)
    lines = "".join(f'    <info name="{name}" value="{value}"/>\n' for name, value in own.items())
    xml, done = re.subn(r'(<object type="Machine"[^>]*[^/]>\n)', lambda m: m.group(1) + lines, xml, count=1)
    if not done:
        raise MachineError(f"{host}: no Machine in its topology")
    return xml

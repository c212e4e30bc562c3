# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""
Many nodes out of one. What differs between machines of one order differs here too: host name, serial numbers, UUIDs,
addresses, LIDs, and the pages that the kernel left. A base that lacks these gets what a real node has: serial numbers,
and two network cards a package. A node may lack a network card, a core or half of a NUMA node's memory, or have a card
elsewhere, at half its speed. tests/rig/clones.c writes the nodes of a template that is made here.
"""
import functools
import hashlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.sax.saxutils import escape

from .paths import BUILD

OPTIONS = 20            # devices that a node of distinct structure has or has not
PAGES_LESS = 800        # at most, of the base's
OPTION_TYPE = "0880 [8086:2f"
# An info's name, and how its value differs from node to node.
INFOS = (("HostName", "h"), (".*Serial.*", "s"), (".*UUID", "u"), ("Address|.*GUID|Port.*GID.*", "a"),
         ("Port.*LID", "l"))
FILLERS = ("Home Agent", "QPI Link 0", "R3 QPI Link Monitor", "Power Control Unit",
           "Integrated Memory Controller Channel Target Address Decoder", "Buffered Ring Agent")


# --- the base's objects

def typed(root, kind):
    return [e for e in root.iter("object") if e.get("type") == kind]


def whole_of(e, parents):
    """An object together with those around it that hold nothing else: a core with its caches, a card with its
    bridge."""
    while (up := parents[e]).tag == "object" and len(up.findall("object")) == 1 and \
            (up.get("type").startswith("L") or up.get("type") == "Bridge"):
        e = up
    return e


def page_of(numa):
    """The page type that most of a NUMA node's memory has."""
    page = max(numa.findall("page_type"), key=lambda e: int(e.get("count")), default=None)
    return page if page is not None and int(page.get("count")) > 2 * PAGES_LESS else None


# --- parts that a node lacks or has elsewhere: what may be meant, and the change

def cards(root, _):
    return [e for e in typed(root, "PCIDev") if any(o.get("osdev_type") in ("2", "3") for o in typed(e, "OSDev"))]


def spare_cores(root, parents):
    """The package keeps others."""
    above = [parents[whole_of(e, parents)] for e in typed(root, "Core")]
    return [e for e, up in zip(typed(root, "Core"), above) if above.count(up) > 1]


def memories(root, _):
    return [e for e in typed(root, "NUMANode") if page_of(e) is not None]


def remove(e, root, parents):
    whole = whole_of(e, parents)
    parents[whole].remove(whole)


def lose_core(core, root, parents):
    gone = set_read(core.get("cpuset"))
    remove(core, root, parents)
    for e in root.iter():
        for name in ("initiator_cpuset", "allowed_cpuset", "cpuset"):
            if (had := set_read(e.get(name, "0x0"))) & gone:
                e.set(name, set_text(had & ~gone))


def set_read(text):
    """A set as hwloc writes it: words of 32 bits, of which those of zero may be empty."""
    return int("0" + "".join(f"{int(word or '0', 16):08x}" for word in text.split(",")), 16)


def set_text(bits):
    words = []
    while bits or not words:
        words.insert(0, f"0x{bits & 0xffffffff:08x}" if bits & 0xffffffff else "" if words else "0x0")
        bits >>= 32
    return ",".join(words)


def lose_memory(numa, *_):
    page, size, count = (e := page_of(numa)), int(e.get("size")), int(e.get("count"))
    page.set("count", str(count // 2))
    numa.set("local_memory", str(int(numa.get("local_memory")) - (count - count // 2) * size))


def move_card(card, root, _):
    """To the next bus where nothing is yet."""
    taken = {e.get("pci_busid") for e in root.iter("object")}
    domain, bus, slot = card.get("pci_busid").split(":")
    others = (f"{domain}:{(int(bus, 16) + n) % 256:02x}:{slot}" for n in range(1, 256))
    card.set("pci_busid", next(other for other in others if other not in taken))
    card.set("pci_link_speed", f"{float(card.get('pci_link_speed')) / 2:f}")


VARIANTS = {"nic": (cards, remove), "core": (spare_cores, lose_core), "dimm": (memories, lose_memory),
            "pci": (cards, move_card)}


# --- what a base may lack

def grow(root, pad, distinct):
    """The devices that each package gets, below a host bridge, and the machine's serial numbers; as many bytes of
    devices more as are wanted."""
    numbers = iter(range(1 + max(int(e.get("gp_index", 0)) for e in root.iter("object")), 10 ** 9))
    lacks_cards = not any(e.get("name") == "Address" for e in root.iter("info"))
    packages = typed(root, "Package")

    def add(up, infos=(), **words):
        e = ET.SubElement(up, "object", {"type": words.pop("type"), "gp_index": str(next(numbers)), **words})
        for name, value in infos:
            ET.SubElement(e, "info", name=name, value=value)
        return e
    for package, up in enumerate(packages):
        domain = 16 + package
        bridge = add(up, type="Bridge", bridge_type="0-1", depth="0", bridge_pci=f"{domain:04x}:[00-ff]")

        def device(kind, speed, *infos, bridge=bridge, domain=domain):
            i = len(bridge)
            return add(bridge, infos, type="PCIDev",
                       pci_busid=f"{domain:04x}:{1 + i // 256:02x}:{i // 8 % 32:02x}.{i % 8:x}", pci_type=kind,
                       pci_link_speed=speed)
        if lacks_cards:
            add_cards(add, device, package)
        for _ in range(OPTIONS if distinct and not package else 0):
            device(f"{OPTION_TYPE}{len(bridge) % 256:02x}] [8086:0000] 02", "0.000000")
        size = len(text_of(bridge, {}, 8))
        while size < pad // len(packages):      # what a processor shows of itself on PCI when everything is exported
            n = len(bridge)
            size += len(text_of(device(
                f"0880 [8086:6f{n % 256:02x}] [8086:6f{n % 256:02x}] 01", "0.000000", ("PCISlot", str(2 + n)),
                ("PCIVendor", "Intel Corporation"),
                ("PCIDevice", f"Xeon E7 v4/Xeon E5 v4/Xeon E3 v4/Xeon D {FILLERS[n % len(FILLERS)]} {n // 8}")), {}, 8))
        if not len(bridge):
            up.remove(bridge)
    machine, = typed(root, "Machine")
    has = {e.get("name") for e in root.iter("info")}
    for name, value in (("DMIProductUUID", "5a2f0a2e-91c7-4d0f-8e35-0c42a1b86d17"),
                        ("DMIProductSerial", "S211795X9C04117"), ("HostName", "cn000000")):
        if name not in has:
            machine.insert(0, ET.Element("info", name=name, value=value))


def add_cards(add, device, package):
    """One node's addresses are its own, and a GUID is the same wherever it stands."""
    high, low = 0x2a + package, 2 * package
    for port in (low, low + 1):
        card = device("0200 [8086:1563] [15d9:0847] 01", "3.938462", ("PCIVendor", "Intel Corporation"),
                      ("PCIDevice", "Ethernet Controller X550"))
        add(card, [("Address", f"3c:ec:ef:{16 + package:02x}:5a:{port:02x}")], type="OSDev", name=f"eth{port}",
            osdev_type="2")
    guid = f"b859:9f03:00{high:02x}:4c{low:02x}"
    card = device("0207 [15b3:101b] [15b3:0007] 00", "31.507692", ("PCIVendor", "Mellanox Technologies"),
                  ("PCIDevice", "MT28908 Family [ConnectX-6]"))
    add(card, [("Address", f"00:00:10:29:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:{high:02x}:4c:{low:02x}"),
               ("Port", "1")], type="OSDev", name=f"ib{package}", osdev_type="2")
    add(card, [("NodeGUID", guid), ("SysImageGUID", guid), ("Port1State", "4"), ("Port1LID", f"{0x100 + package:#x}"),
               ("Port1LMC", "0"), ("Port1GID0", f"fe80:0000:0000:0000:{guid}")], type="OSDev", name=f"mlx5_{package}",
        osdev_type="3")


# --- where nodes differ

def key_of(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def varied(kind, text, key=None, value=0, step=0):
    """A part that each node writes in its own way (clones.c); parts of one key vary together."""
    return f"\1{kind} {key_of(text) if key is None else key} {value} {step}\2{text}\3"


def varied_info(name, value):
    """What stands for none is the same everywhere: a serial number in words, an address of zeros."""
    kind = next((kind for pattern, kind in INFOS if re.fullmatch(pattern, name)), None)
    if kind == "a":
        low = int(value.replace(":", "")[-6:], 16)
        return varied(kind, value, low >> 8, low) if low else value
    if kind == "l":
        return varied(kind, value, 0, int(value, 0) + key_of(value) % 0xbfff)
    return varied(kind, value) if kind == "h" or (kind and re.search(r"\d", value)) else value


def text_of(e, options, depth=0):
    """An element as hwloc writes it; options: {element that a node may lack: its number}."""
    words = "".join(f' {name}="{escape(value, QUOTED)}"' for name, value in e.items())
    inside = "".join(text_of(child, options, depth + 2) for child in e)
    end = f">\n{inside}{' ' * depth}</{e.tag}>" if len(e) else f">{escape(e.text)}</{e.tag}>" if e.text else "/>"
    text = f"{' ' * depth}<{e.tag}{words}{end}\n"
    return varied("o", text, 0, options[e]) if e in options else text


QUOTED = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"}


@functools.lru_cache(maxsize=200)
def template(base, variant="none", which=0, pad=0, distinct=False):
    """base: a file as hwloc writes it. which: of the parts of that kind; distinct: each node has devices that no other
    has together."""
    text = Path(base).read_text(encoding="utf-8")
    root = ET.fromstring(text)
    grow(root, pad - len(text), distinct)
    if variant != "none":
        candidates, change = VARIANTS[variant]
        parents = {child: up for up in root.iter() for child in up}
        found = candidates(root, parents)
        if not found:
            raise ValueError(f"{base}: no part for the variant {variant}")
        change(found[which % len(found)], root, parents)
    for e in root.iter("info"):
        if "name" in e.keys():
            e.set("value", varied_info(e.get("name"), e.get("value")))
    for nth, numa in enumerate(typed(root, "NUMANode")):
        if (page := page_of(numa)) is not None:     # firmware and kernel leave a node some pages more or less
            for e, name, step in ((numa, "local_memory", page.get("size")), (page, "count", 1)):
                e.set(name, varied("m", e.get(name), nth, e.get(name), step))
    options = [e for e in typed(root, "PCIDev") if distinct and e.get("pci_type").startswith(OPTION_TYPE)]
    return text[:text.index("<topology")] + text_of(root, {e: nth for nth, e in enumerate(options[:OPTIONS])})


def kind(base, variants, pad=0, distinct=False):
    """The templates of a storm: the plain one, then four of each variant that the base can have."""
    out = [template(base, pad=pad, distinct=distinct)]
    for which, variant in enumerate(4 * list(VARIANTS) if variants else ()):
        try:
            out.append(template(base, variant, which, pad, distinct))
        except ValueError:      # what a machine has none of cannot be missing in it
            pass
    return "\f".join(out)


def clone(base, number, variant="none", pad=0):
    """The XML of node cn000000 and so on, the same to the byte each time."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(template(base, variant, number, pad))
        file.flush()
        return subprocess.run([BUILD / "tests/clone", file.name, str(number)], check=True, capture_output=True).stdout

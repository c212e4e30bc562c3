# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Numbers as tables, screens and pages show them."""
import re

PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def number(text):
    """Of "12.35M", "12.4 M/s", "-"."""
    if text == "-":
        return float("nan")
    digits, prefix = re.match(r"(-?[0-9.]+(?:e[-+]\d+)?) ?([kMGTP]?)", text).groups()
    return float(digits) * PREFIXES[prefix]

# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A fixed sample of random cases; `make check-whole N=... SEED=...` runs as many as one likes."""
from . import run


def test_sample():
    """Every kind of fault that is not listed as known fails: its first examples are printed, with how to see them
    again."""
    kinds = run.run("sample", 200)
    assert not set(kinds) - run.known(), kinds

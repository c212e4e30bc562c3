# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where things are: the checkout, what was built, what set-up brought."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOPIARY_BUILD", ROOT / "build")).resolve()
# An installation of Slurm in a prefix, or None: the machine's own.
SLURM_PREFIX = Path(os.environ["SLURM_PREFIX"]) if os.environ.get("SLURM_PREFIX") else None
CACHE = Path(os.environ.get("TOPIARY_CACHE", ROOT / ".cache")).resolve()

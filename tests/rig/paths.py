# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""Where things are: the checkout, what was built, what set-up brought."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TOPIARY_BUILD", ROOT / "build")).resolve()
CACHE = Path(os.environ.get("TOPIARY_CACHE", ROOT / ".cache")).resolve()

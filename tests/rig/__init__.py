# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""A whole Topiary cluster on one machine, for tests and the demo: real Slurm, munge, PostgreSQL, topiaryd and
agents."""
from .cluster import Cluster, RigError
from .machines import MachineError, individual, machine, machines, os_indexes

__all__ = ["Cluster", "RigError", "MachineError", "individual", "machine", "machines", "os_indexes"]

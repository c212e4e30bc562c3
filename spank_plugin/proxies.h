/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_PROXIES_H
#define TOPIARY_SPANK_PROXIES_H

#include <slurm/spank.h>
#include <stdbool.h>

/*
 * What launchers start by srun on each node, to start the ranks there. A step of these is never placed as a rank would be.
 *
 * mpiexec of MPICH (Hydra) and of Intel MPI numbers ranks node after node, as many on each as Slurm has tasks there. In a job whose
 * ranks are mapped, its proxy is told by the environment the places of the ranks on its node (TOPIARY_BLOCK_PLACES, of `topiary map
 * --block`), unless the user said something of binding or of hosts.
 */

/* Is this step one of proxies that a map is for? And is it one of any? */
bool proxies_take(spank_t sp);
bool proxies_are_here(void);

/* The proxy keeps all cores of the step for its ranks, and is told theirs. What fails is logged. */
struct task;
void proxies_tell(struct task *t);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* The collectives, for counts N and displacements AT. wrap_group.c takes this twice, so that it has no guard. */

COLLECTIVE(FORMS(MPI_Bcast, MPI_Ibcast), (void *data, N n, handle type, int root, handle comm), (data, n, type, root, comm),
	   group_broadcast(p, root, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Reduce, MPI_Ireduce),
	   (const void *data, void *out, N n, handle type, handle op, int root, handle comm), (data, out, n, type, op, root, comm),
	   group_reduce(p, root, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Allreduce, MPI_Iallreduce),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   group_allreduce(p, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Scan, MPI_Iscan),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   model_chain(p, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Exscan, MPI_Iexscan),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   model_chain(p, peers_bytes(n, type)))

COLLECTIVE(FORMS(MPI_Gather, MPI_Igather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, int root, handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), group_gather(p, root, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Gatherv, MPI_Igatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type, int root, handle comm),
	   (data, n, type, out, counts, at, out_type, root, comm), group_gather(p, root, peers_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Scatter, MPI_Iscatter),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, int root, handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), group_scatter(p, root, EACH(n), type))
COLLECTIVE(FORMS(MPI_Scatterv, MPI_Iscatterv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, N out_n, handle out_type, int root, handle comm),
	   (data, counts, at, type, out, out_n, out_type, root, comm), group_scatter(p, root, PARTS(counts), type))

COLLECTIVE(FORMS(MPI_Allgather, MPI_Iallgather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), group_allgather(p, n, type, EACH(out_n), out_type))
COLLECTIVE(FORMS(MPI_Allgatherv, MPI_Iallgatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type, handle comm),
	   (data, n, type, out, counts, at, out_type, comm), group_allgather(p, n, type, PARTS(counts), out_type))
COLLECTIVE(FORMS(MPI_Alltoall, MPI_Ialltoall),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm),
	   if (data == MPI_IN_PLACE) group_alltoall(p, EACH(out_n), NULL, out_type);
	   else group_alltoall(p, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Alltoallv, MPI_Ialltoallv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, const N out_counts[], const AT out_at[],
	    handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm),
	   if (data == MPI_IN_PLACE) group_alltoall(p, PARTS(out_counts), NULL, out_type);
	   else group_alltoall(p, PARTS(counts), NULL, type))
COLLECTIVE(FORMS(MPI_Alltoallw, MPI_Ialltoallw),
	   (const void *data, const N counts[], const AT at[], const MPI_Datatype types[], void *out, const N out_counts[],
	    const AT out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm),
	   if (data == MPI_IN_PLACE) group_alltoall(p, PARTS(out_counts), out_types, 0);
	   else group_alltoall(p, PARTS(counts), types, 0))

COLLECTIVE(FORMS(MPI_Reduce_scatter, MPI_Ireduce_scatter),
	   (const void *data, void *out, const N counts[], handle type, handle op, handle comm), (data, out, counts, type, op, comm),
	   group_reduce_scatter(p, PARTS(counts), type))
COLLECTIVE(FORMS(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   group_reduce_scatter(p, EACH(n), type))

COLLECTIVE(FORMS(MPI_Neighbor_allgather, MPI_Ineighbor_allgather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), group_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type, handle comm),
	   (data, n, type, out, counts, at, out_type, comm), group_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), group_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, const N out_counts[], const AT out_at[],
	    handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm), group_neighbours(p, comm, PARTS(counts), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw),
	   (const void *data, const N counts[], const MPI_Aint at[], const MPI_Datatype types[], void *out, const N out_counts[],
	    const MPI_Aint out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm), group_neighbours(p, comm, PARTS(counts), types, 0))

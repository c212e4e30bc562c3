/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */

/*
 * The collectives, with counts of type N and displacements of type AT. collective.c includes this twice: no
 * include guard.
 */

COLLECTIVE(FORMS(MPI_Bcast, MPI_Ibcast), (void *data, N n, handle type, int root, handle comm),
	(data, n, type, root, comm),
	   collective_broadcast(p, root, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Reduce, MPI_Ireduce),
	   (const void *data, void *out, N n, handle type, handle op, int root, handle comm),
	   (data, out, n, type, op, root, comm),
	   collective_reduce(p, root, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Allreduce, MPI_Iallreduce),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   collective_allreduce(p, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Scan, MPI_Iscan),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   model_scan(p, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Exscan, MPI_Iexscan),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   model_scan(p, datatype_bytes(n, type)))

COLLECTIVE(FORMS(MPI_Gather, MPI_Igather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, int root, handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), collective_gather(p, root, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Gatherv, MPI_Igatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type, int root,
	   handle comm),
	   (data, n, type, out, counts, at, out_type, root, comm), collective_gather(p, root, datatype_bytes(n, type)))
COLLECTIVE(FORMS(MPI_Scatter, MPI_Iscatter),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, int root, handle comm),
	   (data, n, type, out, out_n, out_type, root, comm), collective_scatter(p, root, EACH(n), type))
COLLECTIVE(FORMS(MPI_Scatterv, MPI_Iscatterv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, N out_n, handle out_type,
	   int root, handle comm),
	   (data, counts, at, type, out, out_n, out_type, root, comm),
	   collective_scatter(p, root, COUNTS(counts), type))

COLLECTIVE(FORMS(MPI_Allgather, MPI_Iallgather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), collective_allgather(p, n, type, EACH(out_n), out_type))
COLLECTIVE(FORMS(MPI_Allgatherv, MPI_Iallgatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type,
	   handle comm),
	   (data, n, type, out, counts, at, out_type, comm), collective_allgather(p, n, type, COUNTS(counts), out_type))
COLLECTIVE(FORMS(MPI_Alltoall, MPI_Ialltoall),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm),
	   if (data == MPI_IN_PLACE) collective_alltoall(p, EACH(out_n), NULL, out_type);
	   else collective_alltoall(p, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Alltoallv, MPI_Ialltoallv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, const N out_counts[],
	   const AT out_at[],
	    handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm),
	   if (data == MPI_IN_PLACE) collective_alltoall(p, COUNTS(out_counts), NULL, out_type);
	   else collective_alltoall(p, COUNTS(counts), NULL, type))
COLLECTIVE(FORMS(MPI_Alltoallw, MPI_Ialltoallw),
	   (const void *data, const N counts[], const AT at[], const MPI_Datatype types[], void *out,
	   const N out_counts[],
	    const AT out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm),
	   if (data == MPI_IN_PLACE) collective_alltoall(p, COUNTS(out_counts), out_types, 0);
	   else collective_alltoall(p, COUNTS(counts), types, 0))

COLLECTIVE(FORMS(MPI_Reduce_scatter, MPI_Ireduce_scatter),
	   (const void *data, void *out, const N counts[], handle type, handle op, handle comm),
	   (data, out, counts, type, op, comm),
	   collective_reduce_scatter(p, COUNTS(counts), type))
COLLECTIVE(FORMS(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block),
	   (const void *data, void *out, N n, handle type, handle op, handle comm), (data, out, n, type, op, comm),
	   collective_reduce_scatter(p, EACH(n), type))

COLLECTIVE(FORMS(MPI_Neighbor_allgather, MPI_Ineighbor_allgather),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), collective_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv),
	   (const void *data, N n, handle type, void *out, const N counts[], const AT at[], handle out_type,
	   handle comm),
	   (data, n, type, out, counts, at, out_type, comm), collective_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall),
	   (const void *data, N n, handle type, void *out, N out_n, handle out_type, handle comm),
	   (data, n, type, out, out_n, out_type, comm), collective_neighbours(p, comm, EACH(n), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv),
	   (const void *data, const N counts[], const AT at[], handle type, void *out, const N out_counts[],
	   const AT out_at[],
	    handle out_type, handle comm),
	   (data, counts, at, type, out, out_counts, out_at, out_type, comm),
	   collective_neighbours(p, comm, COUNTS(counts), NULL, type))
COLLECTIVE(FORMS(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw),
	   (const void *data, const N counts[], const MPI_Aint at[], const MPI_Datatype types[], void *out,
	   const N out_counts[],
	    const MPI_Aint out_at[], const MPI_Datatype out_types[], handle comm),
	   (data, counts, at, types, out, out_counts, out_at, out_types, comm),
	   collective_neighbours(p, comm, COUNTS(counts), types, 0))

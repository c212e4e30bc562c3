/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */

/*
 * MPI_Cart_create, MPI_Graph_create, MPI_Dist_graph_create and MPI_Dist_graph_create_adjacent with reorder: a
 * communicator whose ranks are near those that they are neighbours of (MPI 4.1, chapter 8), made by the MPI's own
 * functions. All others, and calls that are wrong, are the MPI's alone. Each is wrapped under both of its names, since
 * the Fortran interfaces of some MPIs call PMPI_.
 *
 * Notes: a call is collective over its communicator, so all processes take the same way: what can differ between them
 * (memory, arguments) is agreed on. All of them must have the library: the collectives here wait for those that do not.
 * Collectives are of the caller's communicator, which no receive of the program's sees, and messages of our own. The
 * first process asks for the order; only ask.c has data that outlives a call.
 */
#include "capture/symbols.h"
#include "reorder/ask.h"

struct edge {
	int from, to, weight;
};

/* A call, as one process sees it. */
struct call {
	const char *name;
	handle comm;
	int me, n;			/* of the communicator */
	bool valid;			/* of the arguments, as far as they are looked at; memory suffices */
	bool is_whole;			/* edge has all edges, else those that this process named */
	int ranks;			/* that the new communicator will have */
	struct edge *edge;
	int edges, room;
	int *rank;			/* rank[n]: the new rank of each process */
	MPI_Comm made;
};

/* Both names of a function: real, its arguments. */
#define WRAP_BOTH(name, function, params, ...) \
	WRAP(name, params) { return function(REAL(name), __VA_ARGS__); } \
	WRAP(P##name, params) { return function(REAL(P##name), __VA_ARGS__); }

#define COMM(c) ((MPI_Comm) (c)->comm)
#define INT SYMBOL(MPI_Datatype, "ompi_mpi_int", MPI_INT)
#define BYTE SYMBOL(MPI_Datatype, "ompi_mpi_byte", MPI_BYTE)

/* Is this call to be looked at? false: it is the MPI's alone, and so it is on all processes. */
static bool call_begin(struct call *c, const char *name, handle comm, int reorder)
{
	MPI_Comm null = SYMBOL(MPI_Comm, "ompi_mpi_comm_null", MPI_COMM_NULL);
	int inter;

	*c = (struct call){ .name = name, .comm = comm, .valid = true, .made = null };
	return reorder && COMM(c) != null && strcasecmp(ask_mode(), "off") && symbol_mpi_is_ours() &&
	       PMPI(MPI_Comm_test_inter)(COMM(c), &inter) == MPI_SUCCESS && !inter &&
	       PMPI(MPI_Comm_size)(COMM(c), &c->n) == MPI_SUCCESS && c->n > 2 &&
	       PMPI(MPI_Comm_rank)(COMM(c), &c->me) == MPI_SUCCESS;
}

static void call_end(struct call *c)
{
	MPI_Comm null = SYMBOL(MPI_Comm, "ompi_mpi_comm_null", MPI_COMM_NULL);

	if (c->made != null)
		PMPI(MPI_Comm_free)(&c->made);
	free(c->edge);
	free(c->rank);
}

static void edge_add(struct call *c, int from, int to, int weight)
{
	struct edge *more;

	if (c->edges == c->room) {
		c->room = c->room ? 2 * c->room : 64;
		c->valid &= c->room < INT_MAX / 4 && (more = realloc(c->edge, c->room * sizeof(*more)));
		if (!c->valid)
			return;
		c->edge = more;
	}
	c->valid &= from >= 0 && from < c->ranks && to >= 0 && to < c->ranks && weight >= 0;
	c->edge[c->edges++] = (struct edge){ from, to, weight };
}

static bool all_agree(const struct call *c, bool own)
{
	int mine = own, all = 0;

	return PMPI(MPI_Allreduce)(&mine, &all, 1, INT, SYMBOL(MPI_Op, "ompi_mpi_op_min", MPI_MIN), COMM(c)) ==
	       MPI_SUCCESS && all;
}

/* On the first process: asks, and fills in the ranks. Those without one keep their order, after the others. */
static bool order_find(struct call *c, const char (*place)[ASK_PLACE])
{
	int *process = malloc(c->ranks * sizeof(*process)), last = c->ranks;
	struct buf question = {0};
	struct err why = {""};
	bool known = false, found = false;
	double gain = 0;

	buf_printf(&question, "%d %d\n", c->n, c->ranks);
	for (int p = 0; p < c->n; p++)
		buf_printf(&question, "%.*s\n", ASK_PLACE - 1, place[p]);
	for (int i = 0; i < c->edges; i++)
		buf_printf(&question, "%d %d %d\n", c->edge[i].from, c->edge[i].to, c->edge[i].weight);
	if (!process)
		err_set(&why, "out of memory");
	else
		found = !ask_order(&question, c->n, c->ranks, process, &gain, &known, &why);
	for (int p = 0; found && p < c->n; p++)
		c->rank[p] = -1;
	for (int r = 0; found && r < c->ranks; r++)
		c->rank[process[r]] = r;
	for (int p = 0; found && p < c->n; p++)
		if (c->rank[p] < 0)
			c->rank[p] = last++;
	if (!known && !strcasecmp(ask_mode(), "report")) {
		if (found)
			err_set(&why, "reordered, %.0f %% less communication (weight x distance)", gain);
		dprintf(STDERR_FILENO, "topiary: %s: %d ranks %s%s\n", c->name, c->ranks, found ? "" :
			"keep their order: ", why.text);
	}
	buf_free(&question);
	free(process);
	return found;
}

/* Brings all edges to the first process. */
static bool edges_gather(struct call *c)
{
	int *bytes = c->me ? NULL : malloc(2 * (size_t) c->n * sizeof(*bytes)), *at = bytes ? bytes + c->n : NULL;
	int own = c->edges * (int) sizeof(*c->edge);
	struct edge *all = NULL;
	long long sum = 0;
	bool done;

	if (!all_agree(c, (c->me || bytes) && c->edges < INT_MAX / (int) sizeof(*c->edge)) ||
	    PMPI(MPI_Gather)(&own, 1, INT, bytes, 1, INT, 0, COMM(c)) != MPI_SUCCESS) {
		free(bytes);
		return false;
	}
	for (int p = 0; bytes && p < c->n; p++) {
		at[p] = (int) sum;
		sum += bytes[p];
	}
	done = all_agree(c, c->me || (sum < INT_MAX && (all = malloc(sum + 1)))) &&
	       PMPI(MPI_Gatherv)(c->edge, own, BYTE, all, bytes, at, BYTE, 0, COMM(c)) == MPI_SUCCESS;
	free(bytes);
	if (c->me || !done) {
		free(all);
		return done;
	}
	free(c->edge);
	c->edge = all;
	c->edges = sum / sizeof(*all);
	return true;
}

/*
 * Makes c->made, the communicator in the new order or, where none costs less, in its own, and c->rank. The MPI's
 * function is then called for that without reorder. Not for the old one: 8 times MPI_Dist_graph_create without reorder
 * of one communicator, with MPI_THREAD_MULTIPLE, is a deadlock in Open MPI 4.1. False: arguments are wrong or MPI has
 * reported an error; the call is the MPI's alone.
 */
static bool call_order(struct call *c)
{
	char (*place)[ASK_PLACE] = NULL, own[ASK_PLACE] = "";
	bool done;

	c->valid &= c->ranks > 0 && (c->rank = malloc(c->n * sizeof(*c->rank))) &&
		    (c->me || (place = malloc(c->n * sizeof(*place))));
	done = all_agree(c, c->valid) && (c->is_whole || edges_gather(c));
	if (done) {
		ask_place(own);
		done = PMPI(MPI_Gather)(own, ASK_PLACE, BYTE, place, ASK_PLACE, BYTE, 0, COMM(c)) == MPI_SUCCESS;
	}
	if (done && !c->me && !order_find(c, (const char (*)[ASK_PLACE]) place))
		for (int p = 0; p < c->n; p++)
			c->rank[p] = p;
	free(place);
	return done && PMPI(MPI_Bcast)(c->rank, c->n, INT, 0, COMM(c)) == MPI_SUCCESS &&
	       PMPI(MPI_Comm_split)(COMM(c), 0, c->rank[c->me], &c->made) == MPI_SUCCESS;
}

/* --- grids --- */

typedef int cart_fn(handle comm, int dims, const int *dim, const int *period, int reorder, MPI_Comm *out);

static int cart_create(cart_fn *real, handle comm, int dims, const int *dim, const int *period, int reorder,
		       MPI_Comm *out)
{
	struct call c;
	int rc;

	if (!call_begin(&c, "MPI_Cart_create", comm, reorder))
		return real(comm, dims, dim, period, reorder, out);
	c.is_whole = true;
	c.valid = dims > 0 && dim && period && out;
	c.ranks = 1;
	for (int d = 0; c.valid && d < dims; d++)
		if ((c.valid = dim[d] > 0 && dim[d] <= c.n / c.ranks))
			c.ranks *= dim[d];
	/* Rank r has in dimension d the coordinate r / stride % dim[d]; the last dimension is the nearest. */
	for (int d = dims - 1, stride = 1; c.valid && !c.me && d >= 0; stride *= dim[d--])
		for (int r = 0; c.valid && dim[d] > 1 && r < c.ranks; r++) {
			int at = r / stride % dim[d], next = (at + 1) % dim[d];

			if (next || period[d])
				edge_add(&c, r, r + (next - at) * stride, 1);
		}
	rc = call_order(&c) ? real((handle) c.made, dims, dim, period, 0, out) :
			      real(comm, dims, dim, period, reorder, out);
	call_end(&c);
	return rc;
}

WRAP_BOTH(MPI_Cart_create, cart_create,
	  (handle comm, int dims, const int *dim, const int *period, int reorder, MPI_Comm *out),
	  comm, dims, dim, period, reorder, out)

/* --- graphs that every process has --- */

typedef int graph_fn(handle comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *out);

static int graph_create(graph_fn *real, handle comm, int nodes, const int *index, const int *edges, int reorder,
			MPI_Comm *out)
{
	struct call c;
	int rc;

	if (!call_begin(&c, "MPI_Graph_create", comm, reorder))
		return real(comm, nodes, index, edges, reorder, out);
	c.is_whole = true;
	c.ranks = nodes;
	c.valid = nodes > 0 && nodes <= c.n && index && edges && out;
	for (int v = 0, i = 0; c.valid && !c.me && v < nodes; v++)
		for (; c.valid && i < index[v]; i++)
			edge_add(&c, v, edges[i], 1);
	rc = call_order(&c) ? real((handle) c.made, nodes, index, edges, 0, out) :
			      real(comm, nodes, index, edges, reorder, out);
	call_end(&c);
	return rc;
}

WRAP_BOTH(MPI_Graph_create, graph_create,
	  (handle comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *out),
	  comm, nodes, index, edges, reorder, out)

/* --- distributed graphs --- */

/* MPI_UNWEIGHTED; in MPICH a variable. NULL: not known. */
static const int *unweighted(void)
{
#if defined(OPEN_MPI) || defined(MPI_ABI_VERSION)
	return MPI_UNWEIGHTED;
#else
	int *const *at = symbol_data("MPI_UNWEIGHTED");

	return at ? *at : NULL;
#endif
}

/* Of process `own` the edges to or from the others. */
static void edges_add(struct call *c, int own, int n, const int *others, const int *weights)
{
	bool weighted = weights != unweighted();

	c->valid &= n >= 0 && (!n || (others && weights && unweighted()));
	for (int i = 0; c->valid && i < n; i++)
		edge_add(c, own, others[i], weighted ? weights[i] : 1);
}

typedef int dist_fn(handle comm, int n, const int *sources, const int *degrees, const int *targets, const int *weights,
		    handle info, int reorder, MPI_Comm *out);

/* The graph is of ranks in the new communicator, whoever names its edges. */
static int dist_create(dist_fn *real, handle comm, int n, const int *sources, const int *degrees, const int *targets,
		       const int *weights, handle info, int reorder, MPI_Comm *out)
{
	bool weighted = weights != unweighted();
	struct call c;
	int rc;

	if (!call_begin(&c, "MPI_Dist_graph_create", comm, reorder))
		return real(comm, n, sources, degrees, targets, weights, info, reorder, out);
	c.ranks = c.n;
	c.valid = n >= 0 && (!n || (sources && degrees)) && out;
	for (int i = 0, at = 0; c.valid && i < n; at += degrees[i++])
		edges_add(&c, sources[i], degrees[i], targets ? targets + at : NULL,
			  weighted && weights ? weights + at : weights);
	rc = call_order(&c) ? real((handle) c.made, n, sources, degrees, targets, weights, info, 0, out) :
			      real(comm, n, sources, degrees, targets, weights, info, reorder, out);
	call_end(&c);
	return rc;
}

WRAP_BOTH(MPI_Dist_graph_create, dist_create,
	  (handle comm, int n, const int *sources, const int *degrees, const int *targets, const int *weights,
	   handle info, int reorder, MPI_Comm *out),
	  comm, n, sources, degrees, targets, weights, info, reorder, out)

/* What a process names of its own: lists[2 * (in + out)], sources, their weights, destinations, their weights. */
struct neighbours {
	int in, out, weighted_in, weighted_out;
	int *list;
};

static int *list_add(int *at, const int *from, int n)
{
	if (n)
		memcpy(at, from, n * sizeof(*at));
	return at + n;
}

/*
 * The process that has this one's former rank gets this one's neighbours, and this one those of its new rank.
 * MPI_SUCCESS, or an error of MPI's; theirs->list is then NULL or to be freed all the same. *all: false if memory is
 * short somewhere, which all processes then know.
 */
static int neighbours_exchange(const struct call *c, const struct neighbours *own, struct neighbours *theirs, int *all)
{
	int has, from = c->rank[c->rank[c->me]];	/* the new rank of the process that had mine before */
	int rc = PMPI(MPI_Sendrecv)(own, 4, INT, c->me, 0, theirs, 4, INT, from, 0, c->made, MPI_STATUS_IGNORE);

	if (rc != MPI_SUCCESS)
		return rc;
	theirs->list = malloc((2 * ((size_t) theirs->in + theirs->out) + 1) * sizeof(*theirs->list));
	has = theirs->list != NULL;
	rc = PMPI(MPI_Allreduce)(&has, all, 1, INT, SYMBOL(MPI_Op, "ompi_mpi_op_min", MPI_MIN), c->made);
	if (rc != MPI_SUCCESS || !*all)
		return rc;
	return PMPI(MPI_Sendrecv)(own->list, 2 * (own->in + own->out), INT, c->me, 0, theirs->list,
				  2 * (theirs->in + theirs->out), INT, from, 0, c->made, MPI_STATUS_IGNORE);
}

typedef int adjacent_fn(handle comm, int in, const int *sources, const int *weights_in, int n, const int *targets,
			const int *weights_out, handle info, int reorder, MPI_Comm *out);

/* The neighbours that a process names are those of the new rank that is its former one. */
static int adjacent_create(adjacent_fn *real, handle comm, int in, const int *sources, const int *weights_in, int n,
			   const int *targets, const int *weights_out, handle info, int reorder, MPI_Comm *out)
{
	struct neighbours own = { in, n, weights_in != unweighted(), weights_out != unweighted(), NULL }, theirs = {0};
	struct call c;
	int rc = MPI_SUCCESS, ordered, *at;

	if (!call_begin(&c, "MPI_Dist_graph_create_adjacent", comm, reorder))
		return real(comm, in, sources, weights_in, n, targets, weights_out, info, reorder, out);
	c.ranks = c.n;
	edges_add(&c, c.me, in, sources, weights_in);
	edges_add(&c, c.me, n, targets, weights_out);
	c.valid &= out && in < INT_MAX / 8 && n < INT_MAX / 8;
	at = own.list = c.valid ? calloc(2 * ((size_t) in + n) + 1, sizeof(*at)) : NULL;
	if ((c.valid = at)) {
		at = list_add(list_add(at, sources, in), weights_in, own.weighted_in ? in : 0);
		at = list_add(at + (own.weighted_in ? 0 : in), targets, n);
		list_add(at, weights_out, own.weighted_out ? n : 0);
	}
	ordered = call_order(&c);
	if (ordered)
		rc = neighbours_exchange(&c, &own, &theirs, &ordered);
	if (rc == MPI_SUCCESS && ordered) {
		at = theirs.list;
		rc = real((handle) c.made, theirs.in, at, theirs.weighted_in ? at + theirs.in : unweighted(),
			  theirs.out, at + 2 * theirs.in,
			  theirs.weighted_out ? at + 2 * theirs.in + theirs.out : unweighted(), info, 0, out);
	} else if (rc == MPI_SUCCESS) {
		rc = real(comm, in, sources, weights_in, n, targets, weights_out, info, reorder, out);
	}
	free(own.list);
	free(theirs.list);
	call_end(&c);
	return rc;
}

WRAP_BOTH(MPI_Dist_graph_create_adjacent, adjacent_create,
	  (handle comm, int in, const int *sources, const int *weights_in, int n, const int *targets,
	   const int *weights_out, handle info, int reorder, MPI_Comm *out),
	  comm, in, sources, weights_in, n, targets, weights_out, info, reorder, out)

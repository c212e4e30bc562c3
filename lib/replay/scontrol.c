/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/scontrol.h"

#include "base/array.h"
#include "base/number.h"
#include "shape/hostlist.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NUMBER_MAX (1u << 30)

/* --- words --- */

void scontrol_words(char *text, const char *first, scontrol_word_fn *word, void *user)
{
	bool line = true, record = false;

	while (*text) {
		size_t len = strcspn(text, " \t\r\n");
		char *value = memchr(text, '=', len), *end = text + len;
		bool begins = line && value && (size_t) (value - text) == strlen(first) &&
			      !strncmp(text, first, value - text);

		line = *end == '\n';
		if (*end)
			*end++ = '\0';
		record |= begins;
		if (record && value) {
			*value = '\0';
			word(user, text, value + 1, end, begins);
		}
		text = end;
	}
}

static unsigned number(const char *text)
{
	unsigned n;

	return number_read(&text, NUMBER_MAX, &n) ? 0 : n;
}

static long long seconds(const char *text)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	return end && !*end ? mktime(&tm) : 0;
}

/* A part of "S:C:T" or "N:B:S:C" that is neither 0 nor an asterisk: the third of four, the second of "B:S:C:T". */
static bool is_asked(const char *text, int part)
{
	for (; part && *text; text++)
		part -= *text == ':';
	return number(text) > 0;
}

static const struct { const char *name; int state; } states[] = {
	{ "RUNNING", JOB_HOLDS }, { "COMPLETING", JOB_HOLDS }, { "STAGE_OUT", JOB_HOLDS }, { "CONFIGURING", JOB_HOLDS },
	{ "SUSPENDED", JOB_IS_SUSPENDED }, { "COMPLETED", JOB_ENDED }, { "OUT_OF_MEMORY", JOB_ENDED },
	{ "CANCELLED", JOB_ENDED }, { "FAILED", JOB_ENDED }, { "TIMEOUT", JOB_ENDED }, { "NODE_FAIL", JOB_ENDED },
	{ "PREEMPTED", JOB_ENDED }, { "DEADLINE", JOB_ENDED }, { "BOOT_FAIL", JOB_ENDED },
};

static int state_of(const char *name)
{
	for (size_t i = 0; i < COUNT(states); i++)
		if (!strcmp(name, states[i].name))
			return states[i].state;
	return JOB_OTHER;
}

/* --- text --- */

static struct scontrol_node *node_add(struct scontrol *s, const char *name)
{
	struct scontrol_node *n;
	size_t known = s->names.count;

	/* No host list could name it. */
	if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")]) {
		s->refused++;
		return NULL;
	}
	if (string_map_add(&s->names, name) == STRING_MAP_NONE)
		s->failed = true;
	if (s->names.count == known || !(n = array_add(s->nodes, s->nnodes))) {
		s->failed |= s->names.count > known;
		s->refused += s->names.count == known;
		return NULL;
	}
	*n = (struct scontrol_node){ .name = name, .reserved = "" };
	return n;
}

#define AFFINITY "match socket boundaries"

struct reading {
	struct scontrol *s;
	bool skip;		/* what follows of the record */
};

static void node_word(void *user, const char *key, char *value, const char *rest, bool begins)
{
	struct reading *r = user;
	struct scontrol_node *n;

	if (begins) {
		r->skip = !node_add(r->s, value);
		return;
	}
	if (r->skip)
		return;
	n = &r->s->nodes[r->s->nnodes - 1];
	if (!strcmp(key, "CoresPerSocket"))
		n->cores = number(value);
	else if (!strcmp(key, "CPUAlloc"))
		n->allocated = number(value);
	else if (!strcmp(key, "Sockets"))
		n->sockets = number(value);
	else if (!strcmp(key, "ThreadsPerCore"))
		n->threads = number(value);
	else if (!strcmp(key, "CoreSpecCount"))
		n->core_spec = number(value);
	else if (!strcmp(key, "CPUSpecList"))
		n->reserved = value;
	else if (!strcmp(key, "Partitions"))
		n->partitions = value;
	else if (!strcmp(key, "State")) {
		/* Of "IDLE", "MIXED+PLANNED", "DOWN*", "IDLE+DRAIN". */
		static const char *const words[] = { "*", "DOWN", "DRAIN", "FAIL", "FUTURE", "INVALID", "MAINT",
						     "POWER", "REBOOT", "RESERVED", "RESPOND", "UNKNOWN" };
		size_t i = 0;

		while (i < COUNT(words) && !strstr(value, words[i]))
			i++;
		n->away = i < COUNT(words);
	} else if (!strcmp(key, "BootTime"))
		n->whole = true;
	else if (!strcmp(key, "Reason"))
		n->affinity = memmem(rest, strcspn(rest, "\n"), AFFINITY, strlen(AFFINITY));
}

/* The name whose first word is `first`: what comes before the next word of every release, or the line's end. */
static const char *name_join(struct scontrol *s, const char *first, const char *rest)
{
	static const char next[] = "UserId=";
	const char *end = rest;
	char **kept;

	while (*end && *end != '\n' && ((end > rest && end[-1] != ' ') || strncmp(end, next, sizeof(next) - 1)))
		end++;
	while (end > rest && end[-1] == ' ')
		end--;
	if (end == rest)
		return first;
	if (!(kept = array_add(s->lists, s->nlists)) ||
	    asprintf(kept, "%s %.*s", first, (int) (end - rest), rest) < 0) {
		s->nlists -= kept != NULL;
		s->failed = true;
		return first;
	}
	return *kept;
}

static const char *const job_keys[] = { "JobName", "JobState", "StartTime", "EndTime", "NumCPUs", "NumTasks",
	"CPUs/Task", "ReqB:S:C:T", "NtasksPerN:B:S:C", "JOB_GRES", "UserId", "Partition",
	"Priority", "SuspendTime", "MinCPUsNode" };
enum { NAME, STATE, START, END, CPUS, TASKS, TASK_CPUS, REQUESTED, PER_SOCKET, SHARES, USER, PARTITION, PRIORITY,
	SUSPENDED, LAST };

static void job_word(void *user, const char *key, char *value, const char *rest, bool begins)
{
	struct reading *r = user;
	struct scontrol *s = r->s;
	struct scontrol_job *j = s->njobs ? &s->jobs[s->njobs - 1] : NULL;
	struct scontrol_share *share;
	size_t k = 0;

	if (begins) {
		if (!(j = array_add(s->jobs, s->njobs)))
			s->failed = true;
		else
			*j = (struct scontrol_job){ .id = value, .name = "", .partition = "",
						   .state = JOB_OTHER };
		return;
	}
	if (s->failed || j->seen & 1ul << LAST)
		return;
	if (j->seen & 1ul << SHARES && !strcmp(key, "Nodes")) {
		if (!(share = array_add(j->shares, j->nshares)))
			s->failed = true;
		else
			*share = (struct scontrol_share){ .hosts = value, .cpus = "", .gres = "" };
		return;
	}
	share = j->nshares ? &j->shares[j->nshares - 1] : NULL;
	if (share && !strcmp(key, "CPU_IDs"))
		share->cpus = value;
	else if (share && !strcmp(key, "Mem"))
		share->memory = strtoull(value, NULL, 10);
	else if (share && !strcmp(key, "GRES"))
		share->gres = value;
	while (k < COUNT(job_keys) && strcmp(key, job_keys[k]))
		k++;
	if (k == COUNT(job_keys))
		return;
	if (j->seen & 1ul << k)
		j->fault = "its record has a word of scontrol's twice: its name may imitate it";
	j->seen |= 1ul << k;
	switch (k) {
	case NAME: j->name = name_join(s, value, rest); break;
	case STATE: j->state = state_of(value); break;
	case START: j->start = seconds(value); break;
	case END: j->end = seconds(value); break;
	case CPUS: j->cpus = number(value); break;
	case TASKS: j->tasks = number(value); break;
	case TASK_CPUS: j->task_cpus = number(value); break;
	case REQUESTED: j->spread |= is_asked(value, 1); break;
	case PER_SOCKET: j->spread |= is_asked(value, 2); break;
	case PARTITION: j->partition = value; break;
	case PRIORITY: j->no_priority = !strcmp(value, "0"); break;
	case SUSPENDED: j->suspended = seconds(value); break;
	}
}

/* --- JSON --- */

/* A number, or of data_parser since 23.02 {"set": true, "number": N}. */
static long long json_amount(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_object(v))
		v = json_is_false(json_object_get(v, "set")) ? NULL : json_object_get(v, "number");
	return json_integer_value(v);
}

static unsigned json_count(const json_t *o, const char *key)
{
	long long n = json_amount(o, key);

	return n > 0 && n <= NUMBER_MAX ? n : 0;
}

static const char *json_words(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ?: "";
}

/* An array of strings as "a,b"; NULL: it is none. */
static const char *list_joined(struct scontrol *s, const json_t *list)
{
	struct buf b = {0};
	const json_t *o;
	char **kept;
	size_t i;

	if (!json_is_array(list))
		return NULL;
	json_array_foreach(list, i, o)
		buf_printf(&b, "%s%s", i ? "," : "", json_string_value(o) ?: "");
	buf_add(&b, "", 1);
	if (b.failed || !(kept = array_add(s->lists, s->nlists))) {
		buf_free(&b);
		s->failed = true;
		return NULL;
	}
	return *kept = b.data;
}

/* Members of an object whose keys are indexes, until 23.11, or an array of objects with an index. */
static const json_t *json_member(const json_t *list, size_t i, unsigned *index)
{
	const json_t *o;
	const char *key;

	if (json_is_array(list)) {
		o = json_array_get(list, i);
		*index = json_count(o, "index");
		return o;
	}
	json_object_foreach((json_t *) list, key, o)
		if (!i--) {
			*index = number(key);
			return o;
		}
	return NULL;
}

static size_t json_members(const json_t *list)
{
	return json_is_array(list) ? json_array_size(list) : json_object_size(list);
}

static bool is_allocated(const json_t *core)
{
	const json_t *status = json_is_string(core) ? core : json_object_get(core, "status");

	for (size_t i = 0; i < json_array_size(status); i++)
		if (!strcasecmp(json_string_value(json_array_get(status, i)) ?: "", "allocated"))
			return true;
	return !strncasecmp(json_string_value(status) ?: "", "allocated", 9);
}

static int json_share(struct scontrol *s, struct scontrol_job *j, const json_t *o, const char *gres)
{
	const json_t *sockets = json_object_get(o, "sockets"), *memory = json_object_get(o, "memory");
	const char *name = *json_words(o, "name") ? json_words(o, "name") : json_words(o, "nodename");
	size_t node = string_map_find(&s->names, name);
	struct scontrol_share *share = array_add(j->shares, j->nshares);
	unsigned socket, core, of_socket = node == STRING_MAP_NONE ? 0 : s->nodes[node].cores;
	struct buf b = {0};
	char **list;

	for (size_t i = 0; i < json_members(sockets); i++) {
		const json_t *cores = json_object_get(json_member(sockets, i, &socket), "cores");

		for (size_t k = 0; k < json_members(cores); k++)
			if (is_allocated(json_member(cores, k, &core)))
				buf_printf(&b, "%s%u", b.len ? "," : "", socket * of_socket + core);
	}
	buf_add(&b, "", 1);
	if (b.failed || !share || !(list = array_add(s->lists, s->nlists))) {
		buf_free(&b);
		s->failed = true;
		return -1;
	}
	*list = b.data;
	*share = (struct scontrol_share){ .hosts = name, .cpus = b.data, .gres = gres, .of_cores = true,
					  .memory = memory ? json_amount(memory, "allocated") :
						    json_amount(o, "memory_allocated") };
	return 0;
}

static void json_jobs(struct scontrol *s, const json_t *list)
{
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o) {
		struct scontrol_job *j = array_add(s->jobs, s->njobs);
		const json_t *state = json_object_get(o, "job_state"), *r = json_object_get(o, "job_resources");
		const json_t *gres = json_object_get(o, "gres_detail"), *nodes = json_object_get(r, "allocated_nodes");
		char id[24], *copy, **kept = array_add(s->lists, s->nlists);
		unsigned index;

		snprintf(id, sizeof(id), "%u", json_count(o, "job_id"));
		if (!j || !kept || !(copy = *kept = strdup(id))) {
			s->failed = true;
			return;
		}
		*j = (struct scontrol_job){
			.id = copy, .name = json_words(o, "name"), .partition = json_words(o, "partition"),
			.cpus = json_count(o, "cpus"),
			.start = json_amount(o, "start_time"), .end = json_amount(o, "end_time"),
			.tasks = json_count(o, "tasks"), .task_cpus = json_count(o, "cpus_per_task"),
			.spread = json_count(o, "tasks_per_socket") || json_count(o, "sockets_per_node"),
			.state = state_of(json_string_value(json_is_array(state) ? json_array_get(state, 0) : state)
					  ?: ""),
			.no_priority = !json_amount(o, "priority"), .suspended = json_amount(o, "suspend_time"),
			.seen = 1ul << LAST,
		};
		if (!nodes)
			nodes = json_object_get(json_object_get(r, "nodes"), "allocation");
		for (size_t k = 0; k < json_members(nodes); k++)
			if (json_share(s, j, json_member(nodes, k, &index),
				       json_string_value(json_array_get(gres, k)) ?: ""))
				return;
	}
}

/* --- an output --- */

static int json_read(struct buf *text, const char *name, const char *list, json_t **out, struct err *e)
{
	json_error_t why;

	if (!(*out = json_loadb(text->data, text->len, 0, &why)))
		return err_set(e, "%s: invalid JSON in line %d: %s", name, why.line, why.text);
	return json_is_array(json_object_get(*out, list)) ? 0 : err_set(e, "%s: JSON without a list of %s", name, list);
}

/* The text, ended by a NUL; NUL bytes in it become '?'. JSON: 1. */
static int text_take(struct buf *to, struct buf *text, const char *name, struct err *e)
{
	*to = *text;
	*text = (struct buf){0};
	for (char *nul = to->data; to->len && (nul = memchr(nul, '\0', to->data + to->len - nul));)
		*nul = '?';
	buf_add(to, "", 1);
	if (to->failed)
		return err_set(e, "%s: out of memory", name);
	to->len--;
	return to->data[strspn(to->data, " \t\r\n")] == '{';
}

int scontrol_read_nodes(struct scontrol *s, struct buf *text, const char *name, struct err *e)
{
	struct reading r = { s, true };
	int json = text_take(&s->text[0], text, name, e);

	if (json < 0 || (json && json_read(&s->text[0], name, "nodes", &s->json[0], e)))
		return -1;
	if (json) {
		const json_t *o;
		size_t i;

		json_array_foreach(json_object_get(s->json[0], "nodes"), i, o) {
			struct scontrol_node *n = node_add(s, json_words(o, "name"));

			if (!n)
				continue;
			n->sockets = json_count(o, "sockets");
			n->cores = json_count(o, "cores");
			n->threads = json_count(o, "threads");
			n->allocated = json_count(o, "alloc_cpus");
			n->core_spec = json_count(o, "specialized_cores");
			n->reserved = json_words(o, "specialized_cpus");
			n->affinity = strstr(json_words(o, "reason"), AFFINITY);
			n->partitions = list_joined(s, json_object_get(o, "partitions"));
		}
	} else {
		size_t n;

		scontrol_words(s->text[0].data, "NodeName", node_word, &r);
		/* The last number of a record that is cut short may be, too: "Sockets=1" of 16. */
		n = s->nnodes;
		string_map_free(&s->names);
		s->nnodes = 0;
		for (size_t i = 0; i < n; i++)
			if (!s->nodes[i].whole)
				s->refused++;
			else if (string_map_add(&s->names, s->nodes[i].name) == STRING_MAP_NONE)
				s->failed = true;
			else
				s->nodes[s->nnodes++] = s->nodes[i];
	}
	if (s->failed)
		return err_set(e, "%s: out of memory", name);
	return s->nnodes ? 0 : err_set(e, "%s: no nodes: is it the output of scontrol show node?", name);
}

int scontrol_read_jobs(struct scontrol *s, struct buf *text, const char *name, struct err *e)
{
	struct reading r = { s, true };
	int json = text_take(&s->text[1], text, name, e);
	bool empty = !json && !strncmp(s->text[1].data, "No jobs in the system", 21);
	struct string_map ids = {0};

	if (json < 0 || (json && json_read(&s->text[1], name, "jobs", &s->json[1], e)))
		return -1;
	if (json)
		json_jobs(s, json_object_get(s->json[1], "jobs"));
	else
		scontrol_words(s->text[1].data, "JobId", job_word, &r);
	for (size_t i = 0; i < s->njobs; i++) {
		struct scontrol_job *j = &s->jobs[i];
		size_t before = ids.count, first = string_map_add(&ids, j->id);

		s->failed |= first == STRING_MAP_NONE;
		if (!(j->seen & 1ul << LAST))
			j->fault = "its record is cut short";
		else if (!s->failed && ids.count == before)
			j->fault = s->jobs[first].fault = "two records have its number";
		/* scontrol suspend, which sets the priority to 0, frees the cores; gang scheduling does not. */
		if (j->state != JOB_IS_SUSPENDED)
			continue;
		j->state = j->no_priority ? JOB_ENDED : JOB_HOLDS;
		j->end = j->no_priority ? j->suspended : j->end;
	}
	string_map_free(&ids);
	if (s->failed)
		return err_set(e, "%s: out of memory", name);
	return s->njobs || empty || json ? 0 :
		err_set(e, "%s: no jobs: is it the output of scontrol -d show job?", name);
}

int scontrol_read_switches(struct scontrol *s, struct buf *text, const char *name, const char *partitions,
			   struct err *e)
{
	struct scontrol_network *network = array_add(s->networks, s->nnetworks);
	struct buf own = {0};
	int rc = -1;

	if (!network || (partitions && !(network->partitions = strdup(partitions))))
		return err_set(e, "%s: out of memory", name);
	if (text_take(&own, text, name, e) >= 0)
		rc = slurm_parts_read(&network->leaves, &s->names, own.data, 0) < 0 ?
			err_set(e, "%s: Nodes of a switch are not a host list", name) : 0;
	buf_free(&own);
	return rc;
}

bool scontrol_has_partition(const char *list, const char *partition)
{
	size_t n = strlen(partition);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, partition, n) && (!at[n] || at[n] == ','))
			return true;
	return false;
}

const struct slurm_parts *scontrol_leaves(const struct scontrol *s, const char *partition)
{
	const struct scontrol_network *of = NULL;

	for (const struct scontrol_network *n = s->networks; n < s->networks + s->nnetworks; n++) {
		if (scontrol_has_partition(n->partitions, partition))
			return &n->leaves;
		of = n->partitions ? of : n;
	}
	return of ? &of->leaves : NULL;
}

void scontrol_free(struct scontrol *s)
{
	for (size_t i = 0; i < s->njobs; i++)
		free(s->jobs[i].shares);
	for (size_t i = 0; i < s->nlists; i++)
		free(s->lists[i]);
	for (size_t i = 0; i < s->nnetworks; i++) {
		slurm_parts_free(&s->networks[i].leaves);
		free(s->networks[i].partitions);
	}
	for (int i = 0; i < 2; i++) {
		buf_free(&s->text[i]);
		json_decref(s->json[i]);
	}
	string_map_free(&s->names);
	free(s->networks);
	free(s->lists);
	free(s->nodes);
	free(s->jobs);
}

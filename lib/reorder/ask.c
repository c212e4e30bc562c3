/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "ask.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"

#define COMMAND "/usr/bin/topiary"
#define TOPOLOGY "/run/topiary/topology.xml"
#define SECONDS 5		/* for one answer; TOPIARY_REORDER_SECONDS */
#define ALL_SECONDS 20		/* for all that the program asks */
#define KNOWN 16		/* answers that are kept */
#define MAX_BYTES ((size_t) 16 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *ask_mode(void)
{
	const char *mode = getauxval(AT_SECURE) ? "off" : getenv("TOPIARY_REORDER");

	return mode ? mode : "on";
}

/* --- where this process is --- */

enum { WORDS = 256 };	/* of 32 CPUs each */

/* "0x0000000f,0xffffffff", upper CPUs first. The number of CPUs, or 0 if one of mask is missing. */
static unsigned cpus_holding(const char *set, const uint32_t *mask)
{
	uint32_t word[WORDS];
	unsigned words = 0, cpus = 0;
	char *end;

	for (; words < WORDS; set = end + 1) {
		word[words++] = strtoul(set, &end, 16);
		if (*end != ',')
			break;
	}
	for (unsigned w = 0; w < WORDS; w++) {
		if (mask[w] & ~(w < words ? word[words - 1 - w] : 0))
			return 0;
		cpus += w < words ? __builtin_popcount(word[w]) : 0;
	}
	return cpus;
}

/* The value of an attribute in an XML tag, which ends with a quotation mark; NULL: none. */
static const char *attribute(const char *tag, const char *end, const char *name)
{
	const char *at = memmem(tag, end - tag, name, strlen(name));

	return at ? at + strlen(name) : NULL;
}

/* The domains that hold all CPUs of mask: the smallest of each level in hwloc's XML. */
static void domains_find(const char *xml, const uint32_t *mask, char *out, size_t size)
{
	static const char *const types[] = { "Package", "Die", "NUMANode", "L3Cache", "L2Cache", "Core" };
	enum { LEVELS = sizeof(types) / sizeof(*types) };
	struct { unsigned cpus; unsigned long number; bool there; } level[LEVELS] = {0};
	const char *end;

	for (const char *tag = xml; tag && (tag = strstr(tag, "<object type=\"")) && (end = strchr(tag, '>'));
	     tag = end) {
		const char *type = tag + strlen("<object type=\""), *set = attribute(tag, end, " cpuset=\"");
		const char *number = attribute(tag, end, " gp_index=\"");
		unsigned l = 0, cpus;

		while (l < LEVELS && (strncmp(type, types[l], strlen(types[l])) || type[strlen(types[l])] != '"'))
			l++;
		if (l == LEVELS || !set || !number)
			continue;
		level[l].there = true;
		if (!(cpus = cpus_holding(set, mask)) || (level[l].cpus && level[l].cpus <= cpus))
			continue;
		level[l].cpus = cpus;
		level[l].number = strtoul(number, NULL, 10);
	}
	/* Without a topology all that is known is that no two processes are one. */
	level[LEVELS - 1].there |= !xml;
	for (unsigned l = 0, n = 0; l < LEVELS && n < size; l++)
		n += level[l].cpus ? snprintf(out + n, size - n, " %lu", level[l].number) :
				     snprintf(out + n, size - n, level[l].there ? " *" : " -");
}

void ask_place(char out[static ASK_PLACE])
{
	static char domains[ASK_PLACE / 2];
	static uint32_t last[WORDS];
	char file[PATH_MAX], host[65] = "";
	const char *node = getenv("SLURMD_NODENAME"), *step = getenv("TOPIARY_STEP_DIR");
	cpu_set_t cpus[32 * WORDS / CPU_SETSIZE];
	uint32_t mask[WORDS] = {0};
	struct buf xml = {0};
	bool bound = !sched_getaffinity(getpid(), sizeof(cpus), cpus);

	for (unsigned cpu = 0; bound && cpu < 32 * WORDS; cpu++)
		mask[cpu / 32] |= (uint32_t) !!CPU_ISSET_S(cpu, sizeof(cpus), cpus) << cpu % 32;
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	snprintf(file, sizeof(file), "%.4000s/topology.xml", step ? step : "");
	pthread_mutex_lock(&lock);
	if (!*domains || memcmp(mask, last, sizeof(mask))) {
		if (bound && (!step || file_read(file, MAX_BYTES, &xml, NULL)))
			file_read(TOPOLOGY, MAX_BYTES, &xml, NULL);
		domains_find(xml.data, mask, domains, sizeof(domains));
		memcpy(last, mask, sizeof(mask));
		buf_free(&xml);
	}
	snprintf(out, ASK_PLACE, "%s %.64s%s", *host ? host : "-", node && !strchr(node, ' ') && *node ? node : "-",
		 domains);
	pthread_mutex_unlock(&lock);
}

/* --- what the command answers --- */

struct answer {
	uint64_t hash;
	size_t len;		/* of the question */
	int ranks, *process;	/* NULL: the order stays, for the reason in why */
	double gain;
	struct err why;
};

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

struct child {
	const char *command;
	char **env;
	int in, out, err;
};

/* Not one of the first three, which the program may have closed: child_exec puts all of them there. */
static int memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC), high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd >= 0)
		close(fd);
	return high;
}

/*
 * In the program's memory, until execve: system calls alone. No signal gets through before the program's handlers, of
 * which the child has a table of its own, are gone.
 */
static int child_exec(void *arg)
{
	const struct child *c = arg;
	char *argv[] = { (char *) c->command, "reorder", "-", NULL };
	struct sigaction stock = { .sa_handler = SIG_DFL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(c->in, STDIN_FILENO) < 0 || dup2(c->out, STDOUT_FILENO) < 0 || dup2(c->err, STDERR_FILENO) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	for (int s = 1; s < _NSIG; s++)
		sigaction(s, &stock, NULL);
	sigprocmask(SIG_SETMASK, &stock.sa_mask, NULL);
	execve(c->command, argv, c->env);
	_exit(127);
}

/*
 * Runs the command on the question. The program is not forked, which copies much and which RDMA does not survive, and
 * has no signal at the child's end, which its handler could take for that of a child of its own. 0, or -1 with the
 * reason.
 */
static int child_answer(const struct buf *question, double seconds, struct buf *text, struct err *why)
{
	char stack[16384] __attribute__((aligned(64))), conf[PATH_MAX + 16];
	const char *command = getenv("TOPIARY_REORDER_COMMAND"), *config = getenv("TOPIARY_CONF"), *last;
	char *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", config ? conf : NULL, NULL };
	struct child c = { command ? command : COMMAND, env, memory_file("topiary-question"),
		memory_file("topiary-answer"), memory_file("topiary-stderr") };
	struct buf said = {0};
	double deadline = seconds_now() + seconds;
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int status = -1, left, error, rc = -1;
	sigset_t all, before;
	pid_t pid = -1;

	snprintf(conf, sizeof(conf), "TOPIARY_CONF=%.4000s", config ? config : "");
	if (c.in >= 0 && c.out >= 0 && c.err >= 0 && !file_write(c.in, question->data, question->len) &&
	    !lseek(c.in, 0, SEEK_SET)) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		pid = clone(child_exec, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, &c);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (pid > 0 && (p.fd = syscall(SYS_pidfd_open, pid, 0)) >= 0)
		while ((left = 1000 * (deadline - seconds_now())) > 0 && poll(&p, 1, left) < 0 && errno == EINTR)
			;
	error = errno;
	if (pid > 0 && !(p.revents & POLLIN))
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	snprintf(conf, sizeof(conf), "/proc/self/fd/%d", c.err);
	file_read(conf, MAX_BYTES, &said, NULL);
	while (said.len && said.data[said.len - 1] == '\n')
		said.data[--said.len] = '\0';
	snprintf(conf, sizeof(conf), "/proc/self/fd/%d", c.out);
	if (pid < 0)
		err_set(why, "%s cannot be started: %s", c.command, strerror(error));
	else if (p.fd < 0)
		err_set(why, "%s was not waited for: pidfd_open: %s", c.command, strerror(error));
	else if (!(p.revents & POLLIN))
		err_set(why, "%s took more than %g s", c.command, seconds);
	else if (file_read(conf, MAX_BYTES, text, why))
		;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		rc = 0;
	else
		err_set(why, "%s failed%s%s", c.command, said.len ? ": " : "", !said.len ? "" :
			(last = memrchr(said.data, '\n', said.len)) ? last + 1 : said.data);
	if (!rc && said.len && !strcasecmp(ask_mode(), "report"))
		dprintf(STDERR_FILENO, "%s\n", said.data);	/* a network or costs that cannot be read */
	buf_free(&said);
	if (p.fd >= 0)
		close(p.fd);
	close(c.in);
	close(c.out);
	close(c.err);
	return rc;
}

/* "COST-BEFORE COST-AFTER" and, line by line, the process of each rank, none of them twice. */
static int answer_read(const char *text, int processes, struct answer *a)
{
	bool *taken = calloc(processes, sizeof(*taken));
	int *process = malloc(a->ranks * sizeof(*process)), r = 0;
	double before, after;
	char *at = NULL;

	if (taken && process && text && sscanf(text, "%lf %lf", &before, &after) == 2 && after <= before)
		for (at = strchr(text, '\n'); at && r < a->ranks; r++) {
			long one = strtol(at, &at, 10);

			if (*at != '\n' || one < 0 || one >= processes || taken[one])
				break;
			taken[one] = true;
			process[r] = one;
		}
	free(taken);
	if (!at || r < a->ranks) {
		free(process);
		return err_set(&a->why, "the answer of topiary reorder is not complete");
	}
	a->gain = before > 0 ? 100 * (before - after) / before : 0;
	if (after < before)
		a->process = process;
	else
		free(process);
	return a->process ? 0 : err_set(&a->why, "no other costs less");
}

int ask_order(const struct buf *question, int processes, int ranks, int *process, double *gain, bool *known,
	      struct err *why)
{
	static struct answer answers[KNOWN];
	static unsigned asked;
	static double spent;
	struct answer *a = NULL;
	const char *limit = getenv("TOPIARY_REORDER_SECONDS");
	double start = seconds_now(), seconds = limit ? strtod(limit, NULL) : SECONDS;
	uint64_t hash = 0xcbf29ce484222325;
	struct buf text = {0};

	if (question->failed)
		return err_set(why, "out of memory");
	for (size_t i = 0; i < question->len; i++)	/* FNV-1a */
		hash = (hash ^ (unsigned char) question->data[i]) * 0x100000001b3;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < KNOWN && !a; i++)
		if (answers[i].len == question->len && answers[i].hash == hash && answers[i].ranks == ranks)
			a = &answers[i];
	if (!(*known = a)) {
		a = &answers[asked++ % KNOWN];
		free(a->process);
		*a = (struct answer){ .hash = hash, .len = question->len, .ranks = ranks };
		if (spent > ALL_SECONDS / (double) SECONDS * seconds)
			err_set(&a->why, "this program has asked for %.0f s", spent);
		else if (!child_answer(question, seconds, &text, &a->why))
			answer_read(text.data, processes, a);
		buf_free(&text);
		spent += seconds_now() - start;
	}
	if (a->process)
		memcpy(process, a->process, ranks * sizeof(*process));
	*gain = a->gain;
	if (why)
		*why = a->why;
	bool reordered = a->process;

	pthread_mutex_unlock(&lock);
	return reordered ? 0 : -1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topology.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/file.h"
#include "base/hash.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"
#include "hwxml/canon.h"
#include "run_dir.h"

/* --- the node's export --- */

/*
 * What a step must know of the node's export without parsing it: its hash and its CPUs. The step that parses it
 * records them, so that later steps need not.
 */
struct export {
	char hash[HASH_HEX];
	char cpus[2048];	/* the CPUs in it, in hwloc's list format */
	char complete[2048];	/* and its complete cpuset */
};

/* The CPUs that the kernel has, and those of them that are online. */
struct export_cpus {
	hwloc_bitmap_t present, online;
};

/* The topology that one step needs. */
struct topology_job {
	const char *cores;	/* to keep (hwview/restrict.h); NULL: all */
	int cache, dir;		/* cache may be -1: then each step makes its own */
	struct export_cpus cpus;
	struct stat st;		/* of the export's file */
	struct export x;
	struct buf xml;		/* the export, once it has been read */
	int to_xml, to_shm;	/* the files to write: new and empty, open for reading and writing */
};

enum {
	SETTLED = 2,		/* seconds: a file changed twice within one clock tick has the same times */
};

/*
 * On real hardware the process's affinity adds nothing to the CPUs that are online; where a preloaded library emulates
 * hardware, it is the only source. 0, or -1 with an error; the caller frees both in any case.
 */
static int export_cpus_read(struct export_cpus *out, struct err *e)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc();
	int rc = -1;

	if (!own)
		err_set(e, "out of memory");
	else if ((out->present = machine_cpus("present", e)) && (out->online = machine_cpus("online", e)) &&
		 !machine_bound(0, own, e))
		rc = hwloc_bitmap_or(out->online, out->online, own) ||
		     hwloc_bitmap_or(out->present, out->present, out->online) ? err_set(e, "out of memory") : 0;
	hwloc_bitmap_free(own);
	return rc;
}

/*
 * Each PU of the export must be a CPU that the kernel has, and each CPU that is online must be in the export's complete
 * cpuset, or the export is of another machine. CPUs may go offline after the export, on a machine
 * without SMT or by a fault: *offline, the export's CPU numbers may be bound to, but not all of them.
 */
static bool export_is_local(const struct export *x, const struct export_cpus *cpus, bool *offline)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc(), complete = hwloc_bitmap_alloc();
	bool local = own && complete && !hwloc_bitmap_list_sscanf(own, x->cpus) &&
		     !hwloc_bitmap_list_sscanf(complete, x->complete) && hwloc_bitmap_isincluded(own, cpus->present) &&
		     hwloc_bitmap_isincluded(cpus->online, complete);

	*offline = local && !hwloc_bitmap_isincluded(own, cpus->online);
	hwloc_bitmap_free(own);
	hwloc_bitmap_free(complete);
	return local;
}

/* The name of the record in the cache directory. */
#define EXPORT_RECORD "export"

static void format_identity(const struct stat *st, char *out, size_t size)
{
	snprintf(out, size, "%llx:%llu:%lld:%lld.%09ld:%lld.%09ld", (unsigned long long) st->st_dev,
		(unsigned long long) st->st_ino,
		 (long long) st->st_size, (long long) st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		 (long long) st->st_ctim.tv_sec,
		 st->st_ctim.tv_nsec);
}

/*
 * Read the record of the same export from the cache directory: the same by its file's identity (inode, size and times),
 * or without one by out->hash. The record is one line: identity, hash, CPUs, all CPUs.
 */
static bool export_recall(int dir, const struct stat *st, struct export *out)
{
	char text[sizeof(*out) + 256], id[160], recorded[160];
	int fd = openat(dir, EXPORT_RECORD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	struct export x;

	if (fd >= 0)
		close(fd);
	if (n <= 0 || text[n - 1] != '\n')
		return false;
	text[n] = '\0';
	if (sscanf(text, "%159s %64s %2047s %2047s", recorded, x.hash, x.cpus, x.complete) != 4)
		return false;
	if (st)
		format_identity(st, id, sizeof(id));
	if (st ? strcmp(id, recorded) : strcmp(out->hash, x.hash))
		return false;
	*out = x;
	return true;
}

/* A failure to write it is not an error. */
static void export_record(int dir, const struct stat *st, const struct export *x)
{
	char id[160], name[32];
	int fd;

	if (st->st_ctime + SETTLED > time(NULL))
		return;
	format_identity(st, id, sizeof(id));
	snprintf(name, sizeof(name), EXPORT_RECORD ".%d", (int) getpid());
	if ((fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
		return;
	if (dprintf(fd, "%s %s %s %s\n", id, x->hash, x->cpus, x->complete) < 0 ||
	    renameat(dir, name, dir, EXPORT_RECORD))
		unlinkat(dir, name, 0);
	close(fd);
}

/* --- the child process that parses the export --- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "topology.c: unknown architecture: add its AUDIT_ARCH_ of <linux/audit.h>"
#endif

static const int allowed[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_ftruncate, SYS_fallocate, SYS_close, SYS_mmap,
		SYS_munmap,
	SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex, SYS_getrandom, SYS_clock_gettime, SYS_sysinfo,
		SYS_exit,
	SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__	/* it looks for an alternate stack when a process ends */
	SYS_sigaltstack,
#endif
};

enum { ALLOWED = sizeof(allowed) / sizeof(*allowed), HEAD = 4 };

/*
 * The child's output serves all users: restrict it to its memory and its open descriptors. It keeps root's uid: with
 * any other, a user of that uid could stop it, trace it or set its limits. But it has no capability, can gain none, and
 * the kernel refuses it all system calls that name a file, a process or an address (EACCES). Written by hand:
 * libseccomp 2.5 never returns when an allocation fails. 0, or -1 with an error.
 */
static int confine_self(struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	struct sock_filter code[HEAD + ALLOWED + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	for (int i = 0; i < ALLOWED; i++)
		code[HEAD + i] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], ALLOWED - i, 0);
	code[HEAD + ALLOWED] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
	code[HEAD + ALLOWED + 1] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prctl(PR_SET_NAME, "topiary-image");
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	       syscall(SYS_capset, &head, none) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ?
	       err_set(e, "the process that restricts the topology cannot be sandboxed: %s", strerror(errno)) : 0;
}

/* One conversion of the export. */
struct conversion {
	struct export export;		/* its CPU lists */
	bool is_local;
	struct buf xml, image_xml;	/* the restricted topology, and the image as text */
	hwloc_topology_t image;
};

static int format_list(hwloc_const_bitmap_t set, char *out, size_t size)
{
	int n = hwloc_bitmap_list_snprintf(out, size, set);

	return n > 0 && (size_t) n < size ? 0 : -1;
}

/* The image has the PUs of the requested cores; without cores, only PUs of the export. */
static int export_convert(const struct topology_job *j, struct conversion *p, struct err *e)
{
	hwloc_topology_t t = machine_load(j->xml.data, j->xml.len, e);
	struct export *x = &p->export;
	hwloc_const_bitmap_t asked, made;
	bool offline = false;
	int rc = -1;

	if (!t)
		return -1;
	if (format_list(hwloc_topology_get_topology_cpuset(t), x->cpus, sizeof(x->cpus)) ||
	    format_list(hwloc_topology_get_complete_cpuset(t), x->complete, sizeof(x->complete))) {
		err_set(e, "the list of its CPUs is too long");
		goto done;
	}
	p->is_local = export_is_local(x, &j->cpus, &offline);
	if (j->cores && (restrict_topology(t, j->cores, e) || (offline && restrict_to_cpus(t, j->cpus.online, e))))
		goto done;
	if (machine_export(t, &p->xml, e) || !(p->image = image_load(p->xml.data, p->xml.len, p->is_local, e)))
		goto done;
	asked = hwloc_topology_get_topology_cpuset(t);
	made = hwloc_topology_get_topology_cpuset(p->image);
	if (j->cores ? hwloc_bitmap_isequal(made, asked) : hwloc_bitmap_isincluded(made, asked))
		rc = machine_export(p->image, &p->image_xml, e) ? -1 : 0;
	else
		err_set(e, IMAGE_SHM " would have CPUs other than those of the requested cores");
done:
	hwloc_topology_destroy(t);
	return rc;
}

static bool is_same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/* Convert the export and write both files, verified. What it allocates ends with the child. 0, or -1 with an error. */
static int worker_run(const struct topology_job *j, struct conversion *p, struct err *e)
{
	struct conversion again = {0};
	struct buf xml = {0};
	hwloc_topology_t t;
	unsigned slot = 1;

	/*
	 * When memory is short, hwloc sometimes omits objects and reports success, and the result would serve all later
	 * steps: two equal results rule that out.
	 */
	if (export_convert(j, p, e) || export_convert(j, &again, e))
		return -1;
	if (p->is_local != again.is_local || strcmp(p->export.cpus, again.export.cpus) ||
	    strcmp(p->export.complete, again.export.complete) || !is_same_text(&p->xml, &again.xml) ||
	    !is_same_text(&p->image_xml, &again.image_xml))
		return err_set(e, "two conversions differ; memory may be short");
	if (file_write(j->to_xml, p->xml.data, p->xml.len))
		return err_set(e, "%s: %s", IMAGE_XML, strerror(errno));
	/* Images of different cores have different addresses: a task maps both its step's and the node's. */
	for (const char *at = j->cores; at && *at; at++)
		slot = slot * 31 + *at;
	if (image_write(j->to_shm, p->image, j->cores ? 1 + slot % 0xffff : 0, e))
		return -1;
	/* An image that could not be written is marked as empty: nothing to check. */
	if (image_is_empty(j->to_shm))
		return 0;
	if (image_from_fd(j->to_shm, &t, e) || machine_export(t, &xml, e))
		return -1;
	return is_same_text(&xml, &p->image_xml) ? 0 : err_set(e, IMAGE_SHM " does not read back as written");
}

/* The first byte of the child's answer. */
enum { ANSWER_ERROR = '!', ANSWER_LOCAL = '1', ANSWER_FOREIGN = '0' };

static int answer_write(int fd, char what, const void *data, size_t len)
{
	return file_write(fd, &what, 1) || file_write(fd, data, len) ? 1 : 0;
}

static int worker_child(int fd, void *arg)
{
	struct topology_job *j = arg;
	struct conversion made = {0};
	struct err e = {0};

	child_keep((int[]){ fd, j->to_xml, j->to_shm, -1 });
	image_quiet();
	if (confine_self(&e) || worker_run(j, &made, &e))
		return answer_write(fd, ANSWER_ERROR, e.text, strlen(e.text));
	return answer_write(fd, made.is_local ? ANSWER_LOCAL : ANSWER_FOREIGN, &made.export, sizeof(made.export));
}

enum { TIMEOUT = 20, MAX_ANSWER = sizeof(struct export) + 64 };

/*
 * Restrict the export to the job's cores, less the CPUs that are offline, in the child: it alone parses the export.
 * Sets the CPU lists of j->x; *is_local: the image may be bound to. 0, or -1 with an error.
 */
static int worker_start(struct topology_job *j, bool *is_local, struct err *e)
{
	struct buf answer = {0};
	struct export seen;
	int rc = child_run(worker_child, j, TIMEOUT, MAX_ANSWER, &answer, e);

	if (rc > 0) {
		rc = err_set(e, "the process that restricts the topology failed");
	} else if (!rc && answer.len && answer.data[0] == ANSWER_ERROR) {
		rc = err_set(e, "%s", answer.data + 1);
	} else if (!rc && answer.len != 1 + sizeof(seen)) {
		rc = err_set(e, "no valid answer from the process that restricts the topology");
	} else if (!rc) {
		memcpy(&seen, answer.data + 1, sizeof(seen));
		seen.cpus[sizeof(seen.cpus) - 1] = seen.complete[sizeof(seen.complete) - 1] = '\0';
		memcpy(seen.hash, j->x.hash, sizeof(seen.hash));
		j->x = seen;
		*is_local = answer.data[0] == ANSWER_LOCAL;
	}
	buf_free(&answer);
	return rc;
}

/*
 * --- a cache of the topologies made on this node, for later steps with the same cores of the same export ---
 *
 * RunDir/cache, a directory of root's, has KEY.xml and KEY.shm, hard links to the files of the steps that use them.
 * Only complete files are added, each by one link(2), so that steps need no lock and a crash leaves at most a KEY.xml
 * alone. The least recently used are removed first.
 */
#define DIRECTORY "cache"

enum {
	MAX_IMAGES = 512,
	MAX_BYTES = 64 << 20,	/* memory, where RunDir is below /run */
	YOUNG = 60,		/* seconds: another step may still be adding the second file of a pair */
};

struct cache_key {
	char text[200];
};

struct file_names {
	char xml[sizeof(struct cache_key) + 4], shm[sizeof(struct cache_key) + 4];
};

static struct file_names file_names_of(const struct cache_key *key)
{
	struct file_names n;

	snprintf(n.xml, sizeof(n.xml), "%s.xml", key->text);
	snprintf(n.shm, sizeof(n.shm), "%s.shm", key->text);
	return n;
}

/* With the list of cores itself where it is short: the first hash of libcrypto in a process costs a millisecond. */
static struct cache_key cache_key_of(const struct topology_job *j, bool is_local)
{
	const char *cores = j->cores ? j->cores : "all";
	char hash[HASH_HEX];
	struct cache_key key;
	int n = snprintf(key.text, sizeof(key.text), "%.32s-%d-%x-%s-", j->x.hash, is_local, hwloc_get_api_version(),
		TOPIARY_VERSION);
	size_t left = sizeof(key.text) - n;

	if (strlen(cores) >= left) {
		hash_hex(cores, strlen(cores), hash);
		cores = hash;
	}
	snprintf(key.text + n, left, "%s", cores);
	return key;
}

static void remove_entry(int cache, const struct cache_key *key)
{
	struct file_names n = file_names_of(key);

	unlinkat(cache, n.shm, 0);
	unlinkat(cache, n.xml, 0);
}

/* Does the file name have that ending? Then its key. */
static bool key_of(const char *file, const char *ending, struct cache_key *key)
{
	size_t len = strlen(file), end = strlen(ending);

	if (len <= end || len - end >= sizeof(key->text) || strcmp(file + len - end, ending))
		return false;
	snprintf(key->text, sizeof(key->text), "%.*s", (int) (len - end), file);
	return true;
}

/* What a crash may leave: one file of a pair, a record that was not renamed. */
static bool is_waste(int cache, const char *file, const struct stat *st)
{
	struct cache_key key;

	if (!strcmp(file, EXPORT_RECORD) || st->st_mtime + YOUNG >= time(NULL) || key_of(file, ".shm", &key))
		return false;
	return !key_of(file, ".xml", &key) || faccessat(cache, file_names_of(&key).shm, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Remove waste, and the least recently used topology. False: they are no more than they may be. */
static bool cache_trim(int cache)
{
	DIR *dir = run_dir_list(openat(cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t entries = 0, bytes = 0;
	struct cache_key key, oldest = {0};
	struct timespec used = {0};
	struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir))) {
		if (fstatat(cache, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (is_waste(cache, d->d_name, &st)) {
			unlinkat(cache, d->d_name, 0);
			continue;
		}
		bytes += st.st_blocks * 512;
		if (!key_of(d->d_name, ".shm", &key))
			continue;
		if (!entries++ || st.st_mtim.tv_sec < used.tv_sec ||
		    (st.st_mtim.tv_sec == used.tv_sec && st.st_mtim.tv_nsec < used.tv_nsec)) {
			oldest = key;
			used = st.st_mtim;
		}
	}
	if (dir)
		closedir(dir);
	if (!entries || (entries <= MAX_IMAGES && bytes <= MAX_BYTES))
		return false;
	remove_entry(cache, &oldest);
	return true;
}

/*
 * Link both files into the step's directory. False, with the directory unchanged: not in the cache. A step's topology
 * without CPUs that are offline is not for other steps: these may be online again.
 */
static bool link_cached(struct topology_job *j, bool *is_local)
{
	struct cache_key key;
	struct file_names n;
	bool offline;

	*is_local = export_is_local(&j->x, &j->cpus, &offline);
	if (offline && j->cores)
		return false;
	key = cache_key_of(j, *is_local);
	n = file_names_of(&key);
	if (linkat(j->cache, n.shm, j->dir, IMAGE_SHM, 0)) {
		if (errno == EMLINK)
			remove_entry(j->cache, &key);
		return false;
	}
	if (linkat(j->cache, n.xml, j->dir, IMAGE_XML, 0)) {
		unlinkat(j->dir, IMAGE_SHM, 0);
		return false;
	}
	utimensat(j->cache, n.shm, NULL, AT_SYMLINK_NOFOLLOW);
	return true;
}

static int link_or_make(struct topology_job *j, int export, bool *is_local, struct err *e)
{
	char self[32];

	if (export_recall(j->cache, &j->st, &j->x) && link_cached(j, is_local))
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", export);
	if (file_read(self, CANON_MAX_BYTES, &j->xml, e))
		return -1;
	hash_hex(j->xml.data, j->xml.len, j->x.hash);
	/* The file may be new while its contents are not. */
	if (export_recall(j->cache, NULL, &j->x)) {
		export_record(j->cache, &j->st, &j->x);
		if (link_cached(j, is_local))
			return 0;
	}
	bool offline;
	int rc = -1;

	j->to_xml = run_dir_file(j->dir, e);
	j->to_shm = j->to_xml < 0 ? -1 : run_dir_file(j->dir, e);
	if (j->to_shm >= 0)
		rc = worker_start(j, is_local, e) || run_dir_link(j->to_xml, j->dir, IMAGE_XML, e) ||
		     run_dir_link(j->to_shm, j->dir, IMAGE_SHM, e) ? -1 : 0;
	if (!rc)
		export_record(j->cache, &j->st, &j->x);
	if (!rc && (!export_is_local(&j->x, &j->cpus, &offline) || !offline || !j->cores)) {
		struct cache_key key = cache_key_of(j, *is_local);
		struct file_names n = file_names_of(&key);

		/* KEY.xml first, so that each KEY.shm has one; an existing KEY.xml has the same contents. */
		run_dir_link(j->to_xml, j->cache, n.xml, NULL);
		run_dir_link(j->to_shm, j->cache, n.shm, NULL);
		while (cache_trim(j->cache))
			;
	}
	if (j->to_shm >= 0)
		close(j->to_shm);
	if (j->to_xml >= 0)
		close(j->to_xml);
	return rc;
}

int topology_write(const char *file, const char *cores, int root, int dir, bool *is_local, struct err *e)
{
	struct topology_job j = { .cores = cores, .dir = dir };
	int export = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc;

	if (export < 0)
		return err_set(e, "%s: %s", file, strerror(errno));
	if (fstat(export, &j.st) || !S_ISREG(j.st.st_mode) || j.st.st_uid != 0 ||
	    j.st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(export);
		return err_set(e, "%s: must be a regular file owned by root and writable by root only", file);
	}
	mkdirat(root, DIRECTORY, 0700);
	j.cache = run_dir_enter(root, DIRECTORY);
	if ((rc = export_cpus_read(&j.cpus, e) || link_or_make(&j, export, is_local, e) ? -1 : 0))
		err_within(e, "%s", file);
	buf_free(&j.xml);
	hwloc_bitmap_free(j.cpus.present);
	hwloc_bitmap_free(j.cpus.online);
	if (j.cache >= 0)
		close(j.cache);
	close(export);
	return rc;
}

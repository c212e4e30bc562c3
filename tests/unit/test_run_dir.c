/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../spank_plugin/step/run_dir.h"
#include "table.h"

/*
 * A user owns a folder below root's RunDir and does what he can, while root makes, gives and removes it again and
 * again: what root removes must be his alone.
 */
enum { ROUNDS = 400, KEPT = 20, DEPTH = 8, NOBODY = 65534 };

static char *run_folder, *victim;
static _Atomic unsigned *swaps;

static void path_in(char *out, size_t size, const char *in, const char *name)
{
	assert_true(snprintf(out, size, "%s/%s", in, name) < (int) size);
}

static void file_make(const char *in, unsigned i)
{
	char name[16], path[128];
	int fd;

	snprintf(name, sizeof(name), "keep%u", i);
	path_in(path, sizeof(path), in, name);
	assert_true((fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)) >= 0);
	close(fd);
}

static unsigned files_left(const char *in)
{
	unsigned n = 0;
	char path[128];

	for (unsigned i = 0; i < KEPT; i++) {
		snprintf(path, sizeof(path), "%s/keep%u", in, i);
		n += !access(path, F_OK);
	}
	return n;
}

/* A chain of folders, and beside it a link to what is root's: one takes the place of the other, as often as it goes. */
static void attack_once(void)
{
	char user[96], deep[160];

	snprintf(user, sizeof(user), "%s/1.batch/user", run_folder);
	if (chdir(user))
		return;
	mkdir("a", 0700);
	snprintf(deep, sizeof(deep), "a");
	for (unsigned i = 0; i < DEPTH; i++) {
		strcat(deep, "/a");
		mkdir(deep, 0700);
	}
	if (symlink(victim, "b") && errno != EEXIST)
		return;
	for (unsigned i = 0; i < 64; i++) {
		if (renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE))
			return;
		atomic_fetch_add(swaps, 1);
	}
}

static pid_t attacker_start(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	for (;;)
		attack_once();
}

FIXTURE(setup)
{
	run_folder = folder_new();
	victim = folder_new();
	swaps = mmap(NULL, sizeof(*swaps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (swaps == MAP_FAILED)
		return -1;
	for (unsigned i = 0; i < KEPT; i++)
		file_make(victim, i);
	return run_dir_open(run_folder, &err) < 0 ? -1 : 0;
}

static void one_step(int root)
{
	int dir = run_dir_make(root, "1.batch", &err), user;
	char path[128];

	if (dir < 0)
		return;		/* what the last round could not remove at once: a later one does */
	user = run_dir_sub(dir, "user", &err);
	snprintf(path, sizeof(path), "%s/1.batch/user", run_folder);
	if (user >= 0 && !run_dir_mount_user(path, NOBODY, NOBODY, &err))
		usleep(2000);
	run_dir_remove(root, "1.batch");
	close(user);
	close(dir);
}

TEST(test_user_who_swaps_folders_for_links)
{
	pid_t attacker = attacker_start();
	int root = run_dir_open(run_folder, &err);

	assert_true(root >= 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		one_step(root);
	assert_int_equal(kill(attacker, SIGKILL), 0);
	assert_int_equal(waitpid(attacker, NULL, 0), attacker);
	assert_true(*swaps > ROUNDS);
	assert_int_equal(files_left(victim), KEPT);
	/* With nobody in the way all of it goes. */
	one_step(root);
	assert_int_equal(faccessat(root, "1.batch", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	close(root);
}

/* The folder itself, too: a step's name that is a link, or a folder that is another's, is not entered. */
TEST(test_links_and_other_peoples_folders)
{
	int root = run_dir_open(run_folder, &err);

	assert_int_equal(symlinkat(victim, root, "2.0"), 0);
	assert_int_equal(run_dir_enter(root, "2.0"), -1);
	assert_int_equal(run_dir_make(root, "2.0", &err), -1);
	assert_int_equal(mkdirat(root, "cache", 0777), 0);
	assert_int_equal(fchownat(root, "cache", NOBODY, NOBODY, 0), 0);
	assert_int_equal(run_dir_enter(root, "cache"), -1);
	assert_int_equal(files_left(victim), KEPT);
	close(root);
}

TESTS_MAIN(setup, NULL)

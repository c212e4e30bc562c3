/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "client/cred.h"
#include "cmd.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static const struct argp argp = {
	NULL, cmd_words, "NODE...",
	"Take a node as it is for what its class shall be. Only root and RegistryUser may.", NULL, NULL, NULL,
};

/* What is signed is the hash that the registry tells now: a node that changes meanwhile is refused. */
static int make_claim(const struct cmd *c, const char *node, struct claim *out, struct err *e)
{
	json_t *known = cmd_get_node(c, node, "", e);
	struct buf boot = {0};
	struct timespec now;
	int rc = -1;

	if (!known || file_read(BOOT_ID, 64, &boot, e))
		goto error;
	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct claim){ .seq = now.tv_sec * 1000000000ull + now.tv_nsec };
	snprintf(out->node, sizeof(out->node), "%s", node);
	snprintf(out->boot_id, sizeof(out->boot_id), "%.36s", boot.data);
	snprintf(out->sha256, sizeof(out->sha256), "%s", cmd_text(known, "sha256"));
	rc = 0;
error:
	json_decref(known);
	buf_free(&boot);
	return rc;
}

static char *sign(const struct cmd *c, const char *node, struct err *e)
{
	const char *reader = c->settings.registry_user;
	const struct passwd *pw = getpwnam(reader);
	struct claim claim;

	if (!pw) {
		err_set(e, "RegistryUser=%s: no such user here", reader);
		return NULL;
	}
	return make_claim(c, node, &claim, e) ? NULL : cred_sign(&claim, pw->pw_uid, c->settings.munge_socket, e);
}

static json_t *accept_node(const struct cmd *c, const char *node, struct err *e)
{
	char *credential = sign(c, node, e);
	struct buf path = {0};
	json_t *answer = NULL;

	if (!credential)
		return NULL;
	cmd_node_path(&path, node, "/accept");
	if (path.failed)
		err_set(e, "%s: out of memory", node);
	else
		answer = cmd_post(c, path.data, credential, e);
	buf_free(&path);
	free(credential);
	return answer;
}

/* What was accepted before a node that could not be is told all the same. */
int cmd_accept(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct words words = { .what = "node" };
	struct err printing;
	json_t *accepted = json_array();
	int rc = cmd_parse(c, &argp, &words, argc, argv, e);

	for (int i = 0; i < words.n && rc == 0; i++) {
		json_t *answer = accept_node(c, words.list[i], e);

		rc = answer ? 0 : -1;
		if (answer && !c->json)
			printf("%s: class %s is now what this node is; %" JSON_INTEGER_FORMAT " node(s) belong to it\n",
			       words.list[i], cmd_text(answer, "class"), cmd_number(answer, "nodes"));
		if (answer)
			json_array_append_new(accepted, answer);
	}
	if (c->json && cmd_print_json(accepted, rc ? &printing : e))
		rc = -1;
	json_decref(accepted);
	return rc;
}

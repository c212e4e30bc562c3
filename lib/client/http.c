/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/http.h"

#include <curl/curl.h>
#include <pthread.h>

#define ANSWER_MAX (256u << 20)
#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

struct source {
	const char *data;
	size_t left;
};

static void curl_start(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct buf *b = user;

	if (size * n > ANSWER_MAX - b->len)
		return 0;
	buf_add(b, data, size * n);
	return b->failed ? 0 : size * n;
}

/* The value of a header in this line, which ends with its line break, or NULL. malloc'ed. */
static char *header_value(const char *line, size_t len, const char *name)
{
	size_t n = strlen(name);

	if (len <= n || line[n] != ':' || strncasecmp(line, name, n))
		return NULL;
	for (n++; n < len && line[n] == ' ';)
		n++;
	while (len > n && strchr("\r\n ", line[len - 1]))
		len--;
	return strndup(line + n, len - n);
}

/* The first one of each name counts; curl_easy_header() would do, but RHEL 9's libcurl does not have it. */
static size_t on_header(char *line, size_t size, size_t n, void *user)
{
	struct http_answer *a = user;
	char *value;

	if (!a->ack)
		a->ack = header_value(line, size * n, "Topiary-Ack");
	if (!a->etag)
		a->etag = header_value(line, size * n, "ETag");
	if (!a->date && (value = header_value(line, size * n, "Date"))) {
		a->date = curl_getdate(value, NULL);
		a->date = a->date > 0 ? a->date : 0;
		free(value);
	}
	if (!a->retry_after && (value = header_value(line, size * n, "Retry-After"))) {
		long wait = strtol(value, NULL, 10);

		a->retry_after = wait > 0 && wait < 86400 ? wait : 0;
		free(value);
	}
	return size * n;
}

static size_t on_send(char *to, size_t size, size_t n, void *user)
{
	struct source *s = user;
	size_t len = size * n < s->left ? size * n : s->left;

	if (len)
		memcpy(to, s->data, len);
	s->data += len;
	s->left -= len;
	return len;
}

static int add_header(struct curl_slist **list, const char *name, const char *value)
{
	struct curl_slist *longer;
	struct buf line = {0};

	if (!value)
		return 0;
	buf_printf(&line, "%s: %s", name, value);
	longer = line.failed ? NULL : curl_slist_append(*list, line.data);
	buf_free(&line);
	if (!longer)
		return -1;
	*list = longer;
	return 0;
}

/* topiaryd knows root's own request from one that a proxy of root's forwards. Without CAP_CHOWN it remains root's. */
static int on_socket(void *owner, curl_socket_t fd, curlsocktype)
{
	if (*(const uid_t *) owner && !geteuid())
		(void) !fchown(fd, *(const uid_t *) owner, -1);
	return CURL_SOCKOPT_OK;
}

static void set_options(CURL *curl, const struct http_request *r, const char *ca, const char *url,
			struct curl_slist *headers, struct http_answer *a, struct source *body, char *why)
{
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long) r->timeout);
	/* A credential goes to the address that was configured, and to no other. */
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
	if (*ca)
		curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket);
	curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, &r->owner);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a->body);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, a);
	if (!strcmp(r->method, "PUT")) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t) body->left);
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(curl, CURLOPT_READDATA, body);
	} else if (strcmp(r->method, "GET")) {
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
	}
}

int http_do(const struct settings *s, const struct http_request *r, struct http_answer *a, struct err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct source body = { r->body, r->length };
	struct curl_slist *headers = NULL;
	const char *base = r->base ? r->base : s->registry_url;
	struct http_answer got = {0};
	char why[CURL_ERROR_SIZE] = "";
	struct buf url = {0};
	CURLcode rc = CURLE_OUT_OF_MEMORY;
	CURL *curl;

	pthread_once(&once, curl_start);
	curl = curl_easy_init();
	buf_printf(&url, "%.*s%s", (int) (strlen(base) - (*base && base[strlen(base) - 1] == '/')), base,
		   r->path);
	if (!curl || url.failed || add_header(&headers, "Authorization", r->authorization) ||
	    add_header(&headers, "Content-Encoding", r->content_encoding) ||
	    add_header(&headers, "If-None-Match", r->if_none_match) || add_header(&headers, "Expect", ""))
		goto done;
	set_options(curl, r, s->tls_ca, url.data, headers, &got, &body, why);
	if ((rc = curl_easy_perform(curl)) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &got.status);
done:
	if (rc == CURLE_OK) {
		*a = got;
	} else {
		/* `why` has milliseconds then, by which a failure that lasts would be another one at each try. */
		bool is_timed = rc == CURLE_COULDNT_CONNECT || rc == CURLE_OPERATION_TIMEDOUT;

		err_set(e, "no answer from %s: %s%s", base, *why && !is_timed ? why : curl_easy_strerror(rc),
			rc == CURLE_GOT_NOTHING && !strncasecmp(base, "http:", 5) ?
			"; if the registry has a TlsCertificate, RegistryURL begins with https" : "");
		http_free(&got);
	}
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	buf_free(&url);
	return rc == CURLE_OK ? 0 : -1;
}

void http_free(struct http_answer *a)
{
	buf_free(&a->body);
	free(a->ack);
	free(a->etag);
	*a = (struct http_answer){0};
}

char *http_escape(const char *segment)
{
	struct buf b = {0};

	buf_puts(&b, "");
	for (const char *p = segment; *p; p++)
		buf_printf(&b, strchr(UNRESERVED, *p) ? "%c" : "%%%02X", (unsigned char) *p);
	if (b.failed)
		buf_free(&b);
	return b.data;
}

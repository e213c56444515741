#include "import/link.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
	URL_BYTES = 4096,
	READ_BYTES = 64 * 1024,
	WORDS = 16,
	MS_PER_S = 1000,
	CONNECT_S = 30,
};

struct link {
	CURL *curl;
	redisReader *reader;
	struct buf out;
	char *name;
};

/* ---- Opening ---- */

static enum status
link_connect(struct link *l, const char *scheme, const char *host, const char *port,
	     struct err *err)
{
	char url[URL_BYTES];
	CURLcode failed;

	if (snprintf(url, sizeof(url), "%s://%s:%s",
		     strcmp(scheme, "rediss") == 0 ? "https" : "http", host,
		     port ? port : "6379") >= (int)sizeof(url))
		return err_set(err, STATUS_INVALID, "the URL is too long");
	l->curl = curl_easy_init();
	l->reader = redisReaderCreate();
	if (!l->curl || !l->reader)
		return err_set(err, STATUS_NOMEM, "out of memory");
	curl_easy_setopt(l->curl, CURLOPT_URL, url);
	curl_easy_setopt(l->curl, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(l->curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
	curl_easy_setopt(l->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(l->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(l->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	if (getenv("SSL_CERT_FILE"))
		curl_easy_setopt(l->curl, CURLOPT_CAINFO, getenv("SSL_CERT_FILE"));
	failed = curl_easy_perform(l->curl);
	if (failed)
		return err_set(err, STATUS_IO, "%s: %s", l->name, curl_easy_strerror(failed));
	return STATUS_OK;
}

static enum status
link_log_in(struct link *l, const char *name, const char *password, struct err *err)
{
	redisReply *reply;
	enum status status = STATUS_OK;

	if (!password)
		return STATUS_OK;
	if (name && *name)
		TRY(link_ask(l, &reply, err, "AUTH", name, password, NULL));
	else
		TRY(link_ask(l, &reply, err, "AUTH", password, NULL));
	if (reply_is_error(reply))
		status = err_set(err, STATUS_UNAUTHORIZED, "%s: %s", l->name, reply->str);
	freeReplyObject(reply);
	return status;
}

static enum status
link_open_parts(struct link *l, CURLU *parts, struct err *err)
{
	char *scheme = NULL, *host = NULL, *port = NULL, *name = NULL, *password = NULL;
	char text[URL_BYTES];
	enum status status;

	curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
	curl_url_get(parts, CURLUPART_HOST, &host, 0);
	curl_url_get(parts, CURLUPART_PORT, &port, 0);
	curl_url_get(parts, CURLUPART_USER, &name, CURLU_URLDECODE);
	curl_url_get(parts, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
	(void)snprintf(text, sizeof(text), "%s://%s:%s", scheme ? scheme : "", host ? host : "",
		       port ? port : "6379");
	l->name = strdup(text);
	if (!l->name)
		status = STATUS_NOMEM;
	else if (!scheme || !host || strncmp(scheme, "redis", 5) != 0)
		status = err_set(err, STATUS_INVALID, "that is not the URL of a server");
	else
		status = link_connect(l, scheme, host, port, err);
	if (status == STATUS_OK)
		status = link_log_in(l, name, password, err);
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(name);
	curl_free(password);
	return status;
}

enum status
link_open(const char *url, struct link **ret, struct err *err)
{
	struct link *l = calloc(1, sizeof(*l));
	CURLU *parts = curl_url();
	enum status status = STATUS_NOMEM;

	if (l && parts) {
		buf_init(&l->out, LINK_REQUEST_BYTES);
		status = curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)
				 ? err_set(err, STATUS_INVALID, "that is not the URL of a server")
				 : link_open_parts(l, parts, err);
	}
	curl_url_cleanup(parts);
	if (status == STATUS_OK)
		*ret = l;
	else
		link_close(l);
	return status;
}

void
link_close(struct link *l)
{
	if (!l)
		return;
	curl_easy_cleanup(l->curl);
	if (l->reader)
		redisReaderFree(l->reader);
	buf_release(&l->out);
	free(l->name);
	free(l);
}

const char *
link_name(const struct link *l)
{
	return l->name;
}

/* ---- Commands ---- */

void
link_add(struct link *l, size_t count, const struct str *words)
{
	buf_printf(&l->out, "*%zu\r\n", count);
	for (size_t i = 0; i < count; i++) {
		buf_printf(&l->out, "$%zu\r\n", words[i].len);
		buf_append_str(&l->out, words[i]);
		buf_append_cstr(&l->out, "\r\n");
	}
}

static void
link_add_list(struct link *l, va_list args)
{
	struct str words[WORDS];
	size_t count = 0;
	const char *word;

	while (count < WORDS && (word = va_arg(args, const char *)))
		words[count++] = str_from_cstr(word);
	link_add(l, count, words);
}

void
link_say(struct link *l, ...)
{
	va_list args;

	va_start(args, l);
	link_add_list(l, args);
	va_end(args);
}

size_t
link_waiting(const struct link *l)
{
	return l->out.len;
}

/* Waits until the socket is ready. False: it was not in time. */
static bool
link_wait(const struct link *l, short events, uint64_t wait_ms)
{
	curl_socket_t socket = CURL_SOCKET_BAD;
	struct pollfd fd = { .events = events };

	curl_easy_getinfo(l->curl, CURLINFO_ACTIVESOCKET, &socket);
	fd.fd = socket;
	return poll(&fd, 1, (int)wait_ms) > 0;
}

enum status
link_flush(struct link *l, struct err *err)
{
	TRY(buf_status(&l->out));
	while (l->out.len) {
		size_t n = 0;
		CURLcode failed = curl_easy_send(l->curl, l->out.ptr, l->out.len, &n);

		if (failed == CURLE_AGAIN && link_wait(l, POLLOUT, LINK_TIMEOUT_MS))
			continue;
		if (failed)
			return err_set(err, STATUS_IO, "%s: %s", l->name,
				       failed == CURLE_AGAIN ? "takes no request"
							     : curl_easy_strerror(failed));
		buf_consume(&l->out, n);
	}
	return STATUS_OK;
}

/* An answer within a time; `*ret` NULL: there is none. */
static enum status
link_read(struct link *l, uint64_t wait_ms, redisReply **ret, struct err *err)
{
	uint64_t deadline_ns = clock_after_ms(wait_ms);
	static char bytes_read[READ_BYTES];

	for (;;) {
		void *reply = NULL;
		CURLcode failed;
		uint64_t now_ns;
		size_t n = 0;

		if (redisReaderGetReply(l->reader, &reply) != REDIS_OK)
			return err_set(err, STATUS_IO, "%s: %s", l->name, l->reader->errstr);
		*ret = reply;
		if (reply)
			return STATUS_OK;
		failed = curl_easy_recv(l->curl, bytes_read, sizeof(bytes_read), &n);
		if (failed == CURLE_OK && n == 0)
			return err_set(err, STATUS_IO, "%s has closed the connection", l->name);
		if (failed == CURLE_OK) {
			if (redisReaderFeed(l->reader, bytes_read, n) != REDIS_OK)
				return err_set(err, STATUS_NOMEM, "out of memory");
			deadline_ns = clock_after_ms(wait_ms);
			continue;
		}
		if (failed != CURLE_AGAIN)
			return err_set(err, STATUS_IO, "%s: %s", l->name,
				       curl_easy_strerror(failed));
		now_ns = clock_mono_ns();
		if (now_ns >= deadline_ns)
			return STATUS_OK;
		(void)link_wait(l, POLLIN, 1 + (deadline_ns - now_ns) / CLOCK_NS_PER_MS);
	}
}

enum status
link_reply(struct link *l, redisReply **ret, struct err *err)
{
	TRY(link_flush(l, err));
	TRY(link_read(l, LINK_TIMEOUT_MS, ret, err));
	if (!*ret)
		return err_set(err, STATUS_IO, "%s does not answer", l->name);
	return STATUS_OK;
}

enum status
link_message(struct link *l, uint64_t wait_ms, redisReply **ret, struct err *err)
{
	TRY(link_flush(l, err));
	return link_read(l, wait_ms, ret, err);
}

enum status
link_ask(struct link *l, redisReply **ret, struct err *err, ...)
{
	va_list args;

	va_start(args, err);
	link_add_list(l, args);
	va_end(args);
	return link_reply(l, ret, err);
}

#include "cli/remote.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "doc/json.h"

enum {
	STREAM_AHEAD_BYTES = 1024 * 1024, /* of an answer that waits to be read */
	STREAM_POLL_MS = 1000,
	REASON_BYTES = 4096,
	URL_BYTES = 1024 * 1024,
};

struct remote {
	CURL *curl;
	struct curl_slist *headers;
	char *url;  /* with name and password, without a slash at the end */
	char *name; /* without them */
	bool patient;
	long most_s;                /* of a request; 0: any */
	bool (*stopped)(void *arg); /* NULL: nobody gives up */
	void *stopped_arg;
};

struct remote_stream {
	const struct remote *remote;
	CURL *curl;
	CURLM *multi;
	char *path;
	struct buf ahead;
	size_t used; /* of what is ahead */
	bool paused;
	bool done;
	CURLcode result;
};

/* ---- URLs ---- */

/* The parts of a URL that messages may show. */
static enum status
remote_make_name(const char *url, char **ret, struct err *err)
{
	CURLU *parts = curl_url();
	char *scheme = NULL;
	char *name = NULL;
	CURLUcode failed;

	if (!parts)
		return err_set(err, STATUS_NOMEM, "out of memory");
	failed = curl_url_set(parts, CURLUPART_URL, url, 0);
	if (!failed)
		failed = curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
	if (!failed && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		failed = CURLUE_UNSUPPORTED_SCHEME;
	if (!failed) {
		curl_url_set(parts, CURLUPART_USER, NULL, 0);
		curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0);
		failed = curl_url_get(parts, CURLUPART_URL, &name, 0);
	}
	if (!failed)
		*ret = mem_strdup(str_from_cstr(name));
	curl_free(name);
	curl_free(scheme);
	curl_url_cleanup(parts);
	if (failed)
		return err_set(err, STATUS_INVALID, "that is not the URL of a server: %s",
			       curl_url_strerror(failed));
	return *ret ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

static char *
remote_without_slash(struct str url)
{
	while (url.len && url.ptr[url.len - 1] == '/')
		url.len--;
	return mem_strdup(url);
}

/*
 * Without an Accept header CouchDB sends documents with attachments, and every answer to open_revs,
 * as multipart.
 */
static struct curl_slist *
remote_make_headers(void)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");

	if (list && curl_slist_append(list, "Accept: application/json") &&
	    curl_slist_append(list, "Expect:"))
		return list;
	curl_slist_free_all(list);
	return NULL;
}

enum status
remote_new(const char *url, struct remote **ret, struct err *err)
{
	struct remote *r = mem_zalloc(sizeof(*r));
	enum status status = STATUS_OK;

	if (!r)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		mem_free(r);
		return err_set(err, STATUS_NOMEM, "cannot start the HTTP client");
	}
	status = remote_make_name(url, &r->name, err);
	if (status == STATUS_OK) {
		r->url = remote_without_slash(str_from_cstr(url));
		r->curl = curl_easy_init();
		r->headers = remote_make_headers();
		if (!r->url || !r->curl || !r->headers)
			status = err_set(err, STATUS_NOMEM, "out of memory");
	}
	if (status != STATUS_OK) {
		remote_free(r);
		return status;
	}
	*ret = r;
	return STATUS_OK;
}

void
remote_free(struct remote *r)
{
	if (!r)
		return;
	curl_easy_cleanup(r->curl);
	curl_slist_free_all(r->headers);
	mem_free(r->url);
	mem_free(r->name);
	mem_free(r);
	curl_global_cleanup();
}

const char *
remote_url(const struct remote *r)
{
	return r->url;
}

const char *
remote_name(const struct remote *r)
{
	return r->name;
}

void
remote_be_patient(struct remote *r)
{
	r->patient = true;
}

void
remote_hurry(struct remote *r, long seconds)
{
	r->most_s = seconds;
}

void
remote_stop_when(struct remote *r, bool (*stopped)(void *arg), void *arg)
{
	r->stopped = stopped;
	r->stopped_arg = arg;
}

/* libcurl gives up at another answer than 0. */
static int
remote_look_stopped(void *arg, curl_off_t in, curl_off_t in_now, curl_off_t out, curl_off_t out_now)
{
	const struct remote *r = arg;

	(void)in;
	(void)in_now;
	(void)out;
	(void)out_now;
	return r->stopped(r->stopped_arg);
}

/* Sets what every request has. */
static enum status
remote_prepare(const struct remote *r, CURL *curl, struct str path, struct err *err)
{
	AUTO(buf_release) struct buf url = BUF_INIT(URL_BYTES);
	const char *trusted = getenv(REMOTE_TRUSTED_ENV);

	buf_append_cstr(&url, r->url);
	buf_append_str(&url, path);
	buf_append_byte(&url, '\0');
	TRY(buf_status(&url));
	curl_easy_reset(curl);
	if (curl_easy_setopt(curl, CURLOPT_URL, url.ptr) != CURLE_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	if (trusted && *trusted)
		curl_easy_setopt(curl, CURLOPT_CAINFO, trusted);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "frond/" FROND_VERSION);
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)REMOTE_CONNECT_TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, r->most_s);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, r->patient ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)REMOTE_STALL_SECONDS);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, r->headers);
	return STATUS_OK;
}

/* ---- Whole answers ---- */

static size_t
remote_append_answer(char *data, size_t size, size_t n, void *arg)
{
	struct buf *b = arg;

	buf_append(b, data, size * n);
	return buf_status(b) == STATUS_OK ? size * n : 0;
}

enum status
remote_request(struct remote *r, const char *method, struct str path, struct str body,
	       int *ret_status, struct buf *ret, struct err *err)
{
	long http_status = 0;
	CURLcode result;

	buf_clear(ret);
	TRY(remote_prepare(r, r->curl, path, err));
	if (body.ptr) {
		curl_easy_setopt(r->curl, CURLOPT_POST, 1L);
		curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, body.ptr);
		curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	}
	curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, remote_append_answer);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, ret);
	if (r->stopped) {
		curl_easy_setopt(r->curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(r->curl, CURLOPT_XFERINFOFUNCTION, remote_look_stopped);
		curl_easy_setopt(r->curl, CURLOPT_XFERINFODATA, r);
	}
	result = curl_easy_perform(r->curl);
	if (buf_status(ret) != STATUS_OK)
		return err_set(err, buf_status(ret), "%s: the answer is too large", r->name);
	if (result != CURLE_OK)
		return err_set(err, STATUS_IO, "%s: %s", r->name, curl_easy_strerror(result));
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &http_status);
	*ret_status = (int)http_status;
	return STATUS_OK;
}

/* Appends the member `name` of a JSON object, if it is a string. */
static void
remote_append_member(struct str body, struct str name, struct buf *ret)
{
	enum json_token token = JSON_END;
	struct json_reader reader;
	struct str value;

	json_reader_init(&reader, body, NULL);
	if (json_next(&reader, &token) == STATUS_OK && token == JSON_OBJECT_BEGIN) {
		while (json_next(&reader, &token) == STATUS_OK && token == JSON_KEY) {
			bool wanted = str_eq(reader.text, name);

			if (json_next(&reader, &token) != STATUS_OK)
				break;
			if (wanted && token == JSON_STRING) {
				buf_append_str(ret, reader.text);
				break;
			}
			if (json_skip(&reader, token, &value) != STATUS_OK)
				break;
		}
	}
	json_reader_release(&reader);
}

enum status
remote_refused(const struct remote *r, struct str path, int http_status, struct str body,
	       struct err *err)
{
	AUTO(buf_release) struct buf name = BUF_INIT(REASON_BYTES);
	AUTO(buf_release) struct buf reason = BUF_INIT(REASON_BYTES);
	enum status status = http_status == 404   ? STATUS_NOT_FOUND
			     : http_status == 401 ? STATUS_UNAUTHORIZED
			     : http_status == 403 ? STATUS_FORBIDDEN
			     : http_status == 412 ? STATUS_EXISTS
						  : STATUS_INVALID;

	remote_append_member(body, STR("error"), &name);
	remote_append_member(body, STR("reason"), &reason);
	return err_set(err, status, "%s answers %d to %.*s: %.*s%s%.*s", r->name, http_status,
		       STR_ARG(path), (int)name.len, name.len ? name.ptr : "",
		       reason.len ? ": " : "", (int)reason.len, reason.len ? reason.ptr : "");
}

/* ---- Streams ---- */

static size_t
remote_take_stream(char *data, size_t size, size_t n, void *arg)
{
	struct remote_stream *s = arg;

	if (s->ahead.len - s->used >= STREAM_AHEAD_BYTES) {
		s->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (s->used) {
		buf_consume(&s->ahead, s->used);
		s->used = 0;
	}
	buf_append(&s->ahead, data, size * n);
	return buf_status(&s->ahead) == STATUS_OK ? size * n : 0;
}

enum status
remote_open(struct remote *r, struct str path, struct remote_stream **ret, struct err *err)
{
	struct remote_stream *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	s->remote = r;
	buf_init(&s->ahead, STREAM_AHEAD_BYTES + CURL_MAX_WRITE_SIZE);
	s->curl = curl_easy_init();
	s->multi = curl_multi_init();
	s->path = mem_strdup(path);
	status = s->curl && s->multi && s->path ? remote_prepare(r, s->curl, path, err)
						: err_set(err, STATUS_NOMEM, "out of memory");
	if (status == STATUS_OK) {
		curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, remote_take_stream);
		curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
		/* Reading may pause for as long as the output of a dump does. */
		curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_LIMIT, 0L);
		if (curl_multi_add_handle(s->multi, s->curl) != CURLM_OK)
			status = err_set(err, STATUS_NOMEM, "out of memory");
	}
	if (status != STATUS_OK) {
		remote_close(s);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

void
remote_close(struct remote_stream *s)
{
	if (!s)
		return;
	if (s->multi && s->curl)
		curl_multi_remove_handle(s->multi, s->curl);
	curl_easy_cleanup(s->curl);
	curl_multi_cleanup(s->multi);
	buf_release(&s->ahead);
	mem_free(s->path);
	mem_free(s);
}

/* Lets the transfer go on until bytes are there, or it has ended. */
static enum status
remote_advance(struct remote_stream *s, struct err *err)
{
	int running = 0;
	CURLMsg *message;
	int left;

	if (s->paused) {
		s->paused = false;
		curl_easy_pause(s->curl, CURLPAUSE_CONT);
	}
	if (curl_multi_perform(s->multi, &running) != CURLM_OK)
		return err_set(err, STATUS_NOMEM, "%s: the transfer broke", s->remote->name);
	while ((message = curl_multi_info_read(s->multi, &left)) != NULL) {
		if (message->msg == CURLMSG_DONE) {
			s->done = true;
			s->result = message->data.result;
		}
	}
	if (!s->done && s->ahead.len == s->used)
		curl_multi_poll(s->multi, NULL, 0, STREAM_POLL_MS, NULL);
	return STATUS_OK;
}

/* Reads an answer whose status is not 200, and explains it. */
static enum status
remote_stream_refused(struct remote_stream *s, int http_status, struct err *err)
{
	while (!s->done && s->ahead.len < REASON_BYTES)
		TRY(remote_advance(s, err));
	return remote_refused(s->remote, str_from_cstr(s->path), http_status, buf_str(&s->ahead),
			      err);
}

enum status
remote_read(void *stream, char *to, size_t n, size_t *ret, struct err *err)
{
	struct remote_stream *s = stream;
	long http_status = 0;
	size_t there;

	while (!s->done && s->ahead.len == s->used)
		TRY(remote_advance(s, err));
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &http_status);
	if (http_status != 0 && http_status != 200)
		return remote_stream_refused(s, (int)http_status, err);
	there = s->ahead.len - s->used;
	if (there == 0 && s->result != CURLE_OK)
		return err_set(err, STATUS_IO, "%s: %s", s->remote->name,
			       curl_easy_strerror(s->result));
	if (there > n)
		there = n;
	if (there)
		memcpy(to, s->ahead.ptr + s->used, there);
	s->used += there;
	*ret = there;
	return STATUS_OK;
}

#include "cli/following.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/thread.h"
#include "cli/remote.h"
#include "kv/log.h"
#include "loop/pause.h"
#include "loop/wait.h"
#include "model/revisioned/shape.h"

enum {
	HEAD_BYTES = sizeof(uint64_t) + KV_LOG_HISTORY_BYTES,
	ANSWER_BYTES = 2 * KV_LOG_RECORD_BYTES,
	READ_BYTES = 256 * 1024,
	PATH_BYTES = 512,
	WAIT_MS = 1000,     /* for something new at the first */
	ASK_EVERY_MS = 100, /* once it has all: a question costs the first as much as ten writes */
	AGAIN_MS = 200,     /* after a failure; twice as long after each further one, up to */
	AGAIN_MOST_MS = 5000,
	LOG_EVERY_MS = 60 * 1000,
};

METRIC_COUNTER(followed_bytes, "frond_follow_bytes_total", METRIC_BYTES,
	       "Bytes that a standby has read from the store that it follows.");

struct following {
	struct following_options options;
	bool once;
	bool lent; /* the store is somebody else's, who keeps it open */
	struct remote *remote;
	struct kv_store *store; /* NULL: there is none yet */
	uint64_t version;       /* that the standby has */
	uint8_t history[KV_LOG_HISTORY_BYTES];
	uint64_t first_version; /* that the first had by its last answer */
	struct buf answer;
	uint64_t log_due_ns;
	uint64_t ask_due_ns;
	uint64_t pause_ms;
};

static bool
following_stopped(const struct following *f)
{
	return f->options.stopped(f->options.arg);
}

enum status
following_new(const struct following_options *options, struct following **ret, struct err *err)
{
	struct following *f = mem_zalloc(sizeof(*f));
	enum status status;

	if (!f)
		return err_set(err, STATUS_NOMEM, "out of memory");
	f->options = *options;
	buf_init(&f->answer, ANSWER_BYTES);
	status = remote_new(options->url, &f->remote, err);
	if (status != STATUS_OK) {
		following_free(f);
		return status;
	}
	remote_stop_when(f->remote, options->stopped, options->arg);
	*ret = f;
	return STATUS_OK;
}

void
following_free(struct following *f)
{
	if (!f)
		return;
	if (!f->lent)
		kv_close(f->store);
	remote_free(f->remote);
	buf_release(&f->answer);
	mem_free(f);
}

bool
following_name_check(const char *name)
{
	return *name && strlen(name) <= KV_LOG_NAME_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		       strlen(name);
}

const char *
following_first(const struct following *f)
{
	return remote_name(f->remote);
}

uint64_t
following_version(const struct following *f)
{
	return f->version;
}

/* ---- Telling ---- */

static void
follow_turn(struct following *f)
{
	if (f->options.turn)
		f->options.turn(f->options.arg);
}

static void
follow_tell(struct following *f)
{
	follow_turn(f);
	if (clock_mono_ns() < f->log_due_ns)
		return;
	f->log_due_ns = clock_after_ms(LOG_EVERY_MS);
	log_event(LOG_LEVEL_INFO, "following", "server=%s version=%llu behind=%llu",
		  remote_name(f->remote), (unsigned long long)f->version,
		  (unsigned long long)kv_log_behind(f->store).versions);
}

/* ---- A copy ---- */

/* Writes the records that are whole. `*ret_done`: the last one has come, and the copy's version. */
static enum status
copy_take(struct following *f, struct kv_store *copy, bool *ret_done, struct err *err)
{
	for (;;) {
		struct str record;
		uint64_t version;
		enum status status = kv_log_record(buf_str(&f->answer), &version, &record, err);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		*ret_done = version != 0;
		if (*ret_done)
			return STATUS_OK;
		TRY(kv_log_copy_load(copy, record, err));
		buf_consume(&f->answer, KV_LOG_HEADER_BYTES + record.len);
	}
}

/* Reads the answer to its end into the copy, which is not at its place yet. */
static enum status
copy_read(struct following *f, struct remote_stream *stream, struct kv_store *copy, struct err *err)
{
	bool head = false, done = false;
	static char bytes_read[READ_BYTES];
	size_t n;

	buf_clear(&f->answer);
	while (!done) {
		if (following_stopped(f))
			return err_set(err, STATUS_CANCELLED, "stopped while copying");
		TRY(remote_read(stream, bytes_read, sizeof(bytes_read), &n, err));
		if (n == 0)
			return err_set(err, STATUS_IO, "%s: the copy ended early",
				       remote_name(f->remote));
		metric_add(&followed_bytes, n);
		buf_append(&f->answer, bytes_read, n);
		TRY(buf_status(&f->answer));
		if (!head && f->answer.len >= HEAD_BYTES) {
			f->first_version = big_endian_64(f->answer.ptr);
			buf_consume(&f->answer, HEAD_BYTES);
			head = true;
		}
		if (head)
			TRY(copy_take(f, copy, &done, err));
	}
	return STATUS_OK;
}

static enum status
follow_copy(struct following *f, struct err *err)
{
	struct remote_stream *stream;
	struct kv_store *copy;
	enum status status;

	kv_close(f->store);
	f->store = NULL;
	TRY(remote_open(f->remote, STR("/_frond/follow"), &stream, err));
	status = kv_log_copy_make(f->options.store_url, &rev_store_shape, &copy, err);
	if (status == STATUS_OK) {
		status = copy_read(f, stream, copy, err);
		if (status == STATUS_OK)
			status = kv_log_copy_place(copy, f->options.store_url, err);
		else
			kv_close(copy);
	}
	remote_close(stream);
	return status;
}

/* ---- The log ---- */

static enum status
follow_read_position(struct following *f, struct err *err)
{
	struct kv_log_position position;

	TRY(kv_log_position(f->store, &position, err));
	f->version = position.version;
	memcpy(f->history, position.history, sizeof(f->history));
	log_event(LOG_LEVEL_INFO, "standby", "store=\"%s\" version=%llu", f->options.store_url,
		  (unsigned long long)f->version);
	return STATUS_OK;
}

static enum status
follow_open(struct following *f, struct err *err)
{
	const struct kv_options options = { .follows = true, .shape = &rev_store_shape };

	TRY(kv_open(f->options.store_url, &options, &f->store, err));
	return follow_read_position(f, err);
}

static enum status
follow_apply(struct following *f, struct err *err)
{
	if (f->answer.len < HEAD_BYTES)
		return err_set(err, STATUS_INVALID, "%s: that is no answer of a first",
			       remote_name(f->remote));
	f->first_version = big_endian_64(f->answer.ptr);
	metric_add(&followed_bytes, f->answer.len);
	if (memcmp(f->history, f->answer.ptr + sizeof(uint64_t), KV_LOG_HISTORY_BYTES) != 0)
		return err_set(err, STATUS_CORRUPT, "%s answers for another history",
			       remote_name(f->remote));
	TRY(kv_log_apply(f->store, str_skip(buf_str(&f->answer), HEAD_BYTES), err));
	f->version = kv_log_published(f->store);
	kv_log_heard(f->store, f->first_version);
	follow_tell(f);
	return STATUS_OK;
}

/* 409: nothing of what the standby has is to be replaced without a person's decision. */
static enum status
follow_conflict(struct following *f, struct str path, struct err *err)
{
	struct err why = { 0 };

	(void)remote_refused(f->remote, path, 409, buf_str(&f->answer), &why);
	return err_set(
		err, STATUS_DOC_CONFLICT,
		"%s; the standby is left as it is: promote it, or begin another one at a new "
		"place",
		why.text);
}

/* Asks for what comes next. STATUS_NOT_FOUND: the log does not reach back so far. */
static enum status
follow_ask(struct following *f, struct err *err)
{
	AUTO(buf_release) struct buf path = BUF_INIT(PATH_BYTES);
	int http_status = 0;

	wait_pause_until(f->ask_due_ns);
	f->ask_due_ns = clock_after_ms(ASK_EVERY_MS);
	buf_printf(&path, "/_frond/follow?after=%llu&wait=%d&name=%s&history=",
		   (unsigned long long)f->version, f->once ? 0 : WAIT_MS, f->options.name);
	buf_append_hex(&path, str_of((const char *)f->history, sizeof(f->history)));
	TRY(buf_status(&path));
	TRY(remote_request(f->remote, "GET", buf_str(&path), (struct str){ NULL, 0 }, &http_status,
			   &f->answer, err));
	if (http_status == 409)
		return follow_conflict(f, buf_str(&path), err);
	if (http_status >= 500)
		return err_set(err, STATUS_UNAVAILABLE, "%s answers %d", remote_name(f->remote),
			       http_status);
	if (http_status != 200)
		return remote_refused(f->remote, buf_str(&path), http_status, buf_str(&f->answer),
				      err);
	TRY(follow_apply(f, err));
	if (f->version < f->first_version)
		f->ask_due_ns = 0;
	return STATUS_OK;
}

/* One step: opens the standby, copies the first, or applies an answer. */
static enum status
follow_step(struct following *f, bool *ret_done, struct err *err)
{
	enum status status = f->store ? STATUS_OK : follow_open(f, err);

	if (status == STATUS_OK)
		status = follow_ask(f, err);
	if (status == STATUS_NOT_FOUND && f->lent)
		return err_set(err, STATUS_INVALID,
			       "the log of %s does not reach back to this standby's version %llu: "
			       "all has to be copied again, which a start of this server does",
			       remote_name(f->remote), (unsigned long long)f->version);
	if (status == STATUS_NOT_FOUND) {
		log_event(LOG_LEVEL_INFO, "copying", "server=%s reason=\"%s\"",
			  remote_name(f->remote), err->text);
		status = follow_copy(f, err);
		return status == STATUS_NOT_FOUND ? STATUS_INVALID : status;
	}
	*ret_done = status == STATUS_OK && f->once && f->version >= f->first_version;
	return status;
}

/* True for a failure that may be over soon: the server is away, a disk is full. */
static bool
follow_may_go_on(enum status status)
{
	switch ((int)status) {
	case STATUS_IO:
	case STATUS_FULL:
	case STATUS_UNAVAILABLE:
	case STATUS_BUSY:
		return true;
	default:
		return false;
	}
}

static void
follow_pause(struct following *f, const struct err *err)
{
	log_event(LOG_LEVEL_WARN, "follow_failed", "again_ms=%llu reason=\"%s\"",
		  (unsigned long long)f->pause_ms, err->text);
	follow_turn(f);
	/* In pieces, so that a signal is answered soon. */
	for (uint64_t ms = 0; ms < f->pause_ms && !following_stopped(f); ms += AGAIN_MS)
		wait_pause(AGAIN_MS);
	f->pause_ms = 2 * f->pause_ms < AGAIN_MOST_MS ? 2 * f->pause_ms : AGAIN_MOST_MS;
}

enum status
following_run(struct following *f, bool once, struct err *err)
{
	bool done = false;

	f->once = once;
	f->pause_ms = AGAIN_MS;
	while (!done && !following_stopped(f)) {
		enum status status;

		*err = (struct err){ 0 };
		status = follow_step(f, &done, err);
		if (status == STATUS_OK)
			f->pause_ms = AGAIN_MS;
		else if (following_stopped(f))
			break;
		else if (f->once || !follow_may_go_on(status))
			return status;
		else
			follow_pause(f, err);
	}
	return STATUS_OK;
}

/* ---- Beside a server ---- */

enum status
following_prepare(const struct following_options *options, struct err *err)
{
	struct following *f;
	enum status status;
	bool has_one;

	TRY(following_new(options, &f, err));
	status = following_run(f, true, err);
	has_one = f->store != NULL;
	if (status == STATUS_OK && following_stopped(f))
		status = err_set(err, STATUS_CANCELLED, "stopped before the standby was ready");
	if (status != STATUS_OK && has_one && follow_may_go_on(status)) {
		log_event(LOG_LEVEL_WARN, "follow_failed", "again_ms=%d reason=\"%s\"", AGAIN_MS,
			  err->text);
		status = STATUS_OK;
	}
	following_free(f);
	return status;
}

static struct {
	struct following *following;
	void (*told)(void *arg, const struct err *why);
	void *arg;
	atomic_bool stops;
	pthread_t thread;
} beside;

static bool
beside_stops(void *arg)
{
	(void)arg;
	return atomic_load(&beside.stops);
}

static void *
beside_run(void *arg)
{
	struct err err = { 0 };

	(void)arg;
	thread_set_name("following");
	if (following_run(beside.following, false, &err) != STATUS_OK)
		beside.told(beside.arg, &err);
	return NULL;
}

enum status
following_begin(const struct following_options *options, struct kv_store *store,
		void (*told)(void *arg, const struct err *why), struct err *err)
{
	struct following_options own = *options;
	struct following *f;
	enum status status;

	own.stopped = beside_stops;
	own.turn = NULL;
	TRY(following_new(&own, &f, err));
	f->lent = true;
	f->store = store;
	status = follow_read_position(f, err);
	if (status != STATUS_OK) {
		following_free(f);
		return status;
	}
	atomic_store(&beside.stops, false);
	beside.told = told;
	beside.arg = options->arg;
	beside.following = f;
	if (pthread_create(&beside.thread, NULL, beside_run, NULL) == 0)
		return STATUS_OK;
	beside.following = NULL;
	following_free(f);
	return err_set(err, STATUS_LIMIT, "cannot start the thread that follows");
}

void
following_end(void)
{
	if (!beside.following)
		return;
	atomic_store(&beside.stops, true);
	(void)pthread_join(beside.thread, NULL);
	following_free(beside.following);
	beside.following = NULL;
}

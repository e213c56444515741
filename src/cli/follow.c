/* frond follow URL: keeps a standby of a server's store (kv/log.h). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "catalog/catalog.h"
#include "catalog/store_format.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "kv/log.h"
#include "loop/wait.h"
#include "model/revisioned/shape.h"

enum {
	OPTION_STORE = 's',
	OPTION_NAME = 'n',
	OPTION_ONCE = 'o',
	OPTION_METRICS = 'm',

	HEAD_BYTES = sizeof(uint64_t) + KV_LOG_HISTORY_BYTES,
	ANSWER_BYTES = 2 * KV_LOG_RECORD_BYTES,
	READ_BYTES = 256 * 1024,
	PATH_BYTES = 512,
	WAIT_MS = 1000,    /* for something new at the first */
	ASK_EVERY_MS = 20, /* at most: a question costs the first as much as a few writes */
	AGAIN_MS = 200,    /* after a failure; twice as long after each further one, up to */
	AGAIN_MOST_MS = 5000,
	LOG_EVERY_MS = 60 * 1000,
	METRICS_EVERY_MS = 1000,
	METRICS_BYTES = 4 << 20,
	BYTE_BITS = 8,
};

/* Read when somebody asks for metrics, which is this thread. */
static int64_t behind_versions, equal_ns, followed_bytes;

static int64_t
read_behind_versions(void)
{
	return behind_versions;
}

static int64_t
read_behind_ns(void)
{
	return behind_versions || !equal_ns ? (int64_t)clock_mono_ns() - equal_ns : 0;
}

static int64_t
read_followed_bytes(void)
{
	return followed_bytes;
}

METRIC_READ(behind, METRIC_KIND_GAUGE, "frond_follow_behind_versions", METRIC_NUMBER,
	    "How many versions of the store that it follows a standby has not got, as of the last "
	    "answer.",
	    read_behind_versions);
METRIC_READ(behind_time, METRIC_KIND_GAUGE, "frond_follow_behind_seconds", METRIC_SECONDS,
	    "For how long a standby has not had all that the last answer told of, or has had no "
	    "answer; 0: it has.",
	    read_behind_ns);
METRIC_READ(bytes, METRIC_KIND_COUNTER, "frond_follow_bytes_total", METRIC_BYTES,
	    "Bytes that a standby has read from the store that it follows.", read_followed_bytes);

struct follow {
	const char *url;
	const char *store_url;
	const char *name;
	const char *metrics;
	bool once;

	struct remote *remote;
	struct kv_store *store; /* NULL: there is none yet */
	uint64_t version;       /* that the standby has */
	uint8_t history[KV_LOG_HISTORY_BYTES];
	uint64_t first_version; /* that the first had by its last answer */
	struct buf answer;
	uint64_t log_due_ns;
	uint64_t metrics_due_ns;
	uint64_t ask_due_ns;
	uint64_t pause_ms;
};

static volatile sig_atomic_t stop_asked;

static void
ask_to_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The standby's store (default " CLI_STORE ")", 0 },
	{ "name", OPTION_NAME, "NAME", 0,
	  "What the server calls this standby (default: this machine's name)", 0 },
	{ "once", OPTION_ONCE, NULL, 0,
	  "End when the standby has all that the server had committed by then", 0 },
	{ "metrics", OPTION_METRICS, "FILE", 0, "Write metrics for Prometheus to FILE every second",
	  0 },
	{ 0 },
};

static const char argp_doc[] =
	"Keep a standby: a second store that has what the server at URL has, moments later.\v"
	"URL is http://NAME:PASSWORD@HOST:PORT or https://…, of a person who is an administrator "
	"or "
	"has the role that the server's [frond] follower_role names. The server keeps its log with "
	"[frond] keep_log_bytes. Without a standby at the store's place, or if it is further "
	"behind "
	"than the server's log reaches, all is copied first. It ends at SIGTERM and SIGINT, and "
	"goes "
	"on where it was, after a crash of either side, too. While it runs, \"frond dump\", "
	"\"inspect\" and \"verify\" read the standby. \"frond promote\" makes a first of it.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
follow_parse_option(int key, char *text, struct argp_state *state)
{
	struct follow *f = state->input;

	switch (key) {
	case OPTION_STORE:
		f->store_url = cli_parse_store("store", text, state);
		return 0;
	case OPTION_NAME:
		if (!*text || strlen(text) > KV_LOG_NAME_BYTES ||
		    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
				 ".") != strlen(text))
			argp_error(state, "--name takes 1 to %d letters, digits, '-', '_' and '.'",
				   KV_LOG_NAME_BYTES);
		f->name = text;
		return 0;
	case OPTION_ONCE:
		f->once = true;
		return 0;
	case OPTION_METRICS:
		f->metrics = text;
		return 0;
	case ARGP_KEY_ARG:
		if (f->url)
			argp_error(state, "one server at a time; what is \"%s\"?", text);
		f->url = text;
		return 0;
	case ARGP_KEY_END:
		if (!f->url)
			argp_error(state, "which server?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Telling ---- */

static void
follow_write_metrics(struct follow *f)
{
	AUTO(buf_release) struct buf text = BUF_INIT(METRICS_BYTES);
	AUTO(buf_release) struct buf half = BUF_INIT(READ_BYTES);
	FILE *file;

	if (!f->metrics || clock_mono_ns() < f->metrics_due_ns)
		return;
	f->metrics_due_ns = clock_after_ms(METRICS_EVERY_MS);
	metric_hold();
	metric_write(&text);
	metric_release();
	buf_printf(&half, "%s.half", f->metrics);
	buf_append_byte(&half, '\0');
	if (buf_status(&half) != STATUS_OK || buf_status(&text) != STATUS_OK)
		return;
	file = fopen(half.ptr, "we");
	if (!file)
		return;
	(void)fwrite(text.ptr, 1, text.len, file);
	if (fclose(file) == 0)
		(void)rename(half.ptr, f->metrics);
}

static void
follow_tell(struct follow *f)
{
	behind_versions = f->first_version > f->version ? (int64_t)(f->first_version - f->version)
							: 0;
	if (!behind_versions)
		equal_ns = (int64_t)clock_mono_ns();
	follow_write_metrics(f);
	if (clock_mono_ns() < f->log_due_ns)
		return;
	f->log_due_ns = clock_after_ms(LOG_EVERY_MS);
	log_event(LOG_LEVEL_INFO, "following", "server=%s version=%llu behind=%lld",
		  remote_name(f->remote), (unsigned long long)f->version,
		  (long long)behind_versions);
}

static uint64_t
number_of(const char *from)
{
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(n); i++)
		n = n << BYTE_BITS | (uint8_t)from[i];
	return n;
}

/* ---- A copy ---- */

/* Writes the records that are whole. `*ret_done`: the last one has come, and the copy's version. */
static enum status
copy_take(struct follow *f, struct kv_store *copy, bool *ret_done, struct err *err)
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
copy_read(struct follow *f, struct remote_stream *stream, struct kv_store *copy, struct err *err)
{
	bool head = false, done = false;
	static char bytes_read[READ_BYTES];
	size_t n;

	buf_clear(&f->answer);
	while (!done) {
		if (stop_asked)
			return err_set(err, STATUS_CANCELLED, "stopped while copying");
		TRY(remote_read(stream, bytes_read, sizeof(bytes_read), &n, err));
		if (n == 0)
			return err_set(err, STATUS_IO, "%s: the copy ended early",
				       remote_name(f->remote));
		followed_bytes += (int64_t)n;
		buf_append(&f->answer, bytes_read, n);
		TRY(buf_status(&f->answer));
		if (!head && f->answer.len >= HEAD_BYTES) {
			f->first_version = number_of(f->answer.ptr);
			buf_consume(&f->answer, HEAD_BYTES);
			head = true;
		}
		if (head)
			TRY(copy_take(f, copy, &done, err));
	}
	return STATUS_OK;
}

static enum status
follow_copy(struct follow *f, struct err *err)
{
	struct remote_stream *stream;
	struct kv_store *copy;
	enum status status;

	kv_close(f->store);
	f->store = NULL;
	TRY(remote_open(f->remote, STR("/_frond/follow"), &stream, err));
	status = kv_log_copy_make(f->store_url, &rev_store_shape, &copy, err);
	if (status == STATUS_OK) {
		status = copy_read(f, stream, copy, err);
		if (status == STATUS_OK)
			status = kv_log_copy_place(copy, f->store_url, err);
		else
			kv_close(copy);
	}
	remote_close(stream);
	return status;
}

/* ---- The log ---- */

static enum status
follow_open(struct follow *f, struct err *err)
{
	const struct kv_options options = { .follows = true, .shape = &rev_store_shape };
	struct kv_log_position position;

	TRY(kv_open(f->store_url, &options, &f->store, err));
	TRY(kv_log_position(f->store, &position, err));
	f->version = position.version;
	memcpy(f->history, position.history, sizeof(f->history));
	log_event(LOG_LEVEL_INFO, "standby", "store=\"%s\" version=%llu", f->store_url,
		  (unsigned long long)f->version);
	return STATUS_OK;
}

static enum status
follow_apply(struct follow *f, struct err *err)
{
	if (f->answer.len < HEAD_BYTES)
		return err_set(err, STATUS_INVALID, "%s: that is no answer of a first",
			       remote_name(f->remote));
	f->first_version = number_of(f->answer.ptr);
	followed_bytes += (int64_t)f->answer.len;
	if (memcmp(f->history, f->answer.ptr + sizeof(uint64_t), KV_LOG_HISTORY_BYTES) != 0)
		return err_set(err, STATUS_CORRUPT, "%s answers for another history",
			       remote_name(f->remote));
	TRY(kv_log_apply(f->store, str_skip(buf_str(&f->answer), HEAD_BYTES), err));
	f->version = kv_log_published(f->store);
	follow_tell(f);
	return STATUS_OK;
}

/* 409: nothing of what the standby has is to be replaced without a person's decision. */
static enum status
follow_conflict(struct follow *f, struct str path, struct err *err)
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
follow_ask(struct follow *f, struct err *err)
{
	char history[2 * KV_LOG_HISTORY_BYTES + 1];
	char path[PATH_BYTES];
	int http_status = 0;
	struct event never;

	event_init(&never);
	(void)event_wait(&never, f->ask_due_ns);
	f->ask_due_ns = clock_after_ms(ASK_EVERY_MS);
	for (size_t i = 0; i < KV_LOG_HISTORY_BYTES; i++)
		(void)snprintf(history + 2 * i, 3, "%02x", f->history[i]);
	(void)snprintf(path, sizeof(path), "/_frond/follow?after=%llu&history=%s&wait=%d&name=%s",
		       (unsigned long long)f->version, history, f->once ? 0 : WAIT_MS, f->name);
	TRY(remote_request(f->remote, "GET", str_from_cstr(path), (struct str){ NULL, 0 },
			   &http_status, &f->answer, err));
	if (http_status == 409)
		return follow_conflict(f, str_from_cstr(path), err);
	if (http_status >= 500)
		return err_set(err, STATUS_UNAVAILABLE, "%s answers %d", remote_name(f->remote),
			       http_status);
	if (http_status != 200)
		return remote_refused(f->remote, str_from_cstr(path), http_status,
				      buf_str(&f->answer), err);
	return follow_apply(f, err);
}

/* One step: opens the standby, copies the first, or applies an answer. */
static enum status
follow_step(struct follow *f, bool *ret_done, struct err *err)
{
	enum status status = f->store ? STATUS_OK : follow_open(f, err);

	if (status == STATUS_OK)
		status = follow_ask(f, err);
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
follow_pause(struct follow *f, const struct err *err)
{
	struct event never;

	log_event(LOG_LEVEL_WARN, "follow_failed", "again_ms=%llu reason=\"%s\"",
		  (unsigned long long)f->pause_ms, err->text);
	follow_write_metrics(f);
	event_init(&never);
	/* In pieces, so that a signal is answered soon. */
	for (uint64_t ms = 0; ms < f->pause_ms && !stop_asked; ms += AGAIN_MS)
		(void)event_wait(&never, clock_after_ms(AGAIN_MS));
	f->pause_ms = 2 * f->pause_ms < AGAIN_MOST_MS ? 2 * f->pause_ms : AGAIN_MOST_MS;
}

static enum status
follow_run(struct follow *f, struct err *err)
{
	bool done = false;

	f->pause_ms = AGAIN_MS;
	while (!done && !stop_asked) {
		enum status status;

		*err = (struct err){ 0 };
		status = follow_step(f, &done, err);
		if (status == STATUS_OK)
			f->pause_ms = AGAIN_MS;
		else if (stop_asked)
			break;
		else if (f->once || !follow_may_go_on(status))
			return status;
		else
			follow_pause(f, err);
	}
	return STATUS_OK;
}

static int
run_follow(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = follow_parse_option,
					  .args_doc = "URL",
					  .doc = argp_doc };
	const struct sigaction action = { .sa_handler = ask_to_stop };
	char host[KV_LOG_NAME_BYTES + 1] = "standby";
	struct follow f = { .store_url = CLI_STORE, .answer = BUF_INIT(ANSWER_BYTES) };
	struct err err = { 0 };
	enum status status;

	(void)gethostname(host, sizeof(host) - 1);
	f.name = host;
	cli_parse(&argp, argc, argv, &f);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	status = remote_new(f.url, &f.remote, &err);
	if (status == STATUS_OK) {
		equal_ns = (int64_t)clock_mono_ns();
		status = follow_run(&f, &err);
	}
	kv_close(f.store);
	if (status == STATUS_OK && f.once)
		printf("%s has version %llu of %s\n", f.store_url, (unsigned long long)f.version,
		       remote_name(f.remote));
	if (f.remote)
		remote_free(f.remote);
	buf_release(&f.answer);
	if (status == STATUS_OK)
		return cli_finish_output();
	cli_complain("%s", err.text[0] ? err.text : status_name(status));
	return CLI_FAILED;
}

const struct cli_command cli_follow = { "follow", "keep a standby of a server's store",
					run_follow };

/* ---- frond promote ---- */

static const struct argp_option promote_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The standby's store (default " CLI_STORE ")", 0 },
	{ 0 },
};

static const char promote_doc[] =
	"Make a first of a standby, which \"frond follow\" has kept and keeps no longer.\v"
	"Its databases get a higher Incarnation, so clients go on with the \"since\" that they "
	"have, and it takes writes from then on. It cannot become a standby of its old first any "
	"more; that one can become a standby of this, by a new copy.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
promote_parse_option(int key, char *text, struct argp_state *state)
{
	const char **store = state->input;

	switch (key) {
	case OPTION_STORE:
		*store = cli_parse_store("store", text, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static enum status
promote(const char *url, struct kv_log_position *ret, uint64_t *ret_databases, struct err *err)
{
	const struct kv_options options = { .follows = true, .shape = &rev_store_shape };
	struct kv_store *store;
	enum status status;

	TRY(kv_open(url, &options, &store, err));
	status = kv_log_position(store, ret, err);
	if (status == STATUS_OK)
		status = catalog_store_check(store, err);
	/* A crash from here on leaves what can only be promoted again. */
	if (status == STATUS_OK)
		status = kv_log_promote_begin(store, err);
	if (status == STATUS_OK)
		status = catalog_incarnations_raise(store, ret_databases, err);
	if (status == STATUS_OK)
		status = kv_log_promote_end(store, err);
	kv_close(store);
	return status;
}

static int
run_promote(int argc, char **argv)
{
	static const struct argp argp = { .options = promote_options,
					  .parser = promote_parse_option,
					  .doc = promote_doc };
	const char *store = CLI_STORE;
	struct kv_log_position position;
	uint64_t databases = 0;
	struct err err = { 0 };

	cli_parse(&argp, argc, argv, &store);
	if (promote(store, &position, &databases, &err) != STATUS_OK) {
		cli_complain("cannot promote %s: %s", store, err.text);
		return CLI_FAILED;
	}
	printf("%s is a first: version %llu of its old first, %llu databases\n", store,
	       (unsigned long long)position.version, (unsigned long long)databases);
	return cli_finish_output();
}

const struct cli_command cli_promote = { "promote", "make a first of a standby", run_promote };

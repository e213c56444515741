/*
 * frond import SOURCE --to TARGET: copies another database server to a running frond. From a
 * CouchDB by the replicator of the target, whose checkpoints make it resumable; from the other
 * protocols by frond-import (import/import.h).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "doc/json_value.h"
#include "http/escape.h"
#include "loop/pause.h"
#include "loop/wait.h"

enum {
	OPTION_TO = 't',
	OPTION_STATE = 's',
	OPTION_FOLLOW = 'f',
	OPTION_QUIET = 'q',

	ARENA_BYTES = 64 * 1024 * 1024,
	ANSWER_BYTES = 64 * 1024 * 1024,
	BODY_BYTES = 64 * 1024,
	PATH_BYTES = 4096,
	WATCH_MS = 500,   /* between two looks at how far a replication has come */
	AGAIN_MS = 2000,  /* between two rounds with --follow */
	ROUNDS_MOST = 50, /* until nothing is left, while others write */
	HELPER_ARGS = 8,
};

#define HELPER "frond-import"
/* Only people: a design document there is the source's own. */
#define PEOPLE_SELECTOR "{\"_id\":{\"$gt\":\"org.couchdb.user:\",\"$lt\":\"org.couchdb.user;\"}}"

struct import_args {
	const char *source;
	const char *target;
	const char *state;
	bool follow;
	bool quiet;
};

struct couch_import {
	const struct import_args *args;
	struct remote *source;
	struct remote *target;
	struct remote *watch; /* the target's, beside a replication that is under way */
	struct arena *arena;
	struct progress progress;
	struct buf answer;
	struct buf path;
	struct buf body;
	uint64_t misfits;
	uint64_t documents; /* that have been written */
	uint64_t shown;     /* documents of databases that are done */
};

static volatile sig_atomic_t import_stop;

static void
import_on_signal(int number)
{
	(void)number;
	import_stop = 1;
}

static const struct argp_option argp_options[] = {
	{ "to", OPTION_TO, "URL", 0, "The door of a running frond, of the source's protocol", 0 },
	{ "state", OPTION_STATE, "FILE", 0,
	  "Of redis:// and mongodb://: keep in FILE how far it is; with the same file the next one "
	  "goes on there",
	  0 },
	{ "follow", OPTION_FOLLOW, NULL, 0,
	  "Go on with what is changed at the source until a signal comes, instead of ending when "
	  "nothing is left",
	  0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Copy the databases of another server to a running frond, and what is changed there "
	"meanwhile.\v"
	"SOURCE and URL are of one protocol: http:// or https:// of a CouchDB, mongodb:// or "
	"mongodb+srv://, redis:// or rediss://, each with NAME:PASSWORD@ of somebody who may read, "
	"or write, everything. With a path, http:// and mongodb:// copy that database alone. What "
	"does not fit is told, a line each, and makes the exit code 1. An import can be ended and "
	"begun again at any time: a CouchDB's goes on by itself, the others with --state.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
import_parse_option(int key, char *text, struct argp_state *state)
{
	struct import_args *args = state->input;

	switch (key) {
	case OPTION_TO:
		args->target = text;
		return 0;
	case OPTION_STATE:
		args->state = text;
		return 0;
	case OPTION_FOLLOW:
		args->follow = true;
		return 0;
	case OPTION_QUIET:
		args->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->source)
			argp_error(state, "one source at a time; what is \"%s\"?", text);
		args->source = text;
		return 0;
	case ARGP_KEY_END:
		if (!args->source || !args->target)
			argp_error(state, "from where, and --to where?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- A CouchDB ---- */

static void
couch_misfit(struct couch_import *c, struct str db, const char *what, const char *why)
{
	c->misfits++;
	progress_hide(&c->progress);
	printf("did not fit: %.*s: %s: %s\n", STR_ARG(db), what, why);
	fflush(stdout);
}

/* The path of a database, and of something of it. */
static struct str
couch_path(struct couch_import *c, struct str db, const char *below)
{
	buf_clear(&c->path);
	buf_append_byte(&c->path, '/');
	http_escape(&c->path, db);
	buf_append_cstr(&c->path, below);
	return buf_str(&c->path);
}

/* A request whose answer has to be one of these codes. */
static enum status
couch_ask(struct couch_import *c, struct remote *at, const char *method, struct str path,
	  struct str body, int also, struct err *err)
{
	int code = 0;

	TRY(buf_status(&c->path));
	TRY(remote_request(at, method, path, body, &code, &c->answer, err));
	if (code == 200 || code == 201 || code == 202 || code == also)
		return STATUS_OK;
	return remote_refused(at, path, code, buf_str(&c->answer), err);
}

/* What the source keeps of a database beside its documents. */
static void
couch_copy_settings(struct couch_import *c, struct str db)
{
	static const char *const names[] = { "/_security", "/_revs_limit" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct str none = { NULL, 0 };
		struct err err = { 0 };
		enum status status = couch_ask(c, c->source, "GET", couch_path(c, db, names[i]),
					       none, 200, &err);

		buf_clear(&c->body);
		buf_append_buf(&c->body, &c->answer);
		if (status == STATUS_OK)
			status = buf_status(&c->body);
		if (status == STATUS_OK)
			status = couch_ask(c, c->target, "PUT", couch_path(c, db, names[i]),
					   buf_str(&c->body), 200, &err);
		if (status != STATUS_OK)
			couch_misfit(c, db, names[i] + 1, err.text);
	}
}

/* Makes the database, as the source has it. */
static enum status
couch_make(struct couch_import *c, struct str db, struct err *err)
{
	const struct str none = { NULL, 0 };
	bool partitioned;

	TRY(couch_ask(c, c->source, "GET", couch_path(c, db, ""), none, 200, err));
	partitioned = memmem(c->answer.ptr, c->answer.len, "\"partitioned\":true", 18) != NULL;
	return couch_ask(c, c->target, "PUT",
			 couch_path(c, db, partitioned ? "?partitioned=true" : ""), none, 412, err);
}

struct couch_run {
	struct couch_import *import;
	struct event done;
	enum status status;
	struct err err;
};

/* On a thread of its own, so that the other one can show how far it is. */
static void *
couch_replicate(void *arg)
{
	struct couch_run *run = arg;
	struct couch_import *c = run->import;

	run->status = couch_ask(c, c->target, "POST", STR("/_replicate"), buf_str(&c->body), 200,
				&run->err);
	event_set(&run->done);
	return NULL;
}

static uint64_t
member_number(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);
	uint64_t n = 0;

	return value && value->kind == JSON_NUMBER && str_to_u64(value->text, &n) ? n : 0;
}

static void
couch_show(struct couch_import *c, struct str db)
{
	AUTO(buf_release) struct buf answer = BUF_INIT(ANSWER_BYTES);
	AUTO(buf_release) struct buf path = BUF_INIT(PATH_BYTES);
	struct json_member *members;
	struct err ignored = { 0 };
	struct arena *arena = arena_new(ARENA_BYTES);
	size_t count;
	int code = 0;

	buf_append_byte(&path, '/');
	http_escape(&path, db);
	if (arena &&
	    remote_request(c->watch, "GET", buf_str(&path), (struct str){ NULL, 0 }, &code, &answer,
			   &ignored) == STATUS_OK &&
	    json_read_members(buf_str(&answer), arena, &members, &count, &ignored) == STATUS_OK)
		progress_update(&c->progress, c->shown + member_number(members, count, "doc_count"),
				0);
	arena_free(arena);
}

/*
 * A number of the newest session of a replication. Those of a replication that goes on count from
 * its first session.
 */
static enum status
session_number(struct couch_import *c, const struct json_value *sessions, size_t count,
	       const char *name, uint64_t *ret, struct err *err)
{
	uint64_t numbers[2] = { 0, 0 };

	for (size_t i = 0; i < count && i < 2; i++) {
		struct json_member *members;
		size_t members_count;

		TRY(json_value_members(&sessions[i], c->arena, &members, &members_count, err));
		numbers[i] = member_number(members, members_count, name);
	}
	*ret = numbers[0] > numbers[1] ? numbers[0] - numbers[1] : 0;
	return STATUS_OK;
}

/* Counts what a replication has done by its answer. */
static enum status
couch_count(struct couch_import *c, struct str db, uint64_t *ret_written, struct err *err)
{
	struct json_member *members;
	const struct json_value *history;
	struct json_value *runs;
	size_t count;
	char text[PATH_BYTES];
	uint64_t failed;

	*ret_written = 0;
	arena_clear(c->arena);
	TRY(json_read_members(buf_str(&c->answer), c->arena, &members, &count, err));
	history = json_value_find(members, count, "history");
	if (json_value_find(members, count, "no_changes") || !history)
		return STATUS_OK;
	TRY(json_value_items(history, c->arena, &runs, &count, err));
	TRY(session_number(c, runs, count, "docs_written", ret_written, err));
	TRY(session_number(c, runs, count, "doc_write_failures", &failed, err));
	if (failed) {
		(void)snprintf(text, sizeof(text),
			       "%llu, which the log of the target names with event=replication",
			       (unsigned long long)failed);
		couch_misfit(c, db, "documents", text);
	}
	return STATUS_OK;
}

/* One replication, to its end. */
static enum status
couch_round(struct couch_import *c, struct str db, uint64_t *ret_written, struct err *err)
{
	struct couch_run run = { .import = c };
	pthread_t thread;

	buf_clear(&c->body);
	buf_append_cstr(&c->body, "{\"source\":");
	buf_clear(&c->path);
	buf_append_cstr(&c->path, remote_url(c->source));
	buf_append_byte(&c->path, '/');
	http_escape(&c->path, db);
	quote_json(&c->body, buf_str(&c->path));
	buf_append_cstr(&c->body, ",\"target\":");
	quote_json(&c->body, db);
	if (str_eq(db, STR("_users")))
		buf_append_cstr(&c->body, ",\"selector\":" PEOPLE_SELECTOR);
	buf_append_byte(&c->body, '}');
	TRY(buf_status(&c->body));
	event_init(&run.done);
	if (pthread_create(&thread, NULL, couch_replicate, &run) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	while (!event_wait(&run.done, clock_after_ms(WATCH_MS)))
		couch_show(c, db);
	(void)pthread_join(thread, NULL);
	*err = run.err;
	TRY(run.status);
	return couch_count(c, db, ret_written, err);
}

static enum status
couch_copy(struct couch_import *c, struct str db, bool first, uint64_t *ret_written,
	   struct err *err)
{
	uint64_t written = 1, all = 0;

	if (first)
		TRY(couch_make(c, db, err));
	if (first && !str_eq(db, STR("_users")))
		couch_copy_settings(c, db);
	for (int round = 0; written && round < ROUNDS_MOST && !import_stop; round++) {
		TRY(couch_round(c, db, &written, err));
		all += written;
	}
	c->documents += all;
	*ret_written = all;
	if (first) {
		progress_hide(&c->progress);
		printf("%.*s: %llu documents and revisions\n", STR_ARG(db),
		       (unsigned long long)all);
		fflush(stdout);
	}
	c->shown += all;
	return STATUS_OK;
}

/* The databases of the source that are copied, into the arena `list`. */
static enum status
couch_databases(struct couch_import *c, struct arena *list, struct str **ret, size_t *ret_count,
		struct err *err)
{
	struct json_value all, *items;
	size_t count, kept = 0;
	struct str *names;

	TRY(couch_ask(c, c->source, "GET", STR("/_all_dbs"), (struct str){ NULL, 0 }, 200, err));
	TRY(json_value_read(buf_str(&c->answer), list, &all, err));
	TRY(json_value_items(&all, list, &items, &count, err));
	names = arena_alloc(list, (count + 1) * sizeof(*names));
	if (!names)
		return err_set(err, STATUS_NOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		/* _replicator's and _global_changes' documents are of that server alone. */
		if (items[i].kind == JSON_STRING && (!str_starts_with(items[i].string, STR("_")) ||
						     str_eq(items[i].string, STR("_users"))))
			TRY(arena_copy(list, items[i].string, &names[kept++]));
	*ret = names;
	*ret_count = kept;
	return STATUS_OK;
}

static void
couch_copy_all(struct couch_import *c, const struct str *names, size_t count, bool first,
	       uint64_t *ret_written)
{
	*ret_written = 0;
	for (size_t i = 0; i < count && !import_stop; i++) {
		struct err err = { 0 };
		uint64_t written = 0;

		if (couch_copy(c, names[i], first, &written, &err) != STATUS_OK)
			couch_misfit(c, names[i], "the database", err.text);
		*ret_written += written;
	}
}

/* Rounds over all databases until one has written nothing. */
static enum status
couch_run(struct couch_import *c, struct err *err)
{
	struct arena *list = arena_new(ARENA_BYTES);
	struct str *names;
	uint64_t written = 1;
	enum status status;
	size_t count;

	if (!list)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = couch_databases(c, list, &names, &count, err);
	for (int round = 0; status == STATUS_OK && !import_stop; round++) {
		couch_copy_all(c, names, count, round == 0, &written);
		if (!c->args->follow && (written == 0 || round == ROUNDS_MOST))
			break;
		if (written == 0)
			wait_pause(AGAIN_MS);
	}
	arena_free(list);
	return status;
}

/* Splits a database off the URL; `ret` is the caller's place for the rest. */
static struct str
couch_split(const char *url, char ret[PATH_BYTES])
{
	const char *host = strstr(url, "://");
	const char *slash = host ? strchr(host + 3, '/') : NULL;

	(void)snprintf(ret, PATH_BYTES, "%s", url);
	if (!slash || !slash[1])
		return STR("");
	ret[slash - url] = '\0';
	return str_from_cstr(slash + 1);
}

static enum status
couch_import(const struct import_args *args, struct couch_import *c, struct err *err)
{
	char url[PATH_BYTES];
	struct str only = couch_split(args->source, url);
	enum status status;
	uint64_t written;

	c->arena = arena_new(ARENA_BYTES);
	if (!c->arena)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(remote_new(url, &c->source, err));
	TRY(remote_new(args->target, &c->target, err));
	TRY(remote_new(args->target, &c->watch, err));
	remote_be_patient(c->target);
	progress_init(&c->progress, stderr, args->quiet, 0);
	if (only.len == 0)
		return couch_run(c, err);
	while (only.len && only.ptr[only.len - 1] == '/')
		only.len--;
	do {
		status = couch_copy(c, only, true, &written, err);
	} while (status == STATUS_OK && written && !import_stop);
	return status;
}

static int
run_couch(const struct import_args *args)
{
	struct couch_import c = { .args = args,
				  .answer = BUF_INIT(ANSWER_BYTES),
				  .path = BUF_INIT(PATH_BYTES),
				  .body = BUF_INIT(BODY_BYTES) };
	struct err err = { 0 };
	enum status status = couch_import(args, &c, &err);
	int code = status == STATUS_OK && !c.misfits ? CLI_OK : CLI_FAILED;

	progress_hide(&c.progress);
	if (status == STATUS_OK)
		printf("%s %llu documents and revisions; %llu did not fit\n",
		       import_stop ? "ended; imported" : "imported",
		       (unsigned long long)c.documents, (unsigned long long)c.misfits);
	else
		cli_complain("%s", err.text[0] ? err.text : status_name(status));
	remote_free(c.source);
	remote_free(c.target);
	remote_free(c.watch);
	arena_free(c.arena);
	buf_release(&c.answer);
	buf_release(&c.path);
	buf_release(&c.body);
	return code == CLI_OK ? cli_finish_output() : code;
}

/* ---- The others ---- */

static int
run_helper(const struct import_args *args)
{
	char state[PATH_BYTES];
	char path[PATH_MAX];
	const char *given[HELPER_ARGS] = { HELPER, args->source, args->target };
	size_t count = 3;

	process_find_beside(HELPER, path);
	if (args->state) {
		if (snprintf(state, sizeof(state), "state=%s", args->state) >= (int)sizeof(state)) {
			cli_complain("the name of the state's file is too long");
			return CLI_USAGE;
		}
		given[count++] = state;
	}
	if (args->follow)
		given[count++] = "follow";
	if (args->quiet)
		given[count++] = "quiet";
	(void)execv(path, (char *const *)(uintptr_t)given);
	cli_complain("cannot start %s, which copies from MongoDB and Redis: was this frond built "
		     "without their clients' libraries?",
		     path);
	return CLI_FAILED;
}

/* Which of the three protocols a URL is of; 0: none. */
static char
protocol_of(const char *url)
{
	if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
		return 'c';
	if (strncmp(url, "mongodb://", 10) == 0 || strncmp(url, "mongodb+srv://", 14) == 0)
		return 'm';
	return strncmp(url, "redis://", 8) == 0 || strncmp(url, "rediss://", 9) == 0 ? 'r' : 0;
}

static int
run_import(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = import_parse_option,
					  .args_doc = "SOURCE",
					  .doc = argp_doc };
	const struct sigaction action = { .sa_handler = import_on_signal };
	struct import_args args = { 0 };
	char protocol;

	cli_parse(&argp, argc, argv, &args);
	protocol = protocol_of(args.source);
	if (!protocol || protocol != protocol_of(args.target)) {
		cli_complain("SOURCE and --to are URLs of one protocol: http(s)://, mongodb:// or "
			     "redis(s)://");
		return CLI_USAGE;
	}
	if (protocol != 'c')
		return run_helper(&args);
	if (args.state) {
		cli_complain("--state is not needed here: the replications have checkpoints");
		return CLI_USAGE;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return run_couch(&args);
}

const struct cli_command cli_import = { "import", "copy another database server to a frond",
					run_import };

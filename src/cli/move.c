/* frond move DB: relocates a database from one store to another. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/finding.h"
#include "cli/progress.h"
#include "catalog/move.h"
#include "door/couch/couch.h"

enum {
	OPTION_FROM = 'f',
	OPTION_TO = 't',
	OPTION_QUIET = 'q',
	OPTION_KEEP = 256,
	OPTION_ROLLBACK,
	BYTES_TEXT = 32,
	FOUND_MAX = 20,
	/* "embedded:" and "fdb:" before a path. */
	URL_BYTES = PATH_MAX + 16,
};

struct move {
	const char *from;
	const char *to;
	const char *name; /* as it was given */
	struct cli_db db;
	bool keep;
	bool rollback;
	bool quiet;

	char from_url[URL_BYTES];
	char to_url[URL_BYTES];
	struct progress progress;
	enum catalog_move_phase phase;
	bool under_way; /* there is something to go on with, or to undo */
	uint64_t found;
};

static const struct argp_option argp_options[] = {
	{ "from", OPTION_FROM, "URL", 0, "The store where the database is", 0 },
	{ "to", OPTION_TO, "URL", 0, "The store where it shall be; a missing directory is made",
	  0 },
	{ "keep-source", OPTION_KEEP, NULL, 0,
	  "Leave what is there at the source, for reading only, instead of deleting it", 0 },
	{ "rollback", OPTION_ROLLBACK, NULL, 0,
	  "Undo a move that was interrupted, instead of going on with it", 0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Move the database DB from one store to another.\v"
	"A URL is embedded:DIRECTORY or fdb:CLUSTER_FILE. No server may have an embedded store "
	"open meanwhile; those of a cluster go on, and refuse writes to the database with 503 "
	"until it has moved. Revisions, conflicts, local documents, attachments and settings stay "
	"what they are, and clients can go on with the \"since\" that they have. rows:NAME and "
	"redis:NUMBER are databases of rows and of Redis's clients; write times, expiry and the "
	"past that they keep move along.\n"
	"\n"
	"Interrupted, in whatever way, the same command goes on with it; with --rollback it undoes "
	"it, until all of it is at the target.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
move_parse_option(int key, char *text, struct argp_state *state)
{
	struct move *m = state->input;

	switch (key) {
	case OPTION_FROM:
		m->from = cli_parse_store("from", text, state);
		return 0;
	case OPTION_TO:
		m->to = cli_parse_store("to", text, state);
		return 0;
	case OPTION_KEEP:
		m->keep = true;
		return 0;
	case OPTION_ROLLBACK:
		m->rollback = true;
		return 0;
	case OPTION_QUIET:
		m->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (m->name)
			argp_error(state, "one database at a time; what is \"%s\"?", text);
		m->name = text;
		return 0;
	case ARGP_KEY_END:
		if (!m->name) {
			argp_error(state, "which database?");
			return EINVAL;
		}
		m->db = cli_parse_db(m->name, state);
		if (strcmp(m->name, COUCH_USERS_DB) == 0)
			argp_error(state,
				   "people belong to their store and do not move with "
				   "\"%s\": replicate it, or dump and load it",
				   m->name);
		if (!m->from || !m->to)
			argp_error(state, "from where, and to where? Give --from and --to");
		if (m->rollback && m->keep)
			argp_error(state, "--rollback and --keep-source exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Stores ---- */

/*
 * The URL as the records have it: with the whole path, since the next run may begin in another
 * directory. What is no path stays what it is.
 */
static void
whole_url(const char *url, char *ret, size_t n)
{
	const char *colon = strchr(url, ':');
	bool is_path = colon && colon[1] &&
		       (str_starts_with(str_from_cstr(url), STR("embedded:")) ||
			str_starts_with(str_from_cstr(url), STR("fdb:")));
	char *path = is_path ? realpath(colon + 1, NULL) : NULL;

	if (path)
		snprintf(ret, n, "%.*s%s", (int)(colon + 1 - url), url, path);
	else
		snprintf(ret, n, "%s", url);
	free(path);
}

static enum status
open_stores(struct move *m, struct kv_store **ret_from, struct kv_store **ret_to)
{
	struct kv_options from = { 0 };
	struct kv_options to = { .create = true };

	whole_url(m->from, m->from_url, sizeof(m->from_url));
	whole_url(m->to, m->to_url, sizeof(m->to_url));
	if (strcmp(m->from_url, m->to_url) == 0) {
		cli_complain("%s is where the database is already", m->to);
		return STATUS_INVALID;
	}
	TRY(cli_open_store(m->from, &from, ret_from));
	TRY(cli_open_store(m->to, &to, ret_to));
	/* It may have been made just now. */
	whole_url(m->to, m->to_url, sizeof(m->to_url));
	return STATUS_OK;
}

/* ---- Telling ---- */

static volatile sig_atomic_t stopped;

static void
handle_signal(int number)
{
	stopped = number;
}

static void
catch_signals(void)
{
	struct sigaction action = { .sa_handler = handle_signal, .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static const char *
phase_text(enum catalog_move_phase phase)
{
	switch (phase) {
	case CATALOG_MOVE_PHASE_COPY:
		return "copying";
	case CATALOG_MOVE_PHASE_COMPARE:
		return "comparing the copy";
	case CATALOG_MOVE_PHASE_CHECK:
		return "checking the copy";
	case CATALOG_MOVE_PHASE_BEGIN:
	case CATALOG_MOVE_PHASE_END:
	default:
		return NULL;
	}
}

static enum status
show_progress(const struct catalog_move_progress *now, void *arg)
{
	struct move *m = arg;
	const char *text = phase_text(now->phase);

	m->under_way = now->source != CATALOG_MOVE_NONE || now->target != CATALOG_MOVE_NONE;
	if (now->phase != m->phase) {
		m->phase = now->phase;
		progress_hide(&m->progress);
		progress_init(&m->progress, stderr, m->quiet, 0);
		if (text && !m->quiet)
			fprintf(stderr, "%s \"%s\"\n", text, m->name);
	}
	m->progress.total_bytes = now->total_bytes;
	if (text)
		progress_update(&m->progress, now->sum.documents, now->sum.bytes);
	return stopped ? STATUS_CANCELLED : STATUS_OK;
}

static void
show_finding(const struct catalog_finding *finding, void *arg)
{
	struct move *m = arg;

	if (m->found++ >= FOUND_MAX)
		return;
	progress_hide(&m->progress);
	finding_print(finding);
}

static void
tell_sum(const struct move *m, const struct catalog_move_sum *sum, uint64_t elapsed_ms)
{
	char bytes[BYTES_TEXT];

	progress_format_bytes(sum->bytes, bytes, sizeof(bytes));
	printf("\"%s\" moved from %s to %s: %llu documents, %llu keys, %s in %.1f s\n", m->name,
	       m->from, m->to, (unsigned long long)sum->documents, (unsigned long long)sum->keys,
	       bytes, (double)elapsed_ms / 1000);
}

static void
tell_failure(const struct move *m, enum status status, const struct err *err)
{
	if (stopped && status == STATUS_CANCELLED)
		cli_complain("stopped by a signal");
	else
		cli_complain("cannot %s \"%s\": %s", m->rollback ? "roll back" : "move", m->name,
			     err->text[0] ? err->text : status_name(status));
	if (m->under_way && !m->rollback)
		cli_complain("the same command goes on with the move; with --rollback it undoes "
			     "it, until all is at the target");
	else if (m->under_way)
		cli_complain("the same command goes on with the rollback");
}

/* ---- Moving ---- */

static int
move(struct move *m, struct kv_store *from, struct kv_store *to)
{
	const struct catalog_move_options options = {
		.space = m->db.space,
		.from = from,
		.to = to,
		.from_url = m->from_url,
		.to_url = m->to_url,
		.name = str_from_cstr(m->db.name),
		.keep = m->keep,
		.progress = show_progress,
		.found = show_finding,
		.arg = m,
	};
	uint64_t begun_ns = clock_mono_ns();
	struct catalog_move_sum sum = { 0 };
	struct err err = { 0 };
	enum status status;

	progress_init(&m->progress, stderr, m->quiet, 0);
	catch_signals();
	status = m->rollback ? catalog_move_rollback(&options, &err)
			     : catalog_move(&options, &sum, &err);
	progress_hide(&m->progress);
	if (status != STATUS_OK) {
		tell_failure(m, status, &err);
		return CLI_FAILED;
	}
	if (m->rollback)
		printf("\"%s\" stays where it is, in %s\n", m->name, m->from);
	else
		tell_sum(m, &sum, (clock_mono_ns() - begun_ns) / CLOCK_NS_PER_MS);
	return cli_finish_output();
}

static int
run_move(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = move_parse_option,
					  .args_doc = "DB",
					  .doc = argp_doc };
	struct kv_store *from = NULL;
	struct kv_store *to = NULL;
	struct move m = { 0 };
	int code = CLI_FAILED;

	cli_parse(&argp, argc, argv, &m);
	if (open_stores(&m, &from, &to) == STATUS_OK)
		code = move(&m, from, to);
	kv_close(to);
	kv_close(from);
	return code;
}

const struct cli_command cli_move = { "move", "move a database to another store", run_move };

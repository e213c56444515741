/*
 * frond load: brings documents from JSON files into a store or a server. Files that Redis has
 * written are read by load_rdb.c.
 */
#include "cli/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/load_plain.h"
#include "cli/load_rdb.h"
#include "cli/load_timed.h"
#include "cli/table_csv.h"

enum {
	OPTION_STORE = 's',
	OPTION_TO = 't',
	OPTION_FORMAT = 'f',
	OPTION_ID = 'i',
	OPTION_BATCH = 'b',
	OPTION_QUIET = 'q',
	OPTION_CREATE = 256,
	OPTION_NO_CREATE,
	OPTION_SCHEME,
	OPTION_PARTITIONED,
	OPTION_ON_ERROR,
	OPTION_NEW_EDITS,
	OPTION_UPDATE,
	OPTION_DOC_BYTES,
	OPTION_RDB,
	OPTION_HEADER,
	OPTION_COLUMNS,
};

struct load_args {
	const char *store;
	const char *to;
	const char *id_member;
	const char *rdb;
	const char *columns;
	bool header;
	char **files;
	int files_count;
	enum input_format format;
	bool on_error_continue;
	bool quiet;
	struct load_options options;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to load into (default " CLI_STORE ")", 0 },
	{ "to", OPTION_TO, "URL", 0,
	  "Load into a server, http://[NAME:PASSWORD@]HOST:PORT, instead of a store", 0 },
	{ "format", OPTION_FORMAT, "FORMAT", 0,
	  "lines, array, map, document, or auto (default), which tells them apart; csv: of a table",
	  0 },
	{ "id", OPTION_ID, "MEMBER", 0,
	  "Take each document's id from this member, a string or a number", 0 },
	{ "create", OPTION_CREATE, NULL, 0, "Create the database if it is missing (default)", 0 },
	{ "no-create", OPTION_NO_CREATE, NULL, 0, "Fail if the database is missing", 0 },
	{ "scheme", OPTION_SCHEME, "SCHEME", 0,
	  "How a database that is created keeps its documents: packed or exploded", 0 },
	{ "partitioned", OPTION_PARTITIONED, NULL, 0,
	  "Create the database partitioned: every id is PARTITION:ID", 0 },
	{ "on-error", OPTION_ON_ERROR, "WHAT", 0,
	  "stop (default) after the batch in which a document was refused, or continue", 0 },
	{ "batch", OPTION_BATCH, "N", 0, "Documents in a transaction or request (default 500)", 0 },
	{ "new-edits", OPTION_NEW_EDITS, "BOOL", 0,
	  "false: keep the revisions that the documents carry (_rev, _revisions), as "
	  "\"frond dump --revs\" writes them",
	  0 },
	{ "update", OPTION_UPDATE, NULL, 0,
	  "Let a document that is there already get a new revision, instead of refusing it; into "
	  "a store only",
	  0 },
	{ "max-document-size", OPTION_DOC_BYTES, "BYTES", 0,
	  "Refuse larger documents (default and at most 8000000)", 0 },
	{ "rdb", OPTION_RDB, "FILE", 0,
	  "Load a file of Redis, such as dump.rdb, with all of its databases, instead of DB", 0 },
	{ "header", OPTION_HEADER, NULL, 0, "csv: the first line of each file names its columns",
	  0 },
	{ "columns", OPTION_COLUMNS, "NAMES", 0,
	  "csv: the columns of a record, in this order, with commas between them (default: those "
	  "of the header, or all)",
	  0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress and no summary", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Load JSON documents into the database DB.\v"
	"FILE is read from standard input when it is \"-\" or none is given. Documents without "
	"_id get a new one. Formats:\n"
	"\n"
	"  lines     one document a line\n"
	"  array     [document, ...]\n"
	"  map       {\"id\": document, ...}\n"
	"  document  one document\n"
	"\n"
	"auto: a first character '[' is an array. An object that is followed by more than white "
	"space is the first of lines. An object that is all there is, is a map if it has members, "
	"every one of them an object, and none named _id; otherwise it is one document. An object "
	"too large to be a document is a map.\n"
	"\n"
	"rows:NAME, redis:NUMBER and table:KEYSPACE.TABLE take what \"frond dump\" has written of "
	"such a database, with "
	"--store, --batch, --no-create and --quiet. What is there under the same keys is "
	"replaced. --format csv takes rows of a table as cqlsh's COPY writes them, and writes each "
	"as INSERT does. mongo:DB.COLLECTION takes documents as Extended JSON, such as \"frond "
	"dump\" "
	"and mongoexport write, one a line or with --format array, likewise; with --scheme for a "
	"collection that is created.\n"
	"\n"
	"--rdb takes a file that Redis has written (SAVE, BGSAVE), of versions up to 7.4, into "
	"redis:0 to redis:15, as they are in it, with --store, --batch, --no-create and --quiet. "
	"The file is checked before anything is loaded. What is there under the same keys is "
	"replaced; likewise libraries of functions (FUNCTION LOAD) of the same names. Values of "
	"modules are not taken, which is told.\n"
	"\n"
	"What is refused is reported as FILE:LINE: REASON.\n"
	"\n" CLI_EXIT_TEXT;

static bool
load_parse_choice(const char *option, const char *text, const char *no, const char *yes,
		  struct argp_state *state)
{
	if (strcmp(text, yes) != 0 && strcmp(text, no) != 0)
		argp_error(state, "--%s: \"%s\" is neither \"%s\" nor \"%s\"", option, text, no,
			   yes);
	return strcmp(text, yes) == 0;
}

/* Options about CouchDB's documents mean nothing for others. */
static void
load_check_described(const struct load_args *args, struct argp_state *state)
{
	const struct load_options *o = &args->options;
	bool documents = cli_db_of(o->db).space == CATALOG_SPACE_MONGO;
	bool table = cli_db_of(o->db).space == CATALOG_SPACE_TABLE;
	bool csv = args->format == INPUT_CSV;

	if (args->to || args->id_member || args->on_error_continue || o->partitioned || o->update ||
	    !o->new_edits || o->doc_bytes != DOC_LIMIT_DEFAULT_BYTES ||
	    (!documents && !csv && (args->format != INPUT_AUTO || o->scheme)) ||
	    args->format == INPUT_MAP || (csv && (!table || o->scheme)))
		argp_error(state, "with \"%s\" go --store, --batch, --no-create%s and --quiet only",
			   o->db,
			   documents ? ", --scheme, --format (but map and csv)"
			   : table   ? ", --format csv"
				     : "");
}

static void
load_check_args(const struct load_args *args, struct argp_state *state)
{
	const struct load_options *o = &args->options;

	if (args->format != INPUT_CSV && (args->header || args->columns))
		argp_error(state, "--header and --columns go with --format csv");
	if (args->rdb) {
		if (o->db || args->to || args->id_member || args->on_error_continue ||
		    o->partitioned || o->update || o->scheme || !o->new_edits ||
		    o->doc_bytes != DOC_LIMIT_DEFAULT_BYTES || args->format != INPUT_AUTO)
			argp_error(state, "with --rdb go --store, --batch, --no-create and --quiet "
					  "only");
		return;
	}
	if (!o->db)
		argp_error(state, "which database?");
	if (args->store && args->to)
		argp_error(state, "--store and --to exclude each other");
	if (cli_db_of(o->db).space != CATALOG_SPACE_COUCH) {
		load_check_described(args, state);
		return;
	}
	if (args->format == INPUT_CSV)
		argp_error(state, "--format csv goes with table:NAME");
	if (!args->to)
		cli_check_db(o->db, state);
	if (o->update && (args->to || !o->new_edits))
		argp_error(state, "--update works with neither --to nor --new-edits false");
}

static error_t
load_parse_option(int key, char *text, struct argp_state *state)
{
	struct load_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_TO:
		args->to = text;
		return 0;
	case OPTION_FORMAT:
		if (!input_format_parse(str_from_cstr(text), &args->format))
			argp_error(state,
				   "--format: \"%s\" is none of auto, lines, array, map, "
				   "document, csv",
				   text);
		return 0;
	case OPTION_ID:
		args->id_member = text;
		return 0;
	case OPTION_CREATE:
	case OPTION_NO_CREATE:
		args->options.create = key == OPTION_CREATE;
		return 0;
	case OPTION_SCHEME:
		if (rev_scheme_parse(str_from_cstr(text), &args->options.scheme) != STATUS_OK)
			argp_error(state, "--scheme: \"%s\" is neither \"packed\" nor \"exploded\"",
				   text);
		return 0;
	case OPTION_PARTITIONED:
		args->options.partitioned = true;
		return 0;
	case OPTION_ON_ERROR:
		args->on_error_continue = load_parse_choice("on-error", text, "stop", "continue",
							    state);
		return 0;
	case OPTION_BATCH:
		args->options.batch_docs = cli_parse_number("batch", text, 1, LOAD_BATCH_DOCS_MAX,
							    state);
		return 0;
	case OPTION_NEW_EDITS:
		args->options.new_edits = load_parse_choice("new-edits", text, "false", "true",
							    state);
		return 0;
	case OPTION_UPDATE:
		args->options.update = true;
		return 0;
	case OPTION_DOC_BYTES:
		args->options.doc_bytes = cli_parse_number("max-document-size", text, 1,
							   DOC_LIMIT_MAX_BYTES, state);
		return 0;
	case OPTION_QUIET:
		args->quiet = true;
		return 0;
	case OPTION_HEADER:
		args->header = true;
		return 0;
	case OPTION_COLUMNS:
		args->columns = text;
		return 0;
	case OPTION_RDB:
		args->rdb = text;
		return 0;
	case ARGP_KEY_ARG:
		if (args->options.db)
			return ARGP_ERR_UNKNOWN; /* the files: ARGP_KEY_ARGS */
		args->options.db = text;
		return 0;
	case ARGP_KEY_ARGS:
		args->files = state->argv + state->next;
		args->files_count = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		load_check_args(args, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct loading {
	const struct load_args *args;
	struct load_sink *sink;
	struct arena *arena; /* for one document at a time */
	struct load_report *report;
	uint64_t bytes; /* of the files that have been read to their end */
	uint64_t read;  /* documents read so far */
};

static bool
load_must_stop(const struct loading *l)
{
	return l->report->refused && !l->args->on_error_continue;
}

/*
 * Brings one document from the input to the sink. Only failures of the sink are returned, and end
 * the command. A document that makes no sense is refused, and the next one is read.
 */
static enum status
load_item(struct loading *l, const struct input_item *item, const char *file, struct err *err)
{
	struct load_origin origin = { file, item->line };
	struct err reason = { 0 };
	struct load_doc doc;

	l->read++;
	if (item->too_large) {
		load_refuse(l->report, &origin, "the document is larger than %d bytes",
			    INPUT_VALUE_BYTES);
		return STATUS_OK;
	}
	arena_clear(l->arena);
	if (load_doc_read(item->text, item->id, l->args->id_member, l->arena, &doc, &reason) !=
	    STATUS_OK) {
		load_refuse(l->report, &origin, "%s", reason.text);
		return STATUS_OK;
	}
	doc.origin = origin;
	return l->sink->put(l->sink, &doc, err);
}

static enum status
load_input(struct loading *l, struct input *in, const char *file, struct err *err)
{
	while (!load_must_stop(l)) {
		struct err reason = { 0 };
		struct input_item item;
		enum status status = input_next(in, &item, &reason);

		if (status == STATUS_NOT_FOUND)
			break;
		if (status != STATUS_OK) {
			struct load_origin origin = { file, input_line(in) };

			/* The rest of this file cannot be read. The next file may be all right. */
			load_refuse(l->report, &origin, "%s%s", reason.text,
				    status == STATUS_JSON_SYNTAX ? "; the rest of it is left out"
								 : "");
			break;
		}
		TRY(load_item(l, &item, file, err));
		progress_update(&l->report->progress, l->read, l->bytes + input_bytes(in));
	}
	l->bytes += input_bytes(in);
	return STATUS_OK;
}

static bool
is_stdin(const char *path)
{
	return strcmp(path, "-") == 0;
}

static enum status
load_file(struct loading *l, const char *path, struct err *err)
{
	const char *name = is_stdin(path) ? "standard input" : path;
	int fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	struct load_origin origin = { name, 0 };
	struct input *in;
	enum status status;

	if (fd < 0) {
		load_refuse(l->report, &origin, "cannot open: %s", strerror(errno));
		return STATUS_OK;
	}
	in = input_new(input_read_fd, &fd, l->args->format, NULL);
	status = in ? load_input(l, in, name, err) : err_set(err, STATUS_NOMEM, "out of memory");
	input_free(in);
	if (!is_stdin(path))
		close(fd);
	return status;
}

/* The sum of the files' sizes, or 0 if one of them is no regular file. */
static uint64_t
load_measure_files(char *const *files, int count)
{
	uint64_t total = 0;

	for (int i = 0; i < count; i++) {
		struct stat st;

		if (is_stdin(files[i]) || stat(files[i], &st) != 0 || !S_ISREG(st.st_mode))
			return 0;
		total += (uint64_t)st.st_size;
	}
	return total;
}

static enum status
load_open_sink(const struct load_args *args, struct load_sink **ret)
{
	const char *url = args->store ? args->store : CLI_STORE;
	struct kv_options options = { .create = args->options.create };
	struct kv_store *store = NULL;
	struct err err = { 0 };
	enum status status;

	if (args->to) {
		status = load_sink_server(args->to, &args->options, ret, &err);
	} else {
		TRY(cli_open_store(url, &options, &store));
		status = load_sink_store(store, &args->options, ret, &err);
	}
	if (status != STATUS_OK)
		cli_complain("%s", err.text[0] ? err.text : status_name(status));
	return status;
}

static void
load_print_summary(const struct loading *l)
{
	uint64_t ms = progress_elapsed_ms(&l->report->progress);
	char bytes[32];

	progress_format_bytes(l->bytes, bytes, sizeof(bytes));
	printf("%llu documents loaded into %s, %llu refused; %s in %.1f s, %.0f documents/s\n",
	       (unsigned long long)l->report->loaded, l->args->options.db,
	       (unsigned long long)l->report->refused, bytes, (double)ms / 1000,
	       (double)l->report->loaded * 1000 / (double)(ms ? ms : 1));
}

static bool
is_readable(const char *path)
{
	return is_stdin(path) || access(path, R_OK) == 0;
}

/*
 * Looks for the files before the store is opened, so that no database is created when there is
 * nothing to load. Returns false after a complaint if the command cannot go on without a file that
 * is missing, or if all are missing.
 */
static bool
load_find_files(struct loading *l)
{
	bool any = l->args->files_count == 0;

	for (int i = 0; i < l->args->files_count; i++)
		any = any || is_readable(l->args->files[i]);
	if (any && l->args->on_error_continue)
		return true; /* load_file() complains of each that is missing */
	for (int i = 0; i < l->args->files_count; i++) {
		struct load_origin origin = { l->args->files[i], 0 };

		if (is_readable(l->args->files[i]))
			continue;
		load_refuse(l->report, &origin, "cannot open: %s", strerror(errno));
		if (!l->args->on_error_continue)
			break;
	}
	return l->report->refused == 0;
}

static int
load_files(struct loading *l)
{
	static char stdin_name[] = "-";
	char *only_stdin[] = { stdin_name };
	char *const *files = l->args->files_count ? l->args->files : only_stdin;
	int count = l->args->files_count ? l->args->files_count : 1;
	struct err err = { 0 };
	enum status status = STATUS_OK;

	progress_init(&l->report->progress, stderr, l->args->quiet,
		      load_measure_files(files, count));
	for (int i = 0; i < count && status == STATUS_OK && !load_must_stop(l); i++)
		status = load_file(l, files[i], &err);
	if (status == STATUS_OK)
		status = l->sink->flush(l->sink, &err);
	progress_hide(&l->report->progress);
	if (status != STATUS_OK)
		cli_complain("%s; nothing after it was loaded",
			     err.text[0] ? err.text : status_name(status));
	if (!l->args->quiet)
		load_print_summary(l);
	return status == STATUS_OK && l->report->refused == 0 ? CLI_OK : CLI_FAILED;
}

/* A database of which a dump says what it is like. */
static int
load_described(const struct load_args *args)
{
	const struct load_request request = {
		.store_url = args->store ? args->store : CLI_STORE,
		.name = args->options.db,
		.db = cli_db_of(args->options.db),
		.create = args->options.create,
		.exploded = args->options.scheme == REV_SCHEME_EXPLODED,
		.quiet = args->quiet,
		.format = args->format == INPUT_AUTO ? INPUT_LINES : args->format,
		.header = args->header,
		.columns = args->columns,
		.batch_lines = args->options.batch_docs,
		.files = args->files,
		.files_count = args->files_count,
	};

	if (request.format == INPUT_CSV)
		return load_csv(&request);
	return request.db.space == CATALOG_SPACE_MONGO ? load_plain(&request)
						       : load_timed(&request);
}

static int
load_redis_file(const struct load_args *args)
{
	const struct load_rdb_request request = {
		.store_url = args->store ? args->store : CLI_STORE,
		.file = args->rdb,
		.create = args->options.create,
		.quiet = args->quiet,
		.batch_keys = args->options.batch_docs,
	};

	return load_rdb(&request);
}

static int
run_load(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = load_parse_option,
					  .args_doc = "DB [FILE...]\n--rdb FILE",
					  .doc = argp_doc };
	struct load_report report = { 0 };
	struct load_args args = {
		.format = INPUT_AUTO,
		.options = { .create = true,
			     .new_edits = true,
			     .batch_docs = LOAD_BATCH_DOCS,
			     .doc_bytes = DOC_LIMIT_DEFAULT_BYTES,
			     .report = &report },
	};
	struct loading loading = { .args = &args, .report = &report };
	int code = CLI_FAILED;

	cli_parse(&argp, argc, argv, &args);
	if (args.rdb)
		return load_redis_file(&args);
	if (cli_db_of(args.options.db).space != CATALOG_SPACE_COUCH)
		return load_described(&args);
	loading.arena = arena_new(LOAD_ARENA_BYTES);
	if (!loading.arena)
		cli_complain("out of memory");
	else if (load_find_files(&loading) && load_open_sink(&args, &loading.sink) == STATUS_OK) {
		code = load_files(&loading);
		loading.sink->free(loading.sink);
	}
	arena_free(loading.arena);
	return code;
}

const struct cli_command cli_load = { "load", "load JSON documents into a database", run_load };

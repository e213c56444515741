/* frond dump DB: a database's documents as JSON, one a line. */
#include "cli/dump.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/rows.h"

enum {
	OPTION_STORE = 's',
	OPTION_FROM = 'f',
	OPTION_OUTPUT = 'o',
	OPTION_QUIET = 'q',
	OPTION_REVS = 256,
	OPTION_AT,
	OPTION_FORMAT,
	OPTION_HEADER,
	OPTION_COLUMNS,
};

struct dump_args {
	const char *store;
	const char *from;
	const char *output;
	bool quiet;
	struct dump dump;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to read (default " CLI_STORE ")", 0 },
	{ "from", OPTION_FROM, "URL", 0,
	  "Read from a server, http://[NAME:PASSWORD@]HOST:PORT, instead of a store", 0 },
	{ "output", OPTION_OUTPUT, "FILE", 0, "Write to FILE instead of standard output", 0 },
	{ "revs", OPTION_REVS, NULL, 0,
	  "Every leaf of every document, deleted ones too, with _rev and _revisions: a faithful "
	  "copy that \"frond load --new-edits false\" takes back",
	  0 },
	{ "at", OPTION_AT, "TIME", 0,
	  "A database of rows or of Redis's clients, or a table, as it was: see \"frond inspect\"",
	  0 },
	{ "format", OPTION_FORMAT, "FORMAT", 0,
	  "lines (default), or csv: the rows of a table as cqlsh's COPY writes them", 0 },
	{ "header", OPTION_HEADER, NULL, 0, "csv: begin with the names of the columns", 0 },
	{ "columns", OPTION_COLUMNS, "NAMES", 0,
	  "csv: only these columns, in this order, with commas between them", 0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Write the documents of the database DB as JSON, one a line.\v"
	"From a store the dump is one consistent snapshot, in the order of ids (with --revs: of "
	"changes). Members come in the order of their names, after _id; without --revs, _rev is "
	"left out, so that what \"frond load\" gets is what \"frond dump\" gives.\n"
	"\n"
	"rows:NAME and redis:NUMBER are dumped with their types, write times and expiry: the first "
	"line describes the database, and each other line is a row or a key, or a part of a large "
	"one. \"frond load\" takes it back; likewise table:KEYSPACE.TABLE, whose first "
	"line has its keyspace and types, too. --format csv has the values of a table's rows "
	"alone, "
	"for cqlsh and spreadsheets. mongo:DB.COLLECTION is dumped as canonical Extended "
	"JSON, behind a line that describes the collection.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
dump_parse_option(int key, char *text, struct argp_state *state)
{
	struct dump_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_FROM:
		args->from = text;
		return 0;
	case OPTION_OUTPUT:
		args->output = text;
		return 0;
	case OPTION_QUIET:
		args->quiet = true;
		return 0;
	case OPTION_AT:
		if (!cli_parse_moment(str_from_cstr(text), &args->dump.at_us))
			argp_error(state, "what time is \"%s\"?", text);
		return 0;
	case OPTION_FORMAT:
		args->dump.csv = strcmp(text, "csv") == 0;
		if (!args->dump.csv && strcmp(text, "lines") != 0)
			argp_error(state, "--format: \"%s\" is neither lines nor csv", text);
		return 0;
	case OPTION_HEADER:
		args->dump.header = true;
		return 0;
	case OPTION_COLUMNS:
		args->dump.columns = text;
		return 0;
	case OPTION_REVS:
		args->dump.revs = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->dump.db)
			argp_error(state, "one database at a time; what is \"%s\"?", text);
		args->dump.db = text;
		return 0;
	case ARGP_KEY_END:
		if (!args->dump.db)
			argp_error(state, "which database?");
		if (args->store && args->from)
			argp_error(state, "--store and --from exclude each other");
		args->dump.named = cli_db_of(args->dump.db);
		if (args->dump.named.space != CATALOG_SPACE_COUCH &&
		    (args->from || args->dump.revs))
			argp_error(state, "neither --from nor --revs goes with \"%s\"",
				   args->dump.db);
		if (args->dump.at_us && (args->dump.named.space == CATALOG_SPACE_COUCH ||
					 args->dump.named.space == CATALOG_SPACE_MONGO))
			argp_error(state, "--at goes with rows:NAME, redis:NUMBER and table:NAME");
		if (args->dump.csv && args->dump.named.space != CATALOG_SPACE_TABLE)
			argp_error(state, "--format csv goes with table:NAME");
		if (!args->dump.csv && (args->dump.header || args->dump.columns))
			argp_error(state, "--header and --columns go with --format csv");
		if (args->dump.named.space != CATALOG_SPACE_COUCH)
			return 0;
		if (!args->from)
			cli_check_db(args->dump.db, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static enum status
dump(struct dump_args *args, struct err *err)
{
	const char *url = args->store ? args->store : CLI_STORE;
	struct kv_options options = { .read_only = true };
	struct kv_store *store;
	enum status status;

	if (args->from)
		return dump_server(&args->dump, args->from, err);
	TRY(cli_open_store(url, &options, &store));
	status = dump_store(&args->dump, store, err);
	kv_close(store);
	return status;
}

static int
run_dump(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = dump_parse_option,
					  .args_doc = "DB",
					  .doc = argp_doc };
	struct dump_args args = { 0 };
	struct err err = { 0 };
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	/* A bar would be drawn into the documents if both go to the same terminal. */
	if (!args.output && isatty(STDOUT_FILENO))
		args.quiet = true;
	status = output_open(&args.dump.output, args.output, &err);
	if (status == STATUS_OK) {
		progress_init(&args.dump.progress, stderr, args.quiet, 0);
		status = dump(&args, &err);
		progress_hide(&args.dump.progress);
		if (status == STATUS_OK)
			status = output_close(&args.dump.output, &err);
		else
			output_abandon(&args.dump.output);
	}
	if (status == STATUS_OK && args.dump.left_out) {
		cli_complain("the dump is complete, but for the data of %llu attachments",
			     (unsigned long long)args.dump.left_out);
		return CLI_FAILED;
	}
	if (status == STATUS_OK || args.dump.output.reader_left)
		return CLI_OK;
	if (err.text[0]) /* otherwise it has been told */
		cli_complain("%s", err.text);
	return CLI_FAILED;
}

const struct cli_command cli_dump = { "dump", "write a database's documents as JSON lines",
				      run_dump };

/* frond compact: rewrites a store without what has been overwritten or deleted. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/maintenance.h"
#include "cli/progress.h"

enum {
	OPTION_STORE = 's',
	OPTION_AT = 'a',
	BYTES_TEXT = 32,
};

struct compact_args {
	const char *store;
	const char *at;
};

/* How many bytes the store takes on disk. */
struct sizes {
	uint64_t before;
	uint64_t after;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to compact (default " CLI_STORE ")", 0 },
	{ "at", OPTION_AT, "URL", 0,
	  "Have a server compact its store, http://[NAME:PASSWORD@]HOST:PORT; as an administrator",
	  0 },
	{ 0 },
};

static const char argp_doc[] =
	"Rewrite a store without what has been overwritten or deleted.\v"
	"A store does that bit by bit by itself; this does all of it at once, after much has been "
	"deleted, and needs room for another copy of the data meanwhile. Nothing that can be "
	"read changes.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
compact_parse_option(int key, char *text, struct argp_state *state)
{
	struct compact_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_AT:
		args->at = text;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"? The store is named by --store", text);
		return 0;
	case ARGP_KEY_END:
		if (args->store && args->at)
			argp_error(state, "--store and --at exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static enum status
compact_server(const char *url, struct sizes *ret, struct err *err)
{
	struct maintenance_number numbers[] = { { "bytes_before", &ret->before },
						{ "bytes_after", &ret->after } };
	AUTO(buf_release) struct buf answer = MAINTENANCE_ANSWER_INIT;

	TRY(maintenance_request(url, "POST", STR("/_frond/compact"), STR("{}"), &answer, err));
	return maintenance_numbers(buf_str(&answer), numbers, 2, err);
}

static enum status
compact_store(const char *url, struct sizes *ret, struct err *err)
{
	static const struct kv_options options;
	struct kv_store *store;
	enum status status;

	TRY(cli_open_store(url, &options, &store));
	ret->before = kv_store_stats(store).disk_bytes;
	status = kv_compact(store, err);
	ret->after = kv_store_stats(store).disk_bytes;
	kv_close(store);
	return status;
}

static int
run_compact(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = compact_parse_option,
					  .doc = argp_doc };
	struct compact_args args = { 0 };
	struct sizes sizes = { 0 };
	struct err err = { 0 };
	char before[BYTES_TEXT];
	char after[BYTES_TEXT];
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	status = args.at ? compact_server(args.at, &sizes, &err)
			 : compact_store(args.store ? args.store : CLI_STORE, &sizes, &err);
	if (status != STATUS_OK) {
		if (err.text[0]) /* otherwise it has been told */
			cli_complain("%s", err.text);
		return CLI_FAILED;
	}
	progress_format_bytes(sizes.before, before, sizeof(before));
	progress_format_bytes(sizes.after, after, sizeof(after));
	printf("compacted: %s before, %s after\n", before, after);
	return cli_finish_output();
}

const struct cli_command cli_compact = { "compact", "give back the room of what was deleted",
					 run_compact };

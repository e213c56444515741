/* frond incarnation: shows and raises the Incarnation of a store that goes on elsewhere. */
#include <stdio.h>

#include "catalog/catalog.h"
#include "catalog/incarnation.h"
#include "cli/cli.h"

enum {
	OPTION_STORE = 's',
	OPTION_RAISE = 'r',
	OPTION_LEAST = 'l',
};

struct incarnation_args {
	const char *store;
	bool raise;
	uint8_t least; /* 0: not given */
};

static const struct argp_option incarnation_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store (default " CLI_STORE ")", 0 },
	{ "raise", OPTION_RAISE, NULL, 0, "Raise that of each database by one", 0 },
	{ "least", OPTION_LEAST, "N", 0,
	  "Raise that of each database to N, 1 to 255, unless it is there already", 0 },
	{ 0 },
};

static const char incarnation_doc[] =
	"Show the Incarnation of a store, or raise it.\v"
	"It is the first byte of each new Sequence. It has to be raised, before a server is "
	"started, whenever a tool that is not frond's has made a store of a copy: of a cluster by "
	"fdbrestore, of a directory by a file system's snapshot. Clients then go on with the "
	"\"since\" that they have, and what is changed from then on comes after it. \"frond "
	"restore\" and \"frond promote\" do it themselves. Where one copy becomes a store for the "
	"second time, --least names a number above the one that was shown the first time.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
incarnation_parse_option(int key, char *text, struct argp_state *state)
{
	struct incarnation_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_RAISE:
		args->raise = true;
		return 0;
	case OPTION_LEAST:
		args->least = (uint8_t)cli_parse_number("least", text, 1, UINT8_MAX, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	case ARGP_KEY_END:
		if (args->raise && args->least)
			argp_error(state, "--raise and --least exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static enum status
incarnation_read(struct kv_tx *tx, void *arg)
{
	return catalog_store_incarnation(tx, arg);
}

/* Does what was asked for. `*ret_now` gets the Incarnation that the store has then. */
static enum status
incarnation_apply(struct kv_store *store, const struct incarnation_args *args, uint8_t *ret_now,
		  struct err *err)
{
	uint8_t before;

	TRY(kv_run_read(store, incarnation_read, &before, err));
	/* A byte has no room for another one, and Sequences would not come after those before. */
	if (args->raise && before == UINT8_MAX)
		return err_set(err, STATUS_INVALID,
			       "the Incarnation is 255 and cannot be raised any more");
	if (args->raise)
		TRY(catalog_incarnations_raise(store, NULL, err));
	else if (args->least)
		TRY(catalog_incarnations_raise_to(store, args->least, err));
	return kv_run_read(store, incarnation_read, ret_now, err);
}

static int
run_incarnation(int argc, char **argv)
{
	static const struct argp argp = { .options = incarnation_options,
					  .parser = incarnation_parse_option,
					  .doc = incarnation_doc };
	struct incarnation_args args = { .store = CLI_STORE };
	struct kv_options options = { 0 };
	struct err err = { 0 };
	struct kv_store *store;
	enum status status;
	uint8_t now;

	cli_parse(&argp, argc, argv, &args);
	options.read_only = !args.raise && !args.least;
	if (cli_open_store(args.store, &options, &store) != STATUS_OK)
		return CLI_FAILED;
	status = incarnation_apply(store, &args, &now, &err);
	kv_close(store);
	if (status != STATUS_OK) {
		cli_complain("%s: %s", args.store, err.text[0] ? err.text : status_name(status));
		return CLI_FAILED;
	}
	printf("incarnation %u\n", now);
	return cli_finish_output();
}

const struct cli_command cli_incarnation = { "incarnation", "show or raise a store's Incarnation",
					     run_incarnation };

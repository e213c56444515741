/* frond promote: makes a first of a standby (kv/log.h). */
#include <stdio.h>

#include "catalog/catalog.h"
#include "catalog/store_format.h"
#include "cli/cli.h"
#include "kv/log.h"
#include "model/revisioned/shape.h"

enum {
	OPTION_STORE = 's',
};

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

/* frond restore DIR: makes a store of a backup. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "kv/backup.h"
#include "catalog/catalog.h"
#include "catalog/store_format.h"
#include "model/revisioned/shape.h"

enum {
	OPTION_STORE = 's',
	OPTION_BACKUP = 'b',
	BYTES_TEXT = 32,
};

struct restore_args {
	const char *store;
	const char *source;
	uint32_t id;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to make (default " CLI_STORE ")", 0 },
	{ "backup", OPTION_BACKUP, "ID", 0,
	  "The backup to take, as \"frond backup --list\" shows it (default: the newest)", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Make a new store of a backup in the directory SOURCE.\v"
	"There must be no store yet. Every file's checksum is compared, and the store is at its "
	"place only when all of it is there and on disk. Clients can go on with the \"since\" that "
	"they have: whatever is changed in the new store comes after it (each database's "
	"Incarnation is raised).\n"
	"\n" CLI_EXIT_TEXT;

static error_t
restore_parse_option(int key, char *text, struct argp_state *state)
{
	struct restore_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_BACKUP:
		args->id = (uint32_t)cli_parse_number("backup", text, 1, UINT32_MAX, state);
		return 0;
	case ARGP_KEY_ARG:
		if (args->source)
			argp_error(state, "one source at a time; what is \"%s\"?", text);
		args->source = text;
		return 0;
	case ARGP_KEY_END:
		if (!args->source)
			argp_error(state, "from which directory?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static enum status
restore_finish(struct kv_store *store, void *arg, struct err *err)
{
	uint64_t *databases = arg;

	TRY(catalog_store_check(store, err));
	return catalog_incarnations_raise(store, databases, err);
}

static int
run_restore(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = restore_parse_option,
					  .args_doc = "SOURCE",
					  .doc = argp_doc };
	struct restore_args args = { .store = CLI_STORE };
	struct kv_backup backup = { 0 };
	uint64_t databases = 0;
	struct err err = { 0 };
	char bytes[BYTES_TEXT];
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	status = kv_backup_restore(args.source, args.id, args.store, &rev_store_shape,
				   restore_finish, &databases, &backup, &err);
	if (status != STATUS_OK) {
		cli_complain("cannot restore to %s: %s", args.store,
			     err.text[0] ? err.text : status_name(status));
		return CLI_FAILED;
	}
	progress_format_bytes(backup.bytes, bytes, sizeof(bytes));
	printf("backup %u restored to %s: %llu databases, %s\n", (unsigned)backup.id, args.store,
	       (unsigned long long)databases, bytes);
	return cli_finish_output();
}

const struct cli_command cli_restore = { "restore", "make a store of a backup", run_restore };

/* frond restore DIR: makes a store of a backup. */
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "kv/backup.h"
#include "catalog/catalog.h"
#include "catalog/store_format.h"
#include "model/revisioned/shape.h"

enum {
	OPTION_STORE = 's',
	OPTION_BACKUP = 'b',
	OPTION_LOG = 'l',
	OPTION_UNTIL = 'u',
	BYTES_TEXT = 32,
	TIME_TEXT = 40,
	MS_PER_S = 1000,
	US_PER_MS = 1000,
};

struct restore_args {
	const char *store;
	const char *source;
	uint32_t id;
	struct kv_restore_log log;
	uint64_t databases;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to make (default " CLI_STORE ")", 0 },
	{ "backup", OPTION_BACKUP, "ID", 0,
	  "The backup to take, as \"frond backup --list\" shows it (default: the newest)", 0 },
	{ "log", OPTION_LOG, "DIR", 0,
	  "Then apply what the log in DIR has behind the backup: the directory of the store that "
	  "was "
	  "backed up, which kept its log, or a copy of the log's files",
	  0 },
	{ "until", OPTION_UNTIL, "TIME", 0,
	  "Of the log only what was committed by then: " CLI_MOMENT_TEXT, 0 },
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
	case OPTION_LOG:
		args->log.path = text;
		return 0;
	case OPTION_UNTIL:
		if (!cli_parse_moment(str_from_cstr(text), &args->log.until_ms))
			argp_error(state, "what time is \"%s\"?", text);
		args->log.until_ms /= US_PER_MS;
		return 0;
	case ARGP_KEY_ARG:
		if (args->source)
			argp_error(state, "one source at a time; what is \"%s\"?", text);
		args->source = text;
		return 0;
	case ARGP_KEY_END:
		if (!args->source)
			argp_error(state, "from which directory?");
		if (args->log.until_ms != UINT64_MAX && !args->log.path)
			argp_error(state, "--until is of the log that --log names");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A moment of the log, with its milliseconds. */
static void
write_time(uint64_t ms, char ret[TIME_TEXT])
{
	time_t seconds = (time_t)(ms / MS_PER_S);
	char text[TIME_TEXT] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret, TIME_TEXT, "%.20s.%03uZ", text, (unsigned)(ms % MS_PER_S));
}

static void
tell_log(const struct kv_restore_log *log)
{
	char last[TIME_TEXT], next[TIME_TEXT];

	write_time(log->last_ms, last);
	write_time(log->next_ms, next);
	if (log->records)
		printf("%llu commits of the log, up to %s", (unsigned long long)log->records, last);
	else
		printf("no commit of the log");
	if (log->next_ms)
		printf("; the next one is of %s\n", next);
	else
		printf("; it ends there\n");
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
	struct restore_args args = { .store = CLI_STORE, .log.until_ms = UINT64_MAX };
	struct kv_restore how = { .shape = &rev_store_shape, .finish = restore_finish };
	struct kv_backup backup = { 0 };
	struct err err = { 0 };
	char bytes[BYTES_TEXT];
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	how.arg = &args.databases;
	how.log = args.log.path ? &args.log : NULL;
	status = kv_backup_restore(args.source, args.id, args.store, &how, &backup, &err);
	if (status != STATUS_OK) {
		cli_complain("cannot restore to %s: %s", args.store,
			     err.text[0] ? err.text : status_name(status));
		return CLI_FAILED;
	}
	progress_format_bytes(backup.bytes, bytes, sizeof(bytes));
	printf("backup %u restored to %s: %llu databases, %s\n", (unsigned)backup.id, args.store,
	       (unsigned long long)args.databases, bytes);
	if (how.log)
		tell_log(how.log);
	return cli_finish_output();
}

const struct cli_command cli_restore = { "restore", "make a store of a backup", run_restore };

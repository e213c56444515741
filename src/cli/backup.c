/* frond backup DIR: adds a backup of a store to a directory of backups, or lists them. */
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/maintenance.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "http/escape.h"
#include "doc/json.h"
#include "kv/backup.h"

enum {
	OPTION_STORE = 's',
	OPTION_FROM = 'f',
	OPTION_LIST = 'l',
	OPTION_KEEP = 'k',
	BYTES_TEXT = 32,
	TIME_TEXT = 32,
	REQUEST_BYTES = 8192,
};

struct backup_args {
	const char *store;
	const char *from;
	const char *target;
	uint32_t keep; /* 0: all */
	bool list;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to back up (default " CLI_STORE ")", 0 },
	{ "from", OPTION_FROM, "URL", 0,
	  "Have a server back up its store, http://[NAME:PASSWORD@]HOST:PORT, as an administrator; "
	  "TARGET is then a name below the server's [frond] backup_dir",
	  0 },
	{ "keep", OPTION_KEEP, "N", 0, "Afterwards, remove all but the newest N backups", 0 },
	{ "list", OPTION_LIST, NULL, 0, "List the backups that are there, and make none", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Add a backup of a store to the directory TARGET, which holds the backups of one store.\v"
	"A backup is the whole store as it is at one moment. Files that backups have in common are "
	"there once, so that another one costs what has changed. A store that a server has open "
	"is backed up by that server: --from. \"frond restore\" makes a store of a backup.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
backup_parse_option(int key, char *text, struct argp_state *state)
{
	struct backup_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_FROM:
		args->from = text;
		return 0;
	case OPTION_KEEP:
		args->keep = (uint32_t)cli_parse_number("keep", text, 1, UINT32_MAX, state);
		return 0;
	case OPTION_LIST:
		args->list = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->target)
			argp_error(state, "one target at a time; what is \"%s\"?", text);
		args->target = text;
		return 0;
	case ARGP_KEY_END:
		if (!args->target)
			argp_error(state, "into which directory?");
		if (args->store && args->from)
			argp_error(state, "--store and --from exclude each other");
		if (args->list && (args->keep || args->store))
			argp_error(state, "--list takes neither --store nor --keep");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Listing ---- */

static void
backup_print(const struct kv_backup *backup)
{
	time_t seconds = (time_t)backup->time_s;
	char text[TIME_TEXT] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("%10u  %s  %llu\n", (unsigned)backup->id, text, (unsigned long long)backup->bytes);
}

static enum status
backup_read(struct str object, struct kv_backup *ret, struct err *err)
{
	uint64_t id;
	struct maintenance_number numbers[] = { { "id", &id },
						{ "time", &ret->time_s },
						{ "bytes", &ret->bytes } };

	TRY(maintenance_numbers(object, numbers, 3, err));
	ret->id = (uint32_t)id;
	return STATUS_OK;
}

static enum status
backup_print_element(struct str element, void *arg, struct err *err)
{
	struct kv_backup backup;

	(void)arg;
	TRY(backup_read(element, &backup, err));
	backup_print(&backup);
	return STATUS_OK;
}

static void
backup_print_heading(void)
{
	printf("%10s  %-20s  %s\n", "ID", "TIME", "BYTES");
}

static enum status
backup_list_server(const struct backup_args *args, struct err *err)
{
	AUTO(buf_release) struct buf answer = MAINTENANCE_ANSWER_INIT;
	AUTO(buf_release) struct buf path = BUF_INIT(REQUEST_BYTES);

	buf_append_cstr(&path, "/_frond/backup?target=");
	http_escape(&path, str_from_cstr(args->target));
	TRY(buf_status(&path));
	TRY(maintenance_request(args->from, "GET", buf_str(&path), (struct str){ NULL, 0 }, &answer,
				err));
	backup_print_heading();
	return maintenance_each(buf_str(&answer), "backups", backup_print_element, NULL, err);
}

static enum status
backup_list_directory(const struct backup_args *args, struct err *err)
{
	struct kv_backup *backups;
	size_t count;

	TRY(kv_backup_list(args->target, &backups, &count, err));
	backup_print_heading();
	for (size_t i = 0; i < count; i++)
		backup_print(&backups[i]);
	mem_free(backups);
	return STATUS_OK;
}

/* ---- Making ---- */

static enum status
backup_server(const struct backup_args *args, struct kv_backup *ret, struct err *err)
{
	AUTO(buf_release) struct buf answer = MAINTENANCE_ANSWER_INIT;
	AUTO(buf_release) struct buf body = BUF_INIT(REQUEST_BYTES);

	buf_append_cstr(&body, "{\"target\":");
	json_write_str(&body, str_from_cstr(args->target));
	if (args->keep)
		buf_printf(&body, ",\"keep\":%u", (unsigned)args->keep);
	buf_append_byte(&body, '}');
	TRY(buf_status(&body));
	TRY(maintenance_request(args->from, "POST", STR("/_frond/backup"), buf_str(&body), &answer,
				err));
	return backup_read(buf_str(&answer), ret, err);
}

static enum status
backup_store(const struct backup_args *args, struct kv_backup *ret, struct err *err)
{
	static const struct kv_options options;
	struct kv_store *store;
	enum status status;

	TRY(cli_open_store(args->store ? args->store : CLI_STORE, &options, &store));
	status = kv_backup_create(store, args->target, ret, err);
	kv_close(store);
	if (status == STATUS_OK && args->keep)
		status = kv_backup_prune(args->target, args->keep, err);
	return status;
}

static enum status
backup(const struct backup_args *args, struct err *err)
{
	struct kv_backup made = { 0 };
	char bytes[BYTES_TEXT];

	if (args->list)
		return args->from ? backup_list_server(args, err)
				  : backup_list_directory(args, err);
	TRY(args->from ? backup_server(args, &made, err) : backup_store(args, &made, err));
	progress_format_bytes(made.bytes, bytes, sizeof(bytes));
	printf("backup %u in %s: %s\n", (unsigned)made.id, args->target, bytes);
	return STATUS_OK;
}

static int
run_backup(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = backup_parse_option,
					  .args_doc = "TARGET",
					  .doc = argp_doc };
	struct backup_args args = { 0 };
	struct err err = { 0 };

	cli_parse(&argp, argc, argv, &args);
	if (backup(&args, &err) == STATUS_OK)
		return cli_finish_output();
	if (err.text[0]) /* otherwise it has been told */
		cli_complain("%s", err.text);
	return CLI_FAILED;
}

const struct cli_command cli_backup = { "backup", "add a backup of a store to a directory",
					run_backup };

/* frond COMMAND ...: dispatches, and does nothing else. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "access/person_door.h"
#include "cli/cli.h"
#include "cli/doors.h"
#include "door/couch/couch.h"
#include "model/plain/plain.h"
#include "model/revisioned/revisioned.h"
#include "model/timed/items/items.h"
#include "model/timed/rows/rows.h"
#include "model/timed/tables/tables.h"

static const struct cli_command *const commands[] = {
	&cli_serve,  &cli_config,  &cli_metrics, &cli_top,         &cli_load,
	&cli_dump,   &cli_inspect, &cli_verify,  &cli_salvage,     &cli_compact,
	&cli_backup, &cli_restore, &cli_move,    &cli_user,        &cli_rows,
	&cli_import, &cli_follow,  &cli_promote, &cli_incarnation,
};

enum {
	COMMANDS_COUNT = sizeof(commands) / sizeof(commands[0]),
	COMMAND_NAME_BYTES = 32,
};

static void
print_help(FILE *out)
{
	fputs("Usage: frond COMMAND [OPTION...] [ARGUMENT...]\n\n"
	      "A document database for clients of CouchDB, MongoDB, Redis and Cassandra.\n\n",
	      out);
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		fprintf(out, "  frond %-11s  %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n"
	      "\"frond COMMAND --help\" lists a command's options; \"frond --version\" tells the "
	      "version.\n" CLI_EXIT_TEXT "\n",
	      out);
}

static const struct cli_command *
find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int
main(int argc, char **argv)
{
	static char help_option[] = "--help";
	char name[COMMAND_NAME_BYTES];
	const struct cli_command *command;

	if (!cli_hold_streams()) {
		cli_complain("cannot open /dev/null in place of a standard stream that is closed");
		return CLI_FAILED;
	}
	/* A reader that stops early is found by the write that fails, not by a signal. */
	signal(SIGPIPE, SIG_IGN);
	cli_watch_memory();
	couch_follow_designs();
	person_register();
	person_door_register();
	for (size_t i = 0; i < cli_doors_count; i++)
		if (cli_doors[i]->register_records)
			cli_doors[i]->register_records();
	argp_program_version = "frond " FROND_VERSION;
	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		puts(argp_program_version);
		return cli_finish_output();
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
	    strcmp(argv[1], "-h") == 0 || (strcmp(argv[1], "help") == 0 && argc == 2)) {
		print_help(stdout);
		return cli_finish_output();
	}
	if (strcmp(argv[1], "help") == 0) { /* frond help COMMAND: frond COMMAND --help */
		argv[1] = argv[2];
		argv[2] = help_option;
		argc = 3;
	}
	command = find_command(argv[1]);
	rev_register();
	timed_rows_register();
	tables_register();
	timed_items_register();
	plain_register();
	if (!command) {
		cli_complain("there is no command \"%s\"; see \"frond --help\"", argv[1]);
		return CLI_USAGE;
	}
	snprintf(name, sizeof(name), "frond %s", command->name);
	argv[1] = name;
	return command->run(argc - 1, argv + 1);
}

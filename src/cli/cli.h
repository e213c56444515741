/*
 * What the commands of the program share. Each command is one file; main.c only dispatches. Used by
 * the main thread.
 */
#ifndef FROND_CLI_CLI_H
#define FROND_CLI_CLI_H

#include <argp.h>

#include "base/status.h"
#include "catalog/space.h"
#include "kv/kv.h"
#include "kv/settings.h"

/* The exit codes of the process. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,    /* the command failed, or did only a part of its work */
	CLI_USAGE = 2,     /* the command line or the configuration makes no sense */
	CLI_OVERDUE = 3,   /* `frond serve` did not stop within drain_timeout_ms */
	CLI_NO_MEMORY = 4, /* the store's engine got no memory: cli_watch_memory() */
};

#define CLI_STORE     KV_STORE_URL
#define CLI_EXIT_TEXT "Exit codes: 0 done, 1 failed (in part, too), 2 wrong usage."

struct cli_command {
	const char *name;
	const char *summary;
	/* `argv[0]` is "frond NAME", for messages. */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_serve;
extern const struct cli_command cli_top;
extern const struct cli_command cli_load;
extern const struct cli_command cli_config;
extern const struct cli_command cli_metrics;
extern const struct cli_command cli_dump;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_verify;
extern const struct cli_command cli_compact;
extern const struct cli_command cli_backup;
extern const struct cli_command cli_restore;
extern const struct cli_command cli_salvage;
extern const struct cli_command cli_move;
extern const struct cli_command cli_user;
extern const struct cli_command cli_rows;
extern const struct cli_command cli_follow, cli_import;
extern const struct cli_command cli_incarnation;
extern const struct cli_command cli_promote;

/*
 * Opens standard input, output and error on /dev/null where the caller has closed them. Otherwise a
 * file of the store would get one of their numbers, and lines for the log would be written into it.
 * Called before anything else is opened. False if there is no /dev/null.
 */
MUST_USE bool cli_hold_streams(void);

/* Prints one line to standard error, with "frond: " before it. */
void cli_complain(const char *fmt, ...) PRINTF(1, 2);

/*
 * Ends the output of a command that prints to standard output: the exit code, after a complaint if
 * not all of it could be written. A reader that has closed the pipe has read what it wanted.
 */
int cli_finish_output(void);

/*
 * From now on the process ends with CLI_NO_MEMORY, after a line in the log, if C++ code in it gets
 * no memory. Called before there are other threads.
 */
void cli_watch_memory(void);

/* argp_parse() that ends the process with CLI_USAGE for wrong usage, and with 0 after --help. */
void cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Opens a store for a command and complains if that fails. */
MUST_USE enum status cli_open_store(const char *url, const struct kv_options *options,
				    struct kv_store **ret);

/* Returns the URL of a store that an option gives, or calls argp_error(). */
const char *cli_parse_store(const char *option, const char *text, struct argp_state *state);

/* Calls argp_error() unless a database can have that name. */
void cli_check_db(const char *name, struct argp_state *state);

/*
 * The database that an argument names. NAME is a database of documents, rows:NAME one of rows,
 * redis:NUMBER one of Redis's door, mongo:DB.COLLECTION one of MongoDB's.
 */
struct cli_db {
	enum catalog_space space;
	const char *name; /* borrowed from the argument */
};

struct cli_db cli_db_of(const char *text);
/* Does the same, and calls argp_error() if no database of documents can have that name. */
struct cli_db cli_parse_db(const char *text, struct argp_state *state);

/* Returns the number of an option `--NAME N`, from `least` to `most`, or calls argp_error(). */
uint64_t cli_parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
			  struct argp_state *state);

#endif

/*
 * What the commands of the binary share: one file a command, main.c only dispatches.
 */
#ifndef FROND_CLI_CLI_H
#define FROND_CLI_CLI_H

#include <argp.h>

#include "base/status.h"
#include "kv/kv.h"

/* What the process ends with. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* it was tried and did not work, or not all of it */
	CLI_USAGE = 2,  /* the command line or the configuration makes no sense */
};

#define CLI_STORE     "embedded:./data"
#define CLI_EXIT_TEXT "Exit codes: 0 done, 1 failed (in part, too), 2 wrong usage."

struct cli_command {
	const char *name;
	const char *summary;
	/* `argv[0]` is "frond NAME", for messages. */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_serve;
extern const struct cli_command cli_load;
extern const struct cli_command cli_dump;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_verify;
extern const struct cli_command cli_compact;
extern const struct cli_command cli_backup;
extern const struct cli_command cli_restore;
extern const struct cli_command cli_move;

/* One line on standard error, "frond: " before it. */
void cli_complain(const char *fmt, ...) PRINTF(1, 2);

/* argp_parse() with our exit code; ends the process for --help, --version and wrong usage. */
void cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Opens a store for a command and complains if that fails. */
MUST_USE enum status cli_open_store(const char *url, const struct kv_options *options,
				    struct kv_store **ret);

/* The URL of a store that an option gives, or argp_error(). */
const char *cli_parse_store(const char *option, const char *text, struct argp_state *state);

/* argp_error() unless a database can have that name. */
void cli_check_db(const char *name, struct argp_state *state);

/* The number of a `--NAME N` option from `least` to `most`, or argp_error(). */
uint64_t cli_parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
			  struct argp_state *state);

#endif

#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "catalog/store_format.h"
#include "model/revisioned/revisioned.h"
#include "model/revisioned/shape.h"

bool
cli_hold_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* Reading and writing fail as they do without a descriptor. */
		int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		/* The lowest free number is taken, which is this one. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode) != fd)
			return false;
	}
	return true;
}

void
cli_complain(const char *fmt, ...)
{
	va_list args;

	flockfile(stderr);
	fputs("frond: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* True if standard output is a pipe that nobody reads any more. */
static bool
reader_has_left(void)
{
	struct pollfd output = { .fd = STDOUT_FILENO };

	return poll(&output, 1, 0) == 1 && output.revents & POLLERR;
}

int
cli_finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return CLI_OK;
	/* The write that failed may have been an earlier one, whose errno is gone. */
	if (reader_has_left())
		return CLI_OK;
	cli_complain("cannot write to standard output: %s", strerror(errno));
	return CLI_FAILED;
}

void
cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	error_t failed;

	argp_err_exit_status = CLI_USAGE;
	failed = argp_parse(argp, argc, argv, 0, NULL, input);
	if (failed) {
		cli_complain("%s", strerror(failed));
		exit(CLI_FAILED);
	}
}

enum status
cli_open_store(const char *url, const struct kv_options *options, struct kv_store **ret)
{
	struct kv_options full = *options;
	struct err err = { 0 };
	enum status status;

	full.shape = &rev_store_shape;
	status = catalog_store_open(url, &full, ret, &err);

	if (status == STATUS_LOCKED)
		cli_complain("the store %s is in use by another frond; stop it, or go through its "
			     "HTTP address (see --help)",
			     url);
	else if (status != STATUS_OK)
		cli_complain("cannot open the store %s: %s", url,
			     err.text[0] ? err.text : status_name(status));
	return status;
}

const char *
cli_parse_store(const char *option, const char *text, struct argp_state *state)
{
	struct err err = { 0 };

	if (kv_check_url(text, &err) != STATUS_OK)
		argp_error(state, "--%s: %s", option, err.text);
	return text;
}

void
cli_check_db(const char *name, struct argp_state *state)
{
	if (!rev_db_name_valid(str_from_cstr(name)))
		argp_error(state,
			   "no database can be called \"%s\": a name begins with a letter from a "
			   "to z, and has such letters, digits and _$()+-/ only",
			   name);
}

struct cli_db
cli_db_of(const char *text)
{
	struct str name = str_from_cstr(text);
	enum catalog_space space = catalog_space_cut(&name);

	return (struct cli_db){ space, name.ptr };
}

struct cli_db
cli_parse_db(const char *text, struct argp_state *state)
{
	struct cli_db db = cli_db_of(text);

	if (db.space == CATALOG_SPACE_COUCH)
		cli_check_db(text, state);
	return db;
}

uint64_t
cli_parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
		 struct argp_state *state)
{
	uint64_t n;

	if (!str_to_u64(str_from_cstr(text), &n) || n < least || n > most) {
		argp_error(state, "--%s: \"%s\" is not a whole number from %llu to %llu", option,
			   text, (unsigned long long)least, (unsigned long long)most);
		return least;
	}
	return n;
}

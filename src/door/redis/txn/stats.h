/*
 * What commands have done: how often each was called, failed and was refused, and how long it took;
 * and how often each error was answered. For INFO and LATENCY HISTOGRAM. Any thread may count. Only
 * errors take a lock.
 */
#ifndef FROND_DOOR_REDIS_TXN_STATS_H
#define FROND_DOOR_REDIS_TXN_STATS_H

#include "door/redis/acl/command.h"

enum {
	STATS_ERRORS = 128, /* different first words of errors that are counted */
};

struct stats;

struct stats *stats_new(void); /* NULL: there is no memory */
void stats_free(struct stats *s);
void stats_clear(struct stats *s);

/* A call has ended, after `ns`. `argv` tells the subcommand. */
void stats_count_call(struct stats *s, const struct command *command, const struct str *argv,
		      size_t argc, uint64_t ns, bool failed);
/* A call was refused before it began. */
void stats_count_refused(struct stats *s, const struct command *command, const struct str *argv,
			 size_t argc);
/* An error was answered, such as "-ERR no such key". */
void stats_count_error(struct stats *s, struct str answer);

/* All errors that were answered. */
uint64_t stats_errors(struct stats *s);
/* Lines of INFO. */
void stats_write_commands(struct stats *s, struct buf *out);
void stats_write_errors(struct stats *s, struct buf *out);

/*
 * Answers how long commands took: those of the names, of which "client" has all of its subcommands
 * and "client|id" is one of them; all commands if there are no names.
 */
MUST_USE enum status stats_reply_histogram(struct stats *s, const struct str *names, size_t count,
					   struct arena *arena, struct reply *reply);

#endif

/*
 * Where a dump goes: a file or standard output, buffered, with every failure found out. A pipe that
 * closes and a disk that is full are failures like any other: SIGPIPE is ignored.
 */
#ifndef FROND_CLI_OUTPUT_H
#define FROND_CLI_OUTPUT_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct output {
	const char *path; /* NULL: standard output */
	int fd;
	struct buf buf;
	uint64_t flushed; /* bytes that are no longer in it */
};

/* `path` NULL or "-": standard output. STATUS_IO. */
MUST_USE enum status output_open(struct output *out, const char *path, struct err *err);

/* The buffer to append to; call output_ready() after each piece. */
struct buf *output_buf(struct output *out);
/* Bytes given to it so far. */
uint64_t output_position(const struct output *out);
/* Writes the buffer out once it is large enough. STATUS_IO, STATUS_NOMEM. */
MUST_USE enum status output_ready(struct output *out, struct err *err);

/* Writes the rest and closes, after having synced a file to the disk. */
MUST_USE enum status output_close(struct output *out, struct err *err);

/* Closes without caring, after a failure. */
void output_abandon(struct output *out);

#endif

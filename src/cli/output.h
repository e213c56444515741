/*
 * Where a command writes what it was asked for: a file or standard output, buffered, with every
 * failure found out, such as a full disk. A reader that closes its end of a pipe early is none: it
 * has read what it wanted, as `head` does. One thread's.
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
	bool reader_left; /* nobody reads the pipe any more */
};

/* `path` NULL or "-": standard output. STATUS_IO. */
MUST_USE enum status output_open(struct output *out, const char *path, struct err *err);

/* The buffer to append to. Call output_ready() after each piece. */
struct buf *output_buf(struct output *out);
/* The number of bytes that were appended so far. */
uint64_t output_position(const struct output *out);
/*
 * Writes the buffer out once it is large enough. STATUS_IO, STATUS_NOMEM; STATUS_CANCELLED, without
 * an explanation, when the reader has left: then the command ends with CLI_OK.
 */
MUST_USE enum status output_ready(struct output *out, struct err *err);

/* Writes the rest and closes, after a file has been synced to the disk. Errors as above. */
MUST_USE enum status output_close(struct output *out, struct err *err);

/* Closes after a failure, and drops what has not been written. */
void output_abandon(struct output *out);

#endif

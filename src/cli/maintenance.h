/* What the commands for operators share: asking a server to do the work, and reading its answer. */
#ifndef FROND_CLI_MAINTENANCE_H
#define FROND_CLI_MAINTENANCE_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	MAINTENANCE_ANSWER_BYTES = 16 * 1024 * 1024,
};

#define MAINTENANCE_ANSWER_INIT BUF_INIT(MAINTENANCE_ANSWER_BYTES)

/*
 * One request to the server at `url`, which may take as long as it likes; `body` as
 * remote_request() has it. Any answer but 200 is a failure, explained.
 */
MUST_USE enum status maintenance_request(const char *url, const char *method, struct str path,
					 struct str body, struct buf *ret, struct err *err);

/* A member of a JSON object that is a whole number. */
struct maintenance_number {
	const char *name;
	uint64_t *ret;
};

/* Reads all of them from `object`. STATUS_INVALID for an answer that has not got one. */
MUST_USE enum status maintenance_numbers(struct str object,
					 const struct maintenance_number *numbers, size_t count,
					 struct err *err);

/*
 * Calls `fn` with the text of each element of the array that `object` has as its member `name`.
 * STATUS_INVALID, or what `fn` answers when that is not STATUS_OK.
 */
MUST_USE enum status maintenance_each(struct str object, const char *name,
				      enum status (*fn)(struct str element, void *arg,
							struct err *err),
				      void *arg, struct err *err);

#endif

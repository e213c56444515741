/*
 * What the commands for operators share: they ask a server to do the work, and read its answer.
 * Used by the main thread.
 */
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
 * Makes one request to the server at `url`, which may take any time to answer; `body` as
 * remote_request() has it. Any answer but 200 is a failure, explained.
 */
MUST_USE enum status maintenance_request(const char *url, const char *method, struct str path,
					 struct str body, struct buf *ret, struct err *err);

/* Where the value of a member goes that is a whole number. */
struct maintenance_number {
	const char *name;
	uint64_t *ret;
};

/* Reads `count` members of `object`. STATUS_INVALID if one of them is missing. */
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

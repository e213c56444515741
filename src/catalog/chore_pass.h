/*
 * Records that background work cannot read: a newer frond wrote them, or they are damaged. A chore
 * passes over such a record, or over the database that it belongs to, and goes on with the others.
 *
 * Each is logged once in a process (`chore_passed_over`) and counted once
 * (`frond_chore_passed_over_total`). The chore looks at it again in each turn, since it may have
 * been mended.
 *
 * Threading: any thread.
 */
#ifndef FROND_CATALOG_CHORE_PASS_H
#define FROND_CATALOG_CHORE_PASS_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

enum {
	CHORE_PASSED_KEPT = 1024, /* that a process remembers, so as not to log them again */
};

/* True for a failure that every further attempt at the same record would meet again. */
bool chore_may_pass(enum status status);

/*
 * What a chore makes of the failure of one piece of its work. `what` is the key or the name of the
 * record or database. A failure that may be passed over is logged and counted, `*err` is emptied,
 * and the answer is STATUS_OK; any other status is the answer itself. NULL is fine for `err`.
 */
MUST_USE enum status chore_pass_over(const char *chore, struct str what, enum status status,
				     struct err *err);

#endif

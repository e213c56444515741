/*
 * What has changed between two documents, as change streams tell an update that says nothing about
 * it itself.
 */
#ifndef FROND_DOOR_MONGO_CMD_DIFF_H
#define FROND_DOOR_MONGO_CMD_DIFF_H

#include "base/arena.h"
#include "bson/bson.h"

enum {
	DIFF_PATHS = 1000, /* of one description */
};

/* An array that has lost elements at its end. */
struct diff_cut {
	struct str path;
	int32_t size; /* that it has now */
};

struct diff {
	/*
	 * False: paths do not say what has changed (fields are in another order, or have names that
	 * no path can have), or saying it takes more than the document or more than DIFF_PATHS. The
	 * members below are not set then.
	 */
	bool is_told;
	/* Below them something has changed, appeared or gone: none of them is below another one. */
	struct str *paths;
	size_t count;
	struct diff_cut *cuts;
	size_t cut_count;
};

/* `*ret` lies in the arena. */
MUST_USE enum status diff_documents(struct arena *arena, struct str before, struct str after,
				    struct diff *ret);

#endif

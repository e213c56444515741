/*
 * Running a build from where it is to a Sequence: step after step, with the next batch mapped on
 * another thread while one is written.
 *
 * Threading: on a thread that may block.
 */
#ifndef FROND_INDEX_VIEW_RUN_H
#define FROND_INDEX_VIEW_RUN_H

#include <stdatomic.h>

#include "index/view/build.h"

/* What a run asks and tells. */
struct view_run_hooks {
	/* After each step. Returns the Sequence to go to; false: the run is to end. */
	bool (*stepped)(void *arg, const struct view_step *step, struct catalog_seq *ret_least);
	/* A limit has kept something out; NULL: nobody wants to know. */
	void (*left_out)(void *arg, const struct view_left_out *out);
	void *arg;
};

/*
 * Goes on until the group is READY and covers `least`, or a hook ends it (STATUS_CANCELLED).
 * STATUS_FUNCTION with `*ret_error` in the arena.
 */
MUST_USE enum status view_run(const struct view_build *build, const struct catalog_seq *least,
			      const struct view_run_hooks *hooks, struct arena *arena,
			      struct view_error *ret_error, struct err *err);

#endif

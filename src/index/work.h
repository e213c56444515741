/*
 * What comparing and matching need besides values: an arena for texts that have to be put together,
 * and the count of the steps that were taken.
 *
 * The caller owns the work and its arena. One thread or fiber uses them at a time. Other fibers of
 * the loop may run while steps are counted (loop/step.h), so the arena must belong to the caller's
 * request.
 */
#ifndef FROND_INDEX_WORK_H
#define FROND_INDEX_WORK_H

#include "base/arena.h"
#include "base/status.h"
#include "loop/step.h"

enum {
	INDEX_STEP_BYTES = 64, /* the bytes that are scanned or compared in one step */
};

struct index_work {
	struct arena *arena;
	uint64_t steps; /* all that were counted, whether or not they had a limit */
};

/* Counts `n` steps. Returns the failures of step_count(): STATUS_CANCELLED, STATUS_STEPS. */
static inline MUST_USE enum status
index_count(struct index_work *w, uint32_t n)
{
	w->steps += n;
	return step_count(n);
}

/* Counts one step, and one more for each INDEX_STEP_BYTES of `bytes`. */
static inline MUST_USE enum status
index_count_bytes(struct index_work *w, size_t bytes)
{
	size_t n = 1 + bytes / INDEX_STEP_BYTES;

	return index_count(w, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
}

#endif

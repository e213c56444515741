/*
 * The functions of a group, as the engine calls them: whoever has workers lends them. Nothing here
 * knows what language they are in.
 *
 * Threading: the engine calls them from threads of its own when it updates, and on the caller's
 * fiber or thread when it reads; several calls may be under way at once.
 */
#ifndef FROND_INDEX_VIEW_FUNCTIONS_H
#define FROND_INDEX_VIEW_FUNCTIONS_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "index/view/design.h"

/* Why a function failed, as clients see it. */
struct view_error {
	struct str name;   /* "os_process_error"; empty: nothing failed */
	struct str reason; /* JSON text, mostly of a string */
};

/* Takes what maps emit. Opaque. */
struct view_sink;

/* What one reduce is to work on. */
struct view_group_input {
	struct str keys;   /* a JSON array of [key, id]; "null" for a rereduce */
	struct str values; /* a JSON array */
};

struct view_functions {
	/*
	 * Maps documents (JSON texts), the first ones of `docs`, but at least one, and sets
	 * `*ret_done` to how many. For each document in order and each of the design's maps in
	 * order it calls view_sink_next(), and then view_sink_row() for each row or
	 * view_sink_failed(). `arena` is for what the call needs, and for `ret_error`.
	 *
	 * STATUS_FUNCTION: the design document cannot be used, and `*ret_error` says why.
	 * Otherwise any status that js_map() returns. A failure fails the update.
	 */
	enum status (*map)(void *arg, const struct view_design *design, const struct str *docs,
			   size_t count, struct arena *arena, struct view_sink *sink,
			   size_t *ret_done, struct view_error *ret_error, struct err *err);
	/*
	 * Reduces each group with each of the named reduces (struct view_reduce's `name`).
	 * `ret_results[group * name_count + name]` is JSON text in the arena. A group that failed
	 * as a whole has ptr NULL there, and `ret_errors[group]` is set. STATUS_FUNCTION as above,
	 * with `*ret_error`.
	 */
	enum status (*reduce)(void *arg, const struct view_design *design, const struct str *names,
			      size_t name_count, bool rereduce,
			      const struct view_group_input *groups, size_t group_count,
			      struct arena *arena, struct str *ret_results,
			      struct view_error *ret_errors, struct view_error *ret_error,
			      struct err *err);
	/*
	 * An update goes on when the request that began it is over. So the engine retains `arg`
	 * while it works with it. Both may be NULL: `arg` outlives the engine.
	 */
	void (*retain)(void *arg);
	void (*release)(void *arg);
};

/* Begins the rows of the next map, of the next document after the last map. */
void view_sink_next(struct view_sink *sink);
/*
 * A row of that map. The texts are copied. They need not be valid: the engine reads them as input
 * from outside, and leaves out (and tells) rows that are no JSON.
 */
void view_sink_row(struct view_sink *sink, struct str key, struct str value);
/* The map threw for this document, and has no rows of it. */
void view_sink_failed(struct view_sink *sink, struct str reason);

#endif

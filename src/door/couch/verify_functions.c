/* Reduces of design documents, lent to a program that checks a store. */
#include "catalog/verify.h"
#include "door/couch/couch.h"
#include "door/couch/doc/functions.h"
#include "door/couch/view/functions.h"

enum {
	/* To read a design document's members. */
	LEND_ARENA_BYTES = 1024 * 1024,
	LEND_ARENA_FACTOR = 8,
};

static void *
functions_lend(void *js, const struct catalog_db *db, struct str id, struct str text)
{
	struct arena *arena = arena_new(text.len * LEND_ARENA_FACTOR + LEND_ARENA_BYTES);
	struct couch_view_functions *f = NULL;
	struct js_design version;

	if (!arena)
		return NULL;
	/* What reduce_limit refuses is not compared, so its present setting does not matter. */
	if (couch_function_version(db, id, text, arena, &version) == STATUS_OK)
		f = couch_view_functions_new(js, &version, JS_LANE_REQUEST, JS_REDUCE_LIMIT_OFF);
	arena_free(arena);
	return f;
}

struct catalog_verify_lender
couch_verify_lender(struct js *js)
{
	return (struct catalog_verify_lender){ &couch_view_functions, functions_lend, js };
}

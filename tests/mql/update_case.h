/* Updates as cases: on a document each gives another one and the paths that have changed. */
#ifndef FROND_TESTS_MQL_UPDATE_CASE_H
#define FROND_TESTS_MQL_UPDATE_CASE_H

#include "mql/update/update.h"

#include "mql_case.h"

static inline enum status
update(struct mql *q, const char *change, const char *filters, const char *document, int position,
       bool insert, struct mql_updated *ret)
{
	struct mql_update *u;
	struct mql_update_on on = { case_bson(q->arena, document), position, insert };
	struct str array = BSON_EMPTY;
	struct bson_value v;
	enum status status;

	if (filters && bson_find(case_bson(q->arena, filters), STR("f"), &v))
		array = bson_text(&v);
	status = mql_update_compile(q, case_bson(q->arena, change), array, &u);
	if (status != STATUS_OK)
		return status;
	return mql_update_run(u, q, &on, ret);
}

struct update_run {
	struct str change;
	struct str document;
};

static inline enum status
update_again(struct mql *q, const void *arg, struct buf *said)
{
	const struct update_run *run = arg;
	struct mql_update_on on = { run->document, 1, false };
	struct mql_update *u;
	struct mql_updated updated;

	TRY(mql_update_compile(q, run->change, BSON_EMPTY, &u));
	TRY(mql_update_run(u, q, &on, &updated));
	buf_append_str(said, updated.document);
	for (size_t i = 0; i < updated.count; i++)
		buf_append_str(said, updated.paths[i]);
	return buf_status(said);
}

/* The paths, with blanks between. */
static inline const char *
paths_of(struct arena *arena, const struct mql_updated *u)
{
	struct str all = STR("");

	for (size_t i = 0; i < u->count; i++)
		all = arena_printf(arena, "%.*s%s%.*s", STR_ARG(all), i ? " " : "",
				   STR_ARG(u->paths[i]));
	return all.ptr;
}

struct update_case {
	const char *update;
	const char *document;
	const char *expected;
	const char *paths;
};

static inline void
check_updates(struct arena *arena, const struct update_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct update_case *c = &cases[i];
		struct mql q = case_mql(arena);
		const struct update_run run = { case_bson(arena, c->update),
						case_bson(arena, c->document) };
		struct mql_updated u;

		case_memory(update_again, &run, c->update);
		if (update(&q, c->update, NULL, c->document, 1, false, &u) != STATUS_OK)
			fail_msg("%s on %s: %s", c->update, c->document, case_err.text);
		assert_int_equal(bson_check(u.document, NULL), STATUS_OK);
		assert_string_equal(case_json(arena, u.document), c->expected);
		assert_string_equal(paths_of(arena, &u), c->paths);
		assert_int_equal(u.changed, c->paths[0] != 0);
	}
}

#endif

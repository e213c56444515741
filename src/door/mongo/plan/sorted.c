#include "door/mongo/plan/sorted.h"

#include "door/mongo/txn/run.h"
#include "mql/sort_values.h"

struct sorting {
	struct sorted *to;
	struct call *call;
	struct query *query;
	struct mql_sort_by *by;
	struct mql mql;
};

static int
compare_rows(const void *a, const void *b, const void *arg)
{
	const struct sorted_row *left = a, *right = b;
	const struct sorting *s = arg;

	return mql_sort_key_compare(s->by, left->key, right->key, s->mql.texts);
}

static enum status
sorting_full(struct sorting *s)
{
	if (arena_is_starved(s->to->arena))
		return STATUS_NOMEM;
	return call_fail(s->call, SORTED_TOO_LARGE,
			 "Executor error during %s command :: caused by :: Sort exceeded memory "
			 "limit of %d bytes (SORTED_BYTES)",
			 s->call->command->name, SORTED_BYTES);
}

/* Passes on what mql says, which knows an arena that is full by its own name. */
static enum status
sorting_status(struct sorting *s, enum status status)
{
	if (status == STATUS_LIMIT && arena_is_full(s->to->arena))
		return sorting_full(s);
	return data_mql_status(s->call, &s->mql, status);
}

static enum status
sorting_add(struct sorting *s, struct str doc, int64_t position)
{
	struct sorted *to = s->to;
	struct sorted_row *row = arena_alloc(to->arena, sizeof(*row));
	const struct sorted_row **rows = arena_grow(to->arena, to->rows, to->count, &to->cap,
						    sizeof(struct sorted_row *));

	if (rows)
		to->rows = rows;
	if (!row || !rows)
		return sorting_full(s);
	row->doc = arena_dup(to->arena, doc);
	row->position = position;
	if (!row->doc.ptr)
		return sorting_full(s);
	TRY(sorting_status(s, mql_sort_key_of(s->by, &s->mql, row->doc, &row->key)));
	to->rows[to->count++] = row;
	return STATUS_OK;
}

static enum status
sorting_sort(struct sorting *s)
{
	return sorting_status(
		s, mql_sort(&s->mql, (const void **)s->to->rows, s->to->count, compare_rows, s));
}

/* Keeps the first `most` of the rows, in another arena. */
static enum status
sorting_cut(struct sorting *s, size_t most)
{
	struct sorted old = *s->to;
	enum status status = STATUS_OK;

	TRY(sorting_sort(s));
	*s->to = (struct sorted){ .arena = arena_new(SORTED_BYTES) };
	if (s->to->arena)
		arena_set_part(s->to->arena, arena_part(old.arena));
	else
		status = STATUS_NOMEM;
	s->mql.arena = s->to->arena;
	for (size_t i = 0; status == STATUS_OK && i < most; i++)
		status = sorting_add(s, old.rows[i]->doc, old.rows[i]->position);
	sorted_fini(&old);
	return status;
}

enum status
sorted_read(struct sorted *ret, struct call *c, struct query *q, struct str sort, uint64_t most)
{
	struct sorting s = { .to = ret, .call = c, .query = q };
	uint64_t room = most < SORTED_LEAST ? 2 * SORTED_LEAST : 2 * most;
	enum status status;
	struct str doc;

	*ret = (struct sorted){ .arena = arena_new(SORTED_BYTES) };
	if (!ret->arena)
		return STATUS_NOMEM;
	arena_set_part(ret->arena, arena_part(c->arena));
	data_mql(c, c->arena, query_texts(q), &s.mql);
	TRY(data_mql_status(c, &s.mql, mql_sort_by_compile(&s.mql, sort, &s.by)));
	s.mql.arena = ret->arena;
	while ((status = query_next(q, &doc)) == STATUS_OK) {
		TRY(sorting_add(&s, doc, query_position(q)));
		if (call_gives_way(c))
			return STATUS_LIMIT;
		if (most < UINT32_MAX && ret->count >= room)
			TRY(sorting_cut(&s, (size_t)(most < ret->count ? most : ret->count)));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(sorting_sort(&s));
	if (ret->count > most)
		ret->count = (size_t)most;
	return STATUS_OK;
}

void
sorted_fini(struct sorted *s)
{
	arena_free(s->arena);
	*s = (struct sorted){ 0 };
}

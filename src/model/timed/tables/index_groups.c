/*
 * Counts the rows that have the same values in columns of an index, by counting its entries. Of
 * each group one row is read, for its values.
 */
#include <assert.h>

#include "base/mem.h"
#include "index/engine/groups.h"
#include "model/timed/tables/groups.h"
#include "model/timed/tables/tables_int.h"

enum {
	GROUPS_ARENA_BYTES = 1024 * 1024, /* of the interval, and of one entry */
};

struct table_index_groups {
	struct timed *t;
	const struct table_index *index;
	const struct table_wanted *wanted;
	struct index_work work;
	struct arena_mark mark;
	struct index_groups *groups;
};

bool
table_index_stands_for_rows(const struct timed *t, const struct table_index *index)
{
	bool is_plain = table_schema_of(t->db)->counted && index->is_ready && !index->of_statics;

	for (size_t i = 0; i < index->column_count; i++)
		is_plain &= index->columns[i].part == INDEX_TYPED_COLUMN;
	return is_plain && !t->at_us;
}

static enum status
fail_long(const struct table_index_groups *g, enum status status)
{
	if (status != STATUS_UNSUPPORTED)
		return status;
	return err_set(g->t->err, status,
		       "a value is too long for entries of the index \"%.*s\" to be counted",
		       STR_ARG(g->index->name));
}

static enum status
groups_begin(struct table_index_groups *g, const struct table_index_groups_options *options)
{
	const struct table_index_interval *wanted = &options->interval;
	const void *equal[TABLE_INDEX_COLUMNS];
	const struct index_interval interval = {
		.equal = equal,
		.equal_count = wanted->equal_count,
		.low = wanted->low,
		.high = wanted->high,
		.low_exclusive = wanted->low_exclusive,
		.high_exclusive = wanted->high_exclusive,
	};
	const struct index_groups_options how = { .columns = options->columns,
						  .after = options->after,
						  .most = options->most };
	struct index_range range;

	for (size_t i = 0; i < wanted->equal_count; i++)
		equal[i] = &wanted->equal[i];
	TRY(index_range_make(g->t->db, g->index->def, &interval, &g->work, &range));
	if (range.cut)
		return STATUS_UNSUPPORTED;
	if (str_cmp(range.begin, range.end) > 0)
		range.end = range.begin;
	TRY(timed_ask(g->t));
	TRY(index_groups_open(g->t->tx, g->t->db, g->index->def, &range, &how, &g->groups));
	g->mark = arena_mark(g->work.arena);
	return timed_now(g->t);
}

enum status
table_index_groups_open(struct timed *t, const struct table_index *index,
			const struct table_index_groups_options *options,
			struct table_index_groups **ret)
{
	struct table_index_groups *g;
	enum status status;

	assert(table_index_stands_for_rows(t, index) && options->columns <= index->column_count &&
	       options->interval.equal_count <= index->column_count);
	g = mem_zalloc(sizeof(*g));
	if (!g)
		return STATUS_NOMEM;
	g->t = t;
	g->index = index;
	g->wanted = options->wanted;
	g->work.arena = arena_new(GROUPS_ARENA_BYTES);
	status = g->work.arena ? groups_begin(g, options) : STATUS_NOMEM;
	if (status == STATUS_OK)
		*ret = g;
	else
		table_index_groups_close(g);
	return status;
}

void
table_index_groups_close(struct table_index_groups *g)
{
	if (!g)
		return;
	index_groups_close(g->groups);
	arena_free(g->work.arena);
	mem_free(g);
}

/* The row of an entry, which is there: nothing expires. */
static enum status
row_read(struct table_index_groups *g, struct str id, struct arena *arena, struct table_row *ret)
{
	struct table_pick pick;
	enum status status = table_pick_open(&pick, g->t, id, g->wanted, false);

	if (status == STATUS_OK)
		status = table_pick_read(&pick, arena, ret);
	table_pick_close(&pick);
	return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
}

enum status
table_index_groups_next(struct table_index_groups *g, struct arena *arena, struct table_row *ret,
			uint64_t *ret_rows)
{
	struct index_group group;
	enum status status;

	arena_reset(g->work.arena, g->mark);
	status = index_groups_next(g->groups, &g->work, &group);
	if (status == STATUS_OK)
		status = row_read(g, group.id, arena, ret);
	if (status == STATUS_CORRUPT)
		return err_set(g->t->err, status, "entries of the index \"%.*s\" cannot be counted",
			       STR_ARG(g->index->name));
	*ret_rows = status == STATUS_OK ? group.entries : 0;
	return fail_long(g, status);
}

bool
table_index_groups_paused(const struct table_index_groups *g)
{
	return index_groups_paused(g->groups);
}

enum status
table_index_groups_place(const struct table_index_groups *g, struct buf *ret)
{
	return index_groups_place(g->groups, ret);
}

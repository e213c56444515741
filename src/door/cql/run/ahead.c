#include "door/cql/run/ahead.h"

/* Of the plan, in the order in which ranges are read. */
static const struct where_range *
range_of(const struct select *s, uint64_t number)
{
	size_t count = s->plan.range_count, at = (size_t)(number % count);

	return &s->plan.ranges[s->reverse ? count - 1 - at : at];
}

static const struct where_partition *
partition_of(const struct select *s, uint64_t number)
{
	return &s->plan.partitions[number / s->plan.range_count];
}

/* Puts the key of a row together from those of its partition and of its range. */
static struct table_key
key_of(const struct select *s, uint64_t number, struct doc_scalar *parts)
{
	const struct schema_table *table = s->run->table;
	const struct where_partition *part = partition_of(s, number);
	const struct where_range *range = range_of(s, number);

	memcpy(parts, part->scalars, table->partition_count * sizeof(*parts));
	if (range->from.count)
		memcpy(parts + table->partition_count, range->from.parts,
		       range->from.count * sizeof(*parts));
	return (struct table_key){ .token = part->token,
				   .parts = parts,
				   .count = table->key_count };
}

static enum status
ask_range(struct select *s, struct timed *t, uint64_t number, struct str after, size_t rows,
	  struct table_scan **ret)
{
	const struct schema_table *table = s->run->table;
	const struct where_partition *part = partition_of(s, number);
	const struct where_range *range = range_of(s, number);
	const struct table_key partition = { .token = part->token,
					     .parts = part->scalars,
					     .count = table->partition_count };
	bool edges = range->from.kind != TIMED_BOUND_END || range->to.kind != TIMED_BOUND_END;
	const struct table_scan_options options = {
		.partition = &partition,
		.from = range->from,
		.to = range->to,
		.reverse = s->reverse,
		.after = after,
		.statics = s->statics,
		.static_alone = table->static_count > 0 && !edges,
		.wanted = &s->wanted,
		.rows = rows,
		.borrows = true,
	};

	return table_scan_open(t, &options, ret);
}

/* How many are asked for at once: not more than rows are wanted, if each has one. */
static uint64_t
window_of(const struct select *s, const struct timed *t, uint64_t number)
{
	uint64_t most = s->plan.partition_count * s->plan.range_count - number;

	if (most > SELECT_AHEAD)
		most = SELECT_AHEAD;
	if (most > s->left)
		most = s->left;
	if (s->most && most > s->most - s->row_count)
		most = s->most - s->row_count;
	/* Reads of the past wait for what they look up, one after the other. */
	return t->at_us || !most ? 1 : most;
}

/* Of the rows that are wanted a range behind the first one probably has a part only. */
static size_t
rows_ahead(size_t rows, uint64_t window)
{
	size_t part = rows / (size_t)window + 1;

	return rows && part < AHEAD_ROWS ? part : AHEAD_ROWS;
}

static enum status
ask_next(struct ahead *a, struct select *s, struct timed *t, struct str after, size_t rows)
{
	uint64_t number = a->first + a->count;
	size_t at = (size_t)(number % SELECT_AHEAD);
	struct ahead_one *one = &a->ones[at];
	struct table_key key;

	*one = (struct ahead_one){ 0 };
	if (range_of(s, number)->is_row) {
		key = key_of(s, number, a->keys + at * s->run->table->key_count);
		TRY(table_ask(t, &key, s->statics, &s->wanted, &one->row));
	} else {
		TRY(ask_range(s, t, number, after, rows, &one->scan));
	}
	a->count++;
	return STATUS_OK;
}

/* The caller resets the arena to s->mark behind each row: the keys are below it, and stay. */
static enum status
make_keys(struct ahead *a, struct select *s)
{
	struct arena *arena = s->run->r->arena;

	if (a->keys)
		return STATUS_OK;
	a->keys = arena_alloc(arena, SELECT_AHEAD * s->run->table->key_count * sizeof(*a->keys));
	if (!a->keys)
		return STATUS_LIMIT;
	s->mark = arena_mark(arena);
	return STATUS_OK;
}

static void
release_one(struct ahead_one *one)
{
	table_asked_free(one->row);
	table_scan_close(one->scan);
	*one = (struct ahead_one){ 0 };
}

/* Gives back what is in front of a number, which PER PARTITION LIMIT has left out. */
static void
pass(struct ahead *a, uint64_t number)
{
	for (; a->count && a->first < number; a->count--)
		release_one(&a->ones[a->first++ % SELECT_AHEAD]);
	a->first = number;
}

/*
 * Frees the answers for rows that the statement is done with: those of ten thousand rows take
 * megabytes. The first time some rows are asked for, the transaction also reads what it then uses
 * for all rows, such as its clock. So the mark lies behind these first answers, which are kept.
 */
static void
forget_reads(struct ahead *a, const struct select *s)
{
	if (a->asked > 1)
		kv_reads_forget(s->run->tx, a->reads);
	else
		a->reads = kv_reads_mark(s->run->tx);
	a->asked++;
}

/* Takes one that was asked for; if there is none, it and those behind it are asked for first. */
static enum status
take(struct ahead *a, struct select *s, struct timed *t, uint64_t window, struct str after,
     size_t rows, struct ahead_one *ret)
{
	if (!a->count) {
		forget_reads(a, s);
		TRY(make_keys(a, s));
		TRY(ask_next(a, s, t, after, rows));
		while (a->count < window)
			TRY(ask_next(a, s, t, STR(""), rows_ahead(rows, window)));
	}
	*ret = a->ones[a->first++ % SELECT_AHEAD];
	a->count--;
	return STATUS_OK;
}

enum status
ahead_read_row(struct ahead *a, struct select *s, struct timed *t, uint64_t number,
	       struct table_row *ret)
{
	struct arena *arena = s->run->r->arena;
	uint64_t window = window_of(s, t, number);
	struct ahead_one one;
	struct table_key key;
	enum status status;

	pass(a, number);
	if (!a->count && window == 1) {
		struct doc_scalar *parts = arena_alloc(arena,
						       s->run->table->key_count * sizeof(*parts));

		if (!parts)
			return STATUS_LIMIT;
		key = key_of(s, number, parts);
		return table_read(t, &key, s->statics, &s->wanted, arena, ret);
	}
	TRY(take(a, s, t, window, STR(""), AHEAD_ROWS, &one));
	status = table_asked_read(one.row, arena, ret);
	table_asked_free(one.row);
	return status;
}

enum status
ahead_open_scan(struct ahead *a, struct select *s, struct timed *t, uint64_t number,
		struct str after, size_t rows, struct table_scan **ret)
{
	uint64_t window = window_of(s, t, number);
	struct ahead_one one;

	pass(a, number);
	if (!a->count && window == 1)
		return ask_range(s, t, number, after, rows, ret);
	TRY(take(a, s, t, window, after, rows, &one));
	*ret = one.scan;
	return STATUS_OK;
}

void
ahead_release(struct ahead *a)
{
	for (; a->count; a->count--)
		release_one(&a->ones[a->first++ % SELECT_AHEAD]);
}

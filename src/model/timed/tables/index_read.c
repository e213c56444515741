/*
 * Reading rows through an index. Entries are read in stretches of TABLE_INDEX_AHEAD, whose rows are
 * all asked for before the first of them is waited for.
 */
#include <assert.h>

#include "base/mem.h"
#include "index/engine/scan.h"
#include "model/timed/tables/tables_int.h"

enum {
	ENTRIES_BYTES = 16 * 1024 * 1024, /* keys of one stretch, and of the interval */
};

/* A row that has been asked for, or that its entry has. */
struct ahead {
	struct table_pick pick; /* unless it is carried */
	struct str place;       /* of its entry */
	bool carried;
	struct str id, values; /* of the entry, if it is */
};

struct table_index_scan {
	struct timed *t;
	const struct table_index *index;
	struct table_index_options options;
	struct arena *arena; /* of the interval, and above the mark of a stretch */
	struct arena_mark mark;
	struct index_work work;
	struct index_scan entries;
	bool open;
	bool done;    /* there are no more entries */
	bool covers;  /* entries carry all that is wanted */
	bool carried; /* the row that was returned last comes from its entry */
	struct ahead ahead[TABLE_INDEX_AHEAD];
	size_t count, at; /* of those: how many there are, and which is next */
	struct buf place; /* behind the row that was returned last */
};

/* ---- Opening and closing ---- */

static bool
carries(const struct table_index *index, uint64_t column)
{
	for (size_t i = 0; i < index->carried_count; i++)
		if (index->carried[i] == column)
			return true;
	for (size_t i = 0; i < index->column_count; i++)
		if (index->columns[i].column == column &&
		    index->columns[i].part == INDEX_TYPED_COLUMN)
			return true;
	return false;
}

/* True if an entry can have all that is wanted. By the table's default TTL any cell may expire. */
static bool
scan_covers(const struct table_index_scan *s)
{
	const struct table_wanted *wanted = s->options.of_entry;

	if (!s->index->carried_count || !wanted || !wanted->some || s->options.statics ||
	    timed_ttl_ms(s->t->db))
		return false;
	for (size_t i = 0; i < wanted->count; i++)
		if (!carries(s->index, wanted->ids[i]))
			return false;
	return true;
}

static enum status
scan_begin(struct table_index_scan *s)
{
	const struct table_index_interval *wanted = &s->options.interval;
	const void *equal[TABLE_INDEX_COLUMNS];
	const struct index_interval interval = {
		.equal = equal,
		.equal_count = wanted->equal_count,
		.low = wanted->low,
		.high = wanted->high,
		.low_exclusive = wanted->low_exclusive,
		.high_exclusive = wanted->high_exclusive,
	};
	const struct index_scan_options options = {
		.reverse = s->options.reverse,
		.mode = KV_READ,
		.after = s->options.after.len ? s->options.after : (struct str){ NULL, 0 },
		.first = s->options.rows,
	};
	struct index_range range;

	for (size_t i = 0; i < wanted->equal_count; i++)
		equal[i] = &wanted->equal[i];
	TRY(index_range_make(s->t->db, s->index->def, &interval, &s->work, &range));
	if (str_cmp(range.begin, range.end) > 0)
		range.end = range.begin;
	TRY(timed_ask(s->t));
	TRY(index_scan_init(&s->entries, s->t->tx, s->t->db, s->index->def, &range, &options));
	s->open = true;
	s->covers = scan_covers(s);
	s->mark = arena_mark(s->arena);
	return timed_now(s->t);
}

enum status
table_index_open(struct timed *t, const struct table_index *index,
		 const struct table_index_options *options, struct table_index_scan **ret)
{
	struct table_index_scan *s;
	enum status status;

	assert(index->is_ready && options->interval.equal_count <= index->column_count);
	if (t->at_us)
		return err_set(t->err, STATUS_INVALID, "an index knows nothing of the past");
	s = mem_zalloc(sizeof(*s));
	if (!s)
		return STATUS_NOMEM;
	s->t = t;
	s->index = index;
	s->options = *options;
	s->place = (struct buf)BUF_INIT(TABLE_PLACE_BYTES);
	s->arena = arena_new(ENTRIES_BYTES);
	s->work.arena = s->arena;
	status = s->arena ? scan_begin(s) : STATUS_NOMEM;
	if (status == STATUS_OK)
		*ret = s;
	else
		table_index_close(s);
	return status;
}

static void
ahead_close(struct table_index_scan *s)
{
	for (; s->at < s->count; s->at++)
		if (!s->ahead[s->at].carried)
			table_pick_close(&s->ahead[s->at].pick);
	s->at = s->count = 0;
}

void
table_index_close(struct table_index_scan *s)
{
	if (!s)
		return;
	ahead_close(s);
	if (s->open)
		index_scan_release(&s->entries);
	buf_release(&s->place);
	arena_free(s->arena);
	mem_free(s);
}

/* ---- Rows ---- */

/* Keeps what the entry carries. One that was cut may be of other values than were asked for. */
static enum status
ahead_keep(struct table_index_scan *s, const struct index_entry *entry, struct ahead *a)
{
	a->carried = s->covers && entry->values.ptr && !entry->cut;
	if (!a->carried)
		return STATUS_OK;
	TRY(arena_copy(s->arena, entry->id, &a->id));
	return arena_copy(s->arena, entry->values, &a->values);
}

/* Asks for the row of the next entry. STATUS_NOT_FOUND: there are no more. */
static enum status
ahead_ask(struct table_index_scan *s)
{
	struct ahead *a = &s->ahead[s->count];
	struct index_entry entry;
	enum status status = index_scan_next(&s->entries, &s->work, &entry);

	if (status == STATUS_CORRUPT)
		return err_set(s->t->err, status, "an entry of the index \"%.*s\" cannot be read",
			       STR_ARG(s->index->name));
	TRY(status);
	TRY(arena_copy(s->arena, entry.key, &a->place));
	TRY(ahead_keep(s, &entry, a));
	if (a->carried) {
		s->count++;
		return STATUS_OK;
	}
	status = table_pick_open(&a->pick, s->t, entry.id, s->options.wanted, s->options.statics);
	if (status == STATUS_OK)
		s->count++;
	else
		table_pick_close(&a->pick);
	return status;
}

/* How many rows are asked for at once: no more than are wanted. */
static size_t
ahead_most(const struct table_index_scan *s)
{
	size_t rows = s->options.rows;

	return rows && rows < TABLE_INDEX_AHEAD ? rows : TABLE_INDEX_AHEAD;
}

static enum status
ahead_fill(struct table_index_scan *s)
{
	enum status status = STATUS_OK;

	assert(s->at == s->count);
	s->at = s->count = 0;
	arena_reset(s->arena, s->mark);
	while (status == STATUS_OK && s->count < ahead_most(s))
		status = ahead_ask(s);
	s->done = status == STATUS_NOT_FOUND;
	return s->done ? STATUS_OK : status;
}

/* How many values there are: each has an end. */
static size_t
values_count(struct str values)
{
	struct str scalar;
	uint64_t column;
	size_t count = 0;

	while (index_typed_carried_next(&values, &column, &scalar) == STATUS_OK)
		count++;
	return count;
}

/* The row as its entry has it, in the arena. */
static enum status
carried_row(const struct table_index_scan *s, const struct ahead *a, struct arena *arena,
	    struct table_row *ret)
{
	const struct table_schema *schema = table_schema_of(s->t->db);
	struct table_place place = { 0 };
	struct str values = a->values;
	struct timed_cell cell = { 0 };
	uint64_t column;
	size_t len;

	TRY(table_place_row(schema, a->id, arena, &place, &len));
	*ret = (struct table_row){
		.token = place.token,
		.key = place.key,
		.key_count = place.key_count,
		.is_row = true,
		.cells = arena_zalloc(arena, (values_count(values) + 1) * sizeof(*ret->cells)),
	};
	if (!ret->cells)
		return STATUS_LIMIT;
	while (index_typed_carried_next(&values, &column, &cell.value) == STATUS_OK) {
		struct table_cell *to = &ret->cells[ret->cell_count];

		to->column = table_column_by_id(schema, column);
		if (!to->column)
			return STATUS_CORRUPT;
		to->element.kind = DOC_NULL;
		TRY(timed_cell_scalar(&cell, arena, &to->value));
		ret->cell_count++;
	}
	return STATUS_OK;
}

/* The next row that was asked for. STATUS_NOT_FOUND: it is not there. */
static enum status
ahead_take(struct table_index_scan *s, struct ahead *a, struct arena *arena, struct table_row *ret)
{
	enum status status;

	s->carried = a->carried;
	if (a->carried)
		return table_fail_corrupt(s->t, carried_row(s, a, arena, ret));
	status = table_pick_read(&a->pick, arena, ret);
	table_pick_close(&a->pick);
	return status;
}

enum status
table_index_next(struct table_index_scan *s, struct arena *arena, struct table_row *ret)
{
	for (;;) {
		struct ahead *a;
		enum status status;

		if (s->at == s->count) {
			if (s->done)
				return STATUS_NOT_FOUND;
			TRY(ahead_fill(s));
			continue;
		}
		a = &s->ahead[s->at++];
		buf_clear(&s->place);
		buf_append_str(&s->place, a->place);
		status = ahead_take(s, a, arena, ret);
		TRY(buf_status(&s->place));
		/* What has expired has its entries until the sweep comes by. */
		if (status != STATUS_NOT_FOUND)
			return status;
	}
}

bool
table_index_is_carried(const struct table_index_scan *s)
{
	return s->carried;
}

enum status
table_index_place(const struct table_index_scan *s, struct buf *ret)
{
	buf_append_buf(ret, &s->place);
	return buf_status(ret);
}

/*
 * Keeping the entries of a row while it is written: what entries are made of is read before the
 * writes and behind them, and the engine writes the difference. So there is one way for all that
 * changes a row, and entries are of what is stored in any case.
 *
 * Only what touches an index reads: other writers stay blind.
 */
#include "index/engine/update.h"
#include "kv/tuple.h"
#include "model/timed/tables/tables_int.h"

/* ---- What is touched ---- */

/* True if entries of the index are there as soon as the row has anything. */
static bool
needs_any(const struct table_schema *schema, const struct table_index *index)
{
	const struct table_column *first = table_column_by_id(schema, index->columns[0].column);

	return !first || first->kind == TABLE_HASH || first->kind == TABLE_RANGE;
}

/* True if the changes may give the row other entries, or the first ones. */
static bool
touches(const struct table_schema *schema, const struct table_index *index,
	const struct table_change *changes, size_t count)
{
	if (!changes || needs_any(schema, index))
		return true;
	for (size_t i = 0; i < count; i++)
		if (table_index_looks_at(index, changes[i].column))
			return true;
	return false;
}

/* The row that has a partition's static columns ends with an element without components. */
static bool
is_static_row(const struct table_schema *schema, struct str tail)
{
	size_t len = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);

	return schema->key_count > schema->hash_count && len && tail.len == len + 2;
}

/* ---- Before and behind the writes ---- */

static enum status
read_image(struct table_indexing *x, struct table_stored *s, bool *ret_there)
{
	return table_fail_corrupt(x->t, table_stored_read(s, x->t->tx, x->t->db, x->key, &x->span,
							  KV_READ, x->known, x->arena, ret_there));
}

static void
span_name(struct table_span *span, const struct table_column *column)
{
	size_t at = 0;

	while (at < span->count && span->ids[at] < column->id)
		at++;
	if (at < span->count && span->ids[at] == column->id)
		return;
	if (column->storage != TABLE_SINGLE || span->count == TABLE_SPAN_KEYS)
		span->many = true;
	if (span->many) {
		span->count = 0;
		return;
	}
	memmove(&span->ids[at + 1], &span->ids[at], (span->count - at) * sizeof(*span->ids));
	span->ids[at] = column->id;
	span->count++;
}

static void
span_add(const struct table_schema *schema, uint64_t id, struct table_span *span)
{
	const struct table_column *column = table_column_by_id(schema, id);

	/* The row's key tells those of the key. */
	if (!column || column->kind == TABLE_HASH || column->kind == TABLE_RANGE)
		return;
	if (!span->some || id < span->first)
		span->first = id;
	if (!span->some || id > span->last)
		span->last = id;
	span->some = true;
	span_name(span, column);
}

/* The columns that the touched indexes look at; where these are not few, with what lies between. */
static void
find_span(struct table_indexing *x, const struct table_extension *extension)
{
	for (size_t i = 0; i < extension->kept_count; i++) {
		const struct table_index *index = &extension->kept[i];

		if (x->untouched[i])
			continue;
		if (needs_any(&extension->schema, index)) {
			x->span = (struct table_span){ 0 };
			return;
		}
		for (size_t j = 0; j < index->used_count; j++)
			span_add(&extension->schema, index->used[j], &x->span);
	}
}

enum status
table_indexing_begin(struct table_indexing *x, struct timed *t, struct str key,
		     const struct table_change *changes, size_t count,
		     const struct table_known *known)
{
	const struct table_extension *extension = t->db->extension;
	bool is_static = is_static_row(&extension->schema,
				       str_skip(key, t->db->prefix.len + TIMED_SPACE_BYTES));
	bool any = false;

	*x = (struct table_indexing){ .t = t, .known = known };
	for (size_t i = 0; !any && i < extension->kept_count; i++)
		any = extension->kept[i].of_statics == is_static &&
		      touches(&extension->schema, &extension->kept[i], changes, count);
	if (!any)
		return STATUS_OK;
	x->arena = arena_new(TABLE_INDEX_ARENA_BYTES);
	x->lasting = arena_new(TABLE_INDEX_ARENA_BYTES);
	if (!x->arena || !x->lasting)
		return STATUS_NOMEM;
	x->untouched = arena_alloc(x->arena, extension->kept_count);
	if (!x->untouched)
		return STATUS_LIMIT;
	for (size_t i = 0; i < extension->kept_count; i++)
		x->untouched[i] = extension->kept[i].of_statics != is_static ||
				  !touches(&extension->schema, &extension->kept[i], changes, count);
	find_span(x, extension);
	TRY(arena_copy(x->arena, key, &x->key));
	return read_image(x, &x->before, &x->had);
}

/* What the engine is given of a row. */
static struct index_source
source_of(const struct table_indexing *x, const struct table_stored *s)
{
	return (struct index_source){
		.id = str_skip(x->key, x->t->db->prefix.len + TIMED_SPACE_BYTES),
		.row = &s->row,
	};
}

static enum status
change_entries(struct index_writer *writer, void *arg)
{
	struct table_indexing *x = arg;
	const struct index_source before = source_of(x, &x->before);
	const struct index_source after = source_of(x, &x->after);
	const struct index_change change = { .before = x->had ? &before : NULL,
					     .after = x->has ? &after : NULL,
					     .untouched = x->untouched };

	const struct index_def *def;
	enum status status = index_update(writer, &change, &def);

	if (status != STATUS_DUPLICATE)
		return status;
	TRY(arena_copy(x->lasting, writer->taken, &x->taken));
	x->t->refused_by = def->number;
	return err_set(x->t->err, status, "Duplicate value disallowed by unique index %.*s",
		       STR_ARG(def->name));
}

static enum status
write_entries(struct table_indexing *x)
{
	enum status status = index_writer_run(x->t->tx, x->t->db, TABLE_LIST_ENTRIES, x->arena,
					      x->lasting, change_entries, x);

	if (status == STATUS_UNSUPPORTED)
		return err_set(x->t->err, STATUS_KEY_TOO_LARGE,
			       "the key of a row in a table with an index may have %d bytes "
			       "(INDEX_ID_BYTES)",
			       INDEX_ID_BYTES);
	return status;
}

enum status
table_indexing_finish(struct table_indexing *x)
{
	if (!x->arena)
		return STATUS_OK;
	TRY(read_image(x, &x->after, &x->has));
	for (;;) {
		enum status status = write_entries(x);
		bool any;

		if (status != STATUS_DUPLICATE)
			return status;
		/* What has expired makes way, as if the sweep had been here. */
		TRY(table_taken_expire(x->t, x->taken, &any));
		if (!any)
			return status;
	}
}

void
table_indexing_end(struct table_indexing *x)
{
	arena_free(x->arena);
	arena_free(x->lasting);
}

/* ---- What has expired ---- */

/* A cell that is cleared. */
struct expired {
	struct expired *next;
	struct str key;
	struct timed_cell cell; /* without its value, but for what is packed */
};

static enum status
expired_find(struct timed *t, struct str key, struct arena *arena, struct expired **ret)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	struct timed_cell cell;
	enum status status;

	*ret = NULL;
	buf_append_str(&end, key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	/* What is found is read again, with a conflict, before it is cleared. */
	TRY(kv_scan_init(&scan, t->tx, key, buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct expired *found;

		if (timed_is_piece(pair.value))
			continue;
		TRY(timed_cell_parse(pair.value, &cell, t->err));
		if (!timed_has_expired(t, &cell))
			continue;
		found = arena_alloc(arena, sizeof(*found));
		if (!found)
			return STATUS_LIMIT;
		TRY(arena_copy(arena, pair.key, &found->key));
		found->cell = cell;
		found->cell.value = (struct str){ 0 };
		TRY(arena_copy(arena, cell.packed, &found->cell.packed));
		found->next = *ret;
		*ret = found;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Clears the cells, and what indexes have of them. */
static enum status
expired_clear(struct table_indexing *x, const struct expired *cells, const struct index_def *except)
{
	const struct table_extension *extension = x->t->db->extension;

	for (size_t i = 0; x->arena && i < extension->kept_count; i++)
		if (extension->kept[i].def == except)
			x->untouched[i] = true;
	for (; cells; cells = cells->next)
		TRY(table_expired_clear(x->t, cells->key, &cells->cell));
	if (!x->arena)
		return STATUS_OK;
	TRY(read_image(x, &x->after, &x->has));
	/* The row has less than before, so it is in nobody's way. */
	return write_entries(x);
}

enum status
table_row_expire(struct timed *t, struct str key, const struct index_def *except, bool *ret_any)
{
	struct table_indexing x = { 0 };
	struct arena *arena;
	struct expired *cells;
	enum status status;

	TRY(timed_now(t));
	arena = arena_new(TABLE_INDEX_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = table_fail_corrupt(t, expired_find(t, key, arena, &cells));
	*ret_any = status == STATUS_OK && cells;
	if (*ret_any) {
		status = timed_write_begin(t);
		if (status == STATUS_OK)
			status = table_indexing_begin(&x, t, key, NULL, 0, NULL);
		if (status == STATUS_OK)
			status = expired_clear(&x, cells, except);
		table_indexing_end(&x);
	}
	arena_free(arena);
	return status;
}

enum status
table_taken_expire(struct timed *t, struct str taken, bool *ret_any)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf id = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct tuple_reader r = tuple_reader(str_skip(taken, t->db->prefix.len));
	struct str bytes, last = STR("");
	struct tuple_elem e;

	/* The id is the last element. */
	while (r.rest.len) {
		last = r.rest;
		if (tuple_next(&r, &e) != STATUS_OK)
			return table_fail_corrupt(t, STATUS_CORRUPT);
	}
	r = tuple_reader(last);
	TRY(table_fail_corrupt(t, tuple_next_bytes(&r, &id, &bytes)));
	timed_key_space(&key, t->db, TIMED_SPACE_ROWS);
	buf_append_str(&key, bytes);
	TRY(catalog_key_status(&key));
	return table_row_expire(t, buf_str(&key), NULL, ret_any);
}

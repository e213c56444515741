/* Marks of deletions (marks.c) as dumps have them, and deletions out of these. */
#include "model/timed/tables/deletions.h"

#include "base/mem.h"
#include "kv/tuple.h"
#include "model/timed/tables/stamps.h"

struct table_deletions {
	struct timed *t;
	const struct table_schema *schema;
	struct kv_scan scan;
};

/* ---- Reading ---- */

enum status
table_deletions_open(struct timed *t, struct table_deletions **ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct table_deletions *d;
	enum status status;

	if (t->at_us)
		return err_set(t->err, STATUS_INVALID, "the past has no deletions of its own");
	timed_key_space(&begin, t->db, TIMED_SPACE_MARKS);
	buf_append_buf(&end, &begin);
	tuple_put_u64(&end, TABLE_MARK_DUES);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	d = mem_zalloc(sizeof(*d));
	if (!d)
		return STATUS_NOMEM;
	d->t = t;
	d->schema = table_schema_of(t->db);
	status = kv_scan_init(&d->scan, t->tx, buf_str(&begin), buf_str(&end), NULL);
	if (status == STATUS_OK)
		*ret = d;
	else
		table_deletions_close(d);
	return status;
}

static enum status
place_take(const struct table_deletions *d, struct str rest, struct arena *arena,
	   struct table_deletion *ret)
{
	struct table_place place;
	size_t len;

	TRY(table_place_row(d->schema, rest, arena, &place, &len));
	ret->key = (struct table_key){ place.token, place.key, place.key_count };
	rest = str_skip(rest, len);
	if (!rest.len)
		return STATUS_OK;
	if (rest.len == 1 && rest.ptr[0] == TUPLE_CODE_INT_ZERO) {
		ret->kind = TABLE_DELETION_INSERTED;
		return STATUS_OK;
	}
	TRY(table_place_cell(rest, arena, &place));
	ret->kind = TABLE_DELETION_COLUMN;
	ret->column = place.column;
	ret->has_element = place.has_element;
	ret->element = place.element;
	return STATUS_OK;
}

static enum status
range_take(const struct table_deletions *d, struct str rest, const struct table_mark *mark,
	   struct arena *arena, struct table_deletion *ret)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	struct table_place place;
	size_t len = tuple_skip(rest, 0, TUPLE_SKIP_TEXT);

	buf_append(&row, rest.ptr, len);
	tuple_put_bytes(&row, STR(""));
	TRY(buf_status(&row));
	TRY(table_place_row(d->schema, buf_str(&row), arena, &place, &len));
	ret->kind = TABLE_DELETION_RANGE;
	ret->key = (struct table_key){ place.token, place.key, d->schema->hash_count };
	ret->from = mark->begin;
	ret->to = mark->end;
	return STATUS_OK;
}

static enum status
pair_take(const struct table_deletions *d, const struct kv_pair *pair, struct arena *arena,
	  struct table_deletion *ret)
{
	struct str tail = str_skip(pair->key, d->t->db->prefix.len + TIMED_SPACE_BYTES);
	struct tuple_reader r = tuple_reader(tail);
	struct table_mark mark;
	uint64_t part;

	*ret = (struct table_deletion){ .kind = TABLE_DELETION_ROW };
	if (tuple_next_u64(&r, &part) != STATUS_OK)
		return STATUS_CORRUPT;
	if (part == TABLE_MARK_PLACES) {
		TRY(table_mark_parse(pair->value, &mark, d->t->err));
		TRY(place_take(d, r.rest, arena, ret));
	} else {
		TRY(table_mark_parse_range(pair->value, arena, &mark, d->t->err));
		TRY(range_take(d, r.rest, &mark, arena, ret));
	}
	ret->stamp = mark.stamp;
	return STATUS_OK;
}

enum status
table_deletions_next(struct table_deletions *d, struct arena *arena, struct table_deletion *ret)
{
	struct kv_pair pair;

	do {
		TRY(kv_scan_next(&d->scan, &pair));
		TRY(table_fail_corrupt(d->t, pair_take(d, &pair, arena, ret)));
	} while (ret->column && !table_column_by_id(d->schema, ret->column));
	return STATUS_OK;
}

void
table_deletions_close(struct table_deletions *d)
{
	if (!d)
		return;
	kv_scan_release(&d->scan);
	mem_free(d);
}

/* ---- Putting back ---- */

static bool
element_fits(const struct table_column *column, const struct doc_scalar *element)
{
	if (column->storage == TABLE_LIST)
		return element->kind == DOC_BYTES && element->text.len == TABLE_LIST_PLACE_BYTES;
	return column->storage == TABLE_MAP || column->storage == TABLE_SET;
}

static enum status
check_deletion(const struct timed *t, const struct table_deletion *d)
{
	const struct table_schema *schema = table_schema_of(t->db);
	const struct table_column *column = table_column_by_id(schema, d->column);
	bool of_partition = table_key_is_static(schema, &d->key);
	bool fits = d->key.count == schema->key_count || of_partition;

	if (d->kind == TABLE_DELETION_INSERTED)
		fits = fits && !of_partition;
	if (d->kind == TABLE_DELETION_RANGE)
		fits = d->key.count == schema->hash_count && str_cmp(d->from, d->to) < 0;
	if (d->kind == TABLE_DELETION_COLUMN)
		fits = fits && column &&
		       column->kind == (of_partition ? TABLE_STATIC : TABLE_REGULAR) &&
		       (!d->has_element || element_fits(column, &d->element));
	if (fits)
		return STATUS_OK;
	return err_set(t->err, STATUS_INVALID, "nothing like that can be deleted in this table");
}

/* The keys between which lies what is deleted. */
static enum status
deleted_keys(struct timed *t, const struct table_deletion *d, struct buf *begin, struct buf *end)
{
	if (d->kind == TABLE_DELETION_RANGE) {
		TRY(table_key_partition(t, &d->key, begin));
		buf_append_buf(end, begin);
		buf_append_str(begin, d->from);
		buf_append_str(end, d->to);
	} else {
		TRY(table_key_row(t, &d->key, begin));
		if (d->kind == TABLE_DELETION_COLUMN)
			TRY(table_key_cell(t, d->column, d->has_element ? &d->element : NULL,
					   begin));
		buf_append_buf(end, begin);
		buf_append_byte(end, d->kind == TABLE_DELETION_INSERTED ? CATALOG_KEY_NEXT
									: CATALOG_KEY_LAST);
	}
	TRY(catalog_key_status(begin));
	return catalog_key_status(end);
}

static enum status
deletion_mark(struct timed *t, const struct table_order *o, const struct table_deletion *d,
	      struct str begin, struct str end)
{
	if (d->kind == TABLE_DELETION_RANGE)
		return table_range_mark_put(t, begin, end, o->stamp);
	return table_mark_raise(t, o, begin, d->kind == TABLE_DELETION_INSERTED, o->stamp);
}

static enum status
deletion_restore(struct timed *t, const struct table_deletion *d)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct table_order o;
	bool more;

	TRY(deleted_keys(t, d, &begin, &end));
	TRY(table_order_begin(t, false, &o));
	o.spares = true;
	TRY(deletion_mark(t, &o, d, buf_str(&begin), buf_str(&end)));
	return table_contest_clear(t, &o, buf_str(&begin), buf_str(&end), SIZE_MAX, &more);
}

enum status
table_deletion_restore(struct timed *t, const struct table_deletion *d)
{
	enum status status;

	TRY(check_deletion(t, d));
	TRY(table_stamp_set(t, d->stamp));
	status = deletion_restore(t, d);
	table_stamp_unset(t);
	return status;
}

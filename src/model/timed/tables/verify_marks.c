/*
 * Checks what a table with clients' stamps has besides its rows: that marks can be read and lie
 * where they belong, that the sweep will find each of them, and that no cell with a stamp is under
 * a mark that is as late. Cells without one are written blindly by transactions whose moments may
 * be earlier than that of a deletion which committed before.
 */
#include "kv/tuple.h"
#include "model/timed/check.h"
#include "model/timed/tables/stamps.h"

#define TABLE_FINDING_MARK  "table_mark"  /* a mark that cannot be where it is */
#define TABLE_FINDING_STAMP "table_stamp" /* a value that a mark says is deleted */

/* ---- Marks ---- */

/* True if a key behind (P, MARKS, 0) or (P, MARKS, 1) is one that a mark can have. */
static bool
place_is_good(struct catalog_verify *v, uint64_t part, struct str rest)
{
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	const struct table_schema *schema = table_schema_of(v->db);
	struct tuple_reader r;
	struct table_place place;
	uint64_t number;
	size_t len;

	if (part == TABLE_MARK_PLACES) {
		if (table_place_row(schema, rest, v->scratch, &place, &len) != STATUS_OK)
			return false;
		/* Of what says that the row was inserted. */
		r = tuple_reader(str_skip(rest, len));
		if (tuple_next_u64(&r, &number) == STATUS_OK && !number)
			return !r.rest.len;
		return table_place_cell(str_skip(rest, len), v->scratch, &place) == STATUS_OK &&
		       !place.is_piece && place.column < schema->next_id;
	}
	len = tuple_skip(rest, 0, TUPLE_SKIP_TEXT);
	buf_append(&row, rest.ptr, len);
	tuple_put_bytes(&row, STR(""));
	r = tuple_reader(str_skip(rest, len));
	return len && catalog_verify_parsed(v, buf_status(&row)) &&
	       table_place_row(schema, buf_str(&row), v->scratch, &place, &len) == STATUS_OK &&
	       tuple_next_u64(&r, &number) == STATUS_OK && !r.rest.len;
}

/* The mark can be read, and the sweep will find it. */
static enum status
check_mark(struct catalog_verify *v, uint64_t part, const struct kv_pair *pair)
{
	AUTO(buf_release) struct buf due = CATALOG_KEY_INIT;
	struct err err = { 0 };
	struct table_mark mark;
	struct kv_future *f;
	struct str ignored;
	enum status status = part == TABLE_MARK_PLACES
				     ? table_mark_parse(pair->value, &mark, &err)
				     : table_mark_parse_range(pair->value, v->scratch, &mark, &err);

	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, pair->key, "not a mark of a deletion");
		return STATUS_OK;
	}
	TRY(table_mark_due_key(v->db, mark.made_us, pair->key, &due));
	TRY(catalog_verify_get(v, buf_str(&due), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, TABLE_FINDING_MARK, pair->key,
				     "no entry says when the mark was made");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
check_pair(struct catalog_verify *v, const struct kv_pair *pair, struct str tail)
{
	struct tuple_reader r = tuple_reader(tail);
	bool good = false, is_due = false;
	uint64_t part = TABLE_MARK_PARTS, us;

	arena_clear(v->scratch);
	if (tuple_next_u64(&r, &part) == STATUS_OK && part == TABLE_MARK_DUES) {
		is_due = true;
		if (tuple_next_u64(&r, &us) != STATUS_OK || tuple_next_u64(&r, &part) != STATUS_OK)
			part = TABLE_MARK_PARTS;
	}
	if (part == TABLE_MARK_PLACES || part == TABLE_MARK_RANGES)
		good = place_is_good(v, part, r.rest);
	else if (part == TABLE_MARK_HIGHEST && !is_due)
		good = !r.rest.len && timed_clock_parse(pair->value, &us) == STATUS_OK;
	if (!good)
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key,
				     "not a place of a mark of a deletion");
	if (!good || is_due || part == TABLE_MARK_HIGHEST)
		return STATUS_OK;
	return check_mark(v, part, pair);
}

static enum status
mark_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	(void)arg;
	return check_pair(v, &c->pair, c->tail);
}

enum status
table_verify_marks(struct catalog_verify *v, struct catalog_verify_range *range)
{
	const struct catalog_verify_walk walk = { TIMED_SPACE_MARKS, "the mark", NULL, mark_pair,
						  NULL };

	if (!table_schema_of(v->db)->stamped)
		return timed_verify_single(v, TIMED_SPACE_MARKS, NULL);
	return catalog_verify_walk(v, &walk, range);
}

/* ---- Cells under marks ---- */

/* The mark of a place, if it is there and can be read. */
static enum status
cover_by_place(struct catalog_verify *v, struct str key, bool own, struct table_cover *cover)
{
	AUTO(buf_release) struct buf of = CATALOG_KEY_INIT;
	struct table_mark mark;
	struct kv_future *f;
	struct str value;

	TRY(table_mark_key(v->db, key, own, &of));
	TRY(catalog_verify_get(v, buf_str(&of), &f));
	if (kv_future_value(f, &value) && table_mark_parse(value, &mark, NULL) == STATUS_OK)
		table_cover_raise(cover, mark.stamp);
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
cover_by_ranges(struct catalog_verify *v, struct str key, struct table_cover *cover)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct table_mark mark;

	TRY(table_mark_partition_key(v->db, key, &v->key));
	TRY(catalog_verify_cursor_open_at(v, &c));
	while (!c.done) {
		arena_clear(v->scratch);
		if (table_mark_parse_range(c.pair.value, v->scratch, &mark, NULL) == STATUS_OK &&
		    table_mark_is_over(v->db, &mark, key))
			table_cover_raise(cover, mark.stamp);
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

enum status
table_verify_stamp(struct catalog_verify *v, struct str key, const struct timed_cell *cell)
{
	struct table_cover cover = { 0 };
	size_t row_len, column_len;
	struct str row;

	TRY(timed_key_row_bytes(v->db, key, &row_len));
	row = str_of(key.ptr, row_len);
	TRY(cover_by_place(v, row, false, &cover));
	TRY(cover_by_ranges(v, row, &cover));
	TRY(cover_by_place(v, key, key.len == row_len, &cover));
	column_len = key.len > row_len ? tuple_skip(key, row_len, TUPLE_SKIP_INT) : key.len;
	if (column_len < key.len)
		TRY(cover_by_place(v, str_of(key.ptr, column_len), false, &cover));
	if (!table_schema_of(v->db)->stamped)
		catalog_verify_found(v, TABLE_FINDING_STAMP, key,
				     "it has a stamp, and the table says that there are none");
	else if (cover.any && cover.stamp >= cell->stamp)
		catalog_verify_found(
			v, TABLE_FINDING_STAMP, key,
			"its stamp is %lld, and a mark says that what has %lld or less "
			"is deleted",
			(long long)cell->stamp, (long long)cover.stamp);
	return STATUS_OK;
}

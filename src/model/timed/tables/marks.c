/*
 * What deletions leave in a table whose clients order writes by stamps:
 *
 *     (P, MARKS, 0, b"token hash components", b"range components"[, column[, b"element"]])
 *                                                → (format, stamp, moment)
 *     (P, MARKS, 0, …, b"range components", 0)   → the same, of what says that a row was inserted
 *     (P, MARKS, 1, b"token hash components", n) → (format, stamp, moment, b"begin", b"end")
 *     (P, MARKS, 2, moment, a key behind MARKS)  → '': a mark was made then
 *
 * A mark says that what it is over is deleted as far as it has that stamp or an earlier one. They
 * are read by writers that compare (contest.c), and by nobody else. The sweep takes them away by
 * their moments. A mark that was made anew has another moment, so an entry of before says nothing.
 *
 * Marks of ranges have their bounds in their values, since two keys do not fit into one. A writer
 * that adds one first reads all marks of ranges of the partition. It gives the new one the next
 * number, and removes those whose ranges lie within the new one's and whose stamps are not later.
 * So a queue whose front is deleted again and again keeps one mark.
 */
#include "catalog/format.h"
#include "kv/tuple.h"
#include "loop/step.h"
#include "model/timed/tables/packed.h"

enum {
	MARK_FORMAT = 1,
	MARK_VALUE_BYTES = KV_LIMIT_VALUE_BYTES,
	GRACE_SECONDS = 10 * 24 * 60 * 60, /* where the table says nothing, as in Cassandra */
	MARKS_ARENA_BYTES = 64 * 1024,     /* of a mark of a range */
};

/* ---- Values ---- */

void
table_mark_encode(const struct table_mark *mark, bool range, struct buf *value)
{
	tuple_put_u64(value, MARK_FORMAT);
	tuple_put_i64(value, mark->stamp);
	tuple_put_u64(value, mark->made_us);
	if (!range)
		return;
	tuple_put_bytes(value, mark->begin);
	tuple_put_bytes(value, mark->end);
}

static enum status
mark_next(struct tuple_reader *r, struct table_mark *ret, struct err *err)
{
	uint64_t format;

	*ret = (struct table_mark){ 0 };
	TRY(catalog_format_next(r, "mark of a deletion", MARK_FORMAT, &format, err));
	if (tuple_next_i64(r, &ret->stamp) != STATUS_OK ||
	    tuple_next_u64(r, &ret->made_us) != STATUS_OK)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

enum status
table_mark_parse(struct str value, struct table_mark *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);

	TRY(mark_next(&r, ret, err));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
bound_next(struct tuple_reader *r, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct str bytes;

	/* A string is read as well, and is none. */
	if (!r->rest.len || r->rest.ptr[0] != TUPLE_CODE_BYTES ||
	    tuple_next_bytes(r, &scratch, &bytes) != STATUS_OK)
		return STATUS_CORRUPT;
	return arena_copy(arena, bytes, ret);
}

enum status
table_mark_parse_range(struct str value, struct arena *arena, struct table_mark *ret,
		       struct err *err)
{
	struct tuple_reader r = tuple_reader(value);

	TRY(mark_next(&r, ret, err));
	TRY(bound_next(&r, arena, &ret->begin));
	TRY(bound_next(&r, arena, &ret->end));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- Keys ---- */

static struct str
tail_of(const struct catalog_db *db, struct str key)
{
	return str_skip(key, db->prefix.len + TIMED_SPACE_BYTES);
}

/* How much of a key behind its subspace is the partition's. */
static size_t
partition_bytes(struct str tail)
{
	return tuple_skip(tail, 0, TUPLE_SKIP_TEXT);
}

static void
part_key(const struct catalog_db *db, enum table_mark_part part, struct buf *ret)
{
	timed_key_space(ret, db, TIMED_SPACE_MARKS);
	tuple_put_u64(ret, part);
}

enum status
table_mark_key(const struct catalog_db *db, struct str key, bool own, struct buf *ret)
{
	part_key(db, TABLE_MARK_PLACES, ret);
	buf_append_str(ret, tail_of(db, key));
	if (own)
		tuple_put_u64(ret, 0);
	return catalog_key_status(ret);
}

enum status
table_mark_partition_key(const struct catalog_db *db, struct str key, struct buf *ret)
{
	struct str tail = tail_of(db, key);

	part_key(db, TABLE_MARK_RANGES, ret);
	buf_append(ret, tail.ptr, partition_bytes(tail));
	return catalog_key_status(ret);
}

enum status
table_mark_due_key(const struct catalog_db *db, uint64_t made_us, struct str mark_key,
		   struct buf *ret)
{
	part_key(db, TABLE_MARK_DUES, ret);
	tuple_put_u64(ret, made_us);
	buf_append_str(ret, tail_of(db, mark_key));
	return catalog_key_status(ret);
}

/* ---- Writing ---- */

/* Writes a mark by its own key, and when it was made. */
static enum status
mark_write(struct timed *t, struct str mark_key, const struct table_mark *mark, bool range)
{
	AUTO(buf_release) struct buf due = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(MARK_VALUE_BYTES);

	TRY(step_count(1));
	table_mark_encode(mark, range, &value);
	TRY(buf_status(&value));
	TRY(kv_set(t->tx, mark_key, buf_str(&value)));
	TRY(table_mark_due_key(t->db, mark->made_us, mark_key, &due));
	return kv_set(t->tx, buf_str(&due), STR(""));
}

enum status
table_mark_put(struct timed *t, struct str key, bool own, int64_t stamp)
{
	const struct table_mark mark = { .stamp = stamp, .made_us = t->now_us };
	AUTO(buf_release) struct buf to = CATALOG_KEY_INIT;

	TRY(table_mark_key(t->db, key, own, &to));
	return mark_write(t, buf_str(&to), &mark, false);
}

enum status
table_mark_raise(struct timed *t, const struct table_order *o, struct str key, bool own,
		 int64_t stamp)
{
	struct table_cover cover = { 0 };
	struct kv_future *asked;

	if (o->compares) {
		TRY(table_mark_ask(t, key, own, &asked));
		TRY(table_mark_wait(t, asked, &cover));
	}
	if (cover.any && cover.stamp >= stamp)
		return STATUS_OK;
	return table_mark_put(t, key, own, stamp);
}

/* The marks of the columns that are packed in a row's own cell. */
static enum status
packed_marks_put(struct timed *t, struct str row, const struct timed_cell *own)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct table_packed p = table_packed_of(own);
	enum status status;
	struct str ignored;
	uint64_t column;

	while ((status = table_packed_next(&p, &column, &ignored)) == STATUS_OK) {
		buf_clear(&key);
		buf_append_str(&key, row);
		TRY(table_key_cell(t, column, NULL, &key));
		TRY(table_mark_put(t, buf_str(&key), false, timed_cell_stamp(own)));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : table_fail_corrupt(t, status);
}

enum status
table_expired_clear(struct timed *t, struct str key, const struct timed_cell *cell)
{
	size_t len;

	if (table_schema_of(t->db)->stamped) {
		TRY(table_mark_put(t, key, cell->type == TIMED_INSERTED, timed_cell_stamp(cell)));
		TRY(packed_marks_put(t, key, cell));
	}
	TRY(timed_key_row_bytes(t->db, key, &len));
	if (key.len > len)
		TRY(table_packed_forget(t, key, len));
	return table_cell_clear(t, key, cell->piece_bytes);
}

/* ---- Reading ---- */

enum status
table_mark_ask(struct timed *t, struct str key, bool own, struct kv_future **ret)
{
	AUTO(buf_release) struct buf of = CATALOG_KEY_INIT;

	TRY(table_mark_key(t->db, key, own, &of));
	*ret = kv_get(t->tx, buf_str(&of), KV_READ);
	return STATUS_OK;
}

enum status
table_mark_wait(struct timed *t, struct kv_future *asked, struct table_cover *cover)
{
	struct table_mark mark;
	struct str value;

	TRY(kv_future_wait(asked));
	if (!kv_future_value(asked, &value))
		return STATUS_OK;
	TRY(table_fail_corrupt(t, table_mark_parse(value, &mark, t->err)));
	table_cover_raise(cover, mark.stamp);
	return STATUS_OK;
}

enum status
table_range_marks_open(struct table_range_marks *m, struct timed *t, struct str key)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*m = (struct table_range_marks){ .t = t };
	TRY(table_mark_partition_key(t->db, key, &begin));
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return kv_scan_init(&m->scan, t->tx, buf_str(&begin), buf_str(&end), NULL);
}

enum status
table_range_marks_next(struct table_range_marks *m, struct arena *arena, struct str *ret_key,
		       struct table_mark *ret)
{
	struct kv_pair pair;

	TRY(step_count(1));
	TRY(kv_scan_next(&m->scan, &pair));
	*ret_key = pair.key;
	return table_fail_corrupt(m->t, table_mark_parse_range(pair.value, arena, ret, m->t->err));
}

void
table_range_marks_close(struct table_range_marks *m)
{
	kv_scan_release(&m->scan);
}

bool
table_mark_is_over(const struct catalog_db *db, const struct table_mark *mark, struct str key)
{
	struct str tail = tail_of(db, key);
	struct str row = str_skip(tail, partition_bytes(tail));

	return str_cmp(mark->begin, row) <= 0 && str_cmp(row, mark->end) < 0;
}

/* ---- Marks of ranges ---- */

/* A mark that is added among those of its partition. */
struct adding {
	struct table_mark mark;
	size_t count;  /* of those that stay */
	uint64_t next; /* the number of the new one */
	bool needless; /* there is one that is over all of it, and as late */
};

/* True if `inner` says nothing that `outer` does not. */
static bool
mark_includes(const struct table_mark *outer, const struct table_mark *inner)
{
	return outer->stamp >= inner->stamp && str_cmp(outer->begin, inner->begin) <= 0 &&
	       str_cmp(inner->end, outer->end) <= 0;
}

static enum status
mark_number(const struct timed *t, size_t partition_len, struct str mark_key, uint64_t *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(mark_key, partition_len));

	if (tuple_next_u64(&r, ret) == STATUS_OK && !r.rest.len)
		return STATUS_OK;
	return err_set(t->err, STATUS_CORRUPT, "a mark of the table \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}

/* Looks at those that are there, and clears those that the new one makes needless. */
static enum status
ranges_merge(struct timed *t, struct str key, size_t partition_len, struct arena *arena,
	     struct adding *a)
{
	struct table_range_marks marks;
	struct table_mark there;
	struct str mark_key;
	enum status status = table_range_marks_open(&marks, t, key);

	while (status == STATUS_OK && !a->needless) {
		arena_clear(arena);
		status = table_range_marks_next(&marks, arena, &mark_key, &there);
		if (status == STATUS_OK)
			status = mark_number(t, partition_len, mark_key, &a->next);
		if (status != STATUS_OK)
			break;
		a->next++;
		a->count++;
		a->needless = mark_includes(&there, &a->mark);
		if (!a->needless && mark_includes(&a->mark, &there)) {
			a->count--;
			status = kv_clear(t->tx, mark_key);
		}
	}
	table_range_marks_close(&marks);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
range_mark_add(struct timed *t, struct str begin, struct adding *a, struct arena *arena)
{
	AUTO(buf_release) struct buf to = CATALOG_KEY_INIT;

	TRY(table_mark_partition_key(t->db, begin, &to));
	TRY(ranges_merge(t, begin, to.len, arena, a));
	if (a->needless)
		return STATUS_OK;
	if (a->count >= TABLE_RANGE_MARKS)
		return err_set(t->err, STATUS_INVALID,
			       "%d deletions of ranges are remembered of a partition at most, for "
			       "clients with timestamps of their own (TABLE_RANGE_MARKS): delete "
			       "the whole partition, or wider ranges",
			       TABLE_RANGE_MARKS);
	tuple_put_u64(&to, a->next);
	TRY(catalog_key_status(&to));
	return mark_write(t, buf_str(&to), &a->mark, true);
}

enum status
table_range_mark_put(struct timed *t, struct str begin, struct str end, int64_t stamp)
{
	struct str from = tail_of(t->db, begin), to = tail_of(t->db, end);
	struct adding a = { .mark = { .stamp = stamp, .made_us = t->now_us } };
	struct arena *arena = arena_new(MARKS_ARENA_BYTES);
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	a.mark.begin = str_skip(from, partition_bytes(from));
	a.mark.end = str_skip(to, partition_bytes(to));
	status = range_mark_add(t, begin, &a, arena);
	arena_free(arena);
	return status;
}

/* ---- Forgetting ---- */

static enum status
ranges_forget(struct timed *t, struct str row, struct arena *arena)
{
	struct table_range_marks marks;
	struct table_mark mark;
	struct str mark_key;
	enum status status = table_range_marks_open(&marks, t, row);

	while (status == STATUS_OK) {
		arena_clear(arena);
		status = table_range_marks_next(&marks, arena, &mark_key, &mark);
		if (status == STATUS_OK && table_mark_is_over(t->db, &mark, row))
			status = kv_clear(t->tx, mark_key);
	}
	table_range_marks_close(&marks);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
table_marks_forget(struct timed *t, struct str row)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct arena *arena;
	enum status status;

	TRY(table_mark_key(t->db, row, false, &begin));
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_clear_range(t->tx, buf_str(&begin), buf_str(&end)));
	arena = arena_new(MARKS_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = ranges_forget(t, row, arena);
	arena_free(arena);
	return status;
}

/* The mark that an entry names, as (P, MARKS, …), and when it was made. */
static enum status
due_parse(const struct timed *t, struct str entry, struct buf *ret_mark, uint64_t *ret_made_us)
{
	struct tuple_reader r = tuple_reader(tail_of(t->db, entry));
	uint64_t part;

	if (tuple_next_u64(&r, &part) != STATUS_OK || part != TABLE_MARK_DUES ||
	    tuple_next_u64(&r, ret_made_us) != STATUS_OK || !r.rest.len)
		return STATUS_CORRUPT;
	timed_key_space(ret_mark, t->db, TIMED_SPACE_MARKS);
	buf_append_str(ret_mark, r.rest);
	return catalog_key_status(ret_mark);
}

/* Clears the mark of an entry, unless it was made anew. */
static enum status
due_clear(struct timed *t, struct str entry)
{
	AUTO(buf_release) struct buf mark_key = CATALOG_KEY_INIT;
	struct tuple_reader r;
	struct table_mark mark;
	struct kv_future *f;
	struct str value;
	uint64_t made_us;

	TRY(due_parse(t, entry, &mark_key, &made_us));
	f = kv_get(t->tx, buf_str(&mark_key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		r = tuple_reader(value);
		TRY(mark_next(&r, &mark, t->err));
		if (mark.made_us == made_us)
			TRY(kv_clear(t->tx, buf_str(&mark_key)));
	}
	return kv_clear(t->tx, entry);
}

/* For how long marks are kept. */
static uint64_t
grace_us(const struct table_schema *schema)
{
	struct str said = table_property_of(schema, STR(TABLE_PROPERTY_GRACE));
	int64_t seconds = GRACE_SECONDS;

	if (said.ptr && (!str_to_i64(said, &seconds) || seconds < 0 || seconds > INT32_MAX))
		seconds = GRACE_SECONDS;
	return (uint64_t)seconds * 1000 * TIMED_US_PER_MS;
}

enum status
table_marks_tend(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	const struct kv_range_options options = { .limit = TIMED_SWEEP_KEYS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct table_schema *schema = table_schema_of(t->db);
	uint64_t grace = grace_us(schema);
	struct kv_range range;
	struct kv_future *f;

	if (!schema->stamped || t->now_us <= grace)
		return STATUS_OK;
	part_key(t->db, TABLE_MARK_DUES, &begin);
	buf_append_buf(&end, &begin);
	tuple_put_u64(&end, t->now_us - grace);
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(table_fail_corrupt(t, due_clear(t, range.pairs[i].key)));
	*ret_done += range.count;
	*ret_more = *ret_more || range.more;
	return STATUS_OK;
}

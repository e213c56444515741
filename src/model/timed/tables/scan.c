/*
 * Going through rows, of a partition or of a range of tokens, in either direction.
 *
 * A scan has a cursor over the keys of its range. Where another partition begins, it keeps the
 * pairs of its static columns, which lie before its rows: forward the cursor comes by them, unless
 * the scan began inside of the partition; otherwise they are read apart. A row gets them anew, into
 * the arena of its caller.
 */
#include <assert.h>

#include "base/mem.h"
#include "model/timed/tables/estimate.h"
#include "model/timed/tables/packed.h"

enum {
	PLACE_FORMAT = 1,
	PLACE_HEAD_BYTES = 2, /* the format, and flags */
	PLACE_DONE = 1,       /* the place is behind a whole partition */
	PLACE_SHOWN = 2,      /* a row of the partition was returned before */
	PLACE_FLAGS = 3,

	STATICS_BYTES = 256 * 1024 * 1024, /* of one partition, kept while its rows are read */
};

struct static_pair {
	struct kv_pair pair;
	struct static_pair *next;
};

struct table_scan {
	struct timed *t;
	const struct table_schema *schema;
	struct table_scan_options options;
	bool wants_statics;
	struct buf begin, end; /* of the keys that are left */
	struct timed_cursor cursor;
	bool open;
	struct kv_pair pair; /* the next one */
	bool has_pair;
	size_t row_len, partition_len; /* of its key */
	bool same_row;                 /* it is of the row whose key the place is */
	bool same_partition;           /* it is of the partition that the scan is in */
	size_t pairs, bytes;           /* read since the scan was opened */
	bool paused;

	struct buf partition;      /* the key of the one that the scan is in; empty: none yet */
	bool inside;               /* the scan begins in the middle of its first partition */
	bool shown;                /* a row of it was returned */
	struct arena *kept;        /* the pairs of its static columns, and … */
	struct table_place beside; /* … a row of it, as far as its key is the partition's */
	bool has_beside;
	struct static_pair *statics;
	struct static_pair **statics_end;
	size_t statics_row_len;

	struct buf place; /* the key of the last row, or of the partition if `place_done` */
	bool place_done;
	bool advanced; /* the place is another one than where the scan began */
};

/* ---- Ranges ---- */

/* Appends what follows all keys that begin with the key. */
static enum status
put_behind(struct str key, struct buf *ret)
{
	buf_clear(ret);
	buf_append_str(ret, key);
	buf_append_byte(ret, CATALOG_KEY_LAST);
	return catalog_key_status(ret);
}

static enum status
range_of_tokens(struct table_scan *s)
{
	const struct table_token_edge *from = &s->options.from_token, *to = &s->options.to_token;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	timed_key_space(&s->begin, s->t->db, table_space(s->schema));
	TRY(put_behind(buf_str(&s->begin), &s->end));
	if (from->kind != TIMED_BOUND_END) {
		TRY(table_key_token(s->t, from->token, &s->begin));
		if (from->kind == TIMED_BOUND_EXCLUSIVE)
			buf_append_byte(&s->begin, CATALOG_KEY_LAST);
	}
	if (to->kind == TIMED_BOUND_END)
		return catalog_key_status(&s->begin);
	TRY(table_key_token(s->t, to->token, &key));
	buf_clear(&s->end);
	buf_append_buf(&s->end, &key);
	if (to->kind == TIMED_BOUND_INCLUSIVE)
		buf_append_byte(&s->end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&s->begin));
	return catalog_key_status(&s->end);
}

static enum status
range_of_partition(struct table_scan *s)
{
	const struct table_scan_options *o = &s->options;

	if (o->from.kind == TIMED_BOUND_END && o->to.kind == TIMED_BOUND_END) {
		TRY(table_key_partition(s->t, o->partition, &s->begin));
		return put_behind(buf_str(&s->begin), &s->end);
	}
	s->inside = true;
	return table_key_range(s->t, o->partition, &o->from, &o->to, &s->begin, &s->end);
}

/* Takes off the range what does not lie behind the place. */
static enum status
range_go_on(struct table_scan *s, struct str after)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t flags;

	if (after.len <= PLACE_HEAD_BYTES || after.ptr[0] != PLACE_FORMAT ||
	    (uint8_t)after.ptr[1] > PLACE_FLAGS)
		return err_set(s->t->err, STATUS_INVALID,
			       "this is not a place where a scan of a table can go on");
	flags = (uint8_t)after.ptr[1];
	timed_key_space(&key, s->t->db, table_space(s->schema));
	buf_append_str(&key, str_skip(after, PLACE_HEAD_BYTES));
	TRY(catalog_key_status(&key));
	s->inside = !(flags & PLACE_DONE);
	s->shown = s->inside && (flags & PLACE_SHOWN);
	if (!s->options.reverse)
		buf_append_byte(&key, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	/* A place outside of the range leaves all of it, or nothing. */
	if (!s->options.reverse && str_cmp(buf_str(&key), buf_str(&s->begin)) > 0) {
		buf_clear(&s->begin);
		buf_append_buf(&s->begin, &key);
	} else if (s->options.reverse && str_cmp(buf_str(&key), buf_str(&s->end)) < 0) {
		buf_clear(&s->end);
		buf_append_buf(&s->end, &key);
	}
	TRY(catalog_key_status(&s->begin));
	return catalog_key_status(&s->end);
}

/* About how many pairs a row has: where INSERT packs rows, one and what cannot be packed. */
static size_t
pairs_of_row(const struct table_schema *schema)
{
	size_t count = 1;

	for (size_t i = schema->key_count; i < schema->column_count; i++)
		count += !schema->packs || !table_column_packs(&schema->columns[i]);
	return count;
}

static enum status
cursor_open(struct table_scan *s)
{
	const struct kv_range_options options = { .reverse = s->options.reverse };
	size_t first = s->options.rows * pairs_of_row(s->schema);

	/* Only the pair behind a row says that the row has no others. */
	first += first != 0;

	/* The edges the wrong way round are a range without rows. */
	if (str_cmp(buf_str(&s->begin), buf_str(&s->end)) > 0) {
		buf_clear(&s->end);
		buf_append_buf(&s->end, &s->begin);
		TRY(buf_status(&s->end));
	}
	TRY(timed_cursor_open_few(&s->cursor, s->t, buf_str(&s->begin), buf_str(&s->end), &options,
				  first));
	s->open = true;
	return STATUS_OK;
}

/* ---- Opening and closing ---- */

void
table_scan_close(struct table_scan *s)
{
	if (!s)
		return;
	if (s->open)
		timed_cursor_close(&s->cursor);
	buf_release(&s->begin);
	buf_release(&s->end);
	buf_release(&s->partition);
	buf_release(&s->place);
	arena_free(s->kept);
	mem_free(s);
}

/*
 * A scan that goes on within a partition is in it before it meets a pair, so that the partition is
 * not taken for another one.
 */
static enum status
enter_place(struct table_scan *s, struct str after)
{
	size_t len;

	timed_key_space(&s->place, s->t->db, table_space(s->schema));
	buf_append_str(&s->place, str_skip(after, PLACE_HEAD_BYTES));
	TRY(catalog_key_status(&s->place));
	s->place_done = !s->inside;
	if (!s->inside)
		return STATUS_OK;
	len = tuple_skip(buf_str(&s->place), s->t->db->prefix.len + TIMED_SPACE_BYTES,
			 TUPLE_SKIP_TEXT);
	if (!len)
		return err_set(s->t->err, STATUS_INVALID,
			       "this is not a place where a scan of a table can go on");
	buf_append(&s->partition, s->place.ptr, len);
	return buf_status(&s->partition);
}

/* Starts with no static pairs kept. */
static void
statics_forget(struct table_scan *s)
{
	arena_clear(s->kept);
	s->statics = NULL;
	s->statics_end = &s->statics;
	s->has_beside = false;
}

static enum status
statics_keep(struct table_scan *s, const struct kv_pair *pair, size_t row_len)
{
	struct static_pair *p = arena_alloc(s->kept, sizeof(*p));

	if (!p)
		return STATUS_LIMIT;
	p->next = NULL;
	TRY(catalog_pair_copy(s->kept, pair->key, pair->value, &p->pair));
	*s->statics_end = p;
	s->statics_end = &p->next;
	s->statics_row_len = row_len;
	return STATUS_OK;
}

/* Reads the pairs of the static columns of the partition that the scan is in. */
static enum status
statics_read(struct table_scan *s)
{
	AUTO(timed_cursor_close) struct timed_cursor cursor = { 0 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_pair pair;
	enum status status;

	buf_append_buf(&begin, &s->partition);
	tuple_put_bytes(&begin, STR(""));
	TRY(catalog_key_status(&begin));
	TRY(put_behind(buf_str(&begin), &end));
	TRY(timed_cursor_open(&cursor, s->t, buf_str(&begin), buf_str(&end), NULL));
	while ((status = timed_cursor_next(&cursor, &pair)) == STATUS_OK)
		TRY(statics_keep(s, &pair, begin.len));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
scan_begin(struct table_scan *s)
{
	TRY(s->options.partition ? range_of_partition(s) : range_of_tokens(s));
	if (s->options.after.len) {
		TRY(range_go_on(s, s->options.after));
		TRY(enter_place(s, s->options.after));
	}
	TRY(timed_ask(s->t));
	TRY(cursor_open(s));
	TRY(timed_now(s->t));
	return s->partition.len && s->wants_statics ? statics_read(s) : STATUS_OK;
}

enum status
table_scan_open(struct timed *t, const struct table_scan_options *options, struct table_scan **ret)
{
	struct table_scan *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return STATUS_NOMEM;
	s->t = t;
	s->schema = table_schema_of(t->db);
	s->options = *options;
	s->wants_statics = (options->statics || options->static_alone) && s->schema->static_count;
	s->begin = s->end = s->partition = s->place = (struct buf)CATALOG_KEY_INIT;
	s->kept = arena_new(STATICS_BYTES);
	status = s->kept ? STATUS_OK : STATUS_NOMEM;
	if (status == STATUS_OK) {
		statics_forget(s);
		status = scan_begin(s);
	}
	if (status != STATUS_OK) {
		table_scan_close(s);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

/* ---- Pairs ---- */

/* True if the pair goes on with the row of the pair before it, so that its lengths are the same. */
static bool
pair_goes_on(const struct table_scan *s)
{
	struct str key = s->pair.key;
	size_t len = s->place.len;

	if (!len || s->place_done || s->row_len != len || !str_starts_with(key, buf_str(&s->place)))
		return false;
	/* Otherwise the NUL at the end of the place is content of a longer element. */
	return key.len == len || (uint8_t)key.ptr[len] != TUPLE_CODE_ESCAPE;
}

/* Makes s->pair the next pair, unless it is there already. STATUS_NOT_FOUND. */
static enum status
scan_peek(struct table_scan *s)
{
	size_t at = s->t->db->prefix.len + TIMED_SPACE_BYTES;

	if (s->has_pair)
		return STATUS_OK;
	TRY(timed_cursor_next(&s->cursor, &s->pair));
	s->same_row = pair_goes_on(s);
	if (!s->same_row) {
		s->partition_len = tuple_skip_text(s->pair.key, at);
		s->row_len = s->partition_len ? tuple_skip_text(s->pair.key, s->partition_len) : 0;
		if (!s->row_len)
			return STATUS_CORRUPT;
		s->same_partition = str_eq(str_of(s->pair.key.ptr, s->partition_len),
					   buf_str(&s->partition));
	}
	s->has_pair = true;
	s->pairs++;
	s->bytes += s->pair.key.len + s->pair.value.len;
	return STATUS_OK;
}

static bool
pair_is_static(const struct table_scan *s)
{
	/* The element without components: its code, and its end. */
	return s->schema->key_count > s->schema->hash_count && s->row_len == s->partition_len + 2;
}

static enum status
place_set(struct table_scan *s, struct str key, bool done)
{
	buf_clear(&s->place);
	buf_append_str(&s->place, key);
	s->place_done = done;
	s->advanced = true;
	return buf_status(&s->place);
}

/* ---- Partitions ---- */

/* Keeps, or passes over, the static columns that the cursor has come to. */
static enum status
pass_statics(struct table_scan *s, bool keeps)
{
	enum status status = STATUS_OK;

	while (status == STATUS_OK && s->same_partition && pair_is_static(s)) {
		if (keeps)
			TRY(statics_keep(s, &s->pair, s->row_len));
		s->has_pair = false;
		status = scan_peek(s);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The pair is the first of another partition. */
static enum status
partition_enter(struct table_scan *s)
{
	bool inside = s->inside && !s->partition.len;

	buf_clear(&s->partition);
	buf_append(&s->partition, s->pair.key.ptr, s->partition_len);
	TRY(buf_status(&s->partition));
	s->same_partition = true;
	s->shown = false;
	statics_forget(s);
	if (s->options.reverse || inside)
		return s->wants_statics ? statics_read(s) : STATUS_OK;
	return pass_statics(s, s->wants_statics);
}

/* The static columns as they are kept, into the row. `*ret_any`: one of them has a value. */
static enum status
statics_take(struct table_scan *s, struct arena *arena, struct table_row *row, bool *ret_any)
{
	/* The pairs stay until the next call enters another partition. */
	struct table_reading r = { .t = s->t,
				   .schema = s->schema,
				   .wanted = s->options.wanted,
				   .arena = arena,
				   .borrows = s->options.borrows };

	for (const struct static_pair *p = s->statics; p; p = p->next)
		TRY(table_reading_take(&r, &p->pair, s->statics_row_len));
	TRY(table_reading_end(&r, ret_any));
	if (!row->key) {
		*row = r.row;
		return STATUS_OK;
	}
	row->statics = r.row.statics;
	row->static_count = r.row.static_count;
	return STATUS_OK;
}

/*
 * After the last row of the partition that the scan is in: if none was shown, its static columns
 * alone are a row. STATUS_NOT_FOUND: there is nothing to show.
 */
static enum status
partition_leave(struct table_scan *s, struct arena *arena, struct table_row *ret)
{
	struct table_row row = { 0 };
	bool any;

	if (!s->options.static_alone || s->shown || !s->statics)
		return STATUS_NOT_FOUND;
	s->shown = true;
	TRY(statics_take(s, arena, &row, &any));
	if (!any)
		return STATUS_NOT_FOUND;
	*ret = row;
	return place_set(s, buf_str(&s->partition), true);
}

/* ---- Rows ---- */

/* Keeps the partition's part of a row's key, so that it is not read again for each of its rows. */
static enum status
beside_keep(struct table_scan *s, const struct table_row *row)
{
	size_t count = s->schema->hash_count;

	s->beside = (struct table_place){ .token = row->token, .key_count = count };
	s->beside.key = arena_alloc(s->kept, count * sizeof(*s->beside.key));
	if (!s->beside.key)
		return STATUS_LIMIT;
	memcpy(s->beside.key, row->key, count * sizeof(*s->beside.key));
	for (size_t i = 0; i < count; i++)
		TRY(timed_scalar_own(s->kept, &s->beside.key[i]));
	s->has_beside = true;
	return STATUS_OK;
}

/* All pairs of the row that the cursor stands before. */
static enum status
row_read(struct table_scan *s, struct table_reading *r)
{
	size_t len = s->row_len;
	enum status status;

	TRY(place_set(s, str_of(s->pair.key.ptr, len), false));
	if (s->has_beside)
		r->beside = &s->beside;
	r->partition_len = s->partition_len;
	do {
		TRY(table_reading_take(r, &s->pair, len));
		s->has_pair = false;
		if (!timed_cursor_stays(&s->cursor))
			TRY(table_reading_own(r));
		status = scan_peek(s);
	} while (status == STATUS_OK && s->same_row);
	/* Without range components no other row is in the partition. */
	if (s->options.borrows && !s->has_beside && s->schema->key_count > s->schema->hash_count)
		TRY(beside_keep(s, &r->row));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool
scan_has_read_enough(struct table_scan *s)
{
	const struct table_scan_options *o = &s->options;

	/* Otherwise a scan that goes on from here would have to read the same again. */
	s->paused = s->advanced && ((o->pairs_most && s->pairs > o->pairs_most) ||
				    (o->bytes_most && s->bytes > o->bytes_most));
	return s->paused;
}

/*
 * Goes to the next row and reads it. STATUS_NOT_FOUND: at the end, or paused. `*ret_left`: a
 * partition ended before it, and its static columns are the row, in `ret`.
 */
static enum status
scan_step(struct table_scan *s, struct table_reading *r, bool *ret_left, struct table_row *ret)
{
	enum status status = scan_peek(s);

	*ret_left = false;
	if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
		bool ends = status == STATUS_NOT_FOUND || !s->same_partition;

		if (ends && s->partition.len) {
			enum status left = partition_leave(s, r->arena, ret);

			*ret_left = left == STATUS_OK;
			if (left != STATUS_NOT_FOUND)
				return left;
			TRY(place_set(s, buf_str(&s->partition), true));
		}
	}
	TRY(status);
	if (scan_has_read_enough(s))
		return STATUS_NOT_FOUND;
	if (!s->same_partition)
		TRY(partition_enter(s));
	else if (pair_is_static(s))
		TRY(pass_statics(s, false));
	/* The cursor has come by static columns, and stands before another partition, or at the
	 * end. */
	if (!s->has_pair || !s->same_partition || pair_is_static(s))
		return STATUS_OK;
	return row_read(s, r);
}

enum status
table_scan_next(struct table_scan *s, struct arena *arena, struct table_row *ret)
{
	s->paused = false;
	for (;;) {
		struct table_reading r = { .t = s->t,
					   .schema = s->schema,
					   .wanted = s->options.wanted,
					   .arena = arena,
					   .borrows = s->options.borrows,
					   .reverse = s->options.reverse };
		bool left, any;

		TRY(table_fail_corrupt(s->t, scan_step(s, &r, &left, ret)));
		if (left)
			return STATUS_OK;
		TRY(table_fail_corrupt(s->t, table_reading_end(&r, &any)));
		if (!any)
			continue;
		s->shown = true;
		*ret = r.row;
		return s->wants_statics ? statics_take(s, arena, ret, &any) : STATUS_OK;
	}
}

bool
table_scan_paused(const struct table_scan *s)
{
	return s->paused;
}

enum status
table_scan_place(const struct table_scan *s, struct buf *ret)
{
	size_t skip = s->t->db->prefix.len + TIMED_SPACE_BYTES;

	assert(s->place.len >= skip);
	buf_append_byte(ret, PLACE_FORMAT);
	buf_append_byte(ret,
			(uint8_t)((s->place_done ? PLACE_DONE : 0) | (s->shown ? PLACE_SHOWN : 0)));
	buf_append_str(ret, str_skip(buf_str(&s->place), skip));
	return buf_status(ret);
}

enum status
table_scan_skip_partition(struct table_scan *s)
{
	if (!s->partition.len)
		return STATUS_OK;
	TRY(place_set(s, buf_str(&s->partition), true));
	s->shown = true;
	/* The next pair is often there already: no other range is asked for then. */
	if (s->has_pair && !s->same_partition)
		return STATUS_OK;
	timed_cursor_close(&s->cursor);
	s->open = s->has_pair = false;
	s->cursor = (struct timed_cursor){ 0 };
	if (s->options.reverse) {
		buf_clear(&s->end);
		buf_append_buf(&s->end, &s->partition);
		TRY(catalog_key_status(&s->end));
	} else {
		TRY(put_behind(buf_str(&s->partition), &s->begin));
	}
	return cursor_open(s);
}

/* ---- Estimates ---- */

/* What was not counted is taken to be like what was. */
static enum status
estimate_rest(const struct table_scan *s, uint64_t *rows)
{
	uint64_t bytes;

	TRY(kv_estimate_bytes(kv_tx_store(s->t->tx), buf_str(&s->begin), buf_str(&s->end), &bytes));
	if (bytes <= s->bytes)
		bytes = s->bytes + 1;
	*rows = (uint64_t)((double)*rows * ((double)bytes / (double)s->bytes)) + 1;
	return STATUS_OK;
}

enum status
table_estimate_rows(struct timed *t, struct arena *arena, struct table_estimate *ret)
{
	const struct table_scan_options options = { .pairs_most = TABLE_ESTIMATE_PAIRS,
						    .bytes_most = TABLE_ESTIMATE_BYTES };
	struct arena_mark mark = arena_mark(arena);
	struct table_estimate estimate = { 0 };
	struct table_scan *s;
	struct table_row row;
	enum status status;

	/* An estimate conflicts with nobody. */
	TRY(table_count_read(t, KV_SNAPSHOT, &estimate.rows, &estimate.is_exact));
	if (estimate.is_exact) {
		*ret = estimate;
		return STATUS_OK;
	}
	TRY(table_scan_open(t, &options, &s));
	while ((status = table_scan_next(s, arena, &row)) == STATUS_OK) {
		estimate.rows++;
		arena_reset(arena, mark);
	}
	arena_reset(arena, mark);
	if (status == STATUS_NOT_FOUND) {
		estimate.is_exact = !s->paused;
		status = s->paused ? estimate_rest(s, &estimate.rows) : STATUS_OK;
	}
	table_scan_close(s);
	if (status == STATUS_OK)
		*ret = estimate;
	return status;
}

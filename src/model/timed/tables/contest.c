/*
 * What is written against what is there, where stamps order writes: cell by cell the later stamp
 * wins. Of equal ones the deletion does, as which a value counts that has expired, then the greater
 * value, then the one that lives longer; so writes end alike in whichever order they come. A writer
 * without a stamp, which competes by its moment, wins against all that is equal, since that is its
 * own or was there before.
 *
 * What wins is written or cleared in the ordinary way (write.c).
 */
#include <assert.h>

#include "loop/step.h"
#include "model/timed/tables/packed.h"

enum {
	CONTEST_AHEAD = 32, /* changes of which is asked side by side what is there */
	CONTEST_ARENA_BYTES = 64 * 1024 * 1024,
};

/* A row, or a partition's static columns, while something is written there. */
struct contest {
	struct table_writing *w;
	struct arena *arena;
	struct kv_future *row_mark;
	struct table_range_marks ranges;
	bool knows_cover;
	struct table_cover cover; /* of the row: its mark and those of ranges */
};

/* What a change competes with; NULL: that cannot be there. */
struct rival {
	struct kv_future *cell, *mark;
	struct kv_future *column; /* the mark of the collection that an element is in */
};

static bool
has_elements(const struct table_column *column)
{
	return column->storage == TABLE_MAP || column->storage == TABLE_SET ||
	       column->storage == TABLE_LIST;
}

/* ---- Asking ---- */

static enum status
contest_open(struct contest *c, struct table_writing *w)
{
	*c = (struct contest){ .w = w, .ranges.t = w->t };
	c->arena = arena_new(CONTEST_ARENA_BYTES);
	if (!c->arena)
		return STATUS_NOMEM;
	TRY(table_mark_ask(w->t, buf_str(&w->row), false, &c->row_mark));
	return table_range_marks_open(&c->ranges, w->t, buf_str(&w->row));
}

static void
contest_close(struct contest *c)
{
	table_range_marks_close(&c->ranges);
	arena_free(c->arena);
}

/* Waits for the marks that the whole row is under. */
static enum status
contest_know_cover(struct contest *c)
{
	struct timed *t = c->w->t;
	struct table_mark mark;
	struct str ignored;
	enum status status;

	if (c->knows_cover)
		return STATUS_OK;
	TRY(table_mark_wait(t, c->row_mark, &c->cover));
	while ((status = table_range_marks_next(&c->ranges, c->arena, &ignored, &mark)) ==
	       STATUS_OK) {
		if (table_mark_is_over(t->db, &mark, buf_str(&c->w->row)))
			table_cover_raise(&c->cover, mark.stamp);
		arena_clear(c->arena);
	}
	c->knows_cover = status == STATUS_NOT_FOUND;
	return c->knows_cover ? STATUS_OK : status;
}

/* Asks for a cell by its key, and for its mark. */
static enum status
ask_cell(struct contest *c, struct str key, bool own, struct rival *ret)
{
	struct timed *t = c->w->t;

	ret->cell = kv_get(t->tx, key, KV_READ);
	return table_mark_ask(t, key, own, &ret->mark);
}

static enum status
rival_ask(struct contest *c, const struct table_change *change, struct rival *ret)
{
	struct table_writing *w = c->w;
	const struct table_column *column = table_column_by_id(w->schema, change->column);

	*ret = (struct rival){ 0 };
	if (has_elements(column)) {
		TRY(table_writing_key(w, change->column, NULL));
		TRY(table_mark_ask(w->t, buf_str(&w->cell), false, &ret->column));
	}
	switch (change->kind) {
	case TABLE_CHANGE_PUT:
	case TABLE_CHANGE_CLEAR:
		if (has_elements(column))
			return STATUS_OK;
		TRY(table_writing_key(w, change->column, NULL));
		return ask_cell(c, buf_str(&w->cell), false, ret);
	case TABLE_CHANGE_PUT_ELEMENT:
	case TABLE_CHANGE_CLEAR_ELEMENT:
	case TABLE_CHANGE_PUT_PLACE:
		TRY(table_writing_key(w, change->column, &change->element));
		return ask_cell(c, buf_str(&w->cell), false, ret);
	case TABLE_CHANGE_APPEND: /* at a place where nothing has been */
	case TABLE_CHANGE_PREPEND:
	case TABLE_CHANGE_ADD:
		return STATUS_OK;
	}
	return STATUS_OK;
}

/* All marks that the cell is under. */
static enum status
cover_of(struct contest *c, const struct rival *r, struct table_cover *ret)
{
	TRY(contest_know_cover(c));
	*ret = c->cover;
	if (r->mark)
		TRY(table_mark_wait(c->w->t, r->mark, ret));
	return r->column ? table_mark_wait(c->w->t, r->column, ret) : STATUS_OK;
}

/* The cell that is there, expired or not. */
static enum status
cell_of(struct contest *c, const struct rival *r, struct timed_cell *ret, bool *ret_there)
{
	struct str value;

	*ret_there = false;
	if (!r->cell)
		return STATUS_OK;
	TRY(kv_future_wait(r->cell));
	if (!kv_future_value(r->cell, &value))
		return STATUS_OK;
	TRY(table_fail_corrupt(c->w->t, timed_cell_parse(value, ret, c->w->t->err)));
	*ret_there = true;
	return STATUS_OK;
}

/* ---- Of equal stamps ---- */

static enum status
pieces_read(struct contest *c, struct str key, const struct timed_cell *cell,
	    struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct table_pieces pieces;
	struct kv_pair pair;
	enum status status;

	TRY(table_pieces_open(&pieces, cell, c->arena, ret));
	buf_append_str(&end, key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, c->w->t->tx, key, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		if (timed_is_piece(pair.value) &&
		    !table_pieces_take(&pieces, pieces.next, pair.value))
			return STATUS_CORRUPT;
	if (status != STATUS_NOT_FOUND)
		return status;
	return pieces.left ? STATUS_CORRUPT : STATUS_OK;
}

/* The bytes by whose order values are greater; of what has no place in a key, as it is stored. */
static enum status
value_bytes(const struct doc_scalar *s, struct buf *ret)
{
	enum status status = doc_key_put(ret, DOC_KEY_TYPED, s);

	if (status == STATUS_OK || status == STATUS_NOMEM)
		return status;
	buf_clear(ret);
	doc_scalar_put(ret, s);
	return buf_status(ret);
}

/* Below zero if the value of the cell at `key` is less than the other one. */
static enum status
value_compare(struct contest *c, struct str key, const struct timed_cell *cell,
	      const struct doc_scalar *value, int *ret)
{
	AUTO(buf_release) struct buf x = BUF_INIT(2 * KV_LIMIT_VALUE_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(2 * KV_LIMIT_VALUE_BYTES);
	struct doc_scalar there = { .kind = DOC_NULL };

	if (cell->piece_bytes)
		TRY(pieces_read(c, key, cell, &there));
	else if (cell->value.len)
		TRY(timed_cell_scalar(cell, c->arena, &there));
	if (there.kind == value->kind && (there.kind == DOC_TEXT || there.kind == DOC_BYTES)) {
		*ret = str_cmp(there.text, value->text);
		return STATUS_OK;
	}
	TRY(value_bytes(&there, &x));
	TRY(value_bytes(value, &y));
	*ret = str_cmp(buf_str(&x), buf_str(&y));
	return STATUS_OK;
}

/* When something expires that is written now; UINT64_MAX: never. */
static uint64_t
expires_ms(const struct timed *t, struct timed_expiry expiry)
{
	uint64_t now_ms = t->now_us / TIMED_US_PER_MS, ttl_ms = timed_ttl_ms(t->db);

	switch (expiry.kind) {
	case TIMED_EXPIRY_DEFAULT:
		return ttl_ms ? now_ms + ttl_ms : UINT64_MAX;
	case TIMED_EXPIRY_NEVER:
		return UINT64_MAX;
	case TIMED_EXPIRY_AFTER:
		return now_ms + expiry.ms;
	case TIMED_EXPIRY_AT:
		return expiry.ms;
	}
	return UINT64_MAX;
}

/* Whether a value, or that a row was inserted (NULL), wins against a cell of the same stamp. */
static enum status
tie_wins(struct contest *c, struct str key, const struct timed_cell *there,
	 const struct doc_scalar *value, struct timed_expiry expiry, bool *ret)
{
	struct timed *t = c->w->t;
	uint64_t until_ms = timed_cell_expires_ms(t->db, there);
	int order = 0;

	*ret = c->w->order.ties;
	if (*ret || timed_has_expired(t, there))
		return STATUS_OK;
	if (value)
		TRY(table_fail_corrupt(t, value_compare(c, key, there, value, &order)));
	*ret = order < 0 || (!order && (until_ms ? until_ms : UINT64_MAX) < expires_ms(t, expiry));
	return STATUS_OK;
}

/* ---- Writing ---- */

/* Whether something that is written at the key of a cell wins against all that is there. */
static enum status
put_wins(struct contest *c, const struct rival *r, struct str key, const struct doc_scalar *value,
	 struct timed_expiry expiry, bool *ret)
{
	const struct table_order *o = &c->w->order;
	struct table_cover cover;
	struct timed_cell there;
	bool is_there;

	*ret = false;
	TRY(cover_of(c, r, &cover));
	if (cover.any && (cover.stamp > o->stamp || (cover.stamp == o->stamp && !o->ties)))
		return STATUS_OK;
	TRY(cell_of(c, r, &there, &is_there));
	*ret = !is_there || timed_cell_stamp(&there) < o->stamp;
	if (*ret || timed_cell_stamp(&there) > o->stamp)
		return STATUS_OK;
	return tie_wins(c, key, &there, value, expiry, ret);
}

static enum status
contest_put(struct contest *c, const struct table_change *change, const struct rival *r)
{
	static const struct doc_scalar nothing = { .kind = DOC_NULL };
	struct table_writing *w = c->w;
	const struct table_column *column = table_column_by_id(w->schema, change->column);
	bool wins;

	/* Its key counts where a value in pieces is to be read. */
	TRY(table_writing_key(w, change->column,
			      has_elements(column) && r->cell ? &change->element : NULL));
	TRY(put_wins(c, r, buf_str(&w->cell),
		     column->storage == TABLE_SET ? &nothing : &change->value, change->expiry,
		     &wins));
	return wins ? table_writing_change(w, change) : STATUS_OK;
}

/* What says that the row was inserted. */
static enum status
contest_own(struct contest *c, struct timed_expiry expiry)
{
	struct table_writing *w = c->w;
	struct rival r = { 0 };
	bool wins;

	TRY(ask_cell(c, buf_str(&w->row), true, &r));
	TRY(put_wins(c, &r, buf_str(&w->row), NULL, expiry, &wins));
	if (!wins)
		return STATUS_OK;
	return timed_cell_write(w->t, buf_str(&w->row), TIMED_INSERTED, NULL, expiry);
}

/* ---- Clearing ---- */

/* A single value, or an element. */
static enum status
contest_clear_cell(struct contest *c, const struct table_change *change, const struct rival *r)
{
	struct table_writing *w = c->w;
	const struct table_column *column = table_column_by_id(w->schema, change->column);
	struct table_cover cover;
	struct timed_cell there;
	bool is_there;

	TRY(table_writing_key(w, change->column, has_elements(column) ? &change->element : NULL));
	TRY(cell_of(c, r, &there, &is_there));
	if (is_there && timed_cell_stamp(&there) <= w->order.stamp)
		TRY(table_cell_clear(w->t, buf_str(&w->cell), there.piece_bytes));
	TRY(cover_of(c, r, &cover));
	if (cover.any && cover.stamp >= w->order.stamp)
		return STATUS_OK;
	return table_mark_put(w->t, buf_str(&w->cell), false, w->order.stamp);
}

/* A cell that a deletion wins against. */
struct loser {
	struct loser *next;
	struct str key;
	size_t row_len; /* of the key */
	bool has_pieces;
};

/*
 * Finds them between two keys, in their order: of whole rows that together have `most`, or of one
 * that has more. `*ret_more`: there are others behind them.
 */
static enum status
losers_find(struct timed *t, const struct table_order *o, struct str begin, struct str end,
	    size_t most, struct arena *arena, struct loser **ret, bool *ret_more)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct loser *last = NULL, **to = ret;
	struct kv_pair pair;
	enum status status;
	size_t count = 0;

	*ret = NULL;
	*ret_more = false;
	TRY(kv_scan_init(&scan, t->tx, begin, end, NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct timed_cell cell;
		size_t len;

		TRY(step_count(1));
		if (timed_is_piece(pair.value))
			continue;
		TRY(timed_cell_parse(pair.value, &cell, t->err));
		if (timed_cell_stamp(&cell) > o->stamp || (o->spares && !cell.has_stamp))
			continue;
		TRY(timed_key_row_bytes(t->db, pair.key, &len));
		*ret_more = count >= most &&
			    (last->row_len != len || memcmp(last->key.ptr, pair.key.ptr, len) != 0);
		if (*ret_more)
			return STATUS_OK;
		last = arena_zalloc(arena, sizeof(*last));
		if (!last)
			return STATUS_LIMIT;
		TRY(arena_copy(arena, pair.key, &last->key));
		last->row_len = len;
		last->has_pieces = cell.piece_bytes;
		*to = last;
		to = &last->next;
		count++;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool
same_row(const struct loser *a, const struct loser *b)
{
	return a->row_len == b->row_len && memcmp(a->key.ptr, b->key.ptr, a->row_len) == 0;
}

/* Clears those of the first row; `*ret_rest` are those of others. */
static enum status
losers_clear_row(struct timed *t, const struct loser *first, const struct loser **ret_rest)
{
	struct table_indexing x;
	const struct loser *l = first;
	enum status status = table_indexing_begin(&x, t, str_of(first->key.ptr, first->row_len),
						  NULL, 0, NULL);

	for (; status == STATUS_OK && l && same_row(first, l); l = l->next) {
		if (l->key.len > l->row_len)
			status = table_packed_forget(t, l->key, l->row_len);
		if (status == STATUS_OK)
			status = table_cell_clear(t, l->key, l->has_pieces);
	}
	*ret_rest = l;
	if (status == STATUS_OK)
		status = table_indexing_finish(&x);
	table_indexing_end(&x);
	return status;
}

enum status
table_contest_clear(struct timed *t, const struct table_order *o, struct str begin, struct str end,
		    size_t most, bool *ret_more)
{
	struct arena *arena = arena_new(CONTEST_ARENA_BYTES);
	const struct loser *rest;
	struct loser *losers;
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	status = table_fail_corrupt(t,
				    losers_find(t, o, begin, end, most, arena, &losers, ret_more));
	rest = status == STATUS_OK ? losers : NULL;
	while (rest && status == STATUS_OK)
		status = losers_clear_row(t, rest, &rest);
	arena_free(arena);
	return status;
}

/* Empties a collection. The caller keeps the indexes of its row. */
static enum status
contest_empty(struct contest *c, const struct table_change *change, const struct rival *r)
{
	struct table_writing *w = c->w;
	struct table_order o = w->order;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct table_cover cover;
	struct loser *losers;
	bool more;

	o.stamp -= change->makes_way && !o.ties;
	TRY(table_writing_key(w, change->column, NULL));
	buf_append_buf(&end, &w->cell);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(cover_of(c, r, &cover));
	TRY(table_fail_corrupt(w->t, losers_find(w->t, &o, buf_str(&w->cell), buf_str(&end),
						 SIZE_MAX, c->arena, &losers, &more)));
	for (const struct loser *l = losers; l; l = l->next)
		TRY(table_cell_clear(w->t, l->key, l->has_pieces));
	if (cover.any && cover.stamp >= o.stamp)
		return STATUS_OK;
	return table_mark_put(w->t, buf_str(&w->cell), false, o.stamp);
}

/* ---- All changes of a row ---- */

static enum status
contest_change(struct contest *c, const struct table_change *change, const struct rival *r)
{
	const struct table_column *column = table_column_by_id(c->w->schema, change->column);

	switch (change->kind) {
	case TABLE_CHANGE_CLEAR:
		return has_elements(column) ? contest_empty(c, change, r)
					    : contest_clear_cell(c, change, r);
	case TABLE_CHANGE_CLEAR_ELEMENT:
		return contest_clear_cell(c, change, r);
	case TABLE_CHANGE_PUT:
	case TABLE_CHANGE_PUT_ELEMENT:
	case TABLE_CHANGE_PUT_PLACE:
		if (column->storage != TABLE_SET && change->value.kind == DOC_NULL)
			return contest_clear_cell(c, change, r);
		return contest_put(c, change, r);
	case TABLE_CHANGE_APPEND:
	case TABLE_CHANGE_PREPEND:
		return contest_put(c, change, r);
	case TABLE_CHANGE_ADD: /* table_stamp_set() refuses tables of counters */
		break;
	}
	return STATUS_INVALID;
}

/* True if an earlier one of these changes has the same column. */
static bool
is_touched(const struct table_change *changes, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (changes[i].column == changes[at].column)
			return true;
	return false;
}

static enum status
contest_some(struct contest *c, const struct table_change *changes, size_t count)
{
	struct rival rivals[CONTEST_AHEAD];

	assert(count <= CONTEST_AHEAD);
	for (size_t i = 0; i < count; i++)
		TRY(rival_ask(c, &changes[i], &rivals[i]));
	for (size_t i = 0; i < count; i++) {
		/* What was asked for may have been written since. */
		if (is_touched(changes, i))
			TRY(rival_ask(c, &changes[i], &rivals[i]));
		TRY(contest_change(c, &changes[i], &rivals[i]));
		arena_clear(c->arena);
	}
	return STATUS_OK;
}

enum status
table_contest_write(struct table_writing *w, const struct table_write *write)
{
	struct contest c;
	enum status status = contest_open(&c, w);

	if (status == STATUS_OK && write->inserts)
		status = contest_own(&c, write->expiry);
	for (size_t i = 0; status == STATUS_OK && i < write->change_count; i += CONTEST_AHEAD) {
		size_t left = write->change_count - i;

		status = contest_some(&c, write->changes + i,
				      left < CONTEST_AHEAD ? left : CONTEST_AHEAD);
	}
	contest_close(&c);
	return status;
}

/* Rows from their pairs; reading one row. */
#include <assert.h>
#include <endian.h>

#include "base/mem.h"
#include "kv/many.h"
#include "kv/tuple.h"
#include "model/timed/tables/packed.h"

enum {
	PICK_KEYS_BYTES = TABLE_PICK_PACKED * KV_LIMIT_KEY_BYTES,
};

enum status
table_fail_corrupt(struct timed *t, enum status status)
{
	if (status != STATUS_CORRUPT)
		return status;
	return err_set(t->err, status, "a row of the table \"%.*s\" cannot be read",
		       STR_ARG(t->db->name));
}

/* ---- Rows from pairs ---- */

/* The place of an id among those that are wanted, or of the first one behind it. */
static size_t
wanted_place(const struct table_wanted *wanted, uint64_t id)
{
	size_t from = 0, to = wanted->count;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (wanted->ids[at] < id)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static bool
is_wanted(struct table_reading *r, uint64_t id)
{
	const struct table_wanted *wanted = r->wanted;

	if (!wanted || !wanted->some)
		return true;
	/* Columns come by their ids, so mostly it is the one behind the last. */
	if (r->wanted_at >= wanted->count || wanted->ids[r->wanted_at] != id)
		r->wanted_at = wanted_place(wanted, id);
	if (r->wanted_at == wanted->count || wanted->ids[r->wanted_at] != id)
		return false;
	r->wanted_at++;
	return true;
}

/* NULL: it was dropped. */
static const struct table_column *
column_of(struct table_reading *r, uint64_t id)
{
	const struct table_schema *schema = r->schema;
	const struct table_column *column;

	/* As in is_wanted(). */
	if (r->column_at < schema->column_count && schema->columns[r->column_at].id == id)
		return &schema->columns[r->column_at++];
	column = table_column_by_id(schema, id);
	if (column)
		r->column_at = (size_t)(column - schema->columns) + 1;
	return column;
}

static enum status
scalar_read(const struct table_reading *r, const struct timed_cell *cell, struct doc_scalar *ret)
{
	return r->borrows ? timed_cell_scalar_borrow(cell, r->arena, ret)
			  : timed_cell_scalar(cell, r->arena, ret);
}

/* True if no column behind those that were asked for last is wanted. */
static bool
has_all_wanted(const struct table_reading *r)
{
	return r->wanted && r->wanted->some && r->wanted_at == r->wanted->count;
}

/* What the row's own cell has packed of columns that are wanted, by their ids. */
static enum status
take_packed(struct table_reading *r, const struct timed_cell *own)
{
	struct table_packed p = table_packed_of(own);
	enum status status = STATUS_OK;
	struct str value;
	uint64_t id;

	r->wanted_at = 0; /* backward, leaves have come before */
	while (!has_all_wanted(r) && (status = table_packed_next(&p, &id, &value)) == STATUS_OK) {
		const struct table_column *column = column_of(r, id);
		struct table_cell *to;

		if (!column) /* it was dropped */
			continue;
		if (!table_column_packs(column))
			return STATUS_CORRUPT;
		if (!is_wanted(r, id))
			continue;
		r->packed = arena_grow(r->arena, r->packed, r->packed_count, &r->packed_cap,
				       sizeof(*r->packed));
		if (!r->packed)
			return STATUS_LIMIT;
		to = &r->packed[r->packed_count++];
		*to = (struct table_cell){ .column = column,
					   .element = { .kind = DOC_NULL },
					   .write_us = r->row.write_us,
					   .expires_ms = r->row.expires_ms,
					   .by_default = r->row.by_default };
		TRY(scalar_read(r, &(struct timed_cell){ .value = value }, &to->value));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
take_own(struct table_reading *r, struct str value)
{
	struct timed_cell cell;

	if (r->is_static || r->schema->counters)
		return STATUS_CORRUPT;
	TRY(timed_cell_parse(value, &cell, r->t->err));
	if (cell.type != TIMED_INSERTED || (cell.packed.len && !r->schema->packed))
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, &cell))
		return STATUS_OK;
	r->lives = true;
	r->row.inserted = true;
	r->row.write_us = cell.write_us;
	r->row.has_stamp = cell.has_stamp;
	r->row.stamp = cell.stamp;
	r->row.expires_ms = timed_cell_expires_ms(r->t->db, &cell);
	r->row.by_default = cell.by_default;
	return take_packed(r, &cell);
}

static enum status
cell_add(struct table_reading *r, const struct table_column *column,
	 const struct table_place *place, struct table_cell **ret)
{
	if (r->row.cell_count == r->cap)
		r->row.cells = arena_grow(r->arena, r->row.cells, r->row.cell_count, &r->cap,
					  sizeof(*r->row.cells));
	if (!r->row.cells)
		return STATUS_LIMIT;
	if (place->has_element != (column->storage == TABLE_MAP || column->storage == TABLE_SET ||
				   column->storage == TABLE_LIST))
		return STATUS_CORRUPT;
	*ret = &r->row.cells[r->row.cell_count++];
	**ret = (struct table_cell){ .column = column, .element.kind = DOC_NULL };
	if (place->has_element)
		(*ret)->element = place->element;
	return STATUS_OK;
}

static enum status
take_counter(struct table_reading *r, const struct table_column *column,
	     const struct table_place *place, struct str value)
{
	struct table_cell *to;
	uint64_t n;

	if (value.len != sizeof(n))
		return STATUS_CORRUPT;
	r->lives = true;
	if (!is_wanted(r, column->id))
		return STATUS_OK;
	TRY(cell_add(r, column, place, &to));
	memcpy(&n, value.ptr, sizeof(n));
	to->value = (struct doc_scalar){ .kind = DOC_INT64, .n = (int64_t)le64toh(n) };
	return STATUS_OK;
}

/* The value of a cell in pieces: they have come already, or come next. */
static enum status
take_pieces(struct table_reading *r, const struct timed_cell *cell, struct table_piece *kept,
	    struct table_cell *to)
{
	TRY(table_pieces_open(&r->pieces, cell, r->arena, &to->value));
	if (!r->reverse)
		return STATUS_OK;
	for (; kept; kept = kept->next)
		if (!table_pieces_take(&r->pieces, kept->n, kept->value))
			return STATUS_CORRUPT;
	return r->pieces.left ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
take_piece(struct table_reading *r, const struct table_column *column,
	   const struct table_place *place, struct str value)
{
	if (r->reverse)
		return is_wanted(r, column->id)
			       ? table_pieces_keep(&r->pieces, place->piece, value, r->arena)
			       : STATUS_OK;
	if (r->pieces.skips || table_pieces_take(&r->pieces, place->piece, value))
		return STATUS_OK;
	return STATUS_CORRUPT;
}

/* A leaf that has expired still hides what is packed of its column. */
static enum status
take_expired(struct table_reading *r, const struct table_column *column)
{
	if (!r->schema->packed || !table_column_packs(column))
		return STATUS_OK;
	r->hidden = arena_grow(r->arena, r->hidden, r->hidden_count, &r->hidden_cap,
			       sizeof(*r->hidden));
	if (!r->hidden)
		return STATUS_LIMIT;
	r->hidden[r->hidden_count++] = column->id;
	return STATUS_OK;
}

static enum status
take_leaf(struct table_reading *r, const struct table_column *column,
	  const struct table_place *place, struct str value)
{
	struct table_piece *kept = r->pieces.kept;
	struct table_cell *to;
	struct timed_cell cell;

	if (r->pieces.left)
		return STATUS_CORRUPT;
	table_pieces_skip(&r->pieces);
	TRY(timed_cell_parse(value, &cell, r->t->err));
	if (cell.type != TIMED_LEAF)
		return STATUS_CORRUPT;
	if (timed_has_expired(r->t, &cell))
		return take_expired(r, column);
	r->lives = true;
	if (!is_wanted(r, column->id))
		return STATUS_OK;
	if (cell.piece_bytes)
		TRY(table_reading_own(r));
	TRY(cell_add(r, column, place, &to));
	to->write_us = cell.write_us;
	to->has_stamp = cell.has_stamp;
	to->stamp = cell.stamp;
	to->expires_ms = timed_cell_expires_ms(r->t->db, &cell);
	to->by_default = cell.by_default;
	if (!cell.piece_bytes)
		return scalar_read(r, &cell, &to->value);
	/* Pieces that are still to come are written to where the value lies now. */
	r->cells_owned = r->row.cell_count;
	return take_pieces(r, &cell, kept, to);
}

/* The key of the row, from the first pair of it that is read. */
static enum status
take_key(struct table_reading *r, struct str key)
{
	struct table_place place;
	size_t len;

	if (r->beside)
		TRY(table_place_row_beside(r->schema, r->beside, str_skip(key, r->partition_len),
					   r->arena, &place));
	else
		TRY(table_place_row(r->schema,
				    str_skip(key, r->t->db->prefix.len + TIMED_SPACE_BYTES),
				    r->arena, &place, &len));
	r->any = true;
	r->is_static = place.key_count < r->schema->key_count;
	r->row.is_row = !r->is_static;
	r->row.token = place.token;
	r->row.key = place.key;
	r->row.key_count = place.key_count;
	return STATUS_OK;
}

static enum status
take_cell(struct table_reading *r, const struct table_column *column,
	  const struct table_place *place, struct str value)
{
	if (place->is_piece)
		return take_piece(r, column, place, value);
	return column->storage == TABLE_COUNTER ? take_counter(r, column, place, value)
						: take_leaf(r, column, place, value);
}

/* An element of a collection, or a piece of a value. */
static enum status
take_part(struct table_reading *r, const struct table_column *column, struct str rest,
	  struct str value)
{
	struct table_place place = { 0 };

	TRY(table_place_cell(rest, r->arena, &place));
	return take_cell(r, column, &place, value);
}

enum status
table_reading_take(struct table_reading *r, const struct kv_pair *pair, size_t row_len)
{
	static const struct table_place whole; /* no element of a collection, and no piece */
	const struct table_column *column;
	struct str rest = str_skip(pair->key, row_len);
	struct tuple_reader cell = tuple_reader(rest);
	uint64_t id;

	if (!r->any)
		TRY(take_key(r, pair->key));
	if (!rest.len)
		return take_own(r, pair->value);
	if (tuple_next_u64(&cell, &id) != STATUS_OK || !id)
		return STATUS_CORRUPT;
	column = column_of(r, id);
	if (!column) /* it was dropped */
		return STATUS_OK;
	if (column->kind != (r->is_static ? TABLE_STATIC : TABLE_REGULAR))
		return STATUS_CORRUPT;
	return cell.rest.len ? take_part(r, column, rest, pair->value)
			     : take_cell(r, column, &whole, pair->value);
}

enum status
table_reading_own(struct table_reading *r)
{
	if (!r->borrows)
		return STATUS_OK;
	for (; r->cells_owned < r->row.cell_count; r->cells_owned++)
		TRY(timed_scalar_own(r->arena, &r->row.cells[r->cells_owned].value));
	for (; r->packed_owned < r->packed_count; r->packed_owned++)
		TRY(timed_scalar_own(r->arena, &r->packed[r->packed_owned].value));
	return STATUS_OK;
}

static bool
is_hidden(const struct table_reading *r, uint64_t column)
{
	for (size_t i = 0; i < r->hidden_count; i++)
		if (r->hidden[i] == column)
			return true;
	return false;
}

/* Puts what is packed between the leaves, by the ids of columns, where no leaf hides it. */
static enum status
merge_packed(struct table_reading *r)
{
	struct table_row *row = &r->row;
	size_t count = 0, leaf = 0;
	struct table_cell *all;

	if (!r->packed_count)
		return STATUS_OK;
	if (!row->cell_count && !r->hidden_count) {
		row->cells = r->packed;
		row->cell_count = r->packed_count;
		return STATUS_OK;
	}
	all = arena_alloc(r->arena, (r->packed_count + row->cell_count) * sizeof(*all));
	if (!all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r->packed_count; i++) {
		uint64_t id = r->packed[i].column->id;

		while (leaf < row->cell_count && row->cells[leaf].column->id < id)
			all[count++] = row->cells[leaf++];
		if (leaf < row->cell_count && row->cells[leaf].column->id == id)
			continue;
		if (!is_hidden(r, id))
			all[count++] = r->packed[i];
	}
	while (leaf < row->cell_count)
		all[count++] = row->cells[leaf++];
	row->cells = all;
	row->cell_count = count;
	return STATUS_OK;
}

enum status
table_reading_end(struct table_reading *r, bool *ret_there)
{
	struct table_row *row = &r->row;

	if (r->pieces.left)
		return STATUS_CORRUPT;
	for (size_t i = 0, j = row->cell_count; r->reverse && i + 1 < j; i++) {
		const struct table_cell cell = row->cells[i];

		row->cells[i] = row->cells[--j];
		row->cells[j] = cell;
	}
	TRY(merge_packed(r));
	if (r->is_static) {
		row->statics = row->cells;
		row->static_count = row->cell_count;
		row->cells = NULL;
		row->cell_count = 0;
	}
	*ret_there = r->lives;
	return STATUS_OK;
}

/* ---- One row ---- */

/* Opens the range of all pairs of a row from a key of it on: its own, or p->middle. */
static enum status
pick_rest(struct table_pick *p, size_t at, const struct buf *from)
{
	struct buf *row = &p->begin[at];
	struct str end;

	/* The end of the range is the key of the row and a byte, so no copy of it is made. */
	buf_append_byte(row, CATALOG_KEY_LAST);
	TRY(catalog_key_status(row));
	end = buf_str(row);
	row->len--;
	return timed_cursor_open(&p->cursor[at], p->reading[at].t, buf_str(from), end, NULL);
}

/* Opens the range of the pairs of a row as far as there are wanted columns. */
static enum status
pick_wanted(struct table_pick *p, size_t at)
{
	const struct table_reading *r = &p->reading[at];
	const struct table_wanted *wanted = r->wanted;
	struct buf *middle = &p->middle[at];

	buf_set_buf(middle, &p->begin[at]);
	tuple_put_u64(middle, wanted->ids[wanted->count - 1]);
	buf_append_byte(middle, CATALOG_KEY_LAST);
	TRY(catalog_key_status(middle));
	return timed_cursor_open(&p->cursor[at], r->t, buf_str(&p->begin[at]), buf_str(middle),
				 NULL);
}

/*
 * How many columns are few. What is packed of a row is one pair, and most of its columns have none
 * of their own, which is soon found. Whoever may change rows likely reads one that was changed
 * lately.
 */
static size_t
pick_most(const struct table_reading *r)
{
	bool together = r->schema->packed && !r->t->at_us && kv_finds_together(r->t->tx);

	return together ? TABLE_PICK_PACKED : TABLE_PICK_KEYS;
}

/* True if the wanted columns of the row are few, and one pair each. */
static bool
pick_has_few(const struct table_pick *p, size_t at)
{
	const struct table_reading *r = &p->reading[at];
	const struct table_wanted *wanted = r->wanted;

	/* The row of static columns has no pair of its own, which else mostly tells that one is. */
	if (wanted->count && (at || wanted->count > pick_most(r)))
		return false;
	for (size_t i = 0; i < wanted->count; i++) {
		const struct table_column *c = table_column_by_id(r->schema, wanted->ids[i]);

		if (!c || c->kind != TABLE_REGULAR || c->storage != TABLE_SINGLE)
			return false;
	}
	return true;
}

/*
 * Meets whoever writes the row up to its last wanted column, as a read of that range does: one
 * conflict, where many keys would have one each, which count in what a transaction may have.
 */
static enum status
pick_meet(struct table_pick *p, size_t at, struct str last)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_str(&end, last);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	return kv_add_read_conflict_range(p->reading[at].t->tx, buf_str(&p->begin[at]),
					  buf_str(&end));
}

/*
 * Asks for the row's own pair alone. Where no column is wanted, it is asked whether the row is
 * there, which the head of the cell tells.
 */
static enum status
pick_own(struct table_pick *p, size_t at)
{
	const struct table_wanted *wanted = p->reading[at].wanted;
	struct timed *t = p->reading[at].t;
	struct str row = buf_str(&p->begin[at]);

	p->got_count[at] = 1;
	if (wanted && wanted->some && !wanted->count)
		return timed_data_ask_head(t, row, KV_READ, p->got[at]);
	return timed_data_ask(t, row, KV_READ, p->got[at]);
}

/*
 * Asks for the row's own pair, which says that it was inserted, and for those of the wanted
 * columns: mostly that is all that there is to know, and keys are found in less time than a range.
 */
static enum status
pick_keys(struct table_pick *p, size_t at)
{
	const struct table_wanted *wanted = p->reading[at].wanted;
	struct str row = buf_str(&p->begin[at]), keys[TABLE_PICK_PACKED + 1];
	bool is_many = wanted->count > TABLE_PICK_KEYS;
	size_t count = 0, ends[TABLE_PICK_PACKED];
	struct buf *cells = &p->keys[at];

	for (size_t i = 0; i < wanted->count; i++) {
		buf_append_str(cells, row);
		tuple_put_u64(cells, wanted->ids[i]);
		ends[i] = cells->len;
	}
	buf_set(&p->middle[at], row);
	buf_append_byte(&p->middle[at], 0); /* right behind the row's own pair */
	TRY(catalog_key_status(cells));
	TRY(catalog_key_status(&p->middle[at]));
	if (!wanted->count)
		return pick_own(p, at);
	keys[count++] = row;
	for (size_t i = 0, from = 0; i < wanted->count; from = ends[i++])
		keys[count++] = str_of(cells->ptr + from, ends[i] - from);
	if (is_many)
		TRY(pick_meet(p, at, keys[count - 1]));
	timed_data_ask_many(p->reading[at].t, keys, count, is_many ? KV_SNAPSHOT : KV_READ,
			    p->got[at]);
	p->got_count[at] = count;
	return STATUS_OK;
}

/*
 * Asks for the pairs from p->begin on: as far as there are wanted columns. A row is there if any
 * pair of it lives, so what is behind is read where none of these does (pick_go_on()).
 */
static enum status
pick_ask(struct table_pick *p, size_t at, struct timed *t, const struct table_wanted *wanted)
{
	p->reading[at] = (struct table_reading){ .t = t,
						 .schema = table_schema_of(t->db),
						 .wanted = wanted };
	if (p->reading[at].schema->whole)
		return pick_own(p, at);
	if (!wanted || !wanted->some)
		return pick_rest(p, at, &p->begin[at]);
	return pick_has_few(p, at) ? pick_keys(p, at) : pick_wanted(p, at);
}

/* What was got means nothing beyond the counts, and pick_ask() begins to read a row. */
static void
pick_init(struct table_pick *p)
{
	memset(p->cursor, 0, sizeof(p->cursor));
	for (size_t i = 0; i < 2; i++) {
		p->got_count[i] = 0;
		p->keys[i] = BUF_INIT(PICK_KEYS_BYTES);
		p->begin[i] = CATALOG_KEY_INIT;
		p->middle[i] = CATALOG_KEY_INIT;
	}
	p->statics = false;
}

enum status
table_pick_open(struct table_pick *p, struct timed *t, struct str tail,
		const struct table_wanted *wanted, bool statics)
{
	const struct table_schema *schema = table_schema_of(t->db);
	size_t partition = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);

	pick_init(p);
	timed_key_space(&p->begin[0], t->db, table_space(schema));
	buf_append_str(&p->begin[0], tail);
	TRY(catalog_key_status(&p->begin[0]));
	TRY(timed_ask(t));
	TRY(pick_ask(p, 0, t, wanted));
	/* The key of the static columns' row ends with an element of two bytes. */
	p->statics = statics && schema->static_count && tail.len != partition + 2;
	if (!p->statics)
		return STATUS_OK;
	timed_key_space(&p->begin[1], t->db, table_space(schema));
	buf_append(&p->begin[1], tail.ptr, partition);
	tuple_put_bytes(&p->begin[1], STR(""));
	TRY(catalog_key_status(&p->begin[1]));
	return pick_ask(p, 1, t, wanted);
}

/* Takes the pairs of the range that is open. */
static enum status
pick_take(struct table_pick *p, size_t at)
{
	struct table_reading *r = &p->reading[at];
	struct kv_pair pair;
	enum status status;

	while ((status = timed_cursor_next(&p->cursor[at], &pair)) == STATUS_OK) {
		status = table_reading_take(r, &pair, p->begin[at].len);
		if (status != STATUS_OK)
			return table_fail_corrupt(r->t, status);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Takes what was asked for by keys. A value in pieces, which has more of them, needs a range. */
static enum status
pick_take_keys(struct table_pick *p, size_t at)
{
	struct table_reading *r = &p->reading[at];

	for (size_t i = 0; i < p->got_count[at]; i++) {
		struct kv_pair pair = { .key = p->got[at][i].key };

		TRY(timed_data_wait(r->t, &p->got[at][i], r->arena, &pair.value));
		if (!pair.value.ptr)
			continue;
		TRY(table_fail_corrupt(r->t, table_reading_take(r, &pair, p->begin[at].len)));
		if (!r->pieces.left)
			continue;
		*r = (struct table_reading){
			.t = r->t, .schema = r->schema, .wanted = r->wanted, .arena = r->arena
		};
		TRY(pick_wanted(p, at));
		return pick_take(p, at);
	}
	return STATUS_OK;
}

/*
 * True if nothing behind what was read can tell that the row is there: where rows are counted, each
 * was inserted, so that one without a pair of its own has no other either.
 */
static bool
pick_knows_all(const struct table_pick *p, size_t at)
{
	const struct table_reading *r = &p->reading[at];

	return !p->middle[at].len || (r->schema->counted && !r->t->at_us);
}

/* What was read of the row does not live: looks behind it. */
static enum status
pick_go_on(struct table_pick *p, size_t at)
{
	timed_cursor_close(&p->cursor[at]);
	p->cursor[at] = (struct timed_cursor){ 0 };
	TRY(pick_rest(p, at, &p->middle[at]));
	return pick_take(p, at);
}

static enum status
pick_read(struct table_pick *p, size_t at, struct arena *arena, bool *ret_there)
{
	struct table_reading *r = &p->reading[at];

	r->arena = arena;
	TRY(p->got_count[at] ? pick_take_keys(p, at) : pick_take(p, at));
	if (!r->lives && !pick_knows_all(p, at))
		TRY(pick_go_on(p, at));
	return table_fail_corrupt(r->t, table_reading_end(r, ret_there));
}

/* Both, or one of them. */
static enum status
pick_read_both(struct table_pick *p, struct arena *arena, bool *ret_there, bool *ret_statics)
{
	*ret_statics = false;
	TRY(timed_now(p->reading[0].t));
	TRY(pick_read(p, 0, arena, ret_there));
	return p->statics ? pick_read(p, 1, arena, ret_statics) : STATUS_OK;
}

static void
pick_row(const struct table_pick *p, bool there, struct table_row *ret)
{
	*ret = p->reading[0].row;
	ret->is_row = there && ret->is_row;
	if (!p->statics)
		return;
	ret->statics = p->reading[1].row.statics;
	ret->static_count = p->reading[1].row.static_count;
}

enum status
table_pick_read(struct table_pick *p, struct arena *arena, struct table_row *ret)
{
	bool there, statics;

	TRY(pick_read_both(p, arena, &there, &statics));
	if (!there)
		return STATUS_NOT_FOUND;
	pick_row(p, there, ret);
	return STATUS_OK;
}

void
table_pick_close(struct table_pick *p)
{
	for (size_t i = 0; i < 2; i++) {
		timed_cursor_close(&p->cursor[i]);
		buf_release(&p->keys[i]);
		buf_release(&p->begin[i]);
		buf_release(&p->middle[i]);
	}
}

/* The key as it was asked for, where no pair has told it. */
static enum status
key_of(const struct table_key *key, struct arena *arena, struct table_row *ret)
{
	ret->key = arena_alloc(arena, key->count * sizeof(*ret->key));
	if (!ret->key)
		return STATUS_LIMIT;
	memcpy(ret->key, key->parts, key->count * sizeof(*ret->key));
	for (size_t i = 0; i < key->count; i++) {
		ret->key[i].text = arena_dup(arena, key->parts[i].text);
		if (key->parts[i].text.len && !ret->key[i].text.ptr)
			return STATUS_LIMIT;
	}
	ret->key_count = key->count;
	ret->token = key->token;
	return STATUS_OK;
}

struct table_asked {
	struct table_pick pick;
	struct table_key of_statics; /* the key of the partition, if its static columns are read */
};

/* Asks for both rows and the clock, before the first answer is waited for. */
static enum status
ask_both(struct table_asked *a, struct timed *t, const struct table_key *key, bool statics,
	 const struct table_wanted *wanted)
{
	const struct table_schema *schema = table_schema_of(t->db);
	struct table_pick *p = &a->pick;

	pick_init(p);
	a->of_statics = (struct table_key){ key->token, key->parts, schema->hash_count };
	p->statics = statics && schema->static_count && key->count == schema->key_count;
	TRY(timed_ask(t));
	TRY(table_key_row(t, key, &p->begin[0]));
	TRY(pick_ask(p, 0, t, wanted));
	if (!p->statics)
		return STATUS_OK;
	TRY(table_key_row(t, &a->of_statics, &p->begin[1]));
	return pick_ask(p, 1, t, wanted);
}

enum status
table_asked_read(struct table_asked *a, struct arena *arena, struct table_row *ret)
{
	struct table_pick *p = &a->pick;
	bool there, statics;

	TRY(pick_read_both(p, arena, &there, &statics));
	if (there || statics)
		pick_row(p, there, ret);
	ret->has_pairs = p->reading[0].any;
	if (!there && !statics)
		return STATUS_NOT_FOUND;
	return there ? STATUS_OK : key_of(&a->of_statics, arena, ret);
}

enum status
table_ask(struct timed *t, const struct table_key *key, bool statics,
	  const struct table_wanted *wanted, struct table_asked **ret)
{
	struct table_asked *a = mem_alloc(sizeof(*a));
	enum status status;

	if (!a)
		return STATUS_NOMEM;
	status = ask_both(a, t, key, statics, wanted);
	if (status == STATUS_OK)
		*ret = a;
	else
		table_asked_free(a);
	return status;
}

void
table_asked_free(struct table_asked *a)
{
	if (!a)
		return;
	table_pick_close(&a->pick);
	mem_free(a);
}

enum status
table_read(struct timed *t, const struct table_key *key, bool statics,
	   const struct table_wanted *wanted, struct arena *arena, struct table_row *ret)
{
	struct table_asked a;
	enum status status = ask_both(&a, t, key, statics, wanted);

	if (status == STATUS_OK)
		status = table_asked_read(&a, arena, ret);
	table_pick_close(&a.pick);
	return status;
}

const struct table_cell *
table_cells_of(const struct table_cell *cells, size_t count, const struct table_column *column,
	       size_t *ret_count)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (cells[at].column->id < column->id)
			from = at + 1;
		else
			to = at;
	}
	for (to = from; to < count && cells[to].column->id == column->id;)
		to++;
	*ret_count = to - from;
	return cells ? &cells[from] : NULL;
}

/*
 * Writing a row of a table with packed rows: what INSERT writes becomes the row's own cell, and
 * what lies over it or under it goes along.
 */
#include "base/mem.h"
#include "kv/tuple.h"
#include "loop/step.h"
#include "model/timed/tables/packed.h"

enum {
	LOOK_KEYS = 2, /* are asked for as keys where a server answers */
	LOOK_COPY_BYTES = KV_MANY * KV_LIMIT_VALUE_BYTES,
	PACKED_HEAD_BYTES = 16, /* around a value: the column, lengths */
};

/* A column while its row is inserted. */
struct table_slot {
	const struct table_change *change; /* the last one of it in this write */
	struct str kept;                   /* what was packed of it, and stays */
	bool has_leaf;
	bool packs; /* it is in the row's own cell from now on */
};

struct insert {
	struct table_packing *p;
	struct timed *t;
	const struct table_schema *schema;
	struct timed_cell own; /* as it becomes */
	struct timed_cell old; /* as it was */
	struct buf packed;
};

static struct table_slot *
slot_of(const struct table_packing *p, const struct table_column *column)
{
	return &p->slots[column - p->w->schema->columns];
}

/* ---- What is asked for ---- */

static bool
clears_single(const struct table_schema *schema, const struct table_change *c)
{
	return table_column_packs(table_column_by_id(schema, c->column)) &&
	       (c->kind == TABLE_CHANGE_CLEAR ||
		(c->kind == TABLE_CHANGE_PUT && c->value.kind == DOC_NULL));
}

static bool
is_needed(const struct table_schema *schema, const struct table_write *write)
{
	if (!schema->packed || table_key_is_static(schema, &write->key))
		return false;
	for (size_t i = 0; i < write->change_count; i++)
		if (clears_single(schema, &write->changes[i]))
			return true;
	return write->inserts;
}

/* True of a column whose leaf is one pair without others below it. */
static bool
is_scanned(const struct table_column *column)
{
	return table_column_packs(column) && !column->has_pieces;
}

/*
 * Goes on with a stretch of columns from `at` on, whose leaves lie side by side, with nothing
 * between them. `*last` becomes the last one. Static columns are not in the row, so they may lie
 * between; a column that was dropped may still have cells there.
 */
static size_t
stretch_extend(const struct table_schema *schema, size_t at, uint64_t expected, uint64_t *last)
{
	for (; at < schema->column_count; at++, expected++) {
		const struct table_column *column = &schema->columns[at];

		if (column->id != expected)
			break;
		if (column->kind == TABLE_STATIC)
			continue;
		if (!is_scanned(column))
			break;
		*last = column->id;
	}
	return at;
}

/* Opens a scan of a stretch of leaves; `first` 0: of the row's own cell and those behind it. */
static enum status
stretch_open(struct table_look *l, struct timed *t, struct str row, uint64_t first, uint64_t last)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_str(&begin, row);
	buf_append_str(&end, row);
	if (first)
		tuple_put_u64(&begin, first);
	if (last)
		tuple_put_u64(&end, last);
	/* Right behind the key without a column, or behind the last leaf. */
	buf_append_byte(&end, last ? CATALOG_KEY_LAST : 0);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return kv_scan_init(&l->scan, t->tx, buf_str(&begin), buf_str(&end), NULL);
}

static bool
changes_column(const struct table_write *write, uint64_t column)
{
	for (size_t i = 0; i < write->change_count; i++)
		if (write->changes[i].column == column)
			return true;
	return false;
}

/* True if something of the row's own cell counts: what stays, or what an index has. */
static bool
own_counts(const struct table_extension *x, const struct table_write *write)
{
	const struct table_schema *schema = &x->schema;

	if (x->kept_count)
		return true;
	for (size_t i = schema->key_count; i < schema->column_count; i++)
		if (table_column_packs(&schema->columns[i]) &&
		    !changes_column(write, schema->columns[i].id))
			return true;
	return false;
}

/* Names what the INSERT has to know, as far as there is room. False: that is not all. */
static bool
look_name(const struct table_extension *x, const struct table_write *write,
	  struct table_known *known)
{
	const struct table_schema *schema = &x->schema;

	if (own_counts(x, write))
		known->columns[known->count++] = 0;
	for (size_t i = schema->key_count; i < schema->column_count; i++) {
		if (!is_scanned(&schema->columns[i]))
			continue;
		if (known->count == KV_MANY)
			return false;
		known->columns[known->count++] = schema->columns[i].id;
	}
	return true;
}

static enum status
look_ask_keys(struct table_look *l, struct timed *t, struct str row)
{
	AUTO(buf_release) struct buf keys = BUF_INIT(KV_MANY * KV_LIMIT_KEY_BYTES);
	struct str each[KV_MANY];
	size_t ends[KV_MANY];

	for (size_t i = 0; i < l->known.count; i++) {
		buf_append_str(&keys, row);
		if (l->known.columns[i])
			tuple_put_u64(&keys, l->known.columns[i]);
		ends[i] = keys.len;
	}
	TRY(catalog_key_status(&keys));
	for (size_t i = 0, from = 0; i < l->known.count; from = ends[i++])
		each[i] = str_of(keys.ptr + from, ends[i] - from);
	kv_get_many(t->tx, each, l->known.count, KV_READ, l->asked);
	return STATUS_OK;
}

/* Where rows are whole there are no leaves, so that only the row's own cell is read. */
static void
look_ask_whole(struct table_look *l, struct timed *t, struct str row,
	       const struct table_write *write)
{
	const struct table_extension *x = t->db->extension;

	l->by_keys = true;
	/* Those who keep indexes want to know of each column, and read those that have no room. */
	if (x->kept_count)
		(void)look_name(x, write, &l->known);
	else if (own_counts(x, write))
		l->known.columns[l->known.count++] = 0;
	if (l->known.count && !l->known.columns[0])
		l->asked[0] = kv_get(t->tx, row, KV_READ);
}

static enum status
look_ask(struct table_look *l, struct timed *t, struct str row, const struct table_write *write)
{
	const struct table_extension *x = t->db->extension;
	const struct table_schema *schema = &x->schema;
	uint64_t last = 0;

	*l = (struct table_look){ .copy = BUF_INIT(LOOK_COPY_BYTES) };
	if (schema->whole) {
		look_ask_whole(l, t, row, write);
		return STATUS_OK;
	}
	l->by_keys = look_name(x, write, &l->known) &&
		     (kv_looks_up(t->tx) || l->known.count <= LOOK_KEYS);
	if (l->by_keys)
		return look_ask_keys(l, t, row);
	l->scanned = stretch_extend(schema, schema->key_count, schema->key_count + 1, &last);
	return stretch_open(l, t, row, 0, last);
}

void
table_look_end(struct table_look *l)
{
	if (!l)
		return;
	kv_scan_release(&l->scan);
	buf_release(&l->copy);
}

enum status
table_packing_ask(struct table_packing *p, struct table_writing *w, const struct table_write *write)
{
	const struct table_schema *schema = w->schema;

	*p = (struct table_packing){ .w = w, .write = write, .needed = is_needed(schema, write) };
	if (!schema->packed || table_key_is_static(schema, &write->key))
		return STATUS_OK;
	if (!p->needed && !w->t->has_stamp)
		return STATUS_OK;
	/* In the same round trip as the clock. */
	TRY(timed_ask(w->t));
	if (write->inserts && write->is_new)
		return STATUS_OK;
	/* With stamps the row is unpacked. */
	if (!write->inserts || schema->stamped || w->t->has_stamp) {
		p->own = kv_get(w->t->tx, buf_str(&w->row), KV_READ);
		return STATUS_OK;
	}
	p->look = write->look ? write->look : &p->asks;
	return write->look ? STATUS_OK : look_ask(p->look, w->t, buf_str(&w->row), write);
}

void
table_packing_end(struct table_packing *p)
{
	if (p->look == &p->asks)
		table_look_end(p->look);
	mem_free(p->slots);
}

/* ---- What has come ---- */

static size_t
known_place(const struct table_known *known, uint64_t column)
{
	size_t at = 0;

	while (at < known->count && known->columns[at] != column)
		at++;
	return at;
}

bool
table_known_find(const struct table_known *known, uint64_t column, struct str *ret)
{
	size_t at = known_place(known, column);

	if (at == known->count)
		return false;
	*ret = known->values[at];
	return true;
}

static enum status
keys_take(struct table_packing *p)
{
	struct table_look *l = p->look;

	for (size_t i = 0; i < l->known.count; i++) {
		uint64_t column = l->known.columns[i];

		if (!l->asked[i])
			continue;
		TRY(kv_future_wait(l->asked[i]));
		if (!kv_future_value(l->asked[i], &l->known.values[i]))
			l->known.values[i] = (struct str){ NULL, 0 };
		else if (column)
			slot_of(p, table_column_by_id(p->w->schema, column))->has_leaf = true;
	}
	return STATUS_OK;
}

/* Takes the pairs of the open stretch, and closes it. What is known ends where `ends` says. */
static enum status
stretch_take(struct table_packing *p, size_t ends[static KV_MANY])
{
	struct table_look *l = p->look;
	size_t row_len = p->w->row.len;
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(&l->scan, &pair)) == STATUS_OK) {
		const struct table_column *column;
		uint64_t id;
		size_t at;

		TRY(step_count(1));
		TRY(table_place_column(str_skip(pair.key, row_len), &id));
		column = id ? table_column_by_id(p->w->schema, id) : NULL;
		if (column)
			slot_of(p, column)->has_leaf = true;
		at = known_place(&l->known, id);
		if (at == l->known.count)
			continue;
		buf_append_str(&l->copy, pair.value);
		TRY(buf_status(&l->copy));
		l->known.values[at].len = pair.value.len;
		ends[at] = l->copy.len;
	}
	kv_scan_release(&l->scan);
	l->scan = (struct kv_scan){ 0 };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The row's own cell, and which leaves there are. */
static enum status
scan_take(struct table_packing *p)
{
	const struct table_schema *schema = p->w->schema;
	struct table_look *l = p->look;
	size_t ends[KV_MANY] = { 0 };

	TRY(stretch_take(p, ends));
	for (size_t at = l->scanned; at < schema->column_count;) {
		uint64_t first = schema->columns[at].id, last = first;

		if (!is_scanned(&schema->columns[at++]))
			continue;
		at = stretch_extend(schema, at, first + 1, &last);
		TRY(stretch_open(l, p->w->t, buf_str(&p->w->row), first, last));
		TRY(stretch_take(p, ends));
	}
	for (size_t i = 0; i < l->known.count; i++)
		if (ends[i])
			l->known.values[i].ptr = l->copy.ptr + ends[i] - l->known.values[i].len;
	return STATUS_OK;
}

enum status
table_packing_wait(struct table_packing *p, const struct table_known **ret)
{
	const struct table_schema *schema = p->w->schema;

	*ret = NULL;
	if (!p->needed || !p->write->inserts || schema->stamped || p->w->t->has_stamp)
		return STATUS_OK;
	p->slots = mem_zalloc(schema->column_count * sizeof(*p->slots));
	if (!p->slots)
		return STATUS_NOMEM;
	if (!p->look)
		return STATUS_OK;
	*ret = &p->look->known;
	return table_fail_corrupt(p->w->t, p->look->by_keys ? keys_take(p) : scan_take(p));
}

/* A leaf that was not looked for: one below which there may be pieces. */
static enum status
leaf_ask(struct insert *x, uint64_t column, bool *ret_there)
{
	struct kv_future *f;
	struct str ignored;

	TRY(table_writing_key(x->p->w, column, NULL));
	f = kv_get(x->t->tx, buf_str(&x->p->w->cell), KV_READ);
	TRY(kv_future_wait(f));
	*ret_there = kv_future_value(f, &ignored);
	return STATUS_OK;
}

/* Finds what was packed and stays: neither a change nor a leaf has the column. */
static enum status
old_take(struct insert *x)
{
	struct str own = { 0 }, value;
	struct table_packed p;
	enum status status;
	uint64_t id;

	if (!x->p->look || !table_known_find(&x->p->look->known, 0, &own) || !own.ptr)
		return STATUS_OK;
	TRY(timed_cell_parse(own, &x->old, x->t->err));
	p = table_packed_of(&x->old);
	while ((status = table_packed_next(&p, &id, &value)) == STATUS_OK) {
		const struct table_column *column = table_column_by_id(x->schema, id);
		struct table_slot *slot = column ? slot_of(x->p, column) : NULL;

		if (!slot || slot->change || slot->has_leaf)
			continue;
		if (!is_scanned(column))
			TRY(leaf_ask(x, id, &slot->has_leaf));
		if (!slot->has_leaf)
			slot->kept = value;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- What is written ---- */

static bool
same_expiry(struct timed_expiry a, struct timed_expiry b)
{
	if (a.kind != b.kind)
		return false;
	return a.kind == TIMED_EXPIRY_DEFAULT || a.kind == TIMED_EXPIRY_NEVER || a.ms == b.ms;
}

static bool
may_pack(const struct insert *x, const struct table_column *column, const struct table_change *c)
{
	return c && x->schema->packs && is_scanned(column) && c->kind == TABLE_CHANGE_PUT &&
	       c->value.kind != DOC_NULL && c->value.text.len <= TABLE_PACKED_BYTES &&
	       same_expiry(c->expiry, x->p->write->expiry);
}

/* Packs the value, if there is room. */
static enum status
slot_pack(struct insert *x, struct table_slot *slot, uint64_t column, struct str value)
{
	size_t len = x->packed.len;

	table_packed_put(column, value, &x->packed);
	TRY(buf_status(&x->packed));
	slot->packs = x->packed.len <= TABLE_PACKED_BYTES;
	if (!slot->packs)
		x->packed.len = len;
	return STATUS_OK;
}

/* What was packed and stays: packed again if it has the same times, as of one transaction. */
static enum status
slot_keep(struct insert *x, struct table_slot *slot, uint64_t column)
{
	struct timed_cell leaf = x->old;

	if (x->schema->packs && x->old.write_us == x->own.write_us &&
	    x->old.by_default == x->own.by_default && x->old.at_ms == x->own.at_ms)
		TRY(slot_pack(x, slot, column, slot->kept));
	if (slot->packs)
		return STATUS_OK;
	TRY(table_leaf_allow(x->t));
	leaf.type = TIMED_LEAF;
	leaf.packed = (struct str){ NULL, 0 };
	leaf.value = slot->kept;
	TRY(table_writing_key(x->p->w, column, NULL));
	return timed_cell_store(x->t, buf_str(&x->p->w->cell), &leaf);
}

/* Fails for a column that is packed now and whose key would be too long to be written by itself. */
static enum status
leaf_fits(struct insert *x, uint64_t column)
{
	if (x->p->w->row.len + TUPLE_INT_MAX_BYTES < TIMED_KEY_BYTES)
		return STATUS_OK;
	return table_writing_key(x->p->w, column, NULL);
}

/* About as many bytes as will be packed, so that the buffer need not grow again. */
static size_t
bytes_to_pack(const struct table_write *write)
{
	size_t bytes = 0;

	for (size_t i = 0; i < write->change_count && bytes < TABLE_PACKED_BYTES; i++)
		bytes += PACKED_HEAD_BYTES + write->changes[i].value.text.len;
	return bytes < TABLE_PACKED_BYTES ? bytes : TABLE_PACKED_BYTES;
}

static enum status
slots_pack(struct insert *x)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	(void)buf_reserve(&x->packed, bytes_to_pack(x->p->write));
	for (size_t i = x->schema->key_count; i < x->schema->column_count; i++) {
		const struct table_column *column = &x->schema->columns[i];
		struct table_slot *slot = &x->p->slots[i];

		if (slot->kept.len)
			TRY(slot_keep(x, slot, column->id));
		if (!may_pack(x, column, slot->change))
			continue;
		buf_clear(&value);
		doc_scalar_put(&value, &slot->change->value);
		TRY(buf_status(&value));
		TRY(slot_pack(x, slot, column->id, buf_str(&value)));
		if (!slot->packs)
			continue;
		TRY(leaf_fits(x, column->id));
		if (!slot->has_leaf)
			continue;
		TRY(table_writing_key(x->p->w, column->id, NULL));
		TRY(timed_data_clear(x->t, buf_str(&x->p->w->cell)));
	}
	return STATUS_OK;
}

/* Makes a change that is not packed. Where rows are whole there is no leaf to be cleared. */
static enum status
change_make(struct table_packing *p, const struct table_change *c)
{
	const struct table_schema *schema = p->w->schema;

	if (schema->whole && clears_single(schema, c))
		return STATUS_OK;
	return table_writing_change(p->w, c);
}

/* What is known of the row behind the write: of which columns there is no leaf. */
static void
known_pass(const struct table_packing *p, struct table_known *known)
{
	size_t count = 0;

	for (size_t i = 0; i < known->count; i++) {
		uint64_t id = known->columns[i];
		const struct table_slot *slot;

		if (!id)
			continue;
		slot = slot_of(p, table_column_by_id(p->w->schema, id));
		if (!slot->packs && (slot->change || slot->has_leaf || slot->kept.len))
			continue;
		known->columns[count] = id;
		known->values[count++] = (struct str){ NULL, 0 };
	}
	known->count = count;
}

static enum status
insert(struct insert *x)
{
	const struct table_write *write = x->p->write;
	struct table_packing *p = x->p;

	for (size_t i = 0; i < write->change_count; i++)
		slot_of(p, table_column_by_id(x->schema, write->changes[i].column))->change =
			&write->changes[i];
	TRY(table_fail_corrupt(x->t, old_take(x)));
	timed_cell_init(x->t, TIMED_INSERTED, write->expiry, &x->own);
	TRY(slots_pack(x));
	x->own.packed = buf_str(&x->packed);
	TRY(timed_cell_store(x->t, buf_str(&p->w->row), &x->own));
	for (size_t i = 0; i < write->change_count; i++) {
		const struct table_change *c = &write->changes[i];

		if (!slot_of(p, table_column_by_id(x->schema, c->column))->packs)
			TRY(change_make(p, c));
	}
	if (p->look)
		known_pass(p, &p->look->known);
	return STATUS_OK;
}

static enum status
row_insert(struct table_packing *p)
{
	struct insert x = { .p = p,
			    .t = p->w->t,
			    .schema = p->w->schema,
			    .packed = BUF_INIT(KV_LIMIT_VALUE_BYTES) };
	enum status status = insert(&x);

	buf_release(&x.packed);
	return status;
}

/* ---- Updating ---- */

/* True if the write leaves the column without a value. */
static bool
write_clears(const void *arg, uint64_t column)
{
	const struct table_packing *p = arg;

	for (size_t i = p->write->change_count; i-- > 0;)
		if (p->write->changes[i].column == column)
			return clears_single(p->w->schema, &p->write->changes[i]);
	return false;
}

static enum status
row_update(struct table_packing *p)
{
	struct table_writing *w = p->w;
	struct str value;

	TRY(kv_future_wait(p->own));
	if (kv_future_value(p->own, &value))
		TRY(table_packed_filter(w->t, buf_str(&w->row), value, write_clears, p));
	for (size_t i = 0; i < p->write->change_count; i++)
		TRY(change_make(p, &p->write->changes[i]));
	return STATUS_OK;
}

enum status
table_packing_write(struct table_packing *p)
{
	return p->write->inserts ? row_insert(p) : row_update(p);
}

/* ---- Asking before the write ---- */

/* A unique index has writers take out what has expired of other rows, which are in the way. */
static bool
writes_other_rows(const struct table_extension *x)
{
	for (size_t i = 0; i < x->kept_count; i++)
		if (x->kept[i].is_unique)
			return true;
	return false;
}

enum status
table_look_ask(struct timed *t, const struct table_write *write, struct arena *arena,
	       struct table_look **ret)
{
	const struct table_extension *x = t->db->extension;
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	struct table_look *l;

	*ret = NULL;
	if (!x->schema.packed || x->schema.stamped || t->has_stamp || !write->inserts ||
	    write->is_new || write->key.count != x->schema.key_count || writes_other_rows(x))
		return STATUS_OK;
	l = arena_zalloc(arena, sizeof(*l));
	if (!l)
		return STATUS_LIMIT;
	TRY(timed_ask(t));
	TRY(table_key_row(t, &write->key, &row));
	*ret = l;
	TRY(look_ask(l, t, buf_str(&row), write));
	return arena_copy(arena, buf_str(&row), &l->row);
}

bool
table_look_meets(const struct table_look *a, const struct table_look *b)
{
	return str_eq(a->row, b->row);
}

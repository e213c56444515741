/*
 * Writing a row of a table with packed rows: what INSERT writes becomes the row's own cell, and
 * what lies over it or under it goes along.
 */
#include "base/mem.h"
#include "kv/tuple.h"
#include "loop/step.h"
#include "model/timed/tables/packed.h"

/* A column, by its place in the schema, while its row is inserted. */
struct slot {
	const struct table_change *change; /* the last one of it in this write */
	struct str kept;                   /* what was packed of it, and stays */
	bool has_leaf;
	bool packs; /* it is in the row's own cell from now on */
};

struct insert {
	struct table_packing *p;
	struct timed *t;
	const struct table_schema *schema;
	struct slot *slots;
	struct timed_cell own; /* as it becomes */
	struct timed_cell old; /* as it was, if `was_packed` */
	bool was_packed;
	struct buf old_value;
	struct buf packed;
};

static struct slot *
slot_of(struct insert *x, const struct table_column *column)
{
	return &x->slots[column - x->schema->columns];
}

/* ---- What is read ---- */

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
stretch_open(struct table_packing *p, uint64_t first, uint64_t last)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	buf_append_str(&begin, buf_str(&p->w->row));
	buf_append_str(&end, buf_str(&p->w->row));
	if (first)
		tuple_put_u64(&begin, first);
	if (last)
		tuple_put_u64(&end, last);
	/* Right behind the key without a column, or behind the last leaf. */
	buf_append_byte(&end, last ? CATALOG_KEY_LAST : 0);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	return kv_scan_init(&p->scan, p->w->t->tx, buf_str(&begin), buf_str(&end), NULL);
}

enum status
table_packing_ask(struct table_packing *p, struct table_writing *w, const struct table_write *write)
{
	const struct table_schema *schema = w->schema;
	uint64_t last = 0;

	*p = (struct table_packing){ .w = w, .write = write, .needed = is_needed(schema, write) };
	/* With stamps the row is unpacked. */
	if (!p->needed || schema->stamped || w->t->has_stamp)
		return STATUS_OK;
	/* In the same round trip as the clock. */
	TRY(timed_ask(w->t));
	if (write->inserts && write->is_new)
		return STATUS_OK;
	if (!write->inserts) {
		p->own = kv_get(w->t->tx, buf_str(&w->row), KV_READ);
		return STATUS_OK;
	}
	p->scanned = stretch_extend(schema, schema->key_count, schema->key_count + 1, &last);
	return stretch_open(p, 0, last);
}

void
table_packing_end(struct table_packing *p)
{
	kv_scan_release(&p->scan);
}

/* Takes the pairs of the stretch that is open, and closes it. */
static enum status
stretch_take(struct insert *x)
{
	struct table_packing *p = x->p;
	size_t row_len = p->w->row.len;
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(&p->scan, &pair)) == STATUS_OK) {
		const struct table_column *column;
		uint64_t id;

		TRY(step_count(1));
		TRY(table_place_column(str_skip(pair.key, row_len), &id));
		if (!id) {
			buf_append_str(&x->old_value, pair.value);
			TRY(buf_status(&x->old_value));
			continue;
		}
		column = table_column_by_id(x->schema, id);
		if (column)
			slot_of(x, column)->has_leaf = true;
	}
	kv_scan_release(&p->scan);
	p->scan = (struct kv_scan){ 0 };
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* The row's own cell, and which leaves there are. */
static enum status
row_take(struct insert *x)
{
	const struct table_schema *schema = x->schema;

	TRY(stretch_take(x));
	for (size_t at = x->p->scanned; at < schema->column_count;) {
		uint64_t first = schema->columns[at].id, last = first;

		if (!is_scanned(&schema->columns[at++]))
			continue;
		at = stretch_extend(schema, at, first + 1, &last);
		TRY(stretch_open(x->p, first, last));
		TRY(stretch_take(x));
	}
	return STATUS_OK;
}

/* A leaf that no scan would have met: one below which there may be pieces. */
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
	struct table_packed p;
	uint64_t id;
	enum status status;
	struct str value;

	if (!x->old_value.len)
		return STATUS_OK;
	TRY(timed_cell_parse(buf_str(&x->old_value), &x->old, x->t->err));
	x->was_packed = x->old.packed.len;
	p = table_packed_of(&x->old);
	while ((status = table_packed_next(&p, &id, &value)) == STATUS_OK) {
		const struct table_column *column = table_column_by_id(x->schema, id);
		struct slot *slot = column ? slot_of(x, column) : NULL;

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
slot_pack(struct insert *x, struct slot *slot, uint64_t column, struct str value)
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
slot_keep(struct insert *x, struct slot *slot, uint64_t column)
{
	struct timed_cell leaf = x->old;

	if (x->schema->packs && x->old.write_us == x->own.write_us &&
	    x->old.by_default == x->own.by_default && x->old.at_ms == x->own.at_ms)
		TRY(slot_pack(x, slot, column, slot->kept));
	if (slot->packs)
		return STATUS_OK;
	leaf.type = TIMED_LEAF;
	leaf.packed = (struct str){ NULL, 0 };
	leaf.value = slot->kept;
	TRY(table_writing_key(x->p->w, column, NULL));
	return timed_cell_store(x->t, buf_str(&x->p->w->cell), &leaf);
}

static enum status
slots_pack(struct insert *x)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	for (size_t i = x->schema->key_count; i < x->schema->column_count; i++) {
		const struct table_column *column = &x->schema->columns[i];
		struct slot *slot = &x->slots[i];

		if (slot->kept.len)
			TRY(slot_keep(x, slot, column->id));
		if (!may_pack(x, column, slot->change))
			continue;
		buf_clear(&value);
		doc_scalar_put(&value, &slot->change->value);
		TRY(buf_status(&value));
		TRY(slot_pack(x, slot, column->id, buf_str(&value)));
		if (!slot->packs || !slot->has_leaf)
			continue;
		TRY(table_writing_key(x->p->w, column->id, NULL));
		TRY(timed_data_clear(x->t, buf_str(&x->p->w->cell)));
	}
	return STATUS_OK;
}

static enum status
insert(struct insert *x)
{
	const struct table_write *write = x->p->write;
	struct table_writing *w = x->p->w;

	for (size_t i = 0; i < write->change_count; i++)
		slot_of(x, table_column_by_id(x->schema, write->changes[i].column))->change =
			&write->changes[i];
	if (!write->is_new) {
		TRY(table_fail_corrupt(x->t, row_take(x)));
		TRY(table_fail_corrupt(x->t, old_take(x)));
	}
	timed_cell_init(x->t, TIMED_INSERTED, write->expiry, &x->own);
	TRY(slots_pack(x));
	x->own.packed = buf_str(&x->packed);
	TRY(timed_cell_store(x->t, buf_str(&w->row), &x->own));
	for (size_t i = 0; i < write->change_count; i++) {
		const struct table_change *c = &write->changes[i];

		if (!slot_of(x, table_column_by_id(x->schema, c->column))->packs)
			TRY(table_writing_change(w, c));
	}
	return STATUS_OK;
}

static enum status
row_insert(struct table_packing *p)
{
	struct insert x = { .p = p,
			    .t = p->w->t,
			    .schema = p->w->schema,
			    .old_value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
			    .packed = BUF_INIT(KV_LIMIT_VALUE_BYTES) };
	enum status status;

	x.slots = mem_zalloc(x.schema->column_count * sizeof(*x.slots));
	status = x.slots ? insert(&x) : STATUS_NOMEM;
	mem_free(x.slots);
	buf_release(&x.old_value);
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
		TRY(table_writing_change(w, &p->write->changes[i]));
	return STATUS_OK;
}

enum status
table_packing_write(struct table_packing *p)
{
	return p->write->inserts ? row_insert(p) : row_update(p);
}

/*
 * Tables whose clients order writes by stamps of their own. Random operations, of writers with and
 * without stamps, before and behind each other, behind the clock and ahead of it, against a naive
 * interpreter, which remembers every deletion and goes through all of them; with expiry in virtual
 * time, sweeps, indexes, a past, values in pieces. Writes with stamps in two orders end alike. And
 * one by one: what the flag costs, what the sweep takes away, what is put back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "kv/tuple.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"
#include "model/timed/timed_int.h"
#include "packing.h"
#include "random_table.h"
#include "stamps_model.h"
#include "store.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	PLAIN_ROUNDS = 30, /* before the first stamp */
	SHUFFLED = 80,     /* operations in two orders */
	GRACE_S = 60,
	SPACE_MARKS = 44,         /* as it is stored */
	LONG_NUMBER_BYTES = 5000, /* more digits than DOC_KEY_DIGITS */
};

static uint64_t
world_now(void *arg)
{
	const struct world *w = arg;

	return w->now_ms;
}

/* ---- Drawing both ---- */

static void
draw_value(const char *name, int64_t key, int64_t value, uint64_t expires_ms, bool has_stamp,
	   int64_t stamp, struct buf *ret)
{
	buf_printf(ret, " %s", name);
	if (key >= 0)
		buf_printf(ret, "[%lld]", (long long)key);
	buf_printf(ret, "=%lld@%llu", (long long)value, (unsigned long long)expires_ms);
	if (has_stamp)
		buf_printf(ret, "#%lld", (long long)stamp);
}

static bool
draw_cell(const char *name, int64_t key, const struct cell *c, uint64_t now_ms, struct buf *ret)
{
	if (!c->there || (c->expires_ms && c->expires_ms <= now_ms))
		return false;
	draw_value(name, key, c->value, c->expires_ms, c->has_stamp, c->stamp, ret);
	return true;
}

static bool
draw_model_row(const struct model *m, size_t partition, size_t at, uint64_t now_ms, struct buf *ret)
{
	const struct model_row *row = &m->rows[partition][at];
	bool is_static = at == ROWS, any;
	struct doc_scalar parts[BOTH_KEYS];
	size_t len = ret->len;

	(void)key_of(partition, at, parts);
	buf_printf(ret, "(%zu", partition);
	if (!is_static)
		buf_printf(ret, "/%lld/%lld", (long long)parts[1].n, (long long)parts[2].n);
	any = draw_cell("own", -1, &row->own, now_ms, ret);
	any |= draw_cell(is_static ? "s" : "v", -1, &row->v, now_ms, ret);
	any |= draw_cell("w", -1, &row->w, now_ms, ret);
	for (int64_t i = 0; i < KEYS; i++)
		any |= draw_cell(is_static ? "sm" : "m", i, &row->m[i], now_ms, ret);
	for (size_t i = 0; i < row->l.count; i++)
		any |= draw_cell("l", -1, &row->l.items[i], now_ms, ret);
	buf_append_cstr(ret, ")\n");
	if (!any)
		ret->len = len;
	return any;
}

static void
draw_model(const struct model *m, uint64_t now_ms, struct buf *ret)
{
	for (size_t i = 0; i < PARTITIONS; i++) {
		(void)draw_model_row(m, i, ROWS, now_ms, ret);
		for (size_t j = 0; j < ROWS; j++)
			(void)draw_model_row(m, i, j, now_ms, ret);
	}
}

static void
draw_cells(const struct table_cell *cells, size_t count, struct buf *ret)
{
	for (size_t i = 0; i < count; i++) {
		const struct table_cell *c = &cells[i];
		char name[16];

		(void)snprintf(name, sizeof(name), "%.*s", STR_ARG(c->column->name));
		draw_value(name, c->column->storage == TABLE_MAP ? c->element.n : -1,
			   number_of(&c->value), c->expires_ms, c->has_stamp, c->stamp, ret);
	}
	buf_append_cstr(ret, ")\n");
}

/* Static columns are a line of their own, before the rows of their partition. */
static void
draw_row(const struct table_row *row, int64_t *partition, struct buf *ret)
{
	if (row->key[0].n != *partition && row->static_count) {
		buf_printf(ret, "(%lld", (long long)row->key[0].n);
		draw_cells(row->statics, row->static_count, ret);
	}
	*partition = row->key[0].n;
	if (!row->is_row)
		return;
	for (size_t i = 0; i < row->key_count; i++)
		buf_printf(ret, "%c%lld", i ? '/' : '(', (long long)row->key[i].n);
	if (row->inserted)
		draw_value("own", -1, 0, row->expires_ms, row->has_stamp, row->stamp, ret);
	draw_cells(row->cells, row->cell_count, ret);
}

/* ---- Transactions ---- */

struct step {
	struct world *w;
	const char *table;
	const struct op *ops; /* writes, or else reads all, … */
	size_t op_count;
	uint64_t at_us; /* … at a moment, or now */
	uint64_t now_us;
	struct buf out;
	bool gone; /* the past does not go back so far */
	enum status (*body)(struct timed *t, struct step *s);
	struct kv_tx_stats cost; /* of the writes: reads */
	unsigned part;           /* of MARKS, where something is damaged */
};

static enum status
step_scan(struct timed *t, struct step *s)
{
	const struct table_scan_options options = { .statics = true, .static_alone = true };
	struct table_scan *scan;
	struct table_row row;
	int64_t partition = -1;
	enum status status;

	buf_clear(&s->out);
	TRY(table_scan_open(t, &options, &scan));
	while ((status = table_scan_next(scan, s->w->arena, &row)) == STATUS_OK)
		draw_row(&row, &partition, &s->out);
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
step_opened(struct timed *t, struct step *s)
{
	enum status status = STATUS_OK;

	s->cost = kv_tx_stats(t->tx);
	for (size_t i = 0; i < s->op_count; i++)
		TRY(op_run(t, &s->ops[i]));
	s->cost.reads = kv_tx_stats(t->tx).reads - s->cost.reads;
	if (s->body)
		return s->body(t, s);
	if (s->op_count)
		TRY(timed_now(t));
	else
		status = step_scan(t, s);
	s->gone = status == STATUS_INVALID && s->at_us;
	return s->gone ? STATUS_OK : status;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE,
			 s->table ? str_from_cstr(s->table) : STR("ks.t"), &db, &s->w->err));
	timed_init(&t, tx, db, &s->w->clock, &s->w->err);
	if (s->at_us)
		timed_at_us(&t, s->at_us);
	status = step_opened(&t, s);
	s->now_us = t.now_us;
	catalog_db_unref(db);
	return status;
}

static enum status
step_try(struct step *s)
{
	arena_clear(s->w->arena);
	return kv_run(s->w->store, step_body, s, NULL, &s->w->err);
}

static void
step_run(struct step *s)
{
	assert_int_equal(step_try(s), STATUS_OK);
}

/* ---- Comparing ---- */

static void
same(const struct buf *got, const struct buf *wanted)
{
	if (str_eq(buf_str(got), buf_str(wanted)))
		return;
	print_error("got:\n%.*s\nwanted:\n%.*s\n", STR_ARG(buf_str(got)), STR_ARG(buf_str(wanted)));
	fail();
}

static void
compare(struct world *w, const struct model *m, uint64_t at_us)
{
	AUTO(buf_release) struct buf wanted = BUF_INIT(1000 * 1000);
	struct step s = { .w = w, .at_us = at_us, .out = BUF_INIT(1000 * 1000) };

	step_run(&s);
	if (!s.gone) {
		draw_model(m, s.now_us / 1000, &wanted);
		same(&s.out, &wanted);
	}
	buf_release(&s.out);
}

static void
sweep(struct world *w)
{
	uint64_t done;
	bool more = true;

	for (int i = 0; more && i < 100; i++)
		assert_int_equal(timed_sweep(w->store, &w->clock, 10, &done, &more, &w->err),
				 STATUS_OK);
}

/* Several at once, and remembers what there was then. */
static void
write_some(struct world *w)
{
	struct op ops[BATCH];
	struct step s = { .w = w, .ops = ops };
	size_t count = 1 + below(w, BATCH);

	for (size_t i = 0; i < count; i++) {
		ops[s.op_count] = random_op(w, true);
		/* The first stamps meet rows that were written without any, and may be packed. */
		if (w->past_count < PLAIN_ROUNDS)
			ops[s.op_count].has_stamp = false;
		s.op_count += fits(w, &ops[s.op_count]);
	}
	if (!s.op_count)
		return;
	step_run(&s);
	/* The writer that sets the flag begins again, so deletions before its stamp count, too. */
	for (size_t i = 0; i < s.op_count; i++)
		w->stamped = w->stamped || ops[i].has_stamp;
	for (size_t i = 0; i < s.op_count; i++)
		model_op(w, &w->model, &ops[i], s.now_us);
	w->pasts[w->past_count % PASTS] = w->model;
	w->pasts_us[w->past_count++ % PASTS] = s.now_us;
}

static void
run_rounds(struct world *w, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		w->now_ms += below(w, 500);
		write_some(w);
		/* What is swept before there are stamps leaves no marks. */
		if (below(w, 10) == 0 && w->stamped)
			sweep(w);
		compare(w, &w->model, 0);
		if (below(w, 25) == 0)
			verified_none(w->store);
		if (w->has_history && below(w, 3) == 0) {
			size_t at = below(w, w->past_count < PASTS ? w->past_count : PASTS);

			compare(w, &w->pasts[at], w->pasts_us[at]);
		}
	}
	verified_none(w->store);
}

static int
rounds_of_test(void)
{
	return test_rounds(400);
}

static void
stamps_order_as_the_model_says(void **state)
{
	run_rounds(*state, rounds_of_test());
}

static enum status
history_body(struct timed *t, struct step *s)
{
	(void)s;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 });
}

static void
begin_history(struct world *w)
{
	struct step s = { .w = w, .body = history_body };

	step_run(&s);
	sweep(w);
	w->now_ms += 1000;
	sweep(w);
	w->has_history = true;
}

static void
stamps_ordered_as_the_model_says(void **state)
{
	begin_history(*state);
	run_rounds(*state, rounds_of_test() / 2);
}

static void
long_values_are_ordered_by_stamps(void **state)
{
	struct world *w = *state;

	w->has_long = true;
	begin_history(w);
	run_rounds(w, 40);
}

/* Whether the entries are those of the rows is for the check to say. */
static enum status
indexes_body(struct timed *t, struct step *s)
{
	static const struct table_index_column of[][1] = {
		{ { .column = V, .part = INDEX_TYPED_COLUMN } },
		{ { .column = M, .part = INDEX_TYPED_ENTRIES } },
		{ { .column = L, .part = INDEX_TYPED_VALUES } },
		{ { .column = S, .part = INDEX_TYPED_COLUMN } },
		{ { .column = FIRST, .part = INDEX_TYPED_COLUMN } },
	};
	uint64_t number;

	(void)s;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		char name[16];
		struct table_index terms = { .columns = of[i], .column_count = 1 };

		terms.name = str_of(name, (size_t)snprintf(name, sizeof(name), "i%zu", i));
		TRY(table_index_create(t, &terms, &number));
	}
	return STATUS_OK;
}

static void
indexes_follow_what_stamps_say(void **state)
{
	struct step s = { .w = *state, .body = indexes_body };

	step_run(&s);
	run_rounds(*state, rounds_of_test() / 3);
}

static void
indexes_follow_what_stamps_say_beside_a_past(void **state)
{
	begin_history(*state);
	indexes_follow_what_stamps_say(state);
}

/* ---- Two orders ---- */

/* Operations that say all by themselves: stamps, and moments at which something expires. */
static struct op
timeless_op(struct world *w)
{
	struct op op = random_op(w, false);

	op.has_stamp = true;
	op.stamp = (int64_t)below(w, 2 * FEW);
	op.expiry = (struct timed_expiry){ TIMED_EXPIRY_AT, START_MS * 10 + below(w, 3) };
	for (size_t i = 0; i < op.change_count; i++)
		op.changes[i].expiry = op.expiry;
	return op;
}

static void
run_each(struct world *w, const char *table, const struct op *ops, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct step s = { .w = w, .table = table, .ops = &ops[i] };

		s.op_count = 1 + below(w, BATCH);
		s.op_count = s.op_count < count - i ? s.op_count : count - i;
		w->now_ms += below(w, 50);
		step_run(&s);
		i += s.op_count;
	}
}

static void
stamped_writes_in_any_order_end_alike(void **state)
{
	struct world *w = *state;
	struct op ops[SHUFFLED];
	struct step a = { .w = w, .out = BUF_INIT(1000 * 1000) };
	struct step b = { .w = w, .table = "ks.u", .out = BUF_INIT(1000 * 1000) };

	for (size_t i = 0; i < SHUFFLED; i++)
		ops[i] = timeless_op(w);
	run_each(w, "ks.t", ops, SHUFFLED);
	for (size_t i = SHUFFLED - 1; i; i--) {
		size_t j = below(w, i + 1);
		const struct op op = ops[i];

		ops[i] = ops[j];
		ops[j] = op;
	}
	run_each(w, "ks.u", ops, SHUFFLED);
	step_run(&a);
	step_run(&b);
	same(&b.out, &a.out);
	verified_none(w->store);
	buf_release(&a.out);
	buf_release(&b.out);
}

/* ---- A copy ---- */

enum {
	COPIED = 200, /* rows, and deletions, at most */
};

struct copy {
	struct table_row rows[COPIED];
	size_t row_count;
	struct table_deletion deletions[COPIED];
	size_t deletion_count;
};

static struct copy copied;

/* Columns are their description's, and go with it. */
static void
keep_columns(struct arena *arena, struct table_cell *cells, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct table_column *kept = arena_alloc(arena, sizeof(*kept));

		assert_non_null(kept);
		*kept = *cells[i].column;
		cells[i].column = kept;
	}
}

/* Reads all that a dump has. */
static enum status
copy_read_body(struct timed *t, struct step *s)
{
	const struct table_scan_options options = { .statics = true, .static_alone = true };
	struct table_deletions *deletions;
	struct table_scan *scan;
	enum status status;

	copied.row_count = copied.deletion_count = 0;
	TRY(table_scan_open(t, &options, &scan));
	while ((status = table_scan_next(scan, s->w->arena, &copied.rows[copied.row_count])) ==
	       STATUS_OK) {
		struct table_row *row = &copied.rows[copied.row_count];

		keep_columns(s->w->arena, row->cells, row->cell_count);
		keep_columns(s->w->arena, row->statics, row->static_count);
		assert_true(++copied.row_count < COPIED);
	}
	table_scan_close(scan);
	if (status != STATUS_NOT_FOUND)
		return status;
	TRY(table_deletions_open(t, &deletions));
	while ((status = table_deletions_next(deletions, s->w->arena,
					      &copied.deletions[copied.deletion_count])) ==
	       STATUS_OK)
		assert_true(++copied.deletion_count < COPIED);
	table_deletions_close(deletions);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
copy_cells(struct timed *t, const struct table_row *row, size_t key_count,
	   const struct table_cell *cells, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct table_cell *c = &cells[i];
		const struct table_change change = {
			.kind = c->column->storage == TABLE_MAP ? TABLE_CHANGE_PUT_ELEMENT
								: TABLE_CHANGE_PUT,
			.column = c->column->id,
			.element = c->element,
			.value = c->value,
			.expiry = { TIMED_EXPIRY_AT, c->expires_ms },
		};
		const struct table_write write = { .key = { row->token, row->key, key_count },
						   .changes = &change,
						   .change_count = 1 };

		TRY(table_stamp_set(t, c->stamp));
		TRY(timed_written_at(t, c->write_us));
		TRY(table_write(t, &write));
	}
	return STATUS_OK;
}

static enum status
copy_write_body(struct timed *t, struct step *s)
{
	(void)s;
	table_restore_begin(t);
	for (size_t i = 0; i < copied.row_count; i++) {
		const struct table_row *row = &copied.rows[i];
		const struct table_write write = { .key = { row->token, row->key, row->key_count },
						   .inserts = true,
						   .expiry = { TIMED_EXPIRY_AT, row->expires_ms } };

		TRY(copy_cells(t, row, 1, row->statics, row->static_count));
		if (row->inserted) {
			TRY(table_stamp_set(t, row->stamp));
			TRY(timed_written_at(t, row->write_us));
			TRY(table_write(t, &write));
		}
		TRY(copy_cells(t, row, row->key_count, row->cells, row->cell_count));
	}
	table_restore_end(t);
	for (size_t i = 0; i < copied.deletion_count; i++)
		TRY(table_deletion_restore(t, &copied.deletions[i]));
	return timed_written_at(t, 0);
}

static void
a_copy_remembers_what_was_deleted(void **state)
{
	struct world *w = *state;
	struct op ops[SHUFFLED];
	struct step a = { .w = w, .out = BUF_INIT(1000 * 1000) };
	struct step b = { .w = w, .table = "ks.u", .out = BUF_INIT(1000 * 1000) };
	struct step reads = { .w = w, .body = copy_read_body };
	struct step writes = { .w = w, .table = "ks.u", .body = copy_write_body };

	for (size_t i = 0; i < SHUFFLED; i++)
		ops[i] = timeless_op(w);
	run_each(w, "ks.t", ops, SHUFFLED / 2);
	step_run(&reads);
	assert_int_equal(kv_run(w->store, step_body, &writes, NULL, &w->err), STATUS_OK);
	verified_none(w->store);
	run_each(w, "ks.t", ops + SHUFFLED / 2, SHUFFLED / 2);
	run_each(w, "ks.u", ops + SHUFFLED / 2, SHUFFLED / 2);
	step_run(&a);
	step_run(&b);
	same(&b.out, &a.out);
	verified_none(w->store);
	buf_release(&a.out);
	buf_release(&b.out);
}

/* ---- One by one ---- */

static struct op
put_v(int64_t value)
{
	return (struct op){ .change_count = 1,
			    .changes = { { .column = V, .value = number(value) } },
			    .row = 0 };
}

static struct op
stamped(struct op op, int64_t stamp)
{
	op.has_stamp = true;
	op.stamp = stamp;
	return op;
}

static struct step
run_op(struct world *w, struct op op)
{
	struct step s = { .w = w, .ops = &op, .op_count = 1 };

	step_run(&s);
	s.ops = NULL;
	return s;
}

static void
expect_v(struct world *w, int64_t value)
{
	struct step s = { .w = w, .out = BUF_INIT(10000) };
	char wanted[32];

	step_run(&s);
	(void)snprintf(wanted, sizeof(wanted), "(0/0/1 v=%lld@", (long long)value);
	if (value ? !str_starts_with(buf_str(&s.out), str_from_cstr(wanted)) : s.out.len > 0)
		fail_msg("got %.*s", STR_ARG(buf_str(&s.out)));
	buf_release(&s.out);
}

static void
only_tables_with_stamps_pay_for_them(void **state)
{
	struct world *w = *state;
	struct op clear = { .kind = OP_CLEAR_ROW };

	/* What is tried again is counted again. */
	if (getenv("FROND_TEST_FAULTS"))
		return;
	assert_int_equal(run_op(w, put_v(1)).cost.reads, 1); /* the clock */
	assert_int_equal(run_op(w, clear).cost.reads, 0);
	(void)run_op(w, stamped(put_v(1), 5));
	/* From now on also what was ahead of the clock, and a clear leaves a mark. */
	assert_int_equal(run_op(w, put_v(1)).cost.reads, 2);
	assert_int_equal(run_op(w, clear).cost.reads, 2);
	expect_v(w, 0);
}

static void
a_stamp_ahead_of_the_clock_outlives_plain_writers(void **state)
{
	struct world *w = *state;
	int64_t ahead = (START_MS + 1000) * 1000;

	(void)run_op(w, stamped(put_v(1), ahead));
	(void)run_op(w, put_v(2));
	expect_v(w, 1);
	w->now_ms += 2000;
	(void)run_op(w, put_v(3));
	expect_v(w, 3);
}

/* The row as a text, without when it was written. */
static struct str
row_of(struct world *w, struct buf *ret)
{
	struct step s = { .w = w, .out = *ret };
	struct str at;

	step_run(&s);
	*ret = s.out;
	at = buf_str(ret);
	return str_cut(&at, '@');
}

/* Of one stamp always the same value wins, also of those that are too long for a key. */
static void
a_tie_of_numbers_of_any_length_is_decided(void **state)
{
	AUTO(buf_release) struct buf before = BUF_INIT(10000), after = BUF_INIT(10000);
	char digits[LONG_NUMBER_BYTES];
	struct op one = put_v(0), other = put_v(0);
	struct world *w = *state;
	struct str row;

	memset(digits, 0x11, sizeof(digits));
	one.changes[0].value = (struct doc_scalar){ .kind = DOC_DECIMAL,
						    .n = 1,
						    .text = { digits, sizeof(digits) } };
	other.changes[0].value = one.changes[0].value;
	other.changes[0].value.n = 2;
	(void)run_op(w, stamped(one, 5));
	(void)run_op(w, stamped(other, 5));
	row = row_of(w, &before);
	assert_true(str_eq(row, STR("(0/0/1 v=1")) || str_eq(row, STR("(0/0/1 v=2")));
	(void)run_op(w, stamped(one, 5));
	assert_true(str_eq(row_of(w, &after), row));
	(void)run_op(w, stamped(other, 5));
	assert_true(str_eq(row_of(w, &after), row));
}

static enum status
first_letter_body(struct timed *t, struct step *s)
{
	struct doc_scalar parts[BOTH_KEYS];
	const struct table_key key = key_of(0, 0, parts);
	struct table_row row;

	TRY(table_read(t, &key, false, NULL, s->w->arena, &row));
	assert_int_equal(row.cell_count, 1);
	assert_int_equal(row.cells[0].value.text.len, LONG_MOST);
	buf_clear(&s->out);
	buf_append_byte(&s->out, (uint8_t)row.cells[0].value.text.ptr[0]);
	return STATUS_OK;
}

static void
a_tie_of_long_values_is_decided(void **state)
{
	static const enum doc_kind kinds[] = { DOC_TEXT, DOC_BYTES };
	static char a[LONG_MOST], b[LONG_MOST];
	struct world *w = *state;

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	for (int64_t i = 0; i < 4; i++) {
		struct step s = { .w = w, .body = first_letter_body, .out = BUF_INIT(10) };
		struct op op = put_v(0);

		op.changes[0].value.kind = kinds[i / 2];
		/* The lesser one comes first, or second. */
		op.changes[0].value.text = str_of(i % 2 ? b : a, LONG_MOST);
		(void)run_op(w, stamped(op, i));
		op.changes[0].value.text = str_of(i % 2 ? a : b, LONG_MOST);
		(void)run_op(w, stamped(op, i));
		step_run(&s);
		assert_true(str_eq(buf_str(&s.out), STR("b")));
		buf_release(&s.out);
	}
}

static enum status
draw_body(struct timed *t, struct step *s)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	buf_clear(&s->out);
	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, SPACE_MARKS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct str tail = str_skip(pair.key, begin.len);

		assert_true(table_kind.draw_pair(t->db, SPACE_MARKS, tail, pair.value, &s->out));
		buf_append_byte(&s->out, '\n');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
expect_marks(struct world *w, const char *wanted)
{
	struct step s = { .w = w, .body = draw_body, .out = BUF_INIT(10000) };

	step_run(&s);
	if (!str_eq(buf_str(&s.out), str_from_cstr(wanted)))
		fail_msg("got\n%.*s", STR_ARG(buf_str(&s.out)));
	buf_release(&s.out);
}

static void
marks_are_drawn_and_go_after_the_grace(void **state)
{
	struct world *w = *state;
	struct op clear = { .kind = OP_CLEAR_ROW };
	struct op range = { .kind = OP_CLEAR_RANGE, .from = 1, .to = 2, .closed = true };
	struct op partition = { .kind = OP_CLEAR_PARTITION };

	(void)run_op(w, stamped(put_v(1), 5));
	(void)run_op(w, stamped(clear, 7));
	expect_marks(w,
		     "(0x7fff, 0, 0, 1), 1970-01-01T00:16:40.000001Z (TIMESTAMP = 7) -> deleted\n"
		     "1970-01-01T00:16:40.000001Z, (0x7fff, 0, 0, 1)\n");
	w->now_ms += GRACE_S * 1000;
	(void)run_op(w, stamped(put_v(1), 7));
	expect_v(w, 0);
	w->now_ms += 1;
	sweep(w);
	expect_marks(w, "");
	/* What was deleted longer ago than that may come back. */
	(void)run_op(w, stamped(put_v(1), 7));
	expect_v(w, 1);
	verified_none(w->store);

	/* Of ranges that lie in each other the wider one stays, if it is as late. */
	(void)run_op(w, stamped(range, 6));
	(void)run_op(w, stamped(partition, 6));
	(void)run_op(w, stamped(range, 5));
	w->now_ms += GRACE_S * 1000 + 1;
	sweep(w);
	expect_marks(w, "");
	expect_v(w, 1);
}

/* Nothing is to be done, so what the sweep has done before, and whether there is more, stays. */
static enum status
idle_body(struct timed *t, struct step *s)
{
	(void)s;
	TRY(timed_now(t));
	for (int told = 0; told < 2; told++) {
		uint64_t done = 7;
		bool more = told;

		TRY(timed_kind_of(t->db)->tend(t, &done, &more));
		assert_int_equal(done, 7);
		assert_int_equal(more, told);
	}
	return STATUS_OK;
}

static void
the_sweep_of_marks_keeps_what_others_have_told(void **state)
{
	struct step s = { .w = *state, .body = idle_body };
	struct op clear = { .kind = OP_CLEAR_ROW };

	(void)run_op(*state, stamped(clear, 7));
	step_run(&s);
}

static void
a_mark_that_is_made_anew_lasts_anew(void **state)
{
	struct world *w = *state;
	struct op clear = { .kind = OP_CLEAR_ROW };

	(void)run_op(w, stamped(clear, 7));
	w->now_ms += GRACE_S * 1000 / 2;
	(void)run_op(w, stamped(clear, 8));
	w->now_ms += GRACE_S * 1000 / 2 + 1;
	sweep(w);
	(void)run_op(w, stamped(put_v(1), 8));
	expect_v(w, 0);
	(void)run_op(w, stamped(put_v(1), 9));
	expect_v(w, 1);
}

/* A row is put back under a mark of its range, as a load does. */
static enum status
restore_body(struct timed *t, struct step *s)
{
	struct doc_scalar parts[BOTH_KEYS];
	const struct table_key key = key_of(0, 0, parts);
	struct op op = put_v(4);

	(void)s;
	table_restore_begin(t);
	TRY(table_clear_row(t, &key));
	TRY(timed_written_at(t, 3));
	TRY(op_run(t, &op));
	op = stamped(put_v(5), 4);
	TRY(op_run(t, &op));
	table_restore_end(t);
	return STATUS_OK;
}

static void
rows_are_put_back_as_they_were(void **state)
{
	struct world *w = *state;
	struct op partition = { .kind = OP_CLEAR_PARTITION };
	struct step s = { .w = w, .body = restore_body };

	(void)run_op(w, stamped(put_v(1), 5));
	(void)run_op(w, stamped(partition, 1000));
	step_run(&s);
	expect_v(w, 5);
	verified_none(w->store);
	(void)run_op(w, stamped(put_v(6), 3));
	expect_v(w, 5);
	(void)run_op(w, stamped(put_v(6), 5));
	expect_v(w, 6);
}

/* What another writer does between the writes of this one and its commit, once. */
struct meanwhile {
	struct world *w;
	struct op op, other;
	bool done;
};

static enum status
meanwhile_body(struct kv_tx *tx, void *arg)
{
	struct meanwhile *m = arg;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR("ks.t"), &db, &m->w->err));
	timed_init(&t, tx, db, &m->w->clock, &m->w->err);
	status = op_run(&t, &m->op);
	catalog_db_unref(db);
	if (status == STATUS_OK && !m->done) {
		(void)run_op(m->w, m->other);
		m->done = true;
	}
	return status;
}

static void
writers_see_what_has_come_meanwhile(void **state)
{
	struct world *w = *state;
	struct op clear = { .kind = OP_CLEAR_ROW }, partition = { .kind = OP_CLEAR_PARTITION };
	struct meanwhile m = { .w = w, .op = put_v(2) };

	(void)run_op(w, stamped(put_v(1), 1));
	/* A writer without a stamp is blind, but for the highest one. */
	m.other = stamped(put_v(3), (START_MS + 1000) * 1000);
	assert_int_equal(kv_run(w->store, meanwhile_body, &m, NULL, &w->err), STATUS_OK);
	expect_v(w, 3);
	w->now_ms += 2000;
	(void)run_op(w, clear);
	m = (struct meanwhile){ .w = w, .op = stamped(put_v(4), (START_MS + 3000) * 1000) };
	m.other = stamped(clear, (START_MS + 4000) * 1000);
	assert_int_equal(kv_run(w->store, meanwhile_body, &m, NULL, &w->err), STATUS_OK);
	expect_v(w, 0);
	m = (struct meanwhile){ .w = w, .op = stamped(put_v(5), (START_MS + 5000) * 1000) };
	m.other = stamped(partition, (START_MS + 6000) * 1000);
	assert_int_equal(kv_run(w->store, meanwhile_body, &m, NULL, &w->err), STATUS_OK);
	expect_v(w, 0);
	verified_none(w->store);
}

/* Gives the first mark of the table a later stamp, or takes away what tells the sweep of marks. */
static enum status
damage_mark_body(struct timed *t, struct step *s)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct tuple_reader r;
	struct kv_pair pair;
	uint64_t format, made_us;
	int64_t stamp;

	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, SPACE_MARKS);
	tuple_put_u64(&begin, s->part);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	if (s->part)
		return kv_clear_range(t->tx, buf_str(&begin), buf_str(&end));
	TRY(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL));
	TRY(kv_scan_next(&scan, &pair));
	r = tuple_reader(pair.value);
	TRY(tuple_next_u64(&r, &format));
	TRY(tuple_next_i64(&r, &stamp));
	TRY(tuple_next_u64(&r, &made_us));
	tuple_put_u64(&value, format);
	tuple_put_i64(&value, stamp + 10);
	tuple_put_u64(&value, made_us);
	return kv_set(t->tx, pair.key, buf_str(&value));
}

static void
damage_is_found(void **state)
{
	struct world *w = *state;
	struct op clear = { .kind = OP_CLEAR_ROW };
	struct step s = { .w = w, .body = damage_mark_body };
	struct verified v;

	(void)run_op(w, stamped(put_v(1), 5));
	(void)run_op(w, stamped(clear, 3));
	verified_none(w->store);
	step_run(&s);
	verified_read(w->store, &v);
	assert_int_equal(v.count, 1);
	assert_string_equal(v.last, "table_stamp: its stamp is 5, and a mark says that what has 13 "
				    "or less is deleted");
	s.part = 2; /* TABLE_MARK_DUES */
	step_run(&s);
	verified_read(w->store, &v);
	assert_int_equal(v.count, 2);
	assert_string_equal(v.last, "table_mark: no entry says when the mark was made");
}

static void
some_stamps_are_refused(void **state)
{
	struct world *w = *state;
	struct op op = stamped(put_v(1), INT64_MIN);
	struct step s = { .w = w, .ops = &op, .op_count = 1 };

	assert_int_equal(step_try(&s), STATUS_INVALID);
	op.stamp++;
	step_run(&s);
	op.stamp = INT64_MAX;
	op.changes[0].value.n = 2;
	step_run(&s);
	expect_v(w, 2);
}

/* ---- Setup ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_property grace = { STR(TABLE_PROPERTY_GRACE), STR("60") };
	const struct table_keyspace ks = { .name = STR("ks") };
	struct table_schema t = { .columns = columns,
				  .column_count = sizeof(columns) / sizeof(*columns) };

	TRY(table_keyspace_create(tx, &ks, NULL));
	TRY(packing_create(tx, STR("ks.u"), &t, 0));
	if (arg) {
		t.properties = &grace;
		t.property_count = 1;
	}
	return packing_create(tx, STR("ks.t"), &t, arg ? 0 : TTL_MS);
}

static int
setup(void **state, bool short_grace)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	const char *seed = getenv("FROND_TEST_SEED");
	char url[256];

	test_show_failures();
	tables_register();
	rand_bytes(&w->r.state, sizeof(w->r.state));
	if (seed)
		w->r.state = strtoull(seed, NULL, 10);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)w->r.state);
	test_make_dir("stamps", w->dir, sizeof(w->dir));
	test_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &w->err), STATUS_OK);
	w->arena = arena_new(ARENA_BYTES);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, short_grace ? w : NULL, NULL, &w->err),
			 STATUS_OK);
	*state = w;
	return 0;
}

static int
world_setup(void **state)
{
	return setup(state, false);
}

static int
short_setup(void **state)
{
	return setup(state, true);
}

static int
world_teardown(void **state)
{
	struct world *w = *state;

	while (w->deletions) {
		struct deletion *next = w->deletions->next;

		free(w->deletions);
		w->deletions = next;
	}
	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

#define RANDOM(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define SHORT(test)  cmocka_unit_test_setup_teardown(test, short_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SHORT(only_tables_with_stamps_pay_for_them),
		SHORT(a_stamp_ahead_of_the_clock_outlives_plain_writers),
		SHORT(a_tie_of_numbers_of_any_length_is_decided),
		SHORT(a_tie_of_long_values_is_decided),
		SHORT(marks_are_drawn_and_go_after_the_grace),
		SHORT(the_sweep_of_marks_keeps_what_others_have_told),
		SHORT(a_mark_that_is_made_anew_lasts_anew),
		SHORT(rows_are_put_back_as_they_were),
		SHORT(writers_see_what_has_come_meanwhile),
		SHORT(damage_is_found),
		SHORT(some_stamps_are_refused),
		RANDOM(stamped_writes_in_any_order_end_alike),
		RANDOM(a_copy_remembers_what_was_deleted),
		RANDOM(stamps_order_as_the_model_says),
		RANDOM(stamps_ordered_as_the_model_says),
		RANDOM(indexes_follow_what_stamps_say),
		RANDOM(indexes_follow_what_stamps_say_beside_a_past),
		RANDOM(long_values_are_ordered_by_stamps),
	};

	return cmocka_run_group_tests_name("table_stamps", tests, NULL, NULL);
}

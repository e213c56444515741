/*
 * The past of tables: random changes of rows whose keys and values are of all types of the query
 * languages, by processes whose clocks differ and step back, against a model that keeps every
 * version of every cell, while the table's default for expiry changes. On a cluster each process
 * has a store handle of its own.
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
#include "doc/key.h"
#include "model/timed/rows/rows.h"
#include "random_scalar.h"
#include "store.h"
#include "verified.h"

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	START_MS = 1000 * 1000,
	PROCESSES = 3,
	WINDOW_SECONDS = 60,
	HASHES = 12,
	RANGES = 3,
	COLUMNS = 2,
	MEMBERS = 3, /* 0: the column itself is a scalar */
	CELLS = 1 + COLUMNS * MEMBERS,
	VERSIONS = 1000, /* of a cell */
	VALUE_BYTES = 400,
	KEY_BYTES = 400,
	TTLS = 4,
	SWEEPS = 1000,      /* transactions of one sweep */
	SWEEPS_MOST = 1000, /* that remove something, in a test */
};

/* By how much the clock of each process is ahead. */
static const int64_t skews_ms[PROCESSES] = { 0, 1700, -900 };

static const enum doc_kind hash_kinds[HASHES] = {
	DOC_TEXT, DOC_BYTES, DOC_UUID, DOC_TIMEUUID, DOC_INET,  DOC_BOOL,
	DOC_DATE, DOC_DAY,   DOC_TIME, DOC_INTEGER,  DOC_FLOAT, DOC_DECIMAL,
};
static const enum doc_kind range_kinds[RANGES] = { DOC_INT32, DOC_TEXT, DOC_UUID };
static const enum doc_kind value_kinds[] = {
	DOC_NULL,  DOC_BOOL,     DOC_TEXT,  DOC_BYTES,  DOC_INT8,    DOC_INT16,
	DOC_INT32, DOC_INT64,    DOC_FLOAT, DOC_DOUBLE, DOC_INTEGER, DOC_DECIMAL,
	DOC_UUID,  DOC_TIMEUUID, DOC_DATE,  DOC_DAY,    DOC_TIME,    DOC_INET,
};
/* Defaults that the table gets in turn; 0: none. */
static const uint64_t ttls_ms[TTLS] = { 0, 300, 2000, 9000 };

/* ---- The model ---- */

/* A cell from a moment on. */
struct version {
	uint64_t moment_us;
	uint64_t expires_ms; /* 0: never */
	bool by_default;     /* it expires as the table says at the time of the read */
	bool there;
	size_t len;
	char value[VALUE_BYTES];
};

struct cell {
	struct version *versions; /* the earliest first */
	size_t count;
};

/* What a sweep removed went at some moment of this span, whose end is not part of it. */
struct span {
	uint64_t begin_us;
	uint64_t end_us;
};

struct world {
	char dir[64];
	struct kv_store *stores[PROCESSES];
	unsigned process; /* whose turn it is */
	struct timed_clock clock;
	uint64_t now_ms; /* the true time */
	uint64_t latest_us;
	struct arena *keys;
	struct arena *arena;
	struct doc_scalar hashes[HASHES];
	struct doc_scalar ranges[RANGES];
	struct cell cells[HASHES][RANGES][CELLS];
	uint64_t ttl_ms; /* the table's default */
	struct span sweeps[SWEEPS_MOST];
	size_t sweep_count;
	struct err err;
};

static uint64_t
version_expires_ms(const struct world *w, const struct version *v)
{
	if (!v->by_default)
		return v->expires_ms;
	return w->ttl_ms ? v->moment_us / 1000 + w->ttl_ms : 0;
}

static bool
version_has_expired(const struct world *w, const struct version *v, uint64_t at_us)
{
	uint64_t ms = version_expires_ms(w, v);

	return ms && ms <= at_us / 1000;
}

static const struct version *
cell_at(const struct world *w, const struct cell *cell, uint64_t at_us)
{
	const struct version *found = NULL;

	for (size_t i = cell->count; i-- && !found;)
		if (cell->versions[i].moment_us <= at_us)
			found = &cell->versions[i];
	if (!found || !found->there || version_has_expired(w, found, at_us))
		return NULL;
	return found;
}

static struct version *
cell_add(struct cell *cell, uint64_t moment_us)
{
	struct version *v;

	if (!cell->versions)
		cell->versions = calloc(VERSIONS, sizeof(*cell->versions));
	assert_true(cell->count < VERSIONS);
	v = &cell->versions[cell->count++];
	v->moment_us = moment_us;
	return v;
}

static size_t
live_cells(const struct world *w, const struct cell *cells, uint64_t at_us)
{
	size_t live = 0;

	for (size_t i = 0; i < CELLS; i++)
		live += cell_at(w, &cells[i], at_us) != NULL;
	return live;
}

/* ---- Transactions ---- */

enum change_kind {
	CHANGE_INSERT,
	CHANGE_COLUMN,
	CHANGE_MAP,
	CHANGE_MEMBER,
	CHANGE_CLEAR_ROW,
	CHANGE_CLEAR_COLUMN,
	CHANGE_CLEAR_MEMBER,
	CHANGE_CLEAR_ROWS,
	CHANGE_KINDS,
};

struct change {
	enum change_kind kind;
	unsigned hash, range, column, member; /* column and member from 1 */
	struct doc_scalar values[MEMBERS];
	struct timed_expiry expiry;
	struct timed_history_bounds history; /* with seconds: sets them, and nothing else */
	bool sets_ttl;                       /* sets ttl_ms, and nothing else */
	uint64_t ttl_ms;
};

struct look {
	uint64_t at_us; /* 0: the present */
	size_t rows;
	uint64_t random;
};

struct step {
	struct world *w;
	const struct change *change;
	struct look *look;
	enum status status;
	uint64_t now_us;
};

static uint64_t
world_now(void *arg)
{
	const struct world *w = arg;

	return w->now_ms + (uint64_t)skews_ms[w->process];
}

static struct doc_scalar
member_key(unsigned member)
{
	if (member == 1)
		return (struct doc_scalar){ .kind = DOC_TEXT, .text = STR("x") };
	return (struct doc_scalar){ .kind = DOC_INT64, .n = 5 };
}

static enum status
change_run(struct timed *t, const struct world *w, const struct change *c)
{
	const struct doc_scalar parts[] = { w->hashes[c->hash], w->ranges[c->range] };
	const struct timed_key key = { parts, 2 };
	const struct timed_key hash = { parts, 1 };
	const struct timed_rows rows = { .hash = &hash };
	const struct timed_step steps[] = { { .column = c->column },
					    { .key = member_key(c->member) } };
	const struct timed_step x = { .key = member_key(1) }, y = { .key = member_key(2) };
	const struct timed_path column = { steps, 1 }, member = { steps, 2 }, row = { NULL, 0 };
	const struct timed_value one = { .value = c->values[0] };
	const struct timed_value map[] = { { .path = { &x, 1 }, .value = c->values[1] },
					   { .path = { &y, 1 }, .value = c->values[2] } };
	bool more;

	if (c->history.seconds)
		return timed_history_set(t, c->history);
	if (c->sets_ttl)
		return timed_ttl_set(t, c->ttl_ms);
	switch (c->kind) {
	case CHANGE_INSERT:
		return timed_insert(t, &key, c->expiry);
	case CHANGE_COLUMN:
		return timed_put(t, &key, &column, &one, 1, c->expiry);
	case CHANGE_MAP:
		return timed_put(t, &key, &column, map, 2, c->expiry);
	case CHANGE_MEMBER:
		return timed_put(t, &key, &member, &one, 1, c->expiry);
	case CHANGE_CLEAR_ROW:
		return timed_clear(t, &key, &row);
	case CHANGE_CLEAR_COLUMN:
		return timed_clear(t, &key, &column);
	case CHANGE_CLEAR_MEMBER:
		return timed_clear(t, &key, &member);
	case CHANGE_CLEAR_ROWS:
	case CHANGE_KINDS:
		break;
	}
	TRY(timed_clear_rows(t, &rows, &more));
	assert_false(more);
	return STATUS_OK;
}

/* ---- Comparing ---- */

static struct str
encoded(struct arena *arena, const struct doc_scalar *s)
{
	struct buf value = BUF_INIT(VALUE_BYTES);
	struct str ret;

	doc_scalar_put(&value, s);
	assert_int_equal(buf_status(&value), STATUS_OK);
	ret = arena_dup(arena, buf_str(&value));
	buf_release(&value);
	return ret;
}

/* Numbers come back from a key as another kind with the same value. */
static bool
same_in_key(const struct doc_scalar *a, const struct doc_scalar *b)
{
	AUTO(buf_release) struct buf x = BUF_INIT(KEY_BYTES);
	AUTO(buf_release) struct buf y = BUF_INIT(KEY_BYTES);

	assert_int_equal(doc_key_put(&x, DOC_KEY_TYPED, a), STATUS_OK);
	assert_int_equal(doc_key_put(&y, DOC_KEY_TYPED, b), STATUS_OK);
	return str_eq(buf_str(&x), buf_str(&y));
}

/* One row is as it was, or is not there if it was not. */
static void
compare_row(struct world *w, const struct cell *cells, const struct timed_row *row, uint64_t at_us)
{
	const struct version *own = cell_at(w, &cells[0], at_us);

	assert_int_equal(row->type, own ? TIMED_INSERTED : TIMED_LEAF);
	assert_int_equal(row->leaf_count, live_cells(w, cells, at_us) - (own != NULL));
	for (size_t i = 0; i < row->leaf_count; i++) {
		const struct timed_leaf *leaf = &row->leaves[i];
		const struct timed_path *path = &leaf->path;
		size_t member = path->count == 1 ? 0 : path->steps[1].key.kind == DOC_TEXT ? 1 : 2;
		const struct version *v = cell_at(
			w, &cells[1 + (path->steps[0].column - 1) * MEMBERS + member], at_us);

		assert_non_null(v);
		assert_int_equal(leaf->write_us, v->moment_us);
		assert_int_equal(leaf->expires_ms, version_expires_ms(w, v));
		assert_true(str_eq(encoded(w->arena, &leaf->value), str_of(v->value, v->len)));
	}
}

/* All rows by one scan, and one of them by itself. */
static enum status
look_run(struct timed *t, struct world *w, struct look *look, uint64_t *ret_at_us)
{
	unsigned h = (unsigned)(look->random % HASHES), r = (unsigned)(look->random / 100 % RANGES);
	const struct doc_scalar parts[] = { w->hashes[h], w->ranges[r] };
	const struct timed_key key = { parts, 2 };
	struct timed_scan scan;
	struct timed_row row;
	enum status status;

	look->rows = 0;
	if (look->at_us)
		timed_at_us(t, look->at_us);
	status = timed_read(t, &key, &(struct timed_path){ NULL, 0 }, w->arena, &row);
	*ret_at_us = look->at_us ? look->at_us : t->now_us;
	if (status == STATUS_NOT_FOUND)
		assert_int_equal(live_cells(w, w->cells[h][r], *ret_at_us), 0);
	else if (status != STATUS_OK)
		return status;
	else
		compare_row(w, w->cells[h][r], &row, *ret_at_us);
	status = timed_scan_open(&scan, t, NULL);
	while (status == STATUS_OK) {
		status = timed_scan_next(&scan, w->arena, &row);
		if (status != STATUS_OK)
			break;
		for (h = 0; h < HASHES && !same_in_key(&row.key[0], &w->hashes[h]);)
			h++;
		for (r = 0; r < RANGES && !same_in_key(&row.key[1], &w->ranges[r]);)
			r++;
		assert_true(h < HASHES && r < RANGES);
		compare_row(w, w->cells[h][r], &row, *ret_at_us);
		look->rows++;
	}
	timed_scan_close(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;
	struct world *w = s->w;
	struct catalog_db *db;
	struct timed t;

	arena_clear(w->arena);
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_ROWS, STR("t"), &db, NULL));
	timed_init(&t, tx, db, &w->clock, &w->err);
	s->status = s->change ? change_run(&t, w, s->change) : look_run(&t, w, s->look, &s->now_us);
	if (s->change)
		s->now_us = t.now_us;
	catalog_db_unref(db);
	return s->status == STATUS_INVALID ? STATUS_OK : s->status;
}

static enum status
world_run(struct world *w, struct step *s)
{
	s->w = w;
	if (kv_run(w->stores[w->process], step_body, s, NULL, &w->err) != STATUS_OK)
		fail_msg("%s: %s", status_name(s->status), w->err.text);
	return s->status;
}

/* ---- Random changes ---- */

static struct change
change_make(struct world *w, struct rand_seq *r, struct arena *arena)
{
	static const enum change_kind kinds[] = {
		CHANGE_INSERT, CHANGE_COLUMN,       CHANGE_COLUMN,       CHANGE_MAP,
		CHANGE_MEMBER, CHANGE_MEMBER,       CHANGE_MEMBER,       CHANGE_CLEAR_ROW,
		CHANGE_INSERT, CHANGE_CLEAR_MEMBER, CHANGE_CLEAR_COLUMN, CHANGE_CLEAR_ROWS,
	};
	struct change c = {
		.kind = kinds[rand_seq_below(r, sizeof(kinds) / sizeof(*kinds))],
		.hash = (unsigned)rand_seq_below(r, HASHES),
		.range = (unsigned)rand_seq_below(r, RANGES),
		.column = 1 + (unsigned)rand_seq_below(r, COLUMNS),
		.member = 1 + (unsigned)rand_seq_below(r, MEMBERS - 1),
		.expiry = { .kind = TIMED_EXPIRY_NEVER },
	};
	size_t count = sizeof(value_kinds) / sizeof(*value_kinds);

	for (size_t i = 0; i < MEMBERS; i++)
		c.values[i] = random_scalar_of(r, arena, value_kinds[rand_seq_below(r, count)]);
	if (rand_seq_below(r, 3) == 0)
		c.expiry = (struct timed_expiry){ TIMED_EXPIRY_AFTER, 1 + rand_seq_below(r, 9000) };
	else if (rand_seq_below(r, 2) == 0)
		c.expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	else if (rand_seq_below(r, 4) == 0)
		c.expiry = (struct timed_expiry){ TIMED_EXPIRY_AT,
						  w->now_ms + rand_seq_below(r, 5000) };
	return c;
}

/* What a cell is from a moment on; NULL: it is not there. */
static void
cell_set(struct world *w, struct cell *cell, const struct change *c, uint64_t now_us,
	 const struct doc_scalar *value)
{
	struct version *v = cell_add(cell, now_us);
	struct str bytes;

	if (!value)
		return;
	bytes = encoded(w->arena, value);
	assert_true(bytes.len <= sizeof(v->value));
	memcpy(v->value, bytes.ptr, bytes.len);
	v->len = bytes.len;
	v->there = true;
	v->by_default = c->expiry.kind == TIMED_EXPIRY_DEFAULT;
	if (c->expiry.kind == TIMED_EXPIRY_AFTER)
		v->expires_ms = now_us / 1000 + c->expiry.ms;
	else if (c->expiry.kind == TIMED_EXPIRY_AT)
		v->expires_ms = c->expiry.ms;
}

static void
change_model(struct world *w, const struct change *c, uint64_t now_us)
{
	static const struct doc_scalar null = { .kind = DOC_NULL };
	struct cell *row = w->cells[c->hash][c->range];
	struct cell *column = &row[1 + (c->column - 1) * MEMBERS];
	bool all = c->kind == CHANGE_CLEAR_ROWS;

	switch (c->kind) {
	case CHANGE_INSERT:
		cell_set(w, &row[0], c, now_us, &null);
		break;
	case CHANGE_COLUMN:
	case CHANGE_MAP:
	case CHANGE_CLEAR_COLUMN:
		for (size_t m = 0; m < MEMBERS; m++)
			cell_set(w, &column[m], c, now_us,
				 c->kind == (m ? CHANGE_MAP : CHANGE_COLUMN) ? &c->values[m]
									     : NULL);
		break;
	case CHANGE_MEMBER:
		cell_set(w, &column[0], c, now_us, NULL);
		cell_set(w, &column[c->member], c, now_us, &c->values[0]);
		break;
	case CHANGE_CLEAR_MEMBER:
		cell_set(w, &column[c->member], c, now_us, NULL);
		break;
	case CHANGE_CLEAR_ROW:
	case CHANGE_CLEAR_ROWS:
	case CHANGE_KINDS:
		for (size_t r = all ? 0 : c->range; r < (all ? RANGES : c->range + 1); r++)
			for (size_t i = 0; i < CELLS; i++)
				cell_set(w, &w->cells[c->hash][r][i], c, now_us, NULL);
		break;
	}
}

/* The moment that a transaction of the process has now. */
static uint64_t
world_moment(struct world *w)
{
	struct look look = { 0 };
	struct step step = { .look = &look };

	assert_int_equal(world_run(w, &step), STATUS_OK);
	return step.now_us;
}

/* Removes what has expired by the end of the span. No moment within the span is read. */
static void
sweep_model(struct world *w, const struct span *span)
{
	struct cell *cells = &w->cells[0][0][0];

	for (size_t i = 0; i < sizeof(w->cells) / sizeof(*cells); i++) {
		const struct version *v = cells[i].count ? &cells[i].versions[cells[i].count - 1]
							 : NULL;

		if (v && v->there && version_has_expired(w, v, span->end_us))
			(void)cell_add(&cells[i], span->begin_us);
	}
}

/*
 * Removes what has expired. That makes no difference to a reader, unless it expired by a default
 * that is another one later: the past then shows it until it was removed.
 */
static void
world_sweep(struct world *w)
{
	struct span span = { .end_us = world_moment(w) };
	uint64_t last_us;
	bool more;
	uint64_t done;

	span.begin_us = span.end_us;
	/* Each transaction has a later moment; the last sweep begins and ends in one millisecond,
	 * so what has expired by its end was removed. */
	do {
		last_us = span.end_us;
		more = true;
		for (int i = 0; more && i < SWEEPS; i++)
			assert_int_equal(timed_sweep(w->stores[w->process], &w->clock, 10, &done,
						     &more, &w->err),
					 STATUS_OK);
		assert_false(more);
		span.end_us = world_moment(w);
	} while (span.end_us / 1000 != last_us / 1000);
	sweep_model(w, &span);
	if (span.end_us == span.begin_us)
		return;
	assert_true(w->sweep_count < SWEEPS_MOST);
	w->sweeps[w->sweep_count++] = span;
}

static bool
is_within_a_sweep(const struct world *w, uint64_t at_us)
{
	for (size_t i = 0; i < w->sweep_count; i++)
		if (at_us >= w->sweeps[i].begin_us && at_us < w->sweeps[i].end_us)
			return true;
	return false;
}

/* Gives the table another default, which counts for the present and for the past. */
static void
world_set_ttl(struct world *w, uint64_t ttl_ms)
{
	const struct change c = { .sets_ttl = true, .ttl_ms = ttl_ms };
	struct step step = { .change = &c };

	assert_int_equal(world_run(w, &step), STATUS_OK);
	w->latest_us = step.now_us;
	w->ttl_ms = ttl_ms;
}

/* Compares all rows at a moment; false if the history does not go back that far. */
static bool
compare(struct world *w, uint64_t at_us, uint64_t random)
{
	struct look look = { .at_us = at_us, .random = random };
	struct step step = { .look = &look };
	size_t rows = 0;

	if (world_run(w, &step) == STATUS_INVALID) {
		assert_true(at_us && at_us + WINDOW_SECONDS * UINT64_C(1000000) < w->latest_us);
		return false;
	}
	for (size_t h = 0; h < HASHES; h++)
		for (size_t r = 0; r < RANGES; r++)
			rows += live_cells(w, w->cells[h][r], step.now_us) > 0;
	assert_int_equal(look.rows, rows);
	return true;
}

static void
every_version_of_every_cell_is_read_as_it_was(void **state)
{
	struct world *w = *state;
	struct rand_seq r = { test_seed() };
	/* Bytes that are counted change nothing of what is read. */
	const struct change history = {
		.history = { .seconds = WINDOW_SECONDS,
			     .bytes = rand_seq_below(&r, 2) ? INT64_MAX : 0 },
	};
	uint64_t first_us;
	struct step step = { .change = &history };
	int rounds = test_rounds(900);
	int seen = 0, gone = 0;

	assert_int_equal(world_run(w, &step), STATUS_OK);
	world_sweep(w);
	first_us = w->latest_us = step.now_us;
	for (int i = 0; i < rounds; i++) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct change c = change_make(w, &r, arena);

		w->process = (unsigned)rand_seq_below(&r, PROCESSES);
		w->now_ms += rand_seq_below(&r, 400);
		/* All clocks step back together, now and then. */
		if (rand_seq_below(&r, 20) == 0)
			w->now_ms -= rand_seq_below(&r, 1500);
		step = (struct step){ .change = &c };
		assert_int_equal(world_run(w, &step), STATUS_OK);
		assert_true(step.now_us > w->latest_us);
		w->latest_us = step.now_us;
		change_model(w, &c, step.now_us);
		arena_free(arena);
		if (rand_seq_below(&r, 15) == 0)
			world_sweep(w);
		if (rand_seq_below(&r, 25) == 0)
			world_set_ttl(w, ttls_ms[rand_seq_below(&r, TTLS)]);
		if (rand_seq_below(&r, 4) == 0)
			assert_true(compare(w, 0, rand_seq_next(&r)));
		if (rand_seq_below(&r, 2) == 0) {
			uint64_t at_us = w->latest_us -
					 rand_seq_below(&r, w->latest_us - first_us + 1);

			if (is_within_a_sweep(w, at_us))
				continue;
			if (compare(w, at_us, rand_seq_next(&r)))
				seen++;
			else
				gone++;
		}
	}
	assert_true(seen > 20);
	print_message("# %d moments read, %d too old\n", seen, gone);
	verified_none(w->stores[0]);
}

/* ---- Setup ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct timed_key_column key[] = { { .name = STR("a") },
					  { .name = STR("b"), .descending = true } };
	struct str columns[] = { STR("c"), STR("d") };
	const struct timed_schema table = { key, 1, 2, columns, COLUMNS };

	(void)arg;
	return timed_create(tx, STR("t"), &table, 0, NULL);
}

static int
world_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct rand_seq r = { 7 };
	char url[256];

	test_show_failures();
	timed_rows_register();
	test_make_dir("past", w->dir, sizeof(w->dir));
	test_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->stores[0], &w->err), STATUS_OK);
	for (int i = 1; i < PROCESSES; i++) {
		w->stores[i] = w->stores[0];
		if (!test_store_is_cluster())
			continue;
		(void)snprintf(url, sizeof(url), "fdb:%s", test_store_cluster());
		assert_int_equal(kv_open(url, &(struct kv_options){ 0 }, &w->stores[i], &w->err),
				 STATUS_OK);
	}
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	w->arena = arena_new(ARENA_BYTES);
	w->keys = arena_new(ARENA_BYTES);
	for (size_t i = 0; i < HASHES; i++)
		w->hashes[i] = random_scalar_of(&r, w->keys, hash_kinds[i]);
	for (size_t i = 0; i < RANGES; i++)
		w->ranges[i] = random_scalar_of(&r, w->keys, range_kinds[i]);
	assert_int_equal(kv_run(w->stores[0], create_body, NULL, NULL, &w->err), STATUS_OK);
	*state = w;
	return 0;
}

static int
world_teardown(void **state)
{
	struct world *w = *state;

	for (int i = PROCESSES; i--;)
		if (!i || w->stores[i] != w->stores[0])
			kv_close(w->stores[i]);
	for (size_t h = 0; h < HASHES; h++)
		for (size_t r = 0; r < RANGES; r++)
			for (size_t i = 0; i < CELLS; i++)
				free(w->cells[h][r][i].versions);
	arena_free(w->arena);
	arena_free(w->keys);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_version_of_every_cell_is_read_as_it_was,
						world_setup, world_teardown),
	};

	return cmocka_run_group_tests_name("past", tests, NULL, NULL);
}

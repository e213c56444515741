/*
 * The past of items: random operations, by clocks that step back, against all versions of a model;
 * listings, a database that has lost its schema, and what steps of the sweep tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/verify.h"
#include "items/items_model.h"
#include "kv/tuple.h"
#include "model/timed/items/item_int.h"
#include "model/timed/timed_int.h"
#include "model/timed/versions.h"
#include "store.h"

enum {
	WINDOW_SECONDS = 40,
	BOUND_BYTES = 60 * 1000,
	LONG_BYTES = 20 * 1000,
	SNAPSHOTS = 100,
};

/* All versions of the model, each as it was at a moment, which its number among them chooses. */
struct snapshots {
	uint64_t at_ms[SNAPSHOTS];
	struct items_model models[SNAPSHOTS];
	size_t count;
};

static void
snapshots_add(struct snapshots *s, const struct items_model *model, uint64_t at_ms)
{
	size_t at = s->count++ % SNAPSHOTS;

	/* A transaction that writes nothing moves no clock: a later one may be at the same moment,
	 * or before it. */
	for (size_t i = 0; i < SNAPSHOTS; i++)
		if (s->at_ms[i] >= at_ms)
			s->at_ms[i] = 0;
	s->at_ms[at] = at_ms;
	for (int i = 0; i < ITEMS_KEYS; i++)
		items_model_copy(&s->models[at].items[i], &model->items[i]);
}

static enum status
history_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_history_bounds *bounds = arg;

	(void)arena;
	return timed_history_set(t, *bounds);
}

static void
history_set(struct items *f, struct timed_history_bounds bounds)
{
	items_must(f, history_run, &bounds);
}

static enum status
info_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	return timed_history_info_get(t, arg);
}

static struct timed_history_info
history_info(struct items *f)
{
	struct timed_history_info info;

	items_must(f, info_run, &info);
	return info;
}

/* A version of the past, all of it; false if the history does not go back that far. */
static bool
compare_snapshot(struct items *f, const struct snapshots *s, struct rand_seq *r)
{
	size_t at = rand_seq_below(r, s->count < SNAPSHOTS ? s->count : SNAPSHOTS);
	struct items_compare c = { .f = f, .random = rand_seq_next(r), .at_ms = s->at_ms[at] };
	struct timed_history_info info;

	if (!c.at_ms)
		return true;
	info = history_info(f);
	for (c.key = 0; c.key < ITEMS_KEYS; c.key++) {
		enum status status;

		c.m = &s->models[at].items[c.key];
		status = items_try(f, "0", items_compare, &c);
		if (status == STATUS_INVALID && c.at_ms < info.oldest_ms) {
			assert_non_null(strstr(f->err.text, "begins at"));
			return false;
		}
		if (status != STATUS_OK)
			fail_msg("%s: %s", status_name(status), f->err.text);
	}
	return true;
}

/* Random operations; what is within the bounds is read as it was, and nothing else is read. */
struct past {
	struct items *f;
	struct rand_seq r;
	struct snapshots *s;
	struct items_model model;
	int seen, gone;
};

static void
past_begin(struct past *p, struct items *f)
{
	*p = (struct past){ .f = f, .r = { test_seed() }, .s = calloc(1, sizeof(*p->s)) };
	assert_non_null(p->s);
}

static void
past_round(struct past *p)
{
	struct items *f = p->f;
	struct items_change c = items_change(f, &p->model, &p->r);

	snapshots_add(p->s, &p->model, c.now_us / 1000);
	/* Clocks of several processes: most go on, some are behind. */
	f->now_ms += 1 + rand_seq_below(&p->r, 1500);
	if (rand_seq_below(&p->r, 10) == 0)
		f->now_ms -= rand_seq_below(&p->r, 1000);
	if (f->now_ms < f->expired_ms)
		f->now_ms = f->expired_ms;
	if (rand_seq_below(&p->r, 10) == 0)
		items_sweep(f);
	if (rand_seq_below(&p->r, 3) == 0) {
		if (compare_snapshot(f, p->s, &p->r))
			p->seen++;
		else
			p->gone++;
	}
}

/* Switches the history off: nothing of the past is left. */
static void
past_end(struct past *p)
{
	struct items *f = p->f;

	items_verify(f);
	print_message("# %d versions read, %d too old\n", p->seen, p->gone);
	history_set(f, (struct timed_history_bounds){ 0 });
	items_verify(f);
	f->now_ms += 1000 * 1000;
	items_sweep(f);
	assert_int_equal(items_pairs(f, SPACE_UNDO), 0);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
	assert_int_equal(items_pairs(f, SPACE_HELD), 0);
	assert_int_equal(items_pairs(f, SPACE_WEIGH), 0);
	items_verify(f);
	for (int i = 0; i < ITEMS_KEYS; i++) {
		items_model_clear(&p->model.items[i]);
		for (int j = 0; j < SNAPSHOTS; j++)
			items_model_clear(&p->s->models[j].items[i]);
	}
	free(p->s);
}

static int
past_rounds(void)
{
	return test_rounds(400);
}

static void
what_was_is_read_as_it_was(void **state)
{
	struct items *f = *state;
	struct past p;

	past_begin(&p, f);
	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	items_sweep(f);
	f->now_ms++;
	for (int i = 0; i < past_rounds(); i++)
		past_round(&p);
	assert_true(p.seen > 10);
	assert_int_equal(items_pairs(f, SPACE_HELD), 0);
	past_end(&p);
}

/* ---- Bytes ---- */

/* The window is longer than the test. */
#define BOUNDED                                                                                    \
	(struct timed_history_bounds)                                                              \
	{                                                                                          \
		.seconds = 1000 * 1000, .bytes = BOUND_BYTES                                       \
	}

static void
what_is_within_the_bytes_is_read_as_it_was(void **state)
{
	struct items *f = *state;
	struct timed_history_info info = { 0 };
	uint64_t oldest_ms = 0, most = 0;
	struct past p;

	past_begin(&p, f);
	history_set(f, BOUNDED);
	items_sweep(f);
	f->now_ms++;
	for (int i = 0; i < past_rounds(); i++) {
		past_round(&p);
		if (i % 5)
			continue;
		items_sweep(f);
		if (i % 20 == 0)
			items_verify(f);
		info = history_info(f);
		assert_true(info.held_all);
		assert_in_range(info.held_bytes, 0, BOUND_BYTES);
		assert_true(info.oldest_ms >= oldest_ms);
		oldest_ms = info.oldest_ms;
		most = info.held_bytes > most ? info.held_bytes : most;
	}
	/* Not everything goes at once, but where what came last is as large as the bound. */
	assert_true(most > BOUND_BYTES / 4);
	assert_true(oldest_ms > ITEMS_START_MS + 1000);
	assert_true(p.seen > 5);
	past_end(&p);
}

/* What had been recorded before is counted by the sweep, the newest first. */
static void
bytes_of_a_history_that_there_is_can_be_bounded(void **state)
{
	struct timed_history_bounds bounds = { .seconds = 1000 * 1000 };
	struct items *f = *state;
	struct timed_history_info info;
	uint64_t held, oldest_ms;
	struct past p;

	past_begin(&p, f);
	history_set(f, bounds);
	items_sweep(f);
	f->now_ms++;
	for (int i = 0; i < past_rounds(); i++)
		past_round(&p);
	oldest_ms = history_info(f).oldest_ms;
	bounds.bytes = INT64_MAX;
	history_set(f, bounds);
	info = history_info(f);
	assert_false(info.held_all);
	items_verify(f);
	for (bool more = true; more;) {
		uint64_t done;

		/* Between any two slices a check finds nothing, and others write. */
		assert_int_equal(timed_sweep(f->store, &f->clock, 1, &done, &more, &f->err),
				 STATUS_OK);
		items_verify(f);
		past_round(&p);
	}
	items_sweep(f);
	info = history_info(f);
	assert_true(info.held_all);
	assert_int_equal(info.oldest_ms, oldest_ms);
	held = info.held_bytes;
	assert_true(held > BOUND_BYTES);
	/* What is too much goes at once. */
	bounds.bytes = BOUND_BYTES;
	history_set(f, bounds);
	items_sweep(f);
	items_verify(f);
	info = history_info(f);
	assert_in_range(info.held_bytes, 0, BOUND_BYTES);
	assert_true(info.oldest_ms > oldest_ms);
	/* Without the bound nobody counts, and with it again all is counted again. */
	oldest_ms = info.oldest_ms;
	bounds.bytes = 0;
	history_set(f, bounds);
	assert_int_equal(items_pairs(f, SPACE_HELD), 0);
	for (int i = 0; i < 20; i++)
		past_round(&p);
	items_verify(f);
	bounds.bytes = INT64_MAX;
	history_set(f, bounds);
	items_sweep(f);
	items_verify(f);
	info = history_info(f);
	assert_true(info.held_all);
	assert_int_equal(info.oldest_ms, oldest_ms);
	past_end(&p);
}

static void
a_history_refuses_bounds_that_make_no_sense(void **state)
{
	struct timed_history_bounds refused[] = {
		{ .seconds = TIMED_HISTORY_SECONDS + UINT64_C(1) },
		{ .seconds = 1, .bytes = INT64_MAX + UINT64_C(1) },
		{ .bytes = 1 },
		{ .seconds = WINDOW_SECONDS, .versions = TIMED_HISTORY_VERSIONS + 1 },
		{ .versions = 1 },
	};
	struct items *f = *state;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(items_try(f, "0", history_run, &refused[i]), STATUS_INVALID);
}

/* ---- The check ---- */

/* A record in the oldest bucket that nothing can have written. */
static enum status
damage_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	(void)arena;
	(void)arg;
	buf_append_str(&key, t->db->prefix);
	tuple_put_u64(&key, SPACE_UNDO);
	tuple_put_u64(&key, 1);
	tuple_put_bytes(&key, STR("x"));
	TRY(buf_status(&key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

static void
count_found(const struct catalog_finding *finding, void *arg)
{
	unsigned *count = arg;

	assert_string_equal(finding->kind, "row_history");
	++*count;
}

static enum status
check_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = count_found, .arg = arg };
	struct catalog_verify_sum sum;

	*(unsigned *)arg = 0;
	return catalog_verify_store(tx, &options, &sum, NULL);
}

static void
a_record_of_the_past_that_cannot_be_one_is_found(void **state)
{
	struct items *f = *state;
	unsigned count;

	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	items_must(f, damage_run, NULL);
	assert_int_equal(kv_run_read(f->store, check_body, &count, NULL), STATUS_OK);
	assert_int_equal(count, 1);
}

static void
count_any(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	++*(unsigned *)arg;
}

static enum status
check_any_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = count_any, .arg = arg };
	struct catalog_verify_sum sum;

	*(unsigned *)arg = 0;
	return catalog_verify_store(tx, &options, &sum, NULL);
}

/*
 * A horizon, before which nothing is known of what has a key in that subspace; or, by its `kind`,
 * what says that a body was given to another header, which names no subspace.
 */
struct horizon {
	uint64_t space;
	unsigned parts; /* of the key there */
	unsigned kind;  /* 0: a horizon */
	unsigned eras;  /* behind the one that is written to */
};

static enum status
horizon_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct horizon *h = arg;

	(void)arena;
	TRY(timed_write_begin(t)); /* reads the state of the history */
	timed_versions_key(
		t->db, timed_versions_era(t->state.buckets[t->state.count - 1].number) + h->eras,
		h->kind ? h->kind : TIMED_VERSION_HORIZON, &key);
	if (!h->kind)
		tuple_put_u64(&key, h->space);
	for (unsigned i = 0; i < h->parts; i++)
		tuple_put_bytes(&key, STR("x"));
	TRY(buf_status(&key));
	return kv_set(t->tx, buf_str(&key), STR("\1\0\0\0\0\0\0\0"));
}

static enum status
write_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("x"), arena, &item));
	return timed_value_set(&item, STR("v"), (struct timed_expiry){ 0 });
}

/* Without a sweep in between, and nearly at once: what is left is none of the new one. */
static void
a_history_that_begins_again_has_nothing_of_the_one_before(void **state)
{
	struct items *f = *state;
	unsigned count;

	for (uint64_t versions = 0; versions <= 3; versions += 3) {
		const struct timed_history_bounds bounds = { .seconds = WINDOW_SECONDS,
							     .versions = versions };

		for (unsigned again = 0; again < 4; again++) {
			history_set(f, bounds);
			for (unsigned i = 0; i < 3; i++)
				items_must(f, write_run, NULL);
			assert_int_equal(kv_run_read(f->store, check_any_body, &count, NULL),
					 STATUS_OK);
			assert_int_equal(count, 0);
			history_set(f, (struct timed_history_bounds){ 0 });
		}
		items_sweep(f);
		items_verify(f);
	}
}

static void
horizons_are_of_headers_and_of_bodies(void **state)
{
	static const struct {
		struct horizon horizon;
		bool fine;
	} cases[] = {
		{ { .space = TIMED_SPACE_ROWS, .parts = 2 }, true },
		{ { .space = TIMED_SPACE_BODY, .parts = 1 }, true },
		{ { .space = TIMED_SPACE_ROWS, .parts = 1 }, false },
		{ { .space = TIMED_SPACE_BODY, .parts = 2 }, false },
		{ { .space = TIMED_SPACE_ROWS, .parts = 3 }, false },
		{ { .space = TIMED_SPACE_BODY, .parts = 0 }, false },
		{ { .space = SPACE_HELD, .parts = 1 }, false },
		{ { .space = SPACE_UNDO, .parts = 1 }, false },
		{ { .space = 99, .parts = 1 }, false },
		{ { .kind = TIMED_VERSION_SHARED, .parts = 1 }, true },
		{ { .kind = TIMED_VERSION_SHARED, .parts = 0 }, false },
		{ { .kind = TIMED_VERSION_SHARED, .parts = 2 }, false },
		{ { .kind = TIMED_VERSION_SHARED + 1, .parts = 1 }, false },
		/* Nobody has written to an era that has not begun. */
		{ { .space = TIMED_SPACE_ROWS, .parts = 2, .eras = 1 }, false },
		{ { .kind = TIMED_VERSION_SHARED, .parts = 1, .eras = 1 }, false },
	};
	struct items *f = *state;
	unsigned count;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct horizon h = cases[i].horizon;

		history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS,
							      .versions = 3 });
		items_must(f, write_run, NULL);
		items_must(f, horizon_run, &h);
		assert_int_equal(kv_run_read(f->store, check_any_body, &count, NULL), STATUS_OK);
		if (!count != cases[i].fine)
			fail_msg("case %zu, a key of %u parts in %llu: %u", i, h.parts,
				 (unsigned long long)h.space, count);
		history_set(f, (struct timed_history_bounds){ 0 });
		items_sweep(f);
		items_verify(f);
	}
}

/* A value in chunks, which leaves a body when it is overwritten. */
static enum status
write_long_run(struct timed *t, struct arena *arena, void *arg)
{
	static const char bytes[LONG_BYTES];
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("x"), arena, &item));
	return timed_value_set(&item, str_of(bytes, sizeof(bytes)), (struct timed_expiry){ 0 });
}

/* The first pair of a subspace of the database is cleared, or gets another value. */
struct pair_damage {
	uint64_t space;
	struct str value; /* `ptr` NULL: it is cleared */
	bool weighed;     /* after the sweep */
};

static enum status
pair_damage_run(struct timed *t, struct arena *arena, void *arg)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct pair_damage *d = arg;
	struct kv_future *future;
	struct kv_range range;

	(void)arena;
	buf_append_str(&begin, t->db->prefix);
	tuple_put_u64(&begin, d->space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	future = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(future));
	range = kv_future_range(future);
	assert_int_equal(range.count, 1);
	return d->value.ptr ? kv_set(t->tx, range.pairs[0].key, d->value)
			    : kv_clear(t->tx, range.pairs[0].key);
}

static void
bytes_that_the_records_do_not_have_are_found(void **state)
{
	static const struct pair_damage damages[] = {
		{ SPACE_HELD, { NULL, 0 }, false },
		{ SPACE_HELD, { "\1\0\0\0\0\0\0\0", 8 }, false },
		{ SPACE_HELD, { "x", 1 }, false },
		{ SPACE_UNDO, { NULL, 0 }, false },
		{ SPACE_WEIGH, { NULL, 0 }, false },
		{ SPACE_WEIGH, { "x", 1 }, false },
		{ SPACE_GONE, { "", 0 }, true },
		{ SPACE_GONE, { "\1\0\0\0\0\0\0\0", 8 }, true },
		{ SPACE_GONE, { "x", 1 }, true },
	};
	struct items *f = *state;
	unsigned count;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		history_set(f, BOUNDED);
		items_must(f, write_long_run, NULL);
		items_must(f, write_run, NULL);
		if (damages[i].weighed)
			items_sweep(f);
		items_verify(f);
		items_must(f, pair_damage_run, (void *)(uintptr_t)&damages[i]);
		assert_int_equal(kv_run_read(f->store, check_body, &count, NULL), STATUS_OK);
		assert_true(count >= 1);
		history_set(f, (struct timed_history_bounds){ 0 });
		items_sweep(f);
		items_verify(f);
	}
}

static enum status
weigh_run(struct timed *t, struct arena *arena, void *arg)
{
	uint64_t done = 0;
	bool more;

	(void)arena;
	TRY(timed_now(t));
	TRY(timed_weigh(t, &done, &more));
	*(bool *)arg = done > 0;
	return STATUS_OK;
}

/* Otherwise its bytes would count twice. */
static void
a_body_is_weighed_once(void **state)
{
	struct items *f = *state;
	struct kv_tx *tx;
	bool done = true;

	history_set(f, BOUNDED);
	items_sweep(f);
	items_must(f, write_long_run, NULL);
	items_must(f, write_run, NULL);
	arena_clear(f->arena);
	tx = items_open(f, false, weigh_run, &done);
	assert_true(done);
	items_must(f, weigh_run, &done);
	assert_int_equal(items_commit(tx), STATUS_TX_CONFLICT);
	items_must(f, weigh_run, &done);
	assert_false(done);
	items_verify(f);
}

/* What went before bytes were bounded, which is listed first. */
static void
a_body_is_listed_once(void **state)
{
	struct items *f = *state;
	struct kv_tx *tx;
	bool done = true;

	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	items_sweep(f);
	items_must(f, write_long_run, NULL);
	items_must(f, write_run, NULL);
	history_set(f, BOUNDED);
	arena_clear(f->arena);
	tx = items_open(f, false, weigh_run, &done);
	assert_true(done);
	items_must(f, weigh_run, &done);
	assert_int_equal(items_commit(tx), STATUS_TX_CONFLICT);
	items_sweep(f);
	items_verify(f);
}

enum {
	LARGE_BODIES = 2,
	LARGE_BODY_BYTES = 1200 * 1000, /* more than are weighed by one transaction */
};

static enum status
write_large_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *which = arg;
	struct str bytes = { arena_zalloc(arena, LARGE_BODY_BYTES), LARGE_BODY_BYTES };
	struct timed_item item;

	TRY(timed_item_open(t, arena_printf(arena, "large%u", *which), arena, &item));
	return timed_value_set(&item, bytes, (struct timed_expiry){ 0 });
}

static enum status
delete_large_run(struct timed *t, struct arena *arena, void *arg)
{
	const unsigned *which = arg;
	struct timed_item item;

	TRY(timed_item_open(t, arena_printf(arena, "large%u", *which), arena, &item));
	return timed_item_delete(&item);
}

static enum status
weigh_some_run(struct timed *t, struct arena *arena, void *arg)
{
	uint64_t *done = arg;
	bool more;

	(void)arena;
	*done = 0;
	TRY(timed_now(t));
	return timed_weigh(t, done, &more);
}

static void
large_bodies_are_weighed_in_slices(void **state)
{
	struct items *f = *state;
	uint64_t done;

	history_set(f, BOUNDED);
	items_sweep(f);
	for (unsigned i = 0; i < LARGE_BODIES; i++) {
		items_must(f, write_large_run, &i);
		items_must(f, delete_large_run, &i);
	}
	items_must(f, weigh_some_run, &done);
	assert_int_equal(done, 1);
	items_must(f, weigh_some_run, &done);
	assert_int_equal(done, 2);
	items_must(f, weigh_some_run, &done);
	items_must(f, weigh_some_run, &done);
	assert_int_equal(done, 0);
	items_verify(f);
}

static enum status
ignore_line(void *arg, const struct timed_line *line)
{
	(void)line;
	++*(unsigned *)arg;
	return STATUS_OK;
}

struct listing {
	uint64_t at_us;
	unsigned lines;
};

static enum status
list_run(struct timed *t, struct arena *arena, void *arg)
{
	struct listing *l = arg;

	(void)arena;
	l->lines = 0;
	timed_at_us(t, l->at_us);
	return timed_list(t, ignore_line, &l->lines);
}

static void
a_listing_is_refused_where_an_item_is_not_known(void **state)
{
	struct items *f = *state;
	struct listing before = { 0 }, after = { 0 };

	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS, .versions = 1 });
	items_sweep(f);
	for (unsigned i = 0; i < 4; i++) {
		items_must(f, write_run, NULL);
		f->now_ms++;
		before.at_us = before.at_us ? before.at_us : f->now_ms * 1000;
		f->now_ms++;
	}
	after.at_us = f->now_ms * 1000;
	items_must(f, list_run, &before);
	assert_true(before.lines > 0);
	/* The sweep removes versions of what was changed in seconds that are over. */
	f->now_ms += 3000;
	items_sweep(f);
	assert_int_equal(items_try(f, "0", list_run, &before), STATUS_INVALID);
	assert_non_null(strstr(f->err.text, "the history of a key"));
	assert_int_equal(before.lines, 0);
	items_must(f, list_run, &after);
	assert_true(after.lines > 0);
}

/* What it overwrites would be in a bucket that has ended. */
static void
a_writer_conflicts_with_the_beginning_of_a_bucket(void **state)
{
	struct items *f = *state;
	struct kv_tx *tx;

	history_set(f, (struct timed_history_bounds){ .seconds = WINDOW_SECONDS });
	items_sweep(f);
	for (int round = 0; round < 3; round++) {
		arena_clear(f->arena);
		tx = items_open(f, false, write_run, NULL);
		items_sweep(f);
		assert_int_equal(items_commit(tx), STATUS_OK);
		arena_clear(f->arena);
		tx = items_open(f, false, write_run, NULL);
		f->now_ms += WINDOW_SECONDS * 1000 / 10;
		items_sweep(f);
		assert_int_equal(items_commit(tx), STATUS_TX_CONFLICT);
	}
	items_verify(f);
}

/* ---- Damage ---- */

static enum status
schema_clear(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	struct catalog_db *db;
	enum status status;

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, NULL));
	status = timed_schema_key(db, &key);
	catalog_db_unref(db);
	TRY(status);
	return kv_clear(tx, buf_str(&key));
}

static enum status
schemaless_open(struct kv_tx *tx, void *arg)
{
	struct catalog_db *db;
	struct err *err = arg;

	/* In a transaction that has written, too. */
	TRY(kv_set(tx, STR("t/written"), STR("")));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, err));
	catalog_db_unref(db);
	return STATUS_OK;
}

static void
database_whose_schema_is_gone_is_damaged(void **state)
{
	struct items *f = *state;
	struct err err = { 0 };

	assert_int_equal(kv_run(f->store, schema_clear, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run(f->store, schemaless_open, &err, NULL, &err), STATUS_CORRUPT);
	assert_string_equal(err.text, "the database has no schema");
}

/* ---- What a transaction of the sweep tells ---- */

typedef enum status sweep_step(struct timed *t, uint64_t *ret_done, bool *ret_more);

static enum status
trim_step(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	struct timed_tended tended = { 0 };

	return timed_trim(t, &tended, ret_done, ret_more);
}

/* No step has anything to do, so what the steps before it may have told stays as it is. */
static enum status
idle_steps_run(struct timed *t, struct arena *arena, void *arg)
{
	static sweep_step *const steps[] = { timed_history_clear, timed_trim_clear,
					     timed_history_count, trim_step,
					     timed_gone_sweep,    timed_retime };
	struct timed_tended tended = { 0 };

	(void)arena, (void)arg;
	TRY(timed_now(t));
	TRY(timed_history_tend(t, &tended));
	assert_false(tended.changed);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (int told = 0; told < 2; told++) {
			uint64_t done = 7;
			bool more = told;

			TRY(steps[i](t, &done, &more));
			if (done != 7 || more != told)
				fail_msg("step %zu: %llu, %d", i, (unsigned long long)done, more);
		}
	return STATUS_OK;
}

static void
a_step_of_the_sweep_keeps_what_others_have_told(void **state)
{
	const struct timed_history_bounds bounds = { .seconds = WINDOW_SECONDS,
						     .bytes = BOUND_BYTES,
						     .versions = 2 };
	struct items *f = *state;

	items_must(f, idle_steps_run, NULL);
	history_set(f, bounds);
	items_sweep(f);
	f->now_ms += 3000;
	items_sweep(f);
	items_must(f, idle_steps_run, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_record_of_the_past_that_cannot_be_one_is_found),
		WITH_STORE(a_history_that_begins_again_has_nothing_of_the_one_before),
		WITH_STORE(horizons_are_of_headers_and_of_bodies),
		WITH_STORE(bytes_that_the_records_do_not_have_are_found),
		WITH_STORE(what_was_is_read_as_it_was),
		WITH_STORE(what_is_within_the_bytes_is_read_as_it_was),
		WITH_STORE(bytes_of_a_history_that_there_is_can_be_bounded),
		WITH_STORE(a_history_refuses_bounds_that_make_no_sense),
		WITH_STORE(a_body_is_weighed_once),
		WITH_STORE(a_body_is_listed_once),
		WITH_STORE(large_bodies_are_weighed_in_slices),
		WITH_STORE(a_listing_is_refused_where_an_item_is_not_known),
		WITH_STORE(a_writer_conflicts_with_the_beginning_of_a_bucket),
		WITH_STORE(database_whose_schema_is_gone_is_damaged),
		WITH_STORE(a_step_of_the_sweep_keeps_what_others_have_told),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}

/* The embedded engine's data structures, each against something too simple to be wrong. */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/atomic.h"
#include "kv/embedded/filling.h"
#include "kv/embedded/gate.h"
#include "kv/embedded/latest.h"
#include "kv/embedded/resolver.h"
#include "kv/embedded/span.h"
#include "kv/embedded/tree.h"

enum {
	KEYS = 400, /* so that a part of a resolver's run does not have all of them */
	STEPS = 20000,
};

/* Key i; for odd ones the very next key after the one before. */
static struct str
key_of(int i, char ret[4])
{
	ret[0] = (char)('a' + i / 20);
	ret[1] = (char)('a' + i % 20 / 2);
	ret[2] = '\0';
	return str_of(ret, i % 2 ? 3 : 2);
}

static struct rand_seq
seeded(void)
{
	struct rand_seq r = { test_seed() };

	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)r.state);
	return r;
}

/* ---- The tree ---- */

/* A node that is in the tree, mostly; or NULL. */
static struct tree_node *
any_node(struct rand_seq *r, struct tree_node *nodes, const bool in[KEYS])
{
	for (int tries = 0; tries < 5; tries++) {
		uint64_t i = rand_seq_below(r, KEYS);

		if (in[i])
			return &nodes[i];
	}
	return NULL;
}

static void
tree_keeps_keys_in_order(void **state)
{
	struct rand_seq r = seeded();
	struct tree_node nodes[KEYS];
	char keys[KEYS][4];
	bool in[KEYS] = { 0 };
	struct tree tree;

	(void)state;
	tree_init(&tree);
	for (int step = 0; step < STEPS; step++) {
		int i = (int)rand_seq_below(&r, KEYS);
		struct tree_node *n;
		int before = -1;
		int after = KEYS;

		nodes[i].key = key_of(i, keys[i]);
		assert_ptr_equal(tree_find(&tree, nodes[i].key), in[i] ? &nodes[i] : NULL);
		if (in[i])
			tree_remove(&tree, &nodes[i]);
		else
			assert_null(tree_insert_near(&tree, any_node(&r, nodes, in), &nodes[i]));
		in[i] = !in[i];
		for (int k = 0; k < i; k++)
			before = in[k] ? k : before;
		for (int k = KEYS - 1; k >= i; k--)
			after = in[k] ? k : after;
		n = tree_before(&tree, nodes[i].key);
		assert_ptr_equal(n, before < 0 ? NULL : &nodes[before]);
		n = tree_at_or_after(&tree, nodes[i].key);
		assert_ptr_equal(n, after == KEYS ? NULL : &nodes[after]);
		n = tree_first(&tree);
		for (int k = 0; k < KEYS; k++) {
			if (!in[k])
				continue;
			assert_ptr_equal(n, &nodes[k]);
			n = tree_next(n);
		}
		assert_null(n);
	}
}

static void
tree_refuses_a_key_twice(void **state)
{
	struct tree_node a = { .key = STR("a") };
	struct tree_node b = { .key = STR("a") };
	struct tree_node c = { .key = STR("c") };
	struct tree_node d = { .key = STR("c") };
	struct tree tree;

	(void)state;
	tree_init(&tree);
	assert_null(tree_insert(&tree, &a));
	assert_ptr_equal(tree_insert(&tree, &b), &a);
	assert_ptr_equal(tree_insert_near(&tree, &a, &b), &a);
	assert_ptr_equal(tree_first(&tree), &a);
	assert_null(tree_next(&a));
	assert_null(tree_insert_near(&tree, &a, &c));
	assert_ptr_equal(tree_insert_near(&tree, &a, &d), &c);
	assert_ptr_equal(tree_insert_near(&tree, &c, &b), &a);
}

/* ---- The latest writes ---- */

/* Appends a write of the key to the log that ends at `*last`, as a transaction does. */
static struct mutation *
log_append(struct latest *l, struct arena *arena, struct mutation **last, enum mutation_kind kind,
	   struct str key)
{
	struct mutation *m = arena_zalloc(arena, sizeof(*m));

	assert_non_null(m);
	m->kind = kind;
	m->key = arena_dup(arena, key);
	if (*last)
		(*last)->next = m;
	*last = m;
	latest_add(l, m);
	return m;
}

static void
latest_write_of_each_key_is_found(void **state)
{
	enum {
		MANY = 3000,
	};
	const struct mutation *model[MANY] = { 0 };
	struct arena *arena = arena_new(64 << 20);
	struct rand_seq r = seeded();
	struct mutation *last = NULL;
	struct latest l = { 0 };
	char name[16];

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		uint64_t i = rand_seq_below(&r, MANY);

		(void)snprintf(name, sizeof(name), "a key %d", (int)i);
		if (rand_seq_below(&r, 2))
			model[i] = log_append(&l, arena, &last, MUTATION_SET, str_from_cstr(name));
		if (rand_seq_below(&r, 2))
			continue;
		assert_true(latest_enter(&l, arena));
		assert_ptr_equal(latest_find(&l, str_from_cstr(name)), model[i]);
	}
	latest_clear(&l);
	assert_null(latest_find(&l, str_from_cstr(name)));
	arena_free(arena);
}

/* 16 bytes that have the same hash, whatever `i` is: see hash_quick(). */
static void
colliding_key(uint64_t i, uint64_t ret[2])
{
	const uint64_t factor = 0x9e3779b97f4a7c15u;
	uint64_t h = (16 * factor ^ i) * factor;

	ret[0] = i;
	ret[1] = h ^ h >> 32;
	assert_int_equal(hash_quick(str_of(ret, 16)), 0);
}

static void
latest_writes_give_up_instead_of_searching_long(void **state)
{
	struct arena *arena = arena_new(64 << 20);
	struct mutation *last = NULL;
	struct latest l = { 0 };
	uint64_t key[2];
	int entered = 0;

	(void)state;
	for (;; entered++) {
		colliding_key((uint64_t)entered, key);
		log_append(&l, arena, &last, MUTATION_SET, str_of(key, sizeof(key)));
		if (!latest_enter(&l, arena))
			break;
		assert_ptr_equal(latest_find(&l, str_of(key, sizeof(key))), last);
	}
	assert_int_equal(entered, LATEST_PROBES);
	arena_free(arena);
}

static void
latest_writes_cannot_tell_of_ranges_nor_of_too_many_keys(void **state)
{
	struct arena *arena = arena_new(64 << 20);
	struct mutation *last = NULL;
	struct latest l = { 0 };
	uint64_t i = 0;

	(void)state;
	log_append(&l, arena, &last, MUTATION_SET, STR("a"));
	assert_true(latest_enter(&l, arena));
	log_append(&l, arena, &last, MUTATION_CLEAR_RANGE, STR("a"));
	assert_false(latest_enter(&l, arena));
	latest_clear(&l);
	log_append(&l, arena, &last, MUTATION_STAMPED_KEY, STR("a"));
	assert_false(latest_enter(&l, arena));
	latest_clear(&l);
	do {
		log_append(&l, arena, &last, MUTATION_SET, str_of(&i, sizeof(i)));
		i++;
	} while (latest_enter(&l, arena));
	assert_true(i > LATEST_MOST_SLOTS / 8 && i <= LATEST_MOST_SLOTS / LATEST_SHARE + 1);
	arena_free(arena);
}

/* ---- Spans ---- */

/* One span for all keys that are in and side by side. */
static void
assert_spans_are_joined(const struct tree *spans, const bool *in)
{
	for (int i = 0; i < KEYS; i++) {
		bool begins = in[i] && (i == 0 || !in[i - 1]);
		char scratch[4];
		const struct tree_node *n = tree_find(spans, key_of(i, scratch));
		int end = i;

		assert_int_equal(n != NULL, begins);
		while (begins && end < KEYS && in[end])
			end++;
		if (begins)
			assert_true(str_eq(((const struct span *)n)->end, key_of(end, scratch)));
	}
}

static void
spans_are_sets_of_keys(void **state)
{
	struct rand_seq r = seeded();
	char keys[KEYS][4];
	bool in[KEYS] = { 0 };
	struct arena *arena = arena_new(64 << 20);
	struct tree spans;

	(void)state;
	tree_init(&spans);
	for (int i = 0; i < KEYS; i++)
		key_of(i, keys[i]);
	for (int step = 0; step < STEPS; step++) {
		int from = (int)rand_seq_below(&r, KEYS - 1);
		int to = from + 1 + (int)rand_seq_below(&r, (uint64_t)(KEYS - 1 - from));
		char scratch[2][4];
		struct str begin_key = key_of(from, keys[from]);
		struct str end_key = key_of(to, keys[to]);
		bool add = rand_seq_below(&r, 2);
		const struct span *first;
		const struct span *last;
		bool any = false;
		int a = (int)rand_seq_below(&r, KEYS);
		int b = (int)rand_seq_below(&r, KEYS);

		assert_ok(add ? span_add(&spans, arena, begin_key, end_key)
			      : span_subtract(&spans, arena, begin_key, end_key));
		for (int i = from; i < to; i++)
			in[i] = add;
		assert_spans_are_joined(&spans, in);
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(span_around(&spans, key_of(i, scratch[0])) != NULL, in[i]);
		if (a >= b)
			continue;
		for (int i = a; i < b; i++)
			any = any || in[i];
		first = span_first_in(&spans, key_of(a, scratch[0]), key_of(b, scratch[1]));
		last = span_last_in(&spans, key_of(a, scratch[0]), key_of(b, scratch[1]));
		assert_int_equal(first != NULL, any);
		assert_int_equal(last != NULL, any);
		if (!any)
			continue;
		/* Those that hold the first key and the last one. */
		while (!in[a])
			a++;
		while (!in[b - 1])
			b--;
		assert_ptr_equal(first, span_around(&spans, key_of(a, scratch[0])));
		assert_ptr_equal(last, span_around(&spans, key_of(b - 1, scratch[0])));
	}
	arena_free(arena);
}

/* ---- Atomic operations ---- */

static void
atomic_operations_tell_that_memory_is_short(void **state)
{
	const struct str zeros = str_of("\0\0\0\0\0\0\0\0", 8);
	const struct cell old = { true, STR("\1") };
	struct arena *arena = arena_new(sizeof(uint32_t));
	struct cell cell;

	(void)state;
	assert_int_equal(atomic_apply(KV_ADD, old, zeros, arena, &cell), STATUS_NOMEM);
	assert_int_equal(atomic_apply(KV_MAX, old, zeros, arena, &cell), STATUS_NOMEM);
	assert_ok(atomic_apply(KV_BYTE_MAX, old, zeros, arena, &cell));
	arena_free(arena);
}

/* ---- The resolver ---- */

struct naive {
	uint64_t written[KEYS];
	uint64_t oldest;
};

static bool
naive_written_since(const struct naive *n, int from, int to, uint64_t version)
{
	if (from >= to)
		return false;
	if (version < n->oldest)
		return true;
	for (int i = from; i < to; i++)
		if (n->written[i] > version)
			return true;
	return false;
}

/* The writes of one batch: keys, and spans that may have keys in common with them. */
struct writes {
	struct arena *arena;
	struct tree keys;
	struct tree spans;
};

static void
writes_begin(struct writes *w)
{
	w->arena = arena_new(1 << 20);
	tree_init(&w->keys);
	tree_init(&w->spans);
}

/* True if `end` is the very next key after `key`. */
static bool
is_next_key(struct str key, struct str end)
{
	return end.len == key.len + 1 && end.ptr[key.len] == '\0' && str_starts_with(end, key);
}

static void
write_range(struct writes *w, struct str begin, struct str end)
{
	struct tree_node *n = arena_alloc(w->arena, sizeof(*n));

	begin = arena_dup(w->arena, begin);
	end = arena_dup(w->arena, end);
	n->key = begin;
	if (is_next_key(begin, end))
		tree_insert(&w->keys, n);
	else if (str_cmp(begin, end) < 0)
		assert_ok(span_add(&w->spans, w->arena, begin, end));
}

static void
write_at(struct resolver *r, struct str begin, struct str end, uint64_t version)
{
	struct writes w;

	writes_begin(&w);
	write_range(&w, begin, end);
	resolver_add(r, &w.keys, &w.spans, version);
	arena_free(w.arena);
}

static void
write_anything(struct resolver *resolver, struct naive *naive, struct rand_seq *r, uint64_t version)
{
	uint64_t count = rand_seq_below(r, 12);
	struct writes w;

	writes_begin(&w);
	while (count--) {
		int from = (int)rand_seq_below(r, KEYS);
		int to = (int)rand_seq_below(r, KEYS);
		char scratch[2][4];

		if (rand_seq_below(r, 4))
			to = from + (from < KEYS - 1);
		write_range(&w, key_of(from, scratch[0]), key_of(to, scratch[1]));
		for (int i = from; i < to; i++)
			naive->written[i] = version;
	}
	resolver_add(resolver, &w.keys, &w.spans, version);
	arena_free(w.arena);
}

static void
resolver_agrees_with_an_array(void **state)
{
	struct rand_seq r = seeded();
	struct naive naive = { .oldest = 1 };
	uint64_t version = 1;
	struct resolver resolver;

	(void)state;
	resolver_init(&resolver, 1);
	for (int step = 0; step < STEPS; step++) {
		/* What is asked about, and forgotten, is one run old, or many. */
		uint64_t span = rand_seq_below(&r, 2) ? 5 : 100;

		version += 1 + rand_seq_below(&r, 2);
		write_anything(&resolver, &naive, &r, version);
		if (rand_seq_below(&r, 50) == 0) {
			uint64_t forget = version - rand_seq_below(&r, span) % version;

			resolver_forget(&resolver, forget);
			if (forget > naive.oldest)
				naive.oldest = forget;
		}
		if (rand_seq_below(&r, 100) == 0)
			resolver_compact(&resolver);
		for (int q = 0; q < 5; q++) {
			uint64_t since = version - rand_seq_below(&r, span) % version;
			int from = (int)rand_seq_below(&r, KEYS);
			int to = (int)rand_seq_below(&r, KEYS);
			char scratch[2][4];

			assert_int_equal(resolver_written_since(&resolver, key_of(from, scratch[0]),
								key_of(to, scratch[1]), since),
					 naive_written_since(&naive, from, to, since));
		}
		assert_true(resolver.bytes <= RESOLVER_RUNS * KEYS * 64);
	}
	resolver_forget(&resolver, version);
	assert_int_equal(resolver.run_count, 0);
	assert_int_equal(resolver.bytes, 0);
	resolver_fini(&resolver);
}

/* Each key at a version of its own, in one run of several parts: nothing is told but what was. */
static void
resolver_tells_of_each_key_in_a_long_run(void **state)
{
	struct resolver r;
	char room[3][4];

	(void)state;
	/* Every other key, the oldest first or last. */
	for (int falling = 0; falling <= 1; falling++) {
		resolver_init(&r, 1);
		for (int n = 0; n < KEYS; n += 2) {
			const int i = falling ? KEYS - 2 - n : n;

			write_at(&r, key_of(i, room[0]), key_of(i + 1, room[1]), 2 + (uint64_t)n);
		}
		resolver_compact(&r);
		assert_int_equal(r.run_count, 1);
		for (int i = 0; i < KEYS - 1; i += 2) {
			const uint64_t written = 2 + (uint64_t)(falling ? KEYS - 2 - i : i);
			const struct str key = key_of(i, room[0]), next = key_of(i + 1, room[1]);

			assert_true(resolver_written_since(&r, key, next, written - 1));
			assert_false(resolver_written_since(&r, key, next, written));
			/* From here to the end, and from the beginning to here. */
			assert_int_equal(resolver_written_since(&r, next, STR("z"), written),
					 !falling && i + 2 < KEYS);
			assert_int_equal(resolver_written_since(&r, STR("a"), key, written),
					 falling && i > 0);
			assert_false(resolver_written_since(&r, next, key_of(i + 2, room[2]), 1));
		}
		resolver_fini(&r);
	}
}

static void
resolver_keeps_a_key_once_however_often_it_is_written(void **state)
{
	struct resolver r;

	(void)state;
	resolver_init(&r, 1);
	write_at(&r, STR("a"), STR("b"), 2);
	for (uint64_t version = 3; version < 1000; version++)
		write_at(&r, STR("k"), STR("k\0"), version);
	resolver_compact(&r);
	assert_int_equal(r.run_count, 1);
	assert_true(r.bytes < 256);
	assert_true(resolver_written_since(&r, STR("k"), STR("l"), 998));
	assert_false(resolver_written_since(&r, STR("k"), STR("l"), 999));
	assert_true(resolver_written_since(&r, STR("aa"), STR("ab"), 1));
	assert_false(resolver_written_since(&r, STR("aa"), STR("ab"), 2));
	resolver_fini(&r);
}

/* The bytes of a batch that has written the range from "k" to "m" and, with bytes, the key. */
static size_t
bytes_of_range_and_key(const char *key)
{
	struct str begin = str_from_cstr(key);
	struct resolver r;
	struct writes w;
	size_t bytes;

	resolver_init(&r, 1);
	writes_begin(&w);
	write_range(&w, STR("k"), STR("m"));
	if (begin.len)
		write_range(&w, begin, str_of(key, begin.len + 1));
	resolver_add(&r, &w.keys, &w.spans, 2);
	arena_free(w.arena);
	assert_true(resolver_written_since(&r, STR("k"), STR("k\0"), 1));
	assert_true(resolver_written_since(&r, STR("l"), STR("l\0"), 1));
	assert_int_equal(resolver_written_since(&r, STR("j"), STR("j\0"), 1), *key == 'j');
	assert_int_equal(resolver_written_since(&r, STR("m"), STR("m\0"), 1), *key == 'm');
	bytes = r.bytes;
	resolver_fini(&r);
	return bytes;
}

static void
resolver_keeps_no_key_that_is_in_a_range_of_its_batch(void **state)
{
	const size_t alone = bytes_of_range_and_key("");

	(void)state;
	assert_int_equal(bytes_of_range_and_key("k"), alone);
	assert_int_equal(bytes_of_range_and_key("l"), alone);
	/* The range's end is a step in any case. */
	assert_int_equal(bytes_of_range_and_key("m"), alone);
	assert_true(bytes_of_range_and_key("j") > alone);
	assert_true(bytes_of_range_and_key("n") > alone);
}

static void
resolver_short_of_memory_forgets_instead_of_forgetting_to_refuse(void **state)
{
	struct resolver resolver;
	struct writes w;

	(void)state;
	resolver_init(&resolver, 1);
	write_at(&resolver, STR("a"), STR("b"), 2);
	writes_begin(&w);
	write_range(&w, STR("c"), STR("d"));
	mem_fail_after(1);
	resolver_add(&resolver, &w.keys, &w.spans, 3);
	mem_fail_after(0);
	arena_free(w.arena);
	assert_true(resolver_written_since(&resolver, STR("x"), STR("y"), 2));
	assert_false(resolver_written_since(&resolver, STR("c"), STR("d"), 3));
	resolver_fini(&resolver);
}

static void
resolver_that_cannot_merge_forgets_or_goes_on(void **state)
{
	struct resolver r;
	char key[2] = "a";

	(void)state;
	resolver_init(&r, 1);
	for (uint64_t version = 2; version < 2 + RESOLVER_RUNS; version++, key[0]++)
		write_at(&r, str_of(key, 1), str_of(key, 2), version);
	assert_int_equal(r.run_count, RESOLVER_RUNS);
	mem_fail_after(1);
	resolver_compact(&r);
	mem_fail_after(0);
	assert_int_equal(r.run_count, RESOLVER_RUNS);
	assert_true(resolver_written_since(&r, STR("a"), STR("b"), 1));
	assert_false(resolver_written_since(&r, STR("x"), STR("y"), 1));
	resolver_fini(&r);
}

/* ---- The gate ---- */

enum {
	GATE_USERS = 4,
	GATE_CLOSINGS = 200,
};

struct gate_crowd {
	struct gate gate;
	atomic_bool stops;
	int handle; /* no atomic: only the gate keeps users and closer apart */
	_Atomic uint64_t uses;
	_Atomic uint64_t refusals;
};

static void *
gate_use_often(void *arg)
{
	struct gate_crowd *c = arg;
	struct gate_pass pass;

	while (!atomic_load(&c->stops)) {
		if (!gate_enter(&c->gate, &pass)) {
			atomic_fetch_add(&c->refusals, 1);
			gate_enter_when_open(&c->gate, &pass);
		}
		if (c->handle % 2)
			abort(); /* it is being replaced */
		gate_leave(pass);
		atomic_fetch_add(&c->uses, 1);
	}
	return NULL;
}

static void
gate_keeps_users_apart_from_the_closer(void **state)
{
	struct gate_crowd c = { .handle = 0 };
	pthread_t users[GATE_USERS];

	(void)state;
	gate_init(&c.gate);
	for (int i = 0; i < GATE_USERS; i++)
		assert_int_equal(pthread_create(&users[i], NULL, gate_use_often, &c), 0);
	for (int i = 0; i < GATE_CLOSINGS; i++) {
		uint64_t uses = atomic_load(&c.uses);

		assert_true(gate_close(&c.gate, WAIT_FOREVER));
		c.handle++;
		assert_false(gate_wait(&c.gate, clock_mono_ns()));
		c.handle++;
		gate_open(&c.gate);
		/* Everybody goes on. */
		while (atomic_load(&c.uses) == uses)
			sched_yield();
	}
	atomic_store(&c.stops, true);
	for (int i = 0; i < GATE_USERS; i++)
		pthread_join(users[i], NULL);
	gate_fini(&c.gate);
}

static void
gate_with_a_user_inside_gives_up_closing_at_the_deadline(void **state)
{
	struct gate gate;
	struct gate_pass inside;
	struct gate_pass other;

	(void)state;
	gate_init(&gate);
	assert_true(gate_enter(&gate, &inside));
	assert_false(gate_close(&gate, clock_mono_ns()));
	/* It is open again, for others too. */
	assert_true(gate_enter(&gate, &other));
	gate_leave(other);
	assert_true(gate_wait(&gate, 0));
	gate_leave(inside);
	assert_true(gate_close(&gate, WAIT_FOREVER));
	assert_false(gate_enter(&gate, &other));
	gate_open(&gate);
	gate_enter_when_open(&gate, &other);
	gate_leave(other);
	gate_fini(&gate);
}

/* ---- The filling of logs ---- */

/* Any stretch of it is known for filling, and with any other byte in it for none. */
static void
filling_is_told_from_what_is_written(void **state)
{
	uint8_t page[FILL_PAGE_BYTES], again[FILL_PAGE_BYTES];
	size_t changes = 0;

	(void)state;
	fill_make(page);
	fill_make(again);
	assert_memory_equal(page, again, sizeof(page));
	assert_true(fill_is(page, 0));
	for (size_t at = 0; at < sizeof(page); at++) {
		assert_true(fill_is(page + at, sizeof(page) - at));
		changes += at && page[at] != page[at - 1];
	}
	assert_true(changes > sizeof(page) / 2);
	for (size_t at = 0; at < sizeof(page); at += 97) {
		for (unsigned byte = 0; byte <= UINT8_MAX; byte++) {
			page[at] = (uint8_t)byte;
			assert_int_equal(fill_is(page, sizeof(page)), byte >= 5 && byte <= 8);
			assert_true(fill_is(page, at));
		}
		page[at] = again[at];
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_keeps_users_apart_from_the_closer),
		cmocka_unit_test(gate_with_a_user_inside_gives_up_closing_at_the_deadline),
		cmocka_unit_test(filling_is_told_from_what_is_written),
		cmocka_unit_test(tree_keeps_keys_in_order),
		cmocka_unit_test(tree_refuses_a_key_twice),
		cmocka_unit_test(latest_write_of_each_key_is_found),
		cmocka_unit_test(latest_writes_give_up_instead_of_searching_long),
		cmocka_unit_test(latest_writes_cannot_tell_of_ranges_nor_of_too_many_keys),
		cmocka_unit_test(spans_are_sets_of_keys),
		cmocka_unit_test(atomic_operations_tell_that_memory_is_short),
		cmocka_unit_test(resolver_agrees_with_an_array),
		cmocka_unit_test(resolver_tells_of_each_key_in_a_long_run),
		cmocka_unit_test(resolver_keeps_a_key_once_however_often_it_is_written),
		cmocka_unit_test(resolver_keeps_no_key_that_is_in_a_range_of_its_batch),
		cmocka_unit_test(resolver_that_cannot_merge_forgets_or_goes_on),
		cmocka_unit_test(resolver_short_of_memory_forgets_instead_of_forgetting_to_refuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

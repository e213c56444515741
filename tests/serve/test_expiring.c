/* Objects that live for a time: who has them, and how they end, never under the lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "serve/expiring.h"

enum {
	MOST = 4,
	MOST_BYTES = 100,
	MANY = 200, /* more than EXPIRING_BATCH */
	THREADS = 4,
	ROUNDS = 3000,
	KEYS = 8,
};

/* An object of the tests. It may have something that ends before the object itself does. */
struct thing {
	struct expiring_entry entry; /* first */
	uint64_t key;
	bool over;
	int *resource;
	uint64_t uses; /* of whoever has it: not atomic */
};

static struct expiring table;
static _Atomic int freed;
static _Atomic int closed;

static struct thing *
thing_of(const struct expiring_entry *e)
{
	return (struct thing *)(uintptr_t)e;
}

static bool
thing_is(const struct expiring_entry *e, const void *key)
{
	return thing_of(e)->key == *(const uint64_t *)key;
}

static bool
thing_is_over(const struct expiring_entry *e, uint64_t now_ns)
{
	assert_false(e->taken);
	assert_true(now_ns >= e->used_ns);
	return thing_of(e)->over;
}

/* Whatever is closed or freed is so without the lock, which another thread could take. */
static void
expect_unlocked(void)
{
	assert_int_equal(pthread_mutex_trylock(&table.lock), 0);
	pthread_mutex_unlock(&table.lock);
}

static void
thing_free(struct expiring_entry *e)
{
	expect_unlocked();
	mem_free(thing_of(e)->resource);
	mem_free(e);
	freed++;
}

static bool
thing_end(struct expiring_entry *e, uint64_t now_ns, void **ret_close)
{
	struct thing *t = thing_of(e);

	(void)now_ns;
	if (!t->resource)
		return t->over;
	*ret_close = t->resource;
	t->resource = NULL;
	return false;
}

static void
thing_close(void *resource)
{
	expect_unlocked();
	mem_free(resource);
	closed++;
}

static const struct expiring_rules plain = { .most = MOST,
					     .most_bytes = MOST_BYTES,
					     .is = thing_is,
					     .is_over = thing_is_over,
					     .free = thing_free };

static const struct expiring_rules replacing = {
	.most = MOST, .most_bytes = MOST_BYTES, .replaces = true, .is = thing_is, .free = thing_free
};

static const struct expiring_rules alike = {
	.most = MOST, .alike = true, .is = thing_is, .is_over = thing_is_over, .free = thing_free
};

static const struct expiring_rules staying = {
	.most = MANY,
	.is = thing_is,
	.is_over = thing_is_over,
	.end = thing_end,
	.close = thing_close,
	.free = thing_free,
};

static void
begin(const struct expiring_rules *rules)
{
	freed = closed = 0;
	expiring_init(&table, rules);
}

/* Adds an object, which is then taken. NULL: it was refused so. */
static struct thing *
add_bytes(uint64_t key, size_t bytes, enum status expected)
{
	struct thing *t = mem_zalloc(sizeof(*t));

	assert_non_null(t);
	t->key = key;
	assert_int_equal(expiring_add(&table, key, &key, &t->entry, bytes), expected);
	if (expected == STATUS_OK)
		return t;
	mem_free(t);
	return NULL;
}

static struct thing *
add(uint64_t key)
{
	return add_bytes(key, 0, STATUS_OK);
}

static void
add_idle(uint64_t key, size_t bytes)
{
	expiring_give(&table, &add_bytes(key, bytes, STATUS_OK)->entry);
}

static struct thing *
take(uint64_t key, enum status expected)
{
	struct expiring_entry *e = NULL;

	assert_int_equal(expiring_take(&table, key, &key, &e), expected);
	assert_true((expected == STATUS_OK) == (e != NULL));
	return thing_of(e);
}

static void
give(struct thing *t)
{
	expiring_give(&table, &t->entry);
}

/* ---- Taking and giving ---- */

static void
a_taken_object_is_busy_until_it_is_given_back(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	t = add(1);
	(void)take(1, STATUS_BUSY);
	(void)take(2, STATUS_NOT_FOUND);
	give(t);
	assert_ptr_equal(take(1, STATUS_OK), t);
	(void)take(1, STATUS_BUSY);
	expiring_drop(&table, &t->entry);
	assert_int_equal(freed, 1);
	(void)take(1, STATUS_NOT_FOUND);
	assert_int_equal(expiring_count(&table), 0);
	expiring_fini(&table);
}

/* Whatever their hashes are. */
static void
objects_are_found_by_their_keys(void **state)
{
	struct thing *things[MOST];

	(void)state;
	begin(&plain);
	for (uint64_t i = 0; i < MOST; i++) {
		things[i] = mem_zalloc(sizeof(*things[i]));
		assert_non_null(things[i]);
		things[i]->key = i;
		assert_int_equal(expiring_add(&table, i % 2, &i, &things[i]->entry, 0), STATUS_OK);
	}
	for (uint64_t i = 0; i < MOST; i++) {
		struct expiring_entry *e;

		give(things[i]);
		assert_int_equal(expiring_take(&table, i % 2, &i, &e), STATUS_OK);
		assert_ptr_equal(thing_of(e), things[i]);
		assert_int_equal(expiring_take(&table, i % 2, &(uint64_t){ i + MOST }, &e),
				 STATUS_NOT_FOUND);
	}
	for (uint64_t i = 0; i < MOST; i++)
		give(things[i]);
	expiring_fini(&table);
	assert_int_equal(freed, MOST);
}

static void
a_key_has_one_object_unless_the_rules_say_otherwise(void **state)
{
	struct thing *first, *second;

	(void)state;
	begin(&plain);
	add_idle(1, 0);
	(void)add_bytes(1, 0, STATUS_EXISTS);
	expiring_fini(&table);
	assert_int_equal(freed, 1);

	begin(&alike);
	first = add(1);
	second = add(1);
	(void)take(1, STATUS_BUSY);
	give(first);
	assert_ptr_equal(take(1, STATUS_OK), first);
	give(second);
	assert_ptr_equal(take(1, STATUS_OK), second);
	give(first);
	give(second);
	expiring_fini(&table);
	assert_int_equal(freed, 2);
}

static enum expiring_look
look_and_do(void *arg, struct expiring_entry *e)
{
	thing_of(e)->uses++;
	return *(enum expiring_look *)arg;
}

static struct thing *
look(uint64_t key, enum expiring_look what)
{
	return thing_of(expiring_look(&table, key, &key, look_and_do, &what));
}

static void
a_look_decides_with_the_lock(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	assert_null(look(1, EXPIRING_TAKE));
	add_idle(1, 0);
	assert_null(look(1, EXPIRING_LEAVE));
	assert_null(look(1, EXPIRING_USE));
	t = look(1, EXPIRING_TAKE);
	assert_non_null(t);
	assert_int_equal(t->uses, 3);
	(void)take(1, STATUS_BUSY);
	/* A taken one may be looked at, and stays its taker's. */
	assert_null(look(1, EXPIRING_LEAVE));
	give(t);
	assert_null(look(1, EXPIRING_END));
	assert_int_equal(freed, 1);
	assert_int_equal(expiring_count(&table), 0);
	expiring_fini(&table);
}

static bool
may_if(const void *arg, const struct expiring_entry *old)
{
	return arg == old;
}

/* A new object by expiring_put(). NULL: it was refused so. */
static struct thing *
put(uint64_t key, size_t bytes, const struct thing *old, enum status expected)
{
	struct thing *t = mem_zalloc(sizeof(*t));

	assert_non_null(t);
	t->key = key;
	assert_int_equal(
		expiring_put(&table, key, &key, &t->entry, bytes, old ? may_if : NULL, old),
		expected);
	if (expected == STATUS_OK)
		return t;
	mem_free(t);
	return NULL;
}

static void
one_is_put_in_place_of_another_that_may_go(void **state)
{
	struct thing *first, *second, *other;

	(void)state;
	begin(&replacing);
	first = put(1, 10, NULL, STATUS_OK); /* in place of none, and idle */
	other = put(2, 10, first, STATUS_OK);
	assert_ptr_equal(take(1, STATUS_OK), first);
	(void)put(1, 10, NULL, STATUS_EXISTS); /* somebody has it */
	(void)put(1, 10, first, STATUS_EXISTS);
	give(first);
	(void)put(1, 10, other, STATUS_EXISTS);
	assert_int_equal(freed, 0);
	second = put(1, MOST_BYTES - 10, first,
		     STATUS_OK); /* beside the other, without the first */
	assert_int_equal(freed, 1);
	assert_int_equal(expiring_bytes(&table), MOST_BYTES);
	assert_ptr_equal(take(1, STATUS_OK), second);
	give(second);
	(void)put(1, MOST_BYTES + 1, NULL, STATUS_LIMIT);
	assert_int_equal(expiring_count(&table), 0);
	assert_int_equal(expiring_bytes(&table), 0);
	assert_int_equal(freed, 3);
	expiring_fini(&table);
}

/* ---- How they end ---- */

static void
one_that_is_ended_while_it_is_taken_ends_when_it_is_given_back(void **state)
{
	const uint64_t key = 1;
	struct thing *t;

	(void)state;
	begin(&plain);
	t = add(key);
	assert_true(expiring_end(&table, key, &key));
	assert_false(expiring_end(&table, key, &key)); /* once is enough */
	(void)take(key, STATUS_BUSY);
	t->uses++; /* it is there all the same */
	assert_int_equal(freed, 0);
	give(t);
	assert_int_equal(freed, 1);
	assert_false(expiring_end(&table, key, &key));
	add_idle(key, 0);
	assert_true(expiring_end(&table, key, &key));
	assert_int_equal(freed, 2);
	expiring_fini(&table);
}

static void
one_whose_time_is_over_is_not_found_and_is_swept(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	add_idle(1, 0);
	t = add(2);
	t->over = true;
	expiring_sweep(&table); /* not while somebody has it */
	assert_int_equal(expiring_count(&table), 2);
	give(t);
	(void)take(2, STATUS_NOT_FOUND);
	expiring_sweep(&table);
	assert_int_equal(freed, 1);
	assert_int_equal(expiring_count(&table), 1);
	expiring_fini(&table);
}

static bool
is_even(const void *arg, const struct expiring_entry *e)
{
	(void)arg;
	return thing_of(e)->key % 2 == 0;
}

static void
all_that_match_end(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	for (uint64_t key = 0; key < 3; key++)
		add_idle(key, 0);
	t = add(4);
	expiring_end_all(&table, is_even, NULL);
	assert_int_equal(freed, 2);
	give(t);
	assert_int_equal(freed, 3);
	give(take(1, STATUS_OK));
	expiring_end_all(&table, NULL, NULL);
	assert_int_equal(expiring_count(&table), 0);
	expiring_fini(&table);
}

static void
an_object_may_stay_when_what_it_had_has_ended(void **state)
{
	struct thing *t;

	(void)state;
	begin(&staying);
	for (uint64_t key = 0; key < MANY; key++) {
		t = add(key);
		t->resource = mem_alloc(sizeof(*t->resource));
		assert_non_null(t->resource);
		give(t);
	}
	/* In several batches, since closing comes after the lock each time. */
	expiring_end_all(&table, NULL, NULL);
	assert_int_equal(closed, MANY);
	assert_int_equal(freed, 0);
	assert_int_equal(expiring_count(&table), MANY);

	t = take(7, STATUS_OK);
	t->resource = mem_alloc(sizeof(*t->resource));
	expiring_end_all(&table, NULL, NULL);
	assert_non_null(t->resource);
	give(t);
	assert_int_equal(closed, MANY + 1);
	t = take(7, STATUS_OK);
	t->over = true;
	give(t);
	expiring_sweep(&table);
	assert_int_equal(freed, 1);
	/* What it has then is closed, and the object leaves. */
	t = take(8, STATUS_OK);
	t->resource = mem_alloc(sizeof(*t->resource));
	expiring_drop(&table, &t->entry);
	assert_int_equal(closed, MANY + 2);
	assert_int_equal(freed, 2);
	expiring_fini(&table);
	assert_int_equal(freed, MANY);
}

/* ---- Limits ---- */

static void
a_full_table_refuses_until_the_time_of_one_is_over(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	for (uint64_t key = 0; key < MOST; key++)
		add_idle(key, 0);
	(void)add_bytes(MOST, 0, STATUS_LIMIT);
	t = take(1, STATUS_OK);
	t->over = true;
	(void)add_bytes(MOST, 0, STATUS_LIMIT); /* somebody has it */
	give(t);
	add_idle(MOST, 0);
	assert_int_equal(freed, 1);
	assert_int_equal(expiring_count(&table), MOST);
	expiring_fini(&table);
}

static void
the_one_unused_for_longest_makes_room_if_nobody_has_it(void **state)
{
	struct thing *t;

	(void)state;
	begin(&replacing);
	for (uint64_t key = 0; key < MOST; key++)
		add_idle(key, 0);
	t = take(0, STATUS_OK);
	(void)look(1, EXPIRING_USE);
	add_idle(MOST, 0); /* 0 is taken, 1 was used: 2 goes */
	(void)take(2, STATUS_NOT_FOUND);
	give(t);
	add_idle(MOST + 1, 0);
	(void)take(3, STATUS_NOT_FOUND);
	give(take(0, STATUS_OK));
	give(take(1, STATUS_OK));
	assert_int_equal(freed, 2);
	expiring_end_all(&table, NULL, NULL);
	for (uint64_t key = 0; key < MOST; key++)
		(void)add(key);
	(void)add_bytes(MOST, 0, STATUS_LIMIT); /* all are taken */
	assert_int_equal(expiring_count(&table), MOST);
	expiring_fini(&table);
}

static void
bytes_are_counted_and_make_room_likewise(void **state)
{
	struct thing *t;

	(void)state;
	begin(&plain);
	add_idle(1, MOST_BYTES - 10);
	(void)add_bytes(2, 11, STATUS_LIMIT);
	t = add_bytes(2, 10, STATUS_OK);
	(void)add_bytes(3, 1, STATUS_LIMIT);
	expiring_drop(&table, &t->entry);
	add_idle(3, 10);
	expiring_fini(&table);

	begin(&replacing);
	add_idle(1, MOST_BYTES / 2);
	add_idle(2, MOST_BYTES / 2);
	add_idle(3, MOST_BYTES / 2 + 1); /* takes the room of both */
	assert_int_equal(freed, 2);
	assert_int_equal(expiring_count(&table), 1);
	expiring_fini(&table);
}

/* ---- Threads ---- */

static bool
is_some(const void *arg, const struct expiring_entry *e)
{
	return thing_of(e)->key == *(const uint64_t *)arg;
}

static void
count_one(void *arg, const struct expiring_entry *e)
{
	(void)e;
	++*(size_t *)arg;
}

/* Each writes what it has taken: the thread sanitizer would see two who have the same object. */
static void *
work(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;

	for (size_t i = 0; i < ROUNDS; i++) {
		uint64_t key = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33;
		struct expiring_entry *e;
		struct thing *t;
		size_t seen = 0;

		switch (key / KEYS % 8) {
		case 0:
			expiring_sweep(&table);
			continue;
		case 1:
			key %= KEYS;
			expiring_end_all(&table, is_some, &key);
			continue;
		case 2:
			expiring_each(&table, count_one, &seen);
			assert_in_range(seen, 0, MANY);
			continue;
		default:
			key %= KEYS;
		}
		if (expiring_take(&table, key, &key, &e) == STATUS_OK) {
			t = thing_of(e);
		} else {
			t = mem_zalloc(sizeof(*t));
			t->key = key;
			if (expiring_add(&table, key, &key, &t->entry, 0) != STATUS_OK) {
				mem_free(t);
				continue;
			}
		}
		t->uses++;
		if (!t->resource)
			t->resource = mem_alloc(sizeof(*t->resource));
		t->over = t->uses % 5 == 0;
		if (t->uses % 7 == 0)
			expiring_drop(&table, &t->entry);
		else
			give(t);
	}
	return NULL;
}

/* Others may have the lock here, so nothing can be said of that. */
static void
close_quietly(void *resource)
{
	mem_free(resource);
	closed++;
}

static void
free_quietly(struct expiring_entry *e)
{
	mem_free(thing_of(e)->resource);
	mem_free(e);
	freed++;
}

static void
an_object_belongs_to_one_thread_at_a_time(void **state)
{
	static const struct expiring_rules busy = {
		.most = MANY,
		.is = thing_is,
		.is_over = thing_is_over,
		.end = thing_end,
		.close = close_quietly,
		.free = free_quietly,
	};
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];

	(void)state;
	begin(&busy);
	rand_bytes(seeds, sizeof(seeds));
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &seeds[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_in_range(expiring_count(&table), 0, KEYS);
	assert_true(closed > 0);
	expiring_fini(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_taken_object_is_busy_until_it_is_given_back),
		cmocka_unit_test(objects_are_found_by_their_keys),
		cmocka_unit_test(a_key_has_one_object_unless_the_rules_say_otherwise),
		cmocka_unit_test(a_look_decides_with_the_lock),
		cmocka_unit_test(one_is_put_in_place_of_another_that_may_go),
		cmocka_unit_test(one_that_is_ended_while_it_is_taken_ends_when_it_is_given_back),
		cmocka_unit_test(one_whose_time_is_over_is_not_found_and_is_swept),
		cmocka_unit_test(all_that_match_end),
		cmocka_unit_test(an_object_may_stay_when_what_it_had_has_ended),
		cmocka_unit_test(a_full_table_refuses_until_the_time_of_one_is_over),
		cmocka_unit_test(the_one_unused_for_longest_makes_room_if_nobody_has_it),
		cmocka_unit_test(bytes_are_counted_and_make_room_likewise),
		cmocka_unit_test(an_object_belongs_to_one_thread_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

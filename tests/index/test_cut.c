/*
 * Where ranges of keys are cut that nobody has counted: by estimates that are made up here, so that
 * it is known how much lies in front of each key.
 */
#include "common.h"

#include "../store.h"
#include "index/engine/build.h"

enum {
	KEYS_MOST = 1000,
	KEY_BYTES = 16,
	PARTS_MOST = 16,
	PLACES = 32,           /* that are looked at, of a range */
	PART_BYTES = 64 << 10, /* a part has no less */
	ROOM_BYTES = 64 << 10,
};

static struct kv_store *store;
static struct kv_tx *tx; /* has the keys, and never commits */
static char dir[256];
static char keys[KEYS_MOST][KEY_BYTES];
static size_t key_len[KEYS_MOST];
static size_t key_count;
static uint64_t weight; /* of each key */

static struct str
key_at(size_t i)
{
	return str_of(keys[i], key_len[i]);
}

/* How many keys lie in front of a place. */
static size_t
keys_before(struct str place)
{
	size_t n = 0;

	while (n < key_count && str_cmp(key_at(n), place) < 0)
		n++;
	return n;
}

/* ---- In the place of the store's estimate ---- */

enum status __wrap_kv_estimate_bytes(struct kv_store *of, struct str begin, struct str end,
				     uint64_t *ret);

enum status
__wrap_kv_estimate_bytes(struct kv_store *of, struct str begin, struct str end, uint64_t *ret)
{
	assert_ptr_equal(of, store);
	assert_true(str_cmp(begin, end) <= 0);
	*ret = weight * (keys_before(end) - keys_before(begin));
	return STATUS_OK;
}

/* ---- Keys ---- */

static int
setup_store(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct err err = { 0 };
	char url[300];

	if (setup(state))
		return -1;
	test_make_dir("frond-index-cut", dir, sizeof(dir));
	test_store_url(dir, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &store, &err), STATUS_OK);
	assert_int_equal(kv_begin(store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	key_count = 0;
	weight = PART_BYTES;
	return 0;
}

static int
teardown_store(void **state)
{
	kv_tx_free(tx);
	kv_close(store);
	test_remove_tree(dir);
	return teardown(state);
}

/* In the order in which they come. */
static void
key_add(struct str key)
{
	assert_true(key_count < KEYS_MOST && key.len <= KEY_BYTES);
	memcpy(keys[key_count], key.ptr, key.len);
	key_len[key_count++] = key.len;
	assert_true(key_count < 2 || str_cmp(key_at(key_count - 2), key) < 0);
	assert_int_equal(kv_set(tx, key, STR("")), STATUS_OK);
}

/* Keys that begin alike, and then are a number each, which is so much more than the one before. */
static void
keys_add_numbers(const char *head, unsigned count, unsigned step)
{
	for (unsigned i = 0; i < count; i++) {
		char key[KEY_BYTES];
		size_t len = strlen(head);

		memcpy(key, head, len);
		key[len] = (char)(i * step >> 16);
		key[len + 1] = (char)(i * step >> 8);
		key[len + 2] = (char)(i * step);
		key_add(str_of(key, len + 3));
	}
}

static size_t
cut(size_t parts, struct str *ret)
{
	size_t count = SIZE_MAX;

	assert_int_equal(index_cut_range(tx, STR("k"), STR("l"), parts, arena, ret, &count),
			 STATUS_OK);
	assert_true(count < parts);
	for (size_t i = 0; i < count; i++) {
		size_t at = keys_before(ret[i]);

		/* One of the keys, but not the first of all, and behind the one before it. */
		assert_true(at > 0 && at < key_count && str_eq(key_at(at), ret[i]));
		assert_true(i == 0 || str_cmp(ret[i - 1], ret[i]) < 0);
	}
	return count;
}

/* ---- Tests ---- */

static void
parts_of_what_lies_evenly_are_about_as_large(void **state)
{
	static const unsigned steps[] = { 1, 64, 10007 };
	struct str at[PARTS_MOST];

	(void)state;
	for (size_t s = 0; s < COUNT(steps); s++) {
		char head[] = "ka";

		head[1] = (char)('a' + s);
		kv_tx_free(tx);
		assert_int_equal(kv_begin(store, KV_TX_READ_WRITE, &tx), STATUS_OK);
		key_count = 0;
		keys_add_numbers(head, KEYS_MOST, steps[s]);
		for (size_t parts = 1; parts <= PARTS_MOST; parts++) {
			const size_t near = KEYS_MOST / PLACES + 2;

			assert_int_equal(cut(parts, at), parts - 1);
			for (size_t i = 0; i + 1 < parts; i++) {
				size_t wanted = (i + 1) * KEYS_MOST / parts;
				size_t is = keys_before(at[i]);

				if (is + 1 < wanted || is > wanted + near)
					fail_msg("part %zu of %zu ends at %zu, and not at %zu", i,
						 parts, is, wanted);
			}
		}
	}
}

/* What has less than a part is one, however many parts are asked for. */
static void
a_part_has_no_less_than_its_least(void **state)
{
	enum {
		SOME = 64
	};
	struct str at[PARTS_MOST];

	(void)state;
	keys_add_numbers("k", SOME, 1000);
	weight = PART_BYTES / SOME - 1;
	assert_int_equal(cut(PARTS_MOST, at), 0);
	weight = PART_BYTES / SOME;
	assert_int_equal(cut(PARTS_MOST, at), 1);
	weight = 2 * PART_BYTES / SOME;
	assert_int_equal(cut(PARTS_MOST, at), 2);
	assert_int_equal(cut(2, at), 1);
	assert_int_equal(cut(1, at), 0);
}

static void
a_range_of_few_keys_is_not_cut_between_none(void **state)
{
	struct str at[PARTS_MOST];

	(void)state;
	weight = PARTS_MOST * PART_BYTES;
	assert_int_equal(cut(PARTS_MOST, at), 0);
	key_add(STR("k"));
	assert_int_equal(cut(PARTS_MOST, at), 0);
	/* One of them begins with the other one. */
	key_add(STR("kx"));
	assert_int_equal(cut(PARTS_MOST, at), 1);
	assert_true(str_eq(at[0], STR("kx")));
}

/* Numbers that follow each other, far behind the first key: places in between find the same key. */
static void
what_lies_unevenly_is_cut_at_keys_that_are_found(void **state)
{
	struct str at[PARTS_MOST];

	(void)state;
	key_add(STR("ka"));
	keys_add_numbers("kz", KEYS_MOST - 1, 1);
	for (size_t parts = 1; parts <= PARTS_MOST; parts++)
		assert_true(cut(parts, at) < parts);
}

/* Wherever the arena ends, there are all cuts or none. */
static void
a_range_without_room_is_not_cut(void **state)
{
	struct str at[PARTS_MOST];
	size_t wanted, enough = 0;

	(void)state;
	keys_add_numbers("k", KEYS_MOST, 100);
	wanted = cut(PARTS_MOST, at);
	for (size_t bytes = 0; enough < 3; bytes += ROOM_STEP) {
		struct arena *small = arena_new(bytes);
		size_t count = SIZE_MAX;
		enum status status = index_cut_range(tx, STR("k"), STR("l"), PARTS_MOST, small, at,
						     &count);

		assert_int_equal(status, arena_is_full(small) ? STATUS_LIMIT : STATUS_OK);
		if (status == STATUS_OK)
			assert_int_equal(count, wanted);
		enough += status == STATUS_OK;
		arena_free(small);
		assert_true(bytes < ROOM_BYTES);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown_store)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(parts_of_what_lies_evenly_are_about_as_large),
		TEST(a_part_has_no_less_than_its_least),
		TEST(a_range_of_few_keys_is_not_cut_between_none),
		TEST(what_lies_unevenly_is_cut_at_keys_that_are_found),
		TEST(a_range_without_room_is_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

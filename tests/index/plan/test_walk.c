/*
 * Walks through ranges of an index, and merges of ranges (index/plan), against the list of all
 * entries: whole and in pages, forwards and in reverse. Counted rows, and lists of names.
 */
#include "../common.h"

#include "../../store.h"
#include "base/arena_apart.h"
#include "index/json/form.h"
#include "index/plan/choice.h"
#include "index/plan/key_ranges.h"
#include "index/plan/merge.h"
#include "index/plan/names.h"
#include "index/plan/walk.h"

enum {
	GROUPS = 6, /* values of the first column */
	PLACES = 9, /* of the second one */
	ENTRIES = GROUPS * PLACES,
	INDEXES = 2,
	TOGETHER = 4,
	ROUNDS = 300,
	NAMES = 200,
};

static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
static const struct index_column columns[] = { { .descending = false }, { .descending = true } };
static struct index_def defs[INDEXES];
static struct leaf_value numbers[GROUPS + PLACES];
static struct kv_store *store;
static struct kv_tx *tx; /* has the entries, and never commits */
static char dir[256];

/* Entries in the order of keys, which are those behind index_key_entries(). */
static struct str keys[INDEXES][ENTRIES];

static size_t
prefix_of(const struct index_def *def, struct buf *prefix)
{
	index_key_entries(prefix, &db, def->number);
	return prefix->len;
}

/*
 * Enters a document by its group and its place. Groups of the second index are turned around, so
 * that the merge of both meets a document in ranges that are far apart.
 */
static void
entry_put(size_t index, size_t group, size_t place)
{
	size_t shown = index ? GROUPS - 1 - group : group;
	const void *values[] = { &numbers[shown], &numbers[place] };
	const struct index_interval interval = { .equal = values, .equal_count = 2 };
	struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES), value = BUF_INIT(KV_LIMIT_KEY_BYTES);
	size_t at = shown * PLACES + (PLACES - 1 - place);
	bool known;

	assert_int_equal(index_place_make(&db, &defs[index], &interval,
					  arena_printf(arena, "%zu-%zu", group, place), &work,
					  &keys[index][at], &known),
			 STATUS_OK);
	assert_true(known);
	prefix_of(&defs[index], &key);
	buf_append_str(&key, keys[index][at]);
	tuple_put_u64(&value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&value, 0);
	assert_int_equal(kv_set(tx, buf_str(&key), buf_str(&value)), STATUS_OK);
	buf_release(&key);
	buf_release(&value);
}

static int
setup_entries(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct err err = { 0 };
	char url[300];

	if (setup(state))
		return -1;
	test_make_dir("frond-index-plan", dir, sizeof(dir));
	test_store_url(dir, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &store, &err), STATUS_OK);
	assert_int_equal(kv_begin(store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	for (size_t i = 0; i < COUNT(numbers); i++)
		numbers[i] = value_of(arena_printf(arena, "%zu", i).ptr);
	for (size_t index = 0; index < INDEXES; index++) {
		defs[index] = (struct index_def){ .form = &index_json_form,
						  .number = index + 1,
						  .state = INDEX_READY,
						  .order = DOC_KEY_COUCH,
						  .columns = columns,
						  .column_count = COUNT(columns) };
		for (size_t i = 0; i < ENTRIES; i++)
			entry_put(index, i / PLACES, i % PLACES);
	}
	return 0;
}

static int
teardown_entries(void **state)
{
	kv_tx_free(tx);
	kv_close(store);
	test_remove_tree(dir);
	return teardown(state);
}

/* Ranges of a few groups of an index, each with some of its places. */
static struct key_ranges
random_ranges(struct rand_seq *rand, const struct index_def *def)
{
	const struct value_order order = { .form = &index_json_form, .w = &work };
	struct value_interval groups[GROUPS], places[2];
	struct value_set allowed[] = { { groups, 0 }, { places, 0 } };
	const struct key_columns asked = { .allowed = allowed, .used = 2 };
	struct key_ranges ret;

	for (size_t i = 0; i < GROUPS; i++) {
		const struct value_bound only = { .value = &numbers[i] };

		if (rand_seq_below(rand, 2))
			groups[allowed[0].count++] = (struct value_interval){ only, only, true };
	}
	for (size_t i = 0; i < 1 + rand_seq_below(rand, 2); i++) {
		size_t low = i * PLACES / 2 + rand_seq_below(rand, PLACES / 2);
		const struct value_bound from = { .value = &numbers[low] };
		const struct value_bound to = {
			.value = &numbers[i * PLACES / 2 + PLACES / 2 - 1]
		};

		places[allowed[1].count++] = (struct value_interval){ from, to, false };
	}
	assert_int_equal(key_ranges_make(&db, def, &asked, &order, &ret), STATUS_OK);
	return ret;
}

/* The index's entries that lie in the ranges, in the direction of reading. */
static size_t
expected_of(size_t index, const struct key_ranges *ranges, bool reverse, struct str *ret)
{
	struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	size_t prefix = prefix_of(&defs[index], &key), count = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		struct str at = keys[index][reverse ? ENTRIES - 1 - i : i];

		key.len = prefix;
		buf_append_str(&key, at);
		for (size_t k = 0; k < ranges->count; k++)
			if (str_cmp(ranges->items[k].begin, buf_str(&key)) <= 0 &&
			    str_cmp(buf_str(&key), ranges->items[k].end) < 0)
				ret[count++] = at;
	}
	buf_release(&key);
	return count;
}

/* ---- One range after the other ---- */

static struct key_walk_terms
terms_of(const struct key_ranges *ranges, bool reverse, struct index_scan *scans, size_t together)
{
	return (struct key_walk_terms){ .tx = tx,
					.db = &db,
					.def = &defs[0],
					.ranges = ranges->items,
					.count = ranges->count,
					.options = { .reverse = reverse, .mode = KV_SNAPSHOT },
					.scans = scans,
					.together = together };
}

static void
pages_of_a_walk_have_each_entry_once(void **state)
{
	struct rand_seq rand = { .state = 1 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		bool reverse = rand_seq_below(&rand, 2);
		struct key_ranges ranges = random_ranges(&rand, &defs[0]);
		struct str expected[ENTRIES], after = { NULL, 0 };
		size_t count = expected_of(0, &ranges, reverse, expected), at = 0, page = 0;
		struct index_scan scans[TOGETHER];

		do {
			struct key_walk_terms terms = terms_of(&ranges, reverse, scans,
							       1 + rand_seq_below(&rand, TOGETHER));
			struct index_entry entry;
			struct key_walk walk;
			enum status status;

			terms.options.after = after;
			terms.options.limit = rand_seq_below(&rand, 12);
			page = 0;
			assert_int_equal(key_walk_init(&walk, &terms), STATUS_OK);
			while ((status = key_walk_next(&walk, &work, &entry)) == STATUS_OK) {
				assert_true(at < count && str_eq(entry.key, expected[at]));
				after = expected[at++];
				page++;
			}
			assert_int_equal(status, STATUS_NOT_FOUND);
			key_walk_release(&walk);
			if (!terms.options.limit)
				assert_int_equal(at, count);
			if (page)
				assert_true(!terms.options.limit || page <= terms.options.limit);
		} while (page);
		assert_int_equal(at, count);
	}
}

static void
a_walk_jumps_within_a_range_and_goes_on_with_others(void **state)
{
	const struct value_order order = { .form = &index_json_form, .w = &work };
	struct rand_seq rand = { .state = 2 };
	struct value_interval groups[] = { { .low = { &numbers[1], false },
					     .high = { &numbers[2], false } },
					   { .low = { &numbers[4], false } } };
	const struct value_set allowed = { groups, COUNT(groups) };
	const struct key_columns asked = { .allowed = &allowed, .used = 1 };
	struct key_ranges ranges;

	(void)state;
	assert_int_equal(key_ranges_make(&db, &defs[0], &asked, &order, &ranges), STATUS_OK);
	assert_int_equal(ranges.count, 2);
	for (int round = 0; round < ROUNDS; round++) {
		struct index_scan scans[TOGETHER];
		struct key_walk_terms terms = terms_of(&ranges, false, scans,
						       1 + rand_seq_below(&rand, TOGETHER));
		struct str expected[ENTRIES];
		size_t count = expected_of(0, &ranges, false, expected), at = 0;
		struct index_entry entry;
		struct key_walk walk;

		assert_int_equal(key_walk_init(&walk, &terms), STATUS_OK);
		while (key_walk_next(&walk, &work, &entry) == STATUS_OK) {
			assert_true(at < count && str_eq(entry.key, expected[at]));
			/* Past some of the entries of the range, and perhaps all of them. */
			if (rand_seq_below(&rand, 4) == 0) {
				size_t last = at < count / 2 ? count / 2 - 1 : count - 1;

				at = at + 3 < last ? at + 3 : last;
				assert_int_equal(key_walk_jump(&walk, expected[at]), STATUS_OK);
			}
			at++;
		}
		assert_int_equal(at, count);
		key_walk_release(&walk);
	}
}

/* ---- Merged ---- */

static int
orders_compare(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* What is behind the first column of a key. */
static struct str
order_of(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct str column;

	assert_int_equal(tuple_skip_strings(&r, 1, &column), STATUS_OK);
	return str_skip(key, column.len);
}

/* Ranges of single groups of `indexes` indexes: what is behind groups, in order, each once. */
struct merging {
	struct key_merge_range list[INDEXES * GROUPS];
	struct str expected[INDEXES * ENTRIES];
	size_t ranges, count;
};

static void
merging_make(struct rand_seq *rand, size_t indexes, bool reverse, struct merging *m)
{
	const struct value_order order = { .form = &index_json_form, .w = &work };
	size_t kept = 0;

	m->ranges = m->count = 0;
	for (size_t i = 0; i < indexes * GROUPS; i++) {
		const struct value_bound only = { .value = &numbers[i % GROUPS] };
		struct value_interval group = { only, only, true };
		const struct value_set allowed = { &group, 1 };
		const struct key_columns asked = { .allowed = &allowed, .used = 1 };
		struct key_ranges ranges;

		if (rand_seq_below(rand, 2))
			continue;
		assert_int_equal(key_ranges_make(&db, &defs[i / GROUPS], &asked, &order, &ranges),
				 STATUS_OK);
		m->list[m->ranges++] = (struct key_merge_range){ &defs[i / GROUPS],
								 &ranges.items[0], 1 };
		m->count += expected_of(i / GROUPS, &ranges, false, &m->expected[m->count]);
	}
	for (size_t i = 0; i < m->count; i++)
		m->expected[i] = order_of(m->expected[i]);
	qsort(m->expected, m->count, sizeof(m->expected[0]), orders_compare);
	for (size_t i = 0; i < m->count; i++)
		if (!i || !str_eq(m->expected[i], m->expected[kept - 1]))
			m->expected[kept++] = m->expected[i];
	m->count = kept;
	for (size_t i = 0; reverse && i < kept / 2; i++) {
		struct str swap = m->expected[i];

		m->expected[i] = m->expected[kept - 1 - i];
		m->expected[kept - 1 - i] = swap;
	}
}

static void
rows_of_many_ranges_are_known_by_some_of_them(void **state)
{
	const struct index_form *form = &index_json_form;
	const struct value_order order = { .form = form, .w = &work };
	const void *groups[GROUPS], *places[PLACES];
	struct value_set allowed[2];
	const struct key_columns one = { .allowed = allowed, .used = 1 };
	const struct key_columns both = { .allowed = allowed, .used = 2 };
	const struct key_ranges none = { 0 };
	struct key_ranges ranges;
	uint64_t rows;

	(void)state;
	for (size_t i = 0; i < GROUPS; i++)
		groups[i] = &numbers[i];
	for (size_t i = 0; i < PLACES; i++)
		places[i] = &numbers[i];
	assert_int_equal(value_set_of_points(&order, groups, GROUPS, &allowed[0]), STATUS_OK);
	assert_int_equal(value_set_of_points(&order, places, PLACES, &allowed[1]), STATUS_OK);
	assert_int_equal(key_ranges_make(&db, &defs[0], &one, &order, &ranges), STATUS_OK);
	assert_int_equal(choice_count_rows(&ranges, tx, &db, ENTRIES, &rows), STATUS_OK);
	assert_int_equal(rows, ENTRIES);
	assert_int_equal(key_ranges_make(&db, &defs[0], &both, &order, &ranges), STATUS_OK);
	assert_true(ranges.count > INDEX_COUNT_RANGES);
	assert_int_equal(choice_count_rows(&ranges, tx, &db, ENTRIES, &rows), STATUS_OK);
	assert_int_equal(rows, ENTRIES);
	assert_int_equal(choice_count_rows(&none, tx, &db, ENTRIES, &rows), STATUS_OK);
	assert_int_equal(rows, 0);
}

static void
merged_ranges_come_in_the_order_behind_their_columns(void **state)
{
	struct rand_seq rand = { .state = 3 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t indexes = 1 + rand_seq_below(&rand, INDEXES), at = 0, before;
		bool reverse = rand_seq_below(&rand, 2), several = indexes > 1;
		struct str after = { NULL, 0 };
		struct merging merging;

		merging_make(&rand, indexes, reverse, &merging);
		do {
			const struct key_merge_terms terms = {
				.tx = tx,
				.db = &db,
				.ranges = merging.list,
				.count = merging.ranges,
				.several = several,
				.options = { .reverse = reverse,
					     .mode = KV_SNAPSHOT,
					     .after = after },
			};
			size_t page = 1 + rand_seq_below(&rand, 20);
			struct index_entry entry;
			struct key_merge merge;

			before = at;
			assert_int_equal(key_merge_init(&merge, &terms, arena), STATUS_OK);
			while (page-- && key_merge_next(&merge, &work, &entry) == STATUS_OK) {
				struct str order = several ? entry.key : order_of(entry.key);

				assert_true(at < merging.count);
				assert_true(str_eq(order, merging.expected[at]));
				assert_true(entry.id.len == 3 && entry.id.ptr[1] == '-');
				after = arena_dup(arena, entry.key);
				at++;
			}
			key_merge_release(&merge);
		} while (at > before);
		assert_int_equal(at, merging.count);
	}
}

/* ---- Without memory ---- */

/* Reads and counts in that arena: all entries behind the first one, or a failure. */
typedef enum status reading(struct index_work *w, const struct key_ranges *ranges, size_t *ret);

static enum status
walk_in(struct index_work *w, const struct key_ranges *ranges, size_t *ret)
{
	struct index_scan scans[TOGETHER];
	struct key_walk_terms terms = terms_of(ranges, false, scans, TOGETHER);
	struct index_entry entry;
	struct key_walk walk;
	enum status status;

	terms.options.after = keys[0][0];
	status = key_walk_init(&walk, &terms);
	for (*ret = 0; status == STATUS_OK;) {
		status = key_walk_next(&walk, w, &entry);
		*ret += status == STATUS_OK;
	}
	key_walk_release(&walk);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
merge_in(struct index_work *w, const struct key_ranges *ranges, size_t *ret)
{
	struct key_merge_range list[GROUPS];
	const struct key_merge_terms terms = {
		.tx = tx,
		.db = &db,
		.ranges = list,
		.count = ranges->count,
		.options = { .mode = KV_SNAPSHOT, .after = keys[0][0] },
	};
	struct index_entry entry;
	struct key_merge merge;
	enum status status;

	for (size_t i = 0; i < ranges->count; i++)
		list[i] = (struct key_merge_range){ &defs[0], &ranges->items[i], 1 };
	status = key_merge_init(&merge, &terms, w->arena);
	for (*ret = 0; status == STATUS_OK;) {
		status = key_merge_next(&merge, w, &entry);
		if (status == STATUS_OK)
			assert_true(entry.id.len == 3 && entry.id.ptr[1] == '-');
		*ret += status == STATUS_OK;
	}
	key_merge_release(&merge);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
count_in(struct index_work *w, const struct key_ranges *ranges, size_t *ret)
{
	uint64_t rows = 0;
	enum status status = choice_count_rows(ranges, tx, &db, ENTRIES, &rows);

	(void)w;
	*ret = rows;
	return status;
}

static enum status
names_in(struct index_work *w, const struct key_ranges *ranges, size_t *ret)
{
	struct name_list list = { .arena = w->arena };

	(void)ranges;
	for (size_t i = NAMES; i > 0; i--)
		TRY(name_list_add(&list, str_of("aaaaaaaaaaaaaaaa", i % 16)));
	TRY(name_list_settle(&list));
	*ret = list.count;
	return STATUS_OK;
}

/* Of each group a range. */
static struct key_ranges
ranges_of_all(void)
{
	const struct value_order order = { .form = &index_json_form, .w = &work };
	const void *groups[GROUPS];
	struct value_set allowed;
	const struct key_columns asked = { .allowed = &allowed, .used = 1 };
	struct key_ranges ret;

	for (size_t i = 0; i < GROUPS; i++)
		groups[i] = &numbers[i];
	assert_int_equal(value_set_of_points(&order, groups, GROUPS, &allowed), STATUS_OK);
	assert_int_equal(key_ranges_make(&db, &defs[0], &asked, &order, &ret), STATUS_OK);
	assert_int_equal(ret.count, GROUPS);
	return ret;
}

/* Each allocation fails once, and those behind it do not; then the arena ends anywhere. */
static void
what_is_read_without_memory_is_all_or_a_failure(void **state)
{
	static reading *const readings[] = { walk_in, merge_in, count_in, names_in };
	const struct key_ranges ranges = ranges_of_all();

	(void)state;
	for (size_t i = 0; i < COUNT(readings); i++) {
		size_t wanted, count;
		bool failed = true;

		assert_int_equal(readings[i](&work, &ranges, &wanted), STATUS_OK);
		assert_true(wanted > 0);
		for (uint64_t nth = 1; failed; nth++) {
			struct index_work own = { .arena = arena_new(TEST_ARENA_BYTES) };
			enum status status;

			arena_set_apart(true);
			(void)mem_fail_only(nth);
			status = readings[i](&own, &ranges, &count);
			failed = mem_fail_only(0) >= nth;
			arena_set_apart(false);
			if (status == STATUS_OK)
				assert_int_equal(count, wanted);
			else
				assert_true(failed &&
					    (status == STATUS_NOMEM || status == STATUS_LIMIT));
			arena_free(own.arena);
		}
		for (size_t bytes = 0, enough = 0; enough < 3; bytes += ROOM_STEP) {
			struct index_work small = { .arena = arena_new(bytes) };
			enum status status = readings[i](&small, &ranges, &count);

			assert_int_equal(status,
					 arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK);
			if (status == STATUS_OK)
				assert_int_equal(count, wanted);
			enough += status == STATUS_OK;
			arena_free(small.arena);
		}
	}
}

/* ---- Names ---- */

static void
names_come_in_order_and_once(void **state)
{
	struct name_list list = { .arena = arena };
	bool known[NAMES] = { false };
	struct rand_seq rand = { .state = 4 };
	size_t at = 0;

	(void)state;
	assert_int_equal(name_list_settle(&list), STATUS_OK);
	assert_false(name_list_has(&list, STR("000")));
	for (size_t i = 0; i < NAMES; i++) {
		size_t name = rand_seq_below(&rand, NAMES);

		known[name] = true;
		assert_int_equal(name_list_add(&list, arena_printf(arena, "%03zu", name)),
				 STATUS_OK);
	}
	assert_int_equal(name_list_settle(&list), STATUS_OK);
	for (size_t i = 0; i < NAMES; i++) {
		struct str name = arena_printf(arena, "%03zu", i);

		assert_int_equal(name_list_has(&list, name), known[i]);
		assert_int_equal(name_list_find(&list, name), at);
		at += known[i];
	}
	assert_int_equal(list.count, at);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_entries, teardown_entries)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_of_a_walk_have_each_entry_once),
		TEST(a_walk_jumps_within_a_range_and_goes_on_with_others),
		TEST(merged_ranges_come_in_the_order_behind_their_columns),
		TEST(rows_of_many_ranges_are_known_by_some_of_them),
		TEST(what_is_read_without_memory_is_all_or_a_failure),
		TEST(names_come_in_order_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

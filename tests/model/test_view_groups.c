/*
 * Results of reduces over wide and narrow groups, side by side: compared with counts of their rows,
 * and what they cost.
 */
#include "views_world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	WIDE = 27,       /* groups of about 400 rows; behind each are some of one row */
	SPACING = 10000, /* between their keys */
	KEYS = (WIDE + 1) * SPACING,
	ROWS = 12000,
	DOC_ROWS = 100,
	ASKED = 60,
	PAGE_MOST = 100,
	FEW_SUMS = 120, /* groups of 100 rows */
};

/* How many rows each key has. */
static int counts[KEYS];

static int
row_key(int n, int groups, bool narrow)
{
	int key = n % groups * (WIDE * SPACING / groups);

	return narrow && n % 10 == 0 ? key + 1 + n / 10 : key;
}

/* So many groups; with `narrow`, groups of a row are among them. */
static struct world *
wide_world(void *fixture, int groups, bool narrow)
{
	struct world *w = world_new(fixture);
	AUTO(buf_release) struct buf text = BUF_INIT(64 * 1024);
	char part[64];

	memset(counts, 0, sizeof(counts));
	for (int n = 0; n < ROWS; n++) {
		counts[row_key(n, groups, narrow)]++;
		(void)snprintf(part, sizeof(part), "%s[%d,1]", n % DOC_ROWS ? "," : "{\"rows\":[",
			       row_key(n, groups, narrow));
		buf_append_cstr(&text, part);
		if ((n + 1) % DOC_ROWS)
			continue;
		buf_append_cstr(&text, "]}");
		buf_append_byte(&text, '\0');
		assert_int_equal(buf_status(&text), STATUS_OK);
		(void)snprintf(part, sizeof(part), "w%05d", n);
		(void)fixture_put(w->f, part, NULL, text.ptr);
		buf_clear(&text);
	}
	update(w);
	return w;
}

/* The next key in the direction that has rows; -1: none up to the other end. */
static int
next_key(int key, int end, bool descending)
{
	for (; descending ? key >= end : key <= end; key += descending ? -1 : 1)
		if (counts[key])
			return key;
	return -1;
}

static void
asked_keys(struct asked *a, int low, int high, bool descending)
{
	struct view_question *q = &a->question;
	struct err err = { 0 };

	*q = (struct view_question){
		.descending = descending,
		.start_key = arena_printf(a->w.arena, "%d", descending ? high : low),
		.end_key = arena_printf(a->w.arena, "%d", descending ? low : high),
	};
	assert_int_equal(view_range_make(&a->group, q, &a->w, &a->range, &err), STATUS_OK);
}

static void
check_group(struct world *w, const struct view_result *result, int key)
{
	assert_true(key >= 0);
	assert_int_equal(result->error.name.len, 0);
	assert_true(str_eq(result->key, arena_printf(w->f->arena, "%d", key)));
	assert_true(str_eq(result->value, arena_printf(w->f->arena, "%d", counts[key])));
}

static void
check_question(struct world *w, struct asked *a, struct view_reducing *reducing)
{
	int low = (int)rand_seq_below(&w->rand, KEYS);
	int high = low + (int)rand_seq_below(&w->rand, (uint64_t)(KEYS - low));
	bool descending = rand_seq_below(&w->rand, 2);
	size_t most = 1 + rand_seq_below(&w->rand, PAGE_MOST);
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT,
					       .skip = rand_seq_below(&w->rand, 50),
					       .limit = UINT64_MAX };
	int step = descending ? -1 : 1, end = descending ? low : high;
	int key = next_key(descending ? high : low, end, descending);
	struct view_results page;
	struct arena_mark mark;

	asked_keys(a, low, high, descending);
	mark = arena_mark(a->w.arena);
	for (uint64_t i = 0; i < options.skip && key >= 0; i++)
		key = next_key(key + step, end, descending);
	do {
		groups_page(w, a, reducing, &options, most, &page);
		assert_true(page.count <= most);
		for (size_t i = 0; i < page.count; i++) {
			check_group(w, &page.results[i], key);
			key = next_key(key + step, end, descending);
		}
		if (page.count)
			options.after = arena_dup(w->f->arena, page.results[page.count - 1].place);
		options.skip = 0;
		arena_reset(a->w.arena, mark);
	} while (page.more);
	assert_int_equal(key, -1);
}

static void
groups_of_any_width_are_added_up(void **state)
{
	struct world *w = wide_world(*state, WIDE, true);
	const struct view_map *map = &w->design.maps[PAIRS_MAP];
	struct view_reducing reducing = { .design = &w->design,
					  .map = PAIRS_MAP,
					  .functions = &views_functions };

	for (int i = 0; i < ASKED; i++) {
		struct arena_mark mark = arena_mark(w->f->arena);
		struct asked a;

		/* _sum, _count and a function: as many as there are rows. */
		reducing.reduce = (size_t)i % 3;
		assert_true(map->reduce_count > 3);
		asked_open(w, &a);
		check_question(w, &a, &reducing);
		asked_close(&a);
		arena_reset(w->f->arena, mark);
	}
	world_free(w);
}

/*
 * Each level of sums is gone through once, and read in waves. At the end of a group are some 64
 * rows, twice what a sum covers on average, since it is the longer ones that ends fall into.
 */
static void
wide_groups_are_read_in_one_pass(void **state)
{
	struct world *w = wide_world(*state, WIDE, false);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;

	for (int descending = 0; descending < 2; descending++) {
		struct kv_tx_stats before, after;

		asked_open(w, &a);
		asked_keys(&a, 0, KEYS, descending);
		before = kv_tx_stats(a.tx);
		groups_page(w, &a, &reducing, &options, PAGE_MOST, &page);
		after = kv_tx_stats(a.tx);
		assert_int_equal(page.count, WIDE);
		assert_false(page.more);
		for (int i = 0; i < WIDE; i++)
			check_group(w, &page.results[i], (descending ? WIDE - 1 - i : i) * SPACING);
		assert_in_range(after.reads - before.reads, 1, WIDE * 2);
		assert_in_range(after.round_trips - before.round_trips, 0, WIDE / 2);
		asked_close(&a);
	}
	world_free(w);
}

/* A few sums each, between which are more gaps than a wave has. */
static void
groups_of_few_sums_are_read_in_waves(void **state)
{
	struct world *w = wide_world(*state, FEW_SUMS, false);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_groups_options options = { .level = VIEW_LEVEL_EXACT, .limit = UINT64_MAX };
	struct view_results page;
	struct asked a;

	for (int descending = 0; descending < 2; descending++) {
		int key = next_key(descending ? KEYS - 1 : 0, descending ? 0 : KEYS - 1,
				   descending);

		asked_open(w, &a);
		asked_keys(&a, 0, KEYS, descending);
		groups_page(w, &a, &reducing, &options, 2 * FEW_SUMS, &page);
		assert_int_equal(page.count, FEW_SUMS);
		for (int i = 0; i < FEW_SUMS; i++) {
			check_group(w, &page.results[i], key);
			key = next_key(key + (descending ? -1 : 1), descending ? 0 : KEYS - 1,
				       descending);
		}
		asked_close(&a);
	}
	world_free(w);
}

#define SPACED_KEY "[1, \"x\" ]"

static enum status
map_spaced_key(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	       struct arena *arena, struct view_sink *sink, size_t *ret_done,
	       struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)docs, (void)arena, (void)ret_error, (void)err;
	for (*ret_done = 0; *ret_done < count; ++*ret_done) {
		for (size_t i = 0; i < design->map_count; i++) {
			view_sink_next(sink);
			view_sink_row(sink, STR(SPACED_KEY), STR("1"));
		}
	}
	return STATUS_OK;
}

/* The key of a group of exact keys is that of its row, which has blanks of its own. */
static void
an_exact_key_stays_as_it_was_emitted(void **state)
{
	static const struct {
		unsigned level;
		const char *key;
	} cases[] = { { VIEW_LEVEL_EXACT, SPACED_KEY }, { 2, "[1, \"x\"]" }, { 1, "[1]" } };
	const struct view_functions functions = { .map = map_spaced_key };
	struct world *w = world_new(*state);
	struct view_reducing reducing = { .design = &w->design, .map = PAIRS_MAP };
	struct view_target target = target_of(w);
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };

	assert_int_equal(view_design_parse(STR("{\"views\":{\"p\":{\"map\":\"pairs\",\"reduce\":"
					       "\"_sum\"}}}"),
					   false, w->f->arena, &w->design, &err),
			 STATUS_OK);
	target.functions = &functions;
	(void)fixture_put(w->f, "d", NULL, "{}");
	least = newest(w);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view_groups_options options = { .level = cases[i].level,
						       .limit = UINT64_MAX };
		struct view_question all = { 0 };
		struct view_results page;
		struct asked a;

		asked_open(w, &a);
		assert_int_equal(view_range_make(&a.group, &all, &a.w, &a.range, &err), STATUS_OK);
		groups_page(w, &a, &reducing, &options, PAGE_MOST, &page);
		assert_int_equal(page.count, 1);
		assert_true(str_eq(page.results[0].key, str_from_cstr(cases[i].key)));
		asked_close(&a);
	}
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_of_any_width_are_added_up, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(wide_groups_are_read_in_one_pass, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(groups_of_few_sums_are_read_in_waves, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(an_exact_key_stays_as_it_was_emitted, fixture_setup,
						fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

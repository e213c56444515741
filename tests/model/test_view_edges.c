/*
 * Views at their edges: rows that are as long as a limit and one byte longer, documents that lack
 * all of their rows, what is stored and is damaged, and the shape of sums.
 */
#include "views_world.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "index/versions.h"
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/run.h"
#include "index/view/sums.h"

enum {
	KEY_HEAD = 64,  /* bytes of a row's key beside its place, as the limit counts them */
	ROW_PAIRS = 64, /* bytes that each row counts beside its texts */
	REFUSALS = VIEW_REFUSALS_SHOWN + 3,
	LACKING = 5,
	MANY_ROWS = 300,
	TOO_OLD = 15, /* attempts: half of the documents each time, down to one */
	LARGE_DOCS = 9,
	LARGE_BYTES = VIEW_STEP_BYTES / 5, /* of a row: few of them are a step */
	CLEARED_ROWS = 6000,               /* more than one transaction clears */
	STALE_NUMBER = 100000,             /* that no group of a test reaches */
};

static const char raw_pairs[] = "{\"views\":{\"p\":{\"map\":\"pairs\",\"reduce\":\"_sum\","
				"\"options\":{\"collation\":\"raw\"}}}}";

static void
design_set(struct world *w, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(
		view_design_parse(str_from_cstr(text), false, w->f->arena, &w->design, &err),
		STATUS_OK);
}

/* So many bytes of a letter, as JSON. */
static struct str
text_json(struct arena *arena, size_t bytes)
{
	char *text = arena_bytes(arena, bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[0] = text[bytes - 1] = '"';
	return str_of(text, bytes);
}

/* ---- Rows that are too long ---- */

/* Rows that a map gives of each document, whatever that has. */
static struct {
	struct str key, value;
	size_t count;
} given;

static enum status
give_rows(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	  struct arena *arena, struct view_sink *sink, size_t *ret_done,
	  struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)docs, (void)arena, (void)ret_error, (void)err;
	for (*ret_done = 0; *ret_done < count; ++*ret_done) {
		view_sink_next(sink);
		for (size_t i = 0; i < given.count; i++)
			view_sink_row(sink, given.key, given.value);
	}
	return STATUS_OK;
}

static const struct view_functions giving = { .map = give_rows };

/* Maps the one document that there is; the batch is the caller's to free. */
static struct view_batch *
batch_of(struct world *w)
{
	const struct view_build build = build_of(w, &giving);
	const struct catalog_seq nothing = { 0 };
	struct view_batch *batch;
	struct err err = { 0 };

	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, 1, &nothing, &nothing, batch, &err), STATUS_OK);
	assert_int_equal(batch->count, 1);
	return batch;
}

/* `limit` NULL: all rows are there. */
static void
assert_given(struct world *w, const char *limit, size_t map, uint64_t rows)
{
	struct view_batch *batch = batch_of(w);

	if (batch->row_count != (limit ? 0 : rows))
		fail_msg("%zu rows", batch->row_count);
	assert_int_equal(batch->docs[0].count, batch->row_count);
	assert_int_equal(batch->left_out_count, limit != NULL);
	assert_int_equal(batch->docs[0].left_out_count, limit != NULL);
	if (limit) {
		assert_string_equal(batch->left_out[0].limit, limit);
		assert_int_equal(batch->left_out[0].map, map);
		assert_int_equal(batch->left_out[0].rows, rows);
	}
	view_batch_free(batch);
}

static void
a_row_has_bytes_up_to_its_limits(void **state)
{
	struct world *w = world_new(*state);
	struct arena *arena = arena_new(64 << 20);
	struct index_work work = { .arena = arena };
	AUTO(buf_release) struct buf raw = BUF_INIT(4 * VIEW_KEY_BYTES);

	assert_non_null(arena);
	design_set(w, raw_pairs);
	fixture_put(w->f, "d", NULL, "{}");
	/* The key alone. */
	assert_int_equal(view_component(&raw, VIEW_COLLATION_RAW, text_json(arena, 100), &work),
			 STATUS_OK);
	for (size_t more = 0; more < 2; more++) {
		given.count = 3;
		given.key = text_json(arena, VIEW_KEY_BYTES - (raw.len - 100) + more);
		given.value = STR("1");
		assert_given(w, more ? "view_key_bytes" : NULL, 0, 3);
		/* Key and value. */
		given.count = 1;
		given.key = STR("1");
		given.value = text_json(arena, VIEW_ROW_BYTES - 1 + more);
		assert_given(w, more ? "view_row_bytes" : NULL, 0, 1);
	}
	given.count = 2;
	given.value = STR("1");
	given.key = STR("1x");
	assert_given(w, "not_json", 0, 2);
	given.key = STR("1");
	given.value = STR("1x");
	assert_given(w, "not_json", 0, 2);
	given.value = STR("");
	assert_given(w, "not_json", 0, 2);
	given.value = STR("1");
	assert_given(w, NULL, 0, 2);
	arena_free(arena);
	world_free(w);
}

/* What becomes of sort keys of texts; STATUS_OK: they are made. */
static enum status sort_key_fails;

enum status __real_collate_sort_key(struct str text, size_t most, struct index_work *w,
				    struct buf *ret);
enum status __wrap_collate_sort_key(struct str text, size_t most, struct index_work *w,
				    struct buf *ret);

enum status
__wrap_collate_sort_key(struct str text, size_t most, struct index_work *w, struct buf *ret)
{
	return sort_key_fails ? sort_key_fails : __real_collate_sort_key(text, most, w, ret);
}

/* A view that lacked it would never get it: no row is left out for what passes. */
static void
a_row_whose_place_is_not_known_now_ends_the_batch(void **state)
{
	static const enum status failures[] = { STATUS_NOMEM, STATUS_UNAVAILABLE, STATUS_CANCELLED,
						STATUS_STEPS };
	struct world *w = world_new(*state);
	const struct view_build build = build_of(w, &giving);
	const struct catalog_seq nothing = { 0 };

	design_set(w, "{\"views\":{\"p\":{\"map\":\"pairs\"}}}");
	fixture_put(w->f, "d", NULL, "{}");
	given.count = 2;
	given.key = STR("\"text\"");
	given.value = STR("1");
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct view_batch *batch;
		struct err err = { 0 };

		assert_int_equal(view_batch_new(&batch), STATUS_OK);
		sort_key_fails = failures[i];
		assert_int_equal(view_batch_make(&build, 1, &nothing, &nothing, batch, &err),
				 failures[i]);
		sort_key_fails = STATUS_OK;
		assert_int_equal(batch->left_out_count, 0);
		view_batch_free(batch);
	}
	assert_given(w, NULL, 0, 2);
	world_free(w);
}

/* A key with the id of its document, and what stands in front of both. */
static void
the_key_of_a_row_has_room_for_the_id(void **state)
{
	struct world *w = world_new(*state);
	struct index_work work = { .arena = w->f->arena };
	AUTO(buf_release) struct buf raw = BUF_INIT(4 * VIEW_KEY_BYTES);
	AUTO(buf_release) struct buf place = BUF_INIT(4 * KV_LIMIT_KEY_BYTES);
	char id[5001];

	design_set(w, raw_pairs);
	memset(id, 'i', sizeof(id) - 1);
	id[5000] = '\0';
	fixture_put(w->f, id, NULL, "{}");
	given.count = 1;
	given.value = STR("1");
	assert_int_equal(
		view_component(&raw, VIEW_COLLATION_RAW, text_json(w->f->arena, 100), &work),
		STATUS_OK);
	view_place_put(&place, (struct str){ 0 }, buf_str(&raw), str_of(id, 5000), 1);
	for (size_t more = 0; more < 2; more++) {
		given.key = text_json(w->f->arena,
				      100 + KV_LIMIT_KEY_BYTES - KEY_HEAD - place.len + more);
		assert_given(w, more ? "view_key_bytes" : NULL, 0, 1);
	}
	world_free(w);
}

static void
a_document_has_rows_up_to_its_limit(void **state)
{
	enum {
		ROWS = 8,
	};
	struct world *w = world_new(*state);
	struct arena *arena = arena_new(64 << 20);
	struct index_work work = { .arena = arena };
	AUTO(buf_release) struct buf raw = BUF_INIT(64);
	size_t each, rest;

	assert_non_null(arena);
	design_set(w, raw_pairs);
	fixture_put(w->f, "d", NULL, "{}");
	given.key = STR("1");
	assert_int_equal(view_component(&raw, VIEW_COLLATION_RAW, given.key, &work), STATUS_OK);
	/* What each row counts beside its value, and what the list of those before it takes. */
	each = 2 * (raw.len + 1) + 1 + ROW_PAIRS;
	rest = VIEW_DOC_BYTES - ROWS * each - (ROWS - 1) * sizeof(struct view_mapped);
	for (size_t more = 0; more < 2; more++) {
		given.count = ROWS;
		given.value = text_json(arena, rest / ROWS + more);
		assert_given(w, more ? "view_doc_bytes" : NULL, more ? VIEW_VIEWS_MOST : 0,
			     more ? 1 : ROWS);
	}
	arena_free(arena);
	world_free(w);
}

/* ---- Documents that lack rows ---- */

/* A document whose only row is too long, and is not when `fits`. */
static const char *
put_lacking(struct world *w, const char *id, const char *rev, bool fits)
{
	struct str text = text_json(w->f->arena, fits ? 10 : 2 * VIEW_KEY_BYTES);

	return fixture_put(w->f, id, rev,
			   arena_printf(w->f->arena, "{\"rows\":[[%.*s,1]]}", STR_ARG(text)).ptr);
}

static void
a_document_that_lacks_all_rows_is_known_again(void **state)
{
	struct world *w = world_new(*state);
	struct view_lacking list[LACKING];
	const char *rev, *other;
	struct asked a;
	size_t count;
	bool more;

	design_set(w, raw_pairs);
	rev = put_lacking(w, "one", NULL, false);
	other = put_lacking(w, "two", NULL, false);
	(void)put_lacking(w, "three", NULL, true);
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.lacking[0], 2);
	assert_int_equal(a.group.rows[0], 1);
	for (size_t most = 1; most <= 3; most += 2) {
		assert_int_equal(view_lacks_list(a.tx, w->f->db, &a.group, 0, STR(""), most,
						 a.w.arena, list, &count, &more),
				 STATUS_OK);
		assert_int_equal(count, most < 2 ? 1 : 2);
		assert_int_equal(more, most == 1);
	}
	assert_true(str_eq(list[0].id, STR("one")));
	assert_true(str_eq(list[1].limit, STR("view_key_bytes")));
	assert_int_equal(list[1].rows, 1);
	asked_close(&a);
	/* They stay so many when one is written again, and become fewer when it fits. */
	rev = put_lacking(w, "one", rev, false);
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.lacking[0], 2);
	asked_close(&a);
	(void)put_lacking(w, "one", rev, true);
	(void)fixture_delete(w->f, "two", other);
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.lacking[0], 0);
	assert_int_equal(a.group.rows[0], 2);
	assert_int_equal(a.group.refusal_count, 3);
	assert_int_equal(view_lacks_list(a.tx, w->f->db, &a.group, 0, STR(""), LACKING, a.w.arena,
					 list, &count, &more),
			 STATUS_OK);
	assert_int_equal(count, 0);
	assert_false(more);
	asked_close(&a);
	world_free(w);
}

static void
the_newest_refusals_are_remembered(void **state)
{
	struct world *w = world_new(*state);
	char id[16];
	struct asked a;

	design_set(w, raw_pairs);
	for (int i = 0; i < REFUSALS; i++) {
		(void)snprintf(id, sizeof(id), "d%02d", i);
		(void)put_lacking(w, id, NULL, false);
	}
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.refused, REFUSALS);
	assert_int_equal(a.group.refusal_count, VIEW_REFUSALS_SHOWN);
	for (int i = 0; i < VIEW_REFUSALS_SHOWN; i++) {
		(void)snprintf(id, sizeof(id), "d%02d", i + REFUSALS - VIEW_REFUSALS_SHOWN);
		assert_true(str_eq(a.group.refusals[i].id, str_from_cstr(id)));
	}
	asked_close(&a);
	world_free(w);
}

/* Each view lacks the rows of such a document, however many views there are, and none is named. */
static void
a_document_that_is_too_large_is_refused_for_all_views(void **state)
{
	AUTO(buf_release) struct buf design = BUF_INIT(65536);
	struct world *w = world_new(*state);
	struct view_target target = target_of(w);
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };
	struct asked a;

	for (size_t i = 0; i < VIEW_VIEWS_MOST; i++)
		buf_printf(&design, "%s\"v%zu\":{\"map\":\"m%zu\"}", i ? "," : "{\"views\":{", i,
			   i);
	buf_append_cstr(&design, "}}");
	buf_append_byte(&design, '\0');
	design_set(w, design.ptr);
	assert_int_equal(w->design.map_count, VIEW_VIEWS_MOST);
	target.design = &w->design;
	target.functions = &giving;
	(void)fixture_put(w->f, "d", NULL, "{}");
	least = newest(w);
	given.count = 8;
	given.key = STR("1");
	given.value = text_json(w->f->arena, VIEW_DOC_BYTES / 8);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_OK);
	asked_open(w, &a);
	for (size_t i = 0; i < VIEW_VIEWS_MOST; i++) {
		assert_int_equal(a.group.rows[i], 0);
		assert_int_equal(a.group.lacking[i], 1);
	}
	assert_int_equal(a.group.halves, 0);
	assert_int_equal(a.group.refusal_count, 1);
	assert_true(str_eq(a.group.refusals[0].id, STR("d")));
	assert_true(str_eq(a.group.refusals[0].view, STR("")));
	assert_true(str_eq(a.group.refusals[0].limit, STR("view_doc_bytes")));
	asked_close(&a);
	world_free(w);
}

/* ---- Damage ---- */

struct setting {
	struct str key, value;
};

static enum status
set_body(struct kv_tx *tx, void *arg)
{
	struct setting *s = arg;

	return s->value.ptr ? kv_set(tx, s->key, s->value) : kv_clear(tx, s->key);
}

static void
set_pair(struct world *w, struct str key, struct str value)
{
	struct setting s = { key, value };

	assert_int_equal(kv_run(w->f->calm, set_body, &s, NULL, NULL), STATUS_OK);
}

static enum status
open_group(struct world *w)
{
	struct kv_tx *tx = fixture_begin(w->f);
	struct view_group group;
	struct err err = { 0 };
	enum status status = view_group_open(tx, w->f->db, &w->design, w->f->arena, &group, &err);

	kv_tx_free(tx);
	return status;
}

static void
a_group_without_its_record_is_corrupt(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct view_design design = w->design;
	struct kv_future *f;
	struct str value;
	struct kv_tx *tx;

	assert_int_equal(open_group(w), STATUS_NOT_FOUND);
	doc_put(w, &w->docs[0]);
	update(w);
	assert_int_equal(open_group(w), STATUS_OK);
	/* The record has as many maps as the design. */
	w->design.map_count--;
	assert_int_equal(open_group(w), STATUS_CORRUPT);
	w->design = design;
	view_key_group(&key, w->f->db, VIEW_KEYS_GROUPS, 1);
	tx = fixture_begin(w->f);
	f = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_true(kv_future_value(f, &value));
	value = arena_dup(w->f->arena, value);
	kv_tx_free(tx);
	set_pair(w, buf_str(&key), (struct str){ NULL, 0 });
	assert_int_equal(open_group(w), STATUS_CORRUPT);
	set_pair(w, buf_str(&key), value);
	assert_int_equal(open_group(w), STATUS_OK);
	world_free(w);
}

/* So many that some of them begin sums. */
static const char *
many_rows(struct world *w)
{
	AUTO(buf_release) struct buf text = BUF_INIT(64 * MANY_ROWS);

	for (int i = 0; i < MANY_ROWS; i++)
		buf_printf(&text, "%s[%d,%d]", i ? "," : "{\"rows\":[", i, i);
	buf_append_str(&text, STR("]}\0"));
	return buf_dup(&text, w->f->arena).ptr;
}

/* Results of all rows by each reduce, when a sum has fewer results than the map has reduces. */
static void
a_sum_without_a_result_is_corrupt(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf fewer = BUF_INIT(VIEW_VALUE_BYTES);
	const struct view_groups_options options = { .level = VIEW_LEVEL_ALL, .limit = 1 };
	struct view_question all = { 0 };
	struct err err = { 0 };
	struct kv_future *f;
	struct view_sum sum;
	struct str value;
	struct asked a;

	design_set(w, "{\"views\":{\"a\":{\"map\":\"pairs\",\"reduce\":\"_sum\"},"
		      "\"b\":{\"map\":\"pairs\",\"reduce\":\"_last\"}}}");
	for (size_t i = 0; i < 5; i++)
		doc_put(w, &w->docs[i]);
	fixture_put(w->f, "many", NULL, many_rows(w));
	update(w);
	asked_open(w, &a);
	assert_true(a.group.tops[0] > 0);
	view_key_level(&key, w->f->db, a.group.number, 0, a.group.tops[0]);
	f = kv_get(a.tx, buf_str(&key), KV_SNAPSHOT);
	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_true(kv_future_value(f, &value));
	value = arena_dup(w->f->arena, value);
	asked_close(&a);
	assert_int_equal(view_sum_parse(value, w->f->arena, &sum, &err), STATUS_OK);
	assert_int_equal(sum.count, 2);
	sum.count = 1;
	sum.rows++;
	view_sum_put(&fewer, &sum);
	set_pair(w, buf_str(&key), buf_str(&fewer));
	asked_open(w, &a);
	assert_int_equal(view_range_make(&a.group, &all, &a.w, &a.range, &err), STATUS_OK);
	for (size_t reduce = 0; reduce < 2; reduce++) {
		const struct view_reducing reducing = { .design = &w->design,
							.reduce = reduce,
							.functions = &views_functions };
		struct view_results page;
		enum status status = view_groups_page(a.tx, w->f->db, &a.group, &reducing, &a.range,
						      &options, 1, &a.w, &page);

		assert_int_equal(status, reduce ? STATUS_CORRUPT : STATUS_OK);
		view_results_release(&page);
	}
	asked_close(&a);
	set_pair(w, buf_str(&key), value);
	world_free(w);
}

/* A list says of how many pairs it is: of rows that are in none of them nothing is known. */
static void
a_list_that_lacks_a_pair_is_corrupt(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf longer = BUF_INIT(VIEW_VALUE_BYTES);
	struct view_target target = target_of(w);
	struct view_back_head head;
	struct catalog_seq least;
	struct view_error error;
	struct err err = { 0 };
	struct kv_future *f;
	struct str value, rest;
	struct asked a;
	const char *rev;

	rev = fixture_put(w->f, "d", NULL, "{\"rows\":[[1,1],[2,2]]}");
	update(w);
	asked_open(w, &a);
	view_key_doc(&key, w->f->db, a.group.number, STR("d"));
	f = kv_get(a.tx, buf_str(&key), KV_SNAPSHOT);
	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_true(kv_future_value(f, &value));
	rest = value = arena_dup(w->f->arena, value);
	asked_close(&a);
	assert_int_equal(view_back_head_parse(&rest, &head, &err), STATUS_OK);
	assert_int_equal(head.chunks, 1);
	head.chunks = 2;
	view_back_head_put(&longer, &head);
	buf_append_str(&longer, rest);
	set_pair(w, buf_str(&key), buf_str(&longer));
	(void)fixture_put(w->f, "d", rev, "{\"rows\":[[1,1],[3,3]]}");
	least = newest(w);
	assert_int_equal(view_update(w->engine, &target, &least, WAIT_FOREVER, NULL, w->f->arena,
				     &error, &err),
			 STATUS_CORRUPT);
	set_pair(w, buf_str(&key), value);
	update(w);
	world_free(w);
}

/* ---- The shape of sums ---- */

/* The places of a level, in order, as one text. */
static struct kv_range
level_of(struct world *w, struct asked *a, size_t map, unsigned level, size_t *ret_prefix)
{
	static const struct kv_range_options options = { .limit = 100000, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	struct kv_future *f;

	assert_int_equal(view_key_places(w->f->db, a->group.number, map, level, STR(""), STR(""),
					 &lo, &hi, ret_prefix),
			 STATUS_OK);
	f = kv_get_range(a->tx, buf_str(&lo), buf_str(&hi), &options);
	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_false(kv_future_range(f).more);
	return kv_future_range(f);
}

/* A level has its first sum, and one for each row whose place draws it, whatever has changed. */
static void
check_levels(struct world *w)
{
	struct asked a;

	asked_open(w, &a);
	for (size_t map = 0; map < w->design.map_count; map++) {
		size_t rows_prefix;
		struct kv_range rows = level_of(w, &a, map, 0, &rows_prefix);
		unsigned highest = 0;

		assert_int_equal(rows.count, a.group.rows[map]);
		for (unsigned level = 1; level <= VIEW_LEVELS; level++) {
			size_t prefix, at = 0;
			struct kv_range sums = level_of(w, &a, map, level, &prefix);

			if (sums.count && !str_skip(sums.pairs[0].key, prefix).len)
				at++;
			for (size_t i = 0; i < rows.count; i++) {
				struct str place = str_skip(rows.pairs[i].key, rows_prefix);

				if (view_place_level(a.group.seed, place) < level)
					continue;
				highest = level;
				assert_true(at < sums.count);
				if (!str_eq(str_skip(sums.pairs[at++].key, prefix), place))
					fail_msg("map %zu, level %u, row %zu", map, level, i);
			}
			assert_int_equal(at, sums.count);
		}
		assert_true(a.group.tops[map] >= highest);
		assert_true(a.group.tops[map] <= VIEW_LEVELS);
	}
	asked_close(&a);
}

static void
each_level_has_the_sums_that_rows_draw(void **state)
{
	enum {
		ROUNDS = 6,
		WIDE = 300,
	};
	struct world *w = world_new(*state);
	const char *revs[WIDE];
	char id[16];

	for (int i = 0; i < WIDE; i++) {
		(void)snprintf(id, sizeof(id), "w%03d", i);
		revs[i] = fixture_put(w->f, id, NULL, "{\"rows\":[[1,1],[2,1]]}");
	}
	update(w);
	check_levels(w);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = round; i < WIDE; i += 3) {
			(void)snprintf(id, sizeof(id), "w%03d", i);
			/* Values alone, fewer rows, others, none. */
			if (!revs[i])
				revs[i] = fixture_put(w->f, id, NULL, "{\"rows\":[[4,1]]}");
			else if (round % 3 == 0)
				revs[i] = fixture_put(w->f, id, revs[i],
						      "{\"rows\":[[1,2],[2,3]],\"more\":7}");
			else if (round % 3 == 1)
				revs[i] = fixture_put(w->f, id, revs[i],
						      "{\"rows\":[[1,2],[3,1]]}");
			else {
				(void)fixture_delete(w->f, id, revs[i]);
				revs[i] = NULL;
			}
		}
		update(w);
		check_levels(w);
	}
	world_free(w);
}

/* A step may end within a level: the next one goes on there, and makes the sums that are left. */
static void
each_level_has_its_sums_however_small_the_steps(void **state)
{
	enum {
		WIDE = 300,
		STEP_DOCS = 100, /* fewer than all, which would be summed up at once */
		STEP_SUMS = 10,
	};
	struct world *w = world_new(*state);
	struct view_build build = build_of(w, &views_functions);
	struct view_step step = { .phase = VIEW_PHASE_ROWS };
	struct reduce_asked asked;
	struct err err = { 0 };
	unsigned steps = 0;

	design_set(w, raw_pairs);
	build.asked = &asked;
	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	put_many(w, 0, WIDE);
	while (step.phase == VIEW_PHASE_ROWS) {
		struct view_step_size size = { STEP_DOCS, VIEW_STEP_BYTES };
		struct view_record record;
		struct view_batch *batch;

		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(view_batch_new(&batch), STATUS_OK);
		assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
						 &record.group.purge_seq, batch, &err),
				 STATUS_OK);
		assert_int_equal(view_step_write(&build, batch, &size, w->f->arena, &step, &err),
				 STATUS_OK);
		view_batch_free(batch);
	}
	for (; step.phase == VIEW_PHASE_SUMS; steps++) {
		struct view_step_size size = { STEP_SUMS, 0 };

		assert_int_equal(view_step_sums(&build, &size, w->f->arena, &step, &err),
				 STATUS_OK);
	}
	assert_int_equal(step.phase, VIEW_PHASE_READY);
	assert_true(steps > 1);
	check_levels(w);
	reduce_asked_release(&asked);
	reduce_memo_free(build.memo);
	world_free(w);
}

/* ---- Pages ---- */

static void
pages_of_results_end_at_their_limit(void **state)
{
	enum {
		GROUPS = 5,
	};
	struct world *w = world_new(*state);
	const struct view_reducing reducing = { .design = &w->design,
						.map = PAIRS_MAP,
						.functions = &views_functions };
	struct err err = { 0 };
	struct asked a;

	fixture_put(w->f, "d", NULL, "{\"rows\":[[1,1],[2,1],[3,1],[3,1],[4,1],[5,1]]}");
	update(w);
	asked_open(w, &a);
	for (uint64_t limit = 0; limit <= GROUPS + 1; limit++)
		for (size_t most = 1; most <= GROUPS + 1; most++)
			for (int descending = 0; descending < 2; descending++) {
				const struct view_question all = { .descending = descending };
				struct view_groups_options options = { .level = VIEW_LEVEL_EXACT,
								       .limit = limit };
				struct view_results page;
				uint64_t count = 0;

				assert_int_equal(
					view_range_make(&a.group, &all, &a.w, &a.range, &err),
					STATUS_OK);
				do {
					groups_page(w, &a, &reducing, &options, most, &page);
					assert_true(page.count <= most &&
						    page.count <= options.limit);
					count += page.count;
					if (page.count == options.limit)
						assert_false(page.more);
					else if (count < GROUPS)
						assert_true(page.more && page.count == most);
					options.limit -= page.count;
					if (page.count)
						options.after = page.results[page.count - 1].place;
				} while (page.more);
				assert_int_equal(count, limit < GROUPS ? limit : GROUPS);
			}
	asked_close(&a);
	world_free(w);
}

/* ---- Batches that take too long ---- */

static struct {
	const struct view_documents *documents;
	size_t most[TOO_OLD]; /* documents that each attempt has asked for */
	size_t count;
} reading;

static enum status
changes_too_old(struct kv_tx *tx, const struct catalog_db *db, const struct view_docs_want *want,
		struct arena *arena, struct view_docs *ret, struct err *err)
{
	if (reading.count == TOO_OLD)
		return reading.documents->changes(tx, db, want, arena, ret, err);
	reading.most[reading.count++] = want->most;
	return STATUS_TX_TOO_OLD;
}

/* Each attempt asks for half as many documents as the one before, and for one at least. */
static void
a_batch_that_takes_too_long_is_halved_down_to_one_document(void **state)
{
	static struct view_documents hooked;
	struct world *w = world_new(*state);
	const struct view_build build = build_of(w, &views_functions);
	const struct catalog_seq beginning_seq = { 0 };
	struct view_batch *batch;
	struct err err = { 0 };
	size_t most = VIEW_BATCH_DOCS;

	doc_put(w, &w->docs[0]);
	doc_put(w, &w->docs[1]);
	reading.documents = view_documents_of(w->f->db);
	reading.count = 0;
	hooked = *reading.documents;
	hooked.changes = changes_too_old;
	view_documents_register(&hooked);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, 1, &beginning_seq, &beginning_seq, batch, &err),
			 STATUS_OK);
	view_documents_register(reading.documents);
	assert_int_equal(reading.count, TOO_OLD);
	for (size_t i = 0; i < TOO_OLD; i++) {
		assert_int_equal(reading.most[i], most);
		most = most > 1 ? most / 2 : 1;
	}
	assert_int_equal(batch->count, 1);
	assert_true(batch->more);
	view_batch_free(batch);
	world_free(w);
}

/* ---- Cleanup ---- */

static void
a_cleanup_keeps_what_has_a_name_and_is_live(void **state)
{
	struct world *w = world_new(*state);
	uint8_t live[2][VIEW_SIGNATURE_BYTES];
	struct view_design design;
	struct err err = { 0 };
	struct kv_tx *tx;
	struct view_group group;
	uint64_t cleared, bytes;

	doc_put(w, &w->docs[0]);
	update(w);
	memcpy(live[0], w->design.signature, sizeof(live[0]));
	design = w->design;
	design_set(w, raw_pairs);
	memcpy(live[1], w->design.signature, sizeof(live[1]));
	update(w);
	/* It would begin the group again. */
	updates_end(w);
	assert_int_equal(open_group(w), STATUS_OK);
	for (size_t count = 2; count > 0; count--) {
		assert_int_equal(view_cleanup(w->f->store, CATALOG_SPACE_COUCH, w->f->db->name,
					      (const uint8_t(*)[VIEW_SIGNATURE_BYTES])live, count,
					      &cleared, &err),
				 STATUS_OK);
		assert_int_equal(cleared, count < 2);
		assert_int_equal(open_group(w), count < 2 ? STATUS_NOT_FOUND : STATUS_OK);
	}
	w->design = design;
	tx = fixture_begin(w->f);
	assert_int_equal(view_group_open(tx, w->f->db, &w->design, w->f->arena, &group, &err),
			 STATUS_OK);
	assert_int_equal(view_group_bytes(tx, w->f->db, &group, &bytes), STATUS_OK);
	kv_tx_free(tx);
	check_all(w);
	assert_int_equal(view_cleanup(w->f->store, CATALOG_SPACE_COUCH, STR("none"), NULL, 0,
				      &cleared, &err),
			 STATUS_NOT_FOUND);
	world_free(w);
}

/*
 * A document that was there before the views, of which a step has written some of the rows. The
 * sums are made of all rows, not of those of the last step: enough to begin sums are before it.
 */
static void
a_first_build_goes_on_amid_a_document(void **state)
{
	struct world *w = world_new(*state);
	struct view_build build = build_of(w, &views_functions);
	struct view_step_size size = { 1, 1 };
	struct reduce_asked asked;
	struct view_record record;
	struct view_batch *batch;
	struct view_step step;
	struct err err = { 0 };

	design_set(w, raw_pairs);
	build.asked = &asked;
	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&asked), STATUS_OK);
	(void)fixture_put(w->f, "half", NULL, many_rows(w));
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(view_batch_new(&batch), STATUS_OK);
	assert_int_equal(view_batch_make(&build, record.group.number, &record.group.covers,
					 &record.group.purge_seq, batch, &err),
			 STATUS_OK);
	for (uint64_t rows = 1; rows < MANY_ROWS; rows++) {
		assert_int_equal(view_step_write(&build, batch, &size, w->f->arena, &step, &err),
				 STATUS_OK);
		assert_false(step.whole);
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(record.group.phase, VIEW_PHASE_ROWS);
		assert_int_equal(record.group.halves, 1);
		assert_int_equal(record.group.rows[PAIRS_MAP], rows);
	}
	view_batch_free(batch);
	update(w);
	updates_end(w);
	assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
	assert_int_equal(record.group.phase, VIEW_PHASE_READY);
	assert_int_equal(record.group.halves, 0);
	assert_int_equal(record.group.rows[PAIRS_MAP], MANY_ROWS);
	assert_true(record.group.tops[PAIRS_MAP] > 0);
	reduce_asked_release(&asked);
	reduce_memo_free(build.memo);
	world_free(w);
}

/* ---- What is told of a step ---- */

struct telling {
	unsigned told[LARGE_DOCS];
	unsigned steps;
};

static bool
note_step(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct telling *t = arg;

	(void)step, (void)ret_least;
	t->steps++;
	return true;
}

static void
note_left_out(void *arg, const struct view_left_out *out)
{
	struct telling *t = arg;

	assert_int_equal(out->id.len, 2);
	assert_in_range(out->id.ptr[1], '0', '0' + LARGE_DOCS - 1);
	assert_int_equal(out->rows, 1);
	t->told[out->id.ptr[1] - '0']++;
}

/* Each of the documents lacks a row, and the batch is more than one step writes. */
static void
what_is_left_out_is_told_once(void **state)
{
	struct world *w = world_new(*state);
	const struct view_build build = build_of(w, &views_functions);
	struct telling telling = { .steps = 0 };
	const struct view_run_hooks hooks = { .stepped = note_step,
					      .left_out = note_left_out,
					      .arg = &telling };
	const struct view_run_hooks quiet = { .stepped = note_step, .arg = &telling };
	struct str too_long = text_json(w->f->arena, 2 * VIEW_KEY_BYTES);
	struct str large = text_json(w->f->arena, LARGE_BYTES);
	struct catalog_seq least;
	struct view_error error;
	struct asked a;
	struct err err = { 0 };
	char id[3] = "l0";

	for (int i = 0; i < LARGE_DOCS; i++) {
		id[1] = (char)('0' + i);
		(void)fixture_put(w->f, id, NULL,
				  arena_printf(w->f->arena, "{\"rows\":[[%.*s,1],[2,%.*s]]}",
					       STR_ARG(too_long), STR_ARG(large))
					  .ptr);
	}
	least = newest(w);
	assert_int_equal(view_run(&build, &least, &hooks, w->f->arena, &error, &err), STATUS_OK);
	assert_true(telling.steps > 2);
	for (int i = 0; i < LARGE_DOCS; i++)
		assert_int_equal(telling.told[i], 1);
	asked_open(w, &a);
	assert_int_equal(a.group.refused, LARGE_DOCS);
	assert_int_equal(a.group.refusal_count, LARGE_DOCS);
	asked_close(&a);
	/* Nobody need ask for it. */
	(void)put_lacking(w, "more", NULL, false);
	least = newest(w);
	assert_int_equal(view_run(&build, &least, &quiet, w->f->arena, &error, &err), STATUS_OK);
	asked_open(w, &a);
	assert_int_equal(a.group.refused, LARGE_DOCS + 1);
	asked_close(&a);
	world_free(w);
}

static bool
go_on(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	(void)arg, (void)step, (void)ret_least;
	return true;
}

/* Whichever allocation fails: what has not brought the group up to date does not say so. */
static void
a_run_whose_memory_ends_says_so_or_is_done(void **state)
{
	struct world *w = world_new(*state);
	const struct view_build build = build_of(w, &views_functions);
	const struct view_run_hooks hooks = { .stepped = go_on };
	bool failed = true;

	for (int nth = 1; failed; nth++) {
		struct view_record record;
		struct view_error error;
		struct err err = { 0 };
		struct catalog_seq least;
		enum status status;

		put_many(w, nth, nth + 1);
		least = newest(w);
		(void)mem_fail_only((uint64_t)nth);
		status = view_run(&build, &least, &hooks, w->f->arena, &error, &err);
		failed = mem_fail_only(0) >= (uint64_t)nth;
		assert_true(failed || status == STATUS_OK);
		/* The next run begins where this one would have ended. */
		if (status != STATUS_OK)
			status = view_run(&build, &least, &hooks, w->f->arena, &error, &err);
		assert_int_equal(status, STATUS_OK);
		assert_int_equal(view_build_state(&build, w->f->arena, &record, &err), STATUS_OK);
		assert_int_equal(record.group.phase, VIEW_PHASE_READY);
		assert_true(catalog_seq_cmp(&record.group.covers, &least) >= 0);
	}
	world_free(w);
}

static enum status
views_left_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct world *w = arg;
	struct kv_pair pair;
	enum status status;

	w->row_count = 0;
	buf_set(&lo, w->f->db->prefix);
	tuple_put_u64(&lo, VIEW_SPACE);
	TRY(view_prefix_end(buf_str(&lo), &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		w->row_count++;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Whichever kind of keys is more than one transaction clears, and those that come behind it. */
static void
a_cleanup_of_many_rows_leaves_none(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 20);
	struct world *w = world_new(*state);
	struct err err = { 0 };
	uint64_t cleared;

	buf_append_cstr(&text, "{\"rows\":[[0,0]");
	for (int i = 1; i < CLEARED_ROWS; i++)
		buf_printf(&text, ",[%d,1]", i);
	buf_append_cstr(&text, "]}");
	buf_append_byte(&text, 0);
	assert_int_equal(buf_status(&text), STATUS_OK);
	(void)fixture_put(w->f, "many", NULL, text.ptr);
	(void)fixture_put(w->f, "none", NULL, "{}");
	update(w);
	updates_end(w);
	assert_int_equal(kv_run_read(w->f->calm, views_left_body, w, NULL), STATUS_OK);
	assert_true(w->row_count > CLEARED_ROWS);
	assert_int_equal(view_cleanup(w->f->store, CATALOG_SPACE_COUCH, w->f->db->name, NULL, 0,
				      &cleared, &err),
			 STATUS_OK);
	assert_int_equal(cleared, 1);
	assert_int_equal(kv_run_read(w->f->calm, views_left_body, w, NULL), STATUS_OK);
	/* The number of the next group. */
	assert_int_equal(w->row_count, 1);
	world_free(w);
}

struct stale {
	struct world *w;
	unsigned from, to;
	size_t left;
};

/* Names and records of groups of designs that are no more, in front of all others. */
static enum status
stale_body(struct kv_tx *tx, void *arg)
{
	const struct stale *s = arg;
	const struct catalog_db *db = s->w->f->db;
	struct index_versions versions;

	index_versions_read(&versions);
	for (unsigned i = s->from; i < s->to; i++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf value = CATALOG_KEY_INIT;
		uint8_t signature[VIEW_SIGNATURE_BYTES] = { 0 };

		signature[2] = (uint8_t)(i >> 8);
		signature[3] = (uint8_t)i;
		view_key_name(&key, db, signature, str_from_cstr(versions.collator));
		tuple_put_u64(&value, STALE_NUMBER + i);
		TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
		view_key_group(&key, db, VIEW_KEYS_GROUPS, STALE_NUMBER + i);
		TRY(kv_set(tx, buf_str(&key), STR("")));
	}
	return STATUS_OK;
}

static enum status
left_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct stale *s = arg;
	struct kv_pair pair;
	enum status status;

	s->left = 0;
	view_key_kind(&lo, s->w->f->db, VIEW_KEYS_GROUPS);
	TRY(view_prefix_end(buf_str(&lo), &hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		s->left++;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* As many as one cleanup looks through, one less and one more: what is live stays in any case. */
static void
a_cleanup_of_many_groups_keeps_what_is_live(void **state)
{
	static const unsigned counts[] = { VIEW_GROUPS_MOST - 2, VIEW_GROUPS_MOST - 1,
					   VIEW_GROUPS_MOST,     VIEW_GROUPS_MOST + 1,
					   2 * VIEW_GROUPS_MOST, 2 * VIEW_GROUPS_MOST + 1 };
	struct world *w = world_new(*state);
	struct stale stale = { .w = w };
	uint8_t live[1][VIEW_SIGNATURE_BYTES];
	struct err err = { 0 };

	doc_put(w, &w->docs[0]);
	update(w);
	memcpy(live[0], w->design.signature, sizeof(live[0]));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t cleared, sum = 0;
		unsigned rounds = 0;

		for (stale.from = 0; stale.from < counts[i]; stale.from = stale.to) {
			stale.to = counts[i] - stale.from < 500 ? counts[i] : stale.from + 500;
			assert_int_equal(kv_run(w->f->calm, stale_body, &stale, NULL, NULL),
					 STATUS_OK);
		}
		do {
			assert_int_equal(view_cleanup(w->f->store, CATALOG_SPACE_COUCH,
						      w->f->db->name,
						      (const uint8_t(*)[VIEW_SIGNATURE_BYTES])live,
						      1, &cleared, &err),
					 STATUS_OK);
			assert_true(cleared <= VIEW_GROUPS_MOST);
			if (open_group(w) != STATUS_OK)
				fail_msg("a cleanup beside %u groups has cleared what is live",
					 counts[i]);
			sum += cleared;
			rounds++;
		} while (cleared);
		assert_int_equal(sum, counts[i]);
		assert_int_equal(rounds, 1 + (counts[i] + VIEW_GROUPS_MOST - 1) / VIEW_GROUPS_MOST);
		assert_int_equal(kv_run_read(w->f->calm, left_body, &stale, NULL), STATUS_OK);
		assert_int_equal(stale.left, 1);
	}
	check_all(w);
	world_free(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_has_bytes_up_to_its_limits),
		TEST(a_row_whose_place_is_not_known_now_ends_the_batch),
		TEST(the_key_of_a_row_has_room_for_the_id),
		TEST(a_document_has_rows_up_to_its_limit),
		TEST(a_document_that_lacks_all_rows_is_known_again),
		TEST(the_newest_refusals_are_remembered),
		TEST(a_document_that_is_too_large_is_refused_for_all_views),
		TEST(a_group_without_its_record_is_corrupt),
		TEST(a_sum_without_a_result_is_corrupt),
		TEST(a_list_that_lacks_a_pair_is_corrupt),
		TEST(each_level_has_the_sums_that_rows_draw),
		TEST(each_level_has_its_sums_however_small_the_steps),
		TEST(pages_of_results_end_at_their_limit),
		TEST(a_batch_that_takes_too_long_is_halved_down_to_one_document),
		TEST(a_first_build_goes_on_amid_a_document),
		TEST(what_is_left_out_is_told_once),
		TEST(a_run_whose_memory_ends_says_so_or_is_done),
		TEST(a_cleanup_keeps_what_has_a_name_and_is_live),
		TEST(a_cleanup_of_many_rows_leaves_none),
		TEST(a_cleanup_of_many_groups_keeps_what_is_live),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

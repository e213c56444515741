/*
 * What reading and checking views answers when a call of the store fails and when memory ends
 * (probe.h). The lists beneath sums are of random heights, so nothing is damaged here.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/verify.h"
#include "doc/json_value.h"
#include "index/view/keys.h"
#include "index/view/record.h"
#include "probe.h"
#include "views_world.h"

enum {
	ROW_DOCS = 30,
	LONG_BYTES = VIEW_CHUNK_BYTES + 10000, /* of a value that lies in two pieces */
	TEXT_BYTES = 1000,
	STEP_DOCS = 6,
	PAIRS_MOST = 500,
};

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

/* ---- A group in the transaction of a probe ---- */

struct reading {
	const struct world *w;
	struct index_work work;
	struct view_group group;
	struct view_range range;
};

typedef enum status reading_body(struct probe *p, struct reading *r);

static enum status
in_group(struct probe *p, const struct view_question *question, reading_body *body)
{
	struct reading r = { .w = p->world, .work = { .arena = p->arena } };

	probe_begin(p);
	TRY(view_group_open(p->tx, r.w->f->db, &r.w->design, p->arena, &r.group, &p->err));
	if (r.group.phase != VIEW_PHASE_READY)
		return STATUS_OK;
	TRY(view_range_make(&r.group, question, &r.work, &r.range, &p->err));
	return body(p, &r);
}

static const struct view_question everything = { .descending = false };
static const struct view_question some = { .start_key = { "[1]", 3 },
					   .end_key = { "[1,\"x\"]", 7 },
					   .exclusive_end = false };
static const struct view_question backwards = { .start_key = { "[2]", 3 }, .descending = true };

static enum status
rows_of_map(struct probe *p, struct reading *r, size_t map, uint64_t skip)
{
	const struct view_rows_options options = { .skip = skip, .limit = 20 };
	struct view_rows rows = { .open = false };
	struct view_row row;
	enum status status;

	status = view_rows_begin(&rows, p->tx, r->w->f->db, &r->group, map, &r->range, &options,
				 &r->work);
	while (status == STATUS_OK) {
		status = view_rows_next(&rows, &r->work, &row);
		if (status != STATUS_OK)
			break;
		say(p, row.id);
		say(p, row.key);
		say(p, row.value);
	}
	view_rows_end(&rows);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
rows_of(struct probe *p, struct reading *r)
{
	return rows_of_map(p, r, PAIRS_MAP, 2);
}

/* Two rows, and the rest from another cursor. */
static enum status
rows_behind(struct probe *p, struct reading *r)
{
	struct view_rows_options options = { .limit = 2 };
	struct view_rows rows = { .open = false };
	AUTO(buf_release) struct buf place = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct view_row row;
	enum status status = STATUS_OK;

	for (unsigned pages = 0; pages < 2; pages++) {
		status = view_rows_begin(&rows, p->tx, r->w->f->db, &r->group, PAIRS_MAP, &r->range,
					 &options, &r->work);
		while (status == STATUS_OK) {
			status = view_rows_next(&rows, &r->work, &row);
			if (status != STATUS_OK)
				break;
			say(p, row.id);
			buf_set(&place, row.place);
		}
		view_rows_end(&rows);
		if (status != STATUS_NOT_FOUND)
			return status;
		TRY(buf_status(&place));
		options.after = buf_str(&place);
		options.limit = 20;
	}
	return STATUS_OK;
}

static enum status
ids_of(struct probe *p, struct reading *r)
{
	return rows_of_map(p, r, IDS_MAP, 0);
}

static enum status
counts_of(struct probe *p, struct reading *r)
{
	const struct catalog_db *db = r->w->f->db;
	uint64_t offset, count, total;

	TRY(view_rows_offset(p->tx, db, &r->group, PAIRS_MAP, &r->range, &r->work, &offset));
	TRY(view_rows_count(p->tx, db, &r->group, PAIRS_MAP, &r->range, &r->work, &count));
	TRY(view_rows_total(p->tx, db, &r->group, PAIRS_MAP, STR(""), &r->work, &total));
	buf_printf(&p->said, "%llu %llu %llu", (unsigned long long)offset,
		   (unsigned long long)count, (unsigned long long)total);
	return STATUS_OK;
}

static enum status
sums_by(struct probe *p, struct reading *r, unsigned level, size_t reduce)
{
	const struct view_reducing reducing = { .design = &r->w->design,
						.map = PAIRS_MAP,
						.reduce = reduce,
						.functions = &views_functions };
	const struct view_groups_options options = { .level = level, .limit = UINT64_MAX };
	struct view_results page = { .count = 0 };
	struct view_error error;
	enum status status;

	status = view_groups_page(p->tx, r->w->f->db, &r->group, &reducing, &r->range, &options, 10,
				  &r->work, &page);
	if (status == STATUS_OK)
		status = view_groups_reduce(&reducing, &r->work, &page, &error, &p->err);
	for (size_t i = 0; status == STATUS_OK && i < page.count; i++) {
		say(p, page.results[i].key);
		say(p, page.results[i].value);
	}
	view_results_release(&page);
	return status;
}

static enum status
sum_of(struct probe *p, struct reading *r)
{
	return sums_by(p, r, VIEW_LEVEL_ALL, 0);
}

static enum status
sums_of(struct probe *p, struct reading *r)
{
	return sums_by(p, r, 1, 0);
}

static enum status
sums_of_another(struct probe *p, struct reading *r)
{
	return sums_by(p, r, 1, r->w->design.maps[PAIRS_MAP].reduce_count - 1);
}

/* Pages of a group each, of which the first one passes over a group. */
static enum status
sums_in_pages(struct probe *p, struct reading *r)
{
	const struct view_reducing reducing = { .design = &r->w->design,
						.map = PAIRS_MAP,
						.functions = &views_functions };
	struct view_groups_options options = { .level = 1, .limit = UINT64_MAX, .skip = 1 };
	enum status status = STATUS_OK;
	bool more = true;

	while (status == STATUS_OK && more) {
		struct view_results page = { .count = 0 };
		struct view_error error;

		status = view_groups_page(p->tx, r->w->f->db, &r->group, &reducing, &r->range,
					  &options, 1, &r->work, &page);
		if (status == STATUS_OK)
			status = view_groups_reduce(&reducing, &r->work, &page, &error, &p->err);
		for (size_t i = 0; status == STATUS_OK && i < page.count; i++) {
			say(p, page.results[i].key);
			say(p, page.results[i].value);
			options.after = page.results[i].place;
		}
		more = page.more;
		options.skip = 0;
		view_results_release(&page);
	}
	return status;
}

static enum status
lacks_of(struct probe *p, struct reading *r)
{
	struct view_lacking lacking[3];
	size_t count;
	bool more;

	TRY(view_lacks_list(p->tx, r->w->f->db, &r->group, PAIRS_MAP, STR(""), 3, p->arena, lacking,
			    &count, &more));
	buf_printf(&p->said, "%zu", count);
	return STATUS_OK;
}

static enum status
rows(struct probe *p)
{
	return in_group(p, &everything, rows_of);
}

static enum status
ids(struct probe *p)
{
	return in_group(p, &everything, ids_of);
}

static enum status
rows_backwards(struct probe *p)
{
	return in_group(p, &backwards, rows_of);
}

static enum status
rows_in_pages(struct probe *p)
{
	return in_group(p, &everything, rows_behind);
}

static enum status
rows_in_pages_backwards(struct probe *p)
{
	return in_group(p, &backwards, rows_behind);
}

static enum status
counts(struct probe *p)
{
	return in_group(p, &some, counts_of);
}

static enum status
sum(struct probe *p)
{
	return in_group(p, &everything, sum_of);
}

static enum status
sum_of_some(struct probe *p)
{
	return in_group(p, &some, sum_of);
}

static enum status
sums(struct probe *p)
{
	return in_group(p, &everything, sums_of);
}

static enum status
sums_another(struct probe *p)
{
	return in_group(p, &everything, sums_of_another);
}

static enum status
pages_of_sums(struct probe *p)
{
	return in_group(p, &everything, sums_in_pages);
}

static enum status
pages_of_sums_backwards(struct probe *p)
{
	return in_group(p, &backwards, sums_in_pages);
}

static enum status
lacks(struct probe *p)
{
	return in_group(p, &everything, lacks_of);
}

static const struct probe_op reading[] = {
	{ "rows", rows, "ok, conflicts 0 0+0" },
	{ "rows backwards", rows_backwards, "ok, conflicts 0 0+0" },
	{ "rows in pages", rows_in_pages, "ok, conflicts 0 0+0" },
	{ "rows in pages backwards", rows_in_pages_backwards, "ok, conflicts 0 0+0" },
	{ "rows with a long value", ids, "ok, conflicts 0 0+0" },
	{ "counts", counts, "ok, conflicts 0 0+0" },
	{ "a sum", sum, "ok, conflicts 0 0+0" },
	{ "a sum of some", sum_of_some, "ok, conflicts 0 0+0" },
	{ "sums", sums, "ok, conflicts 0 0+0" },
	{ "sums by a function", sums_another, "ok, conflicts 0 0+0" },
	{ "sums in pages", pages_of_sums, "ok, conflicts 0 0+0" },
	{ "sums in pages backwards", pages_of_sums_backwards, "ok, conflicts 0 0+0" },
	{ "lacks", lacks, "ok, conflicts 0 0+0" },
};

/* ---- The check of views ---- */

static void
note_finding(const struct catalog_finding *finding, void *arg)
{
	struct probe *p = arg;

	buf_append_str(&p->said, str_from_cstr(finding->kind));
	buf_append_byte(&p->said, '|');
}

/* The functions need nothing that is lent to them. */
static void *
lend(void *arg, const struct catalog_db *db, struct str id, struct str text)
{
	(void)db, (void)id, (void)text;
	return arg;
}

static void
give_back(void *arg)
{
	(void)arg;
}

/* As the world's functions add up, but without memory it says so. */
static enum status
add_up(void *arg, const struct view_design *design, const struct str *names, size_t name_count,
       bool rereduce, const struct view_group_input *groups, size_t group_count,
       struct arena *arena, struct str *ret_results, struct view_error *ret_errors,
       struct view_error *ret_error, struct err *err)
{
	(void)arg, (void)design, (void)names, (void)name_count, (void)rereduce;
	(void)ret_errors, (void)ret_error;
	for (size_t i = 0; i < group_count; i++) {
		struct json_value array, *items;
		size_t count;
		long sum = 0;

		TRY(json_value_read(groups[i].values, arena, &array, err));
		TRY(json_value_items(&array, arena, &items, &count, err));
		for (size_t k = 0; k < count; k++)
			sum += strtol(items[k].text.ptr, NULL, 10);
		ret_results[i] = arena_printf(arena, "%ld", sum);
		if (!ret_results[i].ptr)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

static enum status
verify_with(struct probe *p, bool still)
{
	struct view_functions functions = views_functions;
	const struct catalog_verify_lender lender = { &functions, lend, p };
	const struct catalog_verify_options options = {
		.found = note_finding, .arg = p, .lender = &lender, .still = still
	};
	struct catalog_verify_sum sum;
	enum status status;

	functions.reduce = add_up;
	functions.release = give_back;
	probe_begin(p);
	status = catalog_verify_store(p->tx, &options, &sum, &p->err);
	buf_printf(&p->said, "%llu", (unsigned long long)sum.functions);
	return status;
}

static enum status
verify(struct probe *p)
{
	return verify_with(p, false);
}

static enum status
verify_still(struct probe *p)
{
	return verify_with(p, true);
}

static const struct probe_op checks[] = {
	{ "verify what stands still", verify_still, "ok, conflicts 4 0+0" },
	{ "verify", verify, "ok, conflicts 4 0+0" },
};

/* ---- Steps of a build, each from the same state of the database ---- */

struct stepping {
	struct world *w;
	struct view_build build;
	struct reduce_asked asked;
	struct view_batch *batch;
	struct kv_pair *pairs; /* of the database */
	size_t count;
};

static enum status
pairs_save(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct stepping *s = arg;
	struct str begin = s->w->f->db->prefix;
	enum status status;
	struct kv_pair pair;

	s->count = 0;
	TRY(view_prefix_end(begin, &end));
	TRY(kv_scan_init(&scan, tx, begin, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		assert_true(s->count < PAIRS_MOST);
		s->pairs[s->count++] = (struct kv_pair){ arena_dup(s->w->f->arena, pair.key),
							 arena_dup(s->w->f->arena, pair.value) };
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
pairs_restore(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	const struct stepping *s = arg;
	struct str begin = s->w->f->db->prefix;

	TRY(view_prefix_end(begin, &end));
	TRY(kv_clear_range(tx, begin, buf_str(&end)));
	for (size_t i = 0; i < s->count; i++)
		TRY(kv_set(tx, s->pairs[i].key, s->pairs[i].value));
	return STATUS_OK;
}

static void
stepping_save(struct stepping *s)
{
	assert_int_equal(kv_run_read(s->w->f->calm, pairs_save, s, NULL), STATUS_OK);
}

static void
stepping_restore(void *world)
{
	struct stepping *s = world;

	assert_int_equal(kv_run(s->w->f->calm, pairs_restore, s, NULL, NULL), STATUS_OK);
}

static enum status
step_write(struct probe *p)
{
	struct stepping *s = p->world;
	struct view_step_size size = { VIEW_BATCH_DOCS, VIEW_STEP_BYTES };
	struct view_step step;

	probe_begin(p);
	return view_step_write(&s->build, s->batch, &size, p->arena, &step, &p->err);
}

static enum status
step_sums(struct probe *p)
{
	struct stepping *s = p->world;
	struct view_step_size size = { VIEW_STEP_ROWS, 0 };
	struct view_step step;

	probe_begin(p);
	return view_step_sums(&s->build, &size, p->arena, &step, &p->err);
}

static enum status
begin_group(struct probe *p)
{
	struct stepping *s = p->world;
	struct view_record record;

	probe_begin(p);
	TRY(view_build_state(&s->build, p->arena, &record, &p->err));
	buf_printf(&p->said, "%llu %d", (unsigned long long)record.group.number,
		   record.group.phase);
	return STATUS_OK;
}

static const struct probe_op beginning = { "a group begins", begin_group, "ok, conflicts 5 0+0" };
static const struct probe_op found = { "a group is there", begin_group, "ok, conflicts 4 0+0" };
static const struct probe_op writing_step = { "a step", step_write, "ok, conflicts 4 0+0" };
static const struct probe_op summing_step = { "a step that sums up", step_sums,
					      "ok, conflicts 4 0+0" };

/* ---- Tests ---- */

/* Two steps from one place conflict, since each reads what it then writes. */
/* A step that may have all documents is the only one; with one fewer the sums come later. */
static void
step_sums_up_what_it_may_hold(struct stepping *s)
{
	for (size_t most = STEP_DOCS - 1; most <= STEP_DOCS; most++) {
		struct view_step_size size = { most, VIEW_STEP_BYTES };
		struct view_step step;
		struct err err = { 0 };

		assert_int_equal(
			view_step_write(&s->build, s->batch, &size, s->w->f->arena, &step, &err),
			STATUS_OK);
		assert_int_equal(step.phase,
				 most == STEP_DOCS ? VIEW_PHASE_READY : VIEW_PHASE_ROWS);
		stepping_restore(s);
	}
}

static void
steps_hand_failures_on_and_conflict(void **state)
{
	static const char design[] = "{\"views\":{\"p\":{\"map\":\"pairs\",\"reduce\":\"_sum\"}}}";
	struct fixture *f = *state;
	struct world *w = world_new(f);
	struct stepping s = { .w = w,
			      .build = { .store = f->store,
					 .space = CATALOG_SPACE_COUCH,
					 .db_name = f->db->name,
					 .db_number = f->db->number,
					 .design = &w->design,
					 .functions = &views_functions,
					 .asked = &s.asked } };
	struct view_step_size one = { 1, VIEW_STEP_BYTES };
	struct view_record record;
	struct view_step step;
	struct err err = { 0 };

	view_engine_free(w->engine);
	w->engine = NULL;
	assert_int_equal(
		view_design_parse(str_from_cstr(design), false, f->arena, &w->design, &err),
		STATUS_OK);
	s.pairs = arena_alloc(f->arena, PAIRS_MOST * sizeof(*s.pairs));
	assert_int_equal(reduce_memo_new(VIEW_MEMO_BYTES, &s.build.memo), STATUS_OK);
	assert_int_equal(reduce_asked_init(&s.asked), STATUS_OK);
	put_many(w, 0, STEP_DOCS);
	stepping_save(&s);
	probe_each_alone_undamaged(f->store, &s, stepping_restore, &beginning, 1);
	stepping_restore(&s);
	assert_int_equal(view_build_state(&s.build, f->arena, &record, &err), STATUS_OK);
	probe_each_alone_undamaged(f->store, &s, NULL, &found, 1);
	for (unsigned i = 0; i < STEP_DOCS; i++) {
		assert_int_equal(view_batch_new(&s.batch), STATUS_OK);
		assert_int_equal(view_batch_make(&s.build, record.group.number,
						 &record.group.covers, &record.group.purge_seq,
						 s.batch, &err),
				 STATUS_OK);
		if (i == 0) {
			stepping_save(&s);
			probe_each_alone_undamaged(f->store, &s, stepping_restore, &writing_step,
						   1);
			stepping_restore(&s);
			step_sums_up_what_it_may_hold(&s);
		}
		assert_int_equal(view_step_write(&s.build, s.batch, &one, f->arena, &step, &err),
				 STATUS_OK);
		view_batch_free(s.batch);
		assert_int_equal(view_build_state(&s.build, f->arena, &record, &err), STATUS_OK);
	}
	assert_int_equal(record.group.phase, VIEW_PHASE_SUMS);
	stepping_save(&s);
	probe_each_alone_undamaged(f->store, &s, stepping_restore, &summing_step, 1);
	reduce_asked_release(&s.asked);
	reduce_memo_free(s.build.memo);
	world_free(w);
}

/* The first of all ids, whose value is long. */
static void
put_long(struct world *w)
{
	AUTO(buf_release) struct buf body = BUF_INIT(2 * LONG_BYTES);

	buf_append_cstr(&body, "{\"more\":[0");
	while (body.len < LONG_BYTES)
		buf_printf(&body, ",\"%0*d\"", TEXT_BYTES, 0);
	buf_append_cstr(&body, "]}");
	buf_append_byte(&body, 0);
	assert_int_equal(buf_status(&body), STATUS_OK);
	fixture_put(w->f, "long", NULL, body.ptr);
}

static void
readers_of_views_hand_failures_on(void **state)
{
	struct fixture *f = *state;
	struct world *w = world_new(f);

	world_put_design(w);
	put_many(w, 0, ROW_DOCS);
	put_long(w);
	update(w);
	/* Its threads would use the store beside the probes. */
	view_engine_free(w->engine);
	w->engine = NULL;
	probe_each_undamaged(f->store, w, reading, sizeof(reading) / sizeof(reading[0]));
	world_free(w);
}

/* Of few documents, beside design documents that are none or have other views. */
static void
checks_of_views_hand_failures_on(void **state)
{
	struct fixture *f = *state;
	struct world *w = world_new(f);

	fixture_put(f, "_design/none", NULL, "{\"views\":1}");
	fixture_put(f, "_design/other", NULL, "{\"views\":{\"a\":{\"map\":\"x\"}}}");
	world_put_design(w);
	put_many(w, 0, STEP_DOCS);
	update(w);
	view_engine_free(w->engine);
	w->engine = NULL;
	probe_each_undamaged(f->store, w, checks, sizeof(checks) / sizeof(checks[0]));
	world_free(w);
}

static int
setup(void **state)
{
	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	return fixture_setup(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(steps_hand_failures_on_and_conflict, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(readers_of_views_hand_failures_on, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(checks_of_views_hand_failures_on, setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

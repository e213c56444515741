/*
 * Building indexes over existing documents: whoever writes meanwhile, wherever the process ends,
 * every document has its entries in the end and nothing else has any.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "catalog/chores.h"
#include "catalog/tally.h"
#include "catalog/verify.h"
#include "fixture.h"
#include "index/engine/build.h"
#include "index/engine/scan.h"
#include "kv/faulty/faulty.h"
#include "model/revisioned/shape.h"

enum {
	DOCS = 3000,
	DOCS_OF_CLUSTER = 1000, /* each of which is read by itself */
	PAGE = 100,
	STEPS_MAX = 1000,
	PATIENCE_MS = 600 * 1000, /* ends what hangs: a busy machine is not to end it */
	BATCH = 250,
	PROCESSES = 3,
	PROCESS_WRITES = 300,
	OVERTAKEN_DOCS = INDEX_BUILD_STEP_DOCS + 200, /* more than the first step has */
};

static int
docs(void)
{
	return test_store_is_cluster() ? DOCS_OF_CLUSTER : DOCS;
}

/* ---- Definitions and documents ---- */

struct create_arg {
	struct fixture *f;
	uint32_t flags;
	const struct index_column *column;
	uint64_t number;
};

static const struct str path_n[] = { { "n", 1 } };
static const struct str path_rev[] = { { "_rev", 4 } };
static const struct index_column column_rev = { .path = path_rev, .path_count = 1 };
static const struct index_column column_n = { .path = path_n, .path_count = 1 };

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct create_arg *a = arg;
	const struct index_def terms = {
		.state = INDEX_BUILDING,
		.flags = a->flags,
		.order = DOC_KEY_COUCH,
		.name = STR("by-n"),
		.owner = STR("_design/x"),
		.columns = a->column,
		.column_count = 1,
	};

	return index_create(tx, a->f->db, &terms, &a->number, NULL);
}

static uint64_t
create_index_on(struct fixture *f, const struct index_column *column, uint32_t flags)
{
	struct create_arg arg = { .f = f, .flags = flags | INDEX_SPARSE, .column = column };

	assert_int_equal(kv_run(f->store, create_body, &arg, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	return arg.number;
}

static uint64_t
create_index(struct fixture *f, uint32_t flags)
{
	return create_index_on(f, &column_n, flags);
}

static enum status
drop_body(struct kv_tx *tx, void *arg)
{
	struct create_arg *a = arg;

	return index_drop(tx, a->f->db, index_find(a->f->db, a->number));
}

static void
put_many(struct fixture *f, int from, int to, int step)
{
	static struct rev_result results[BATCH];
	static struct rev_edit edits[BATCH];
	static char ids[BATCH][16];
	static char bodies[BATCH][64];
	struct arena_mark mark = arena_mark(f->arena);
	size_t n = 0;

	for (int i = from; i < to; i++) {
		(void)snprintf(ids[n], sizeof(ids[n]), "d%05d", i);
		(void)snprintf(bodies[n], sizeof(bodies[n]), "{\"n\":%d,\"s\":\"text %d\"}",
			       i * step, i);
		edits[n] = fixture_edit(f, ids[n], NULL, bodies[n]);
		n++;
		if (n < BATCH && i + 1 < to)
			continue;
		fixture_write(f, edits, n, results);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(results[k].status, STATUS_OK);
		n = 0;
		arena_reset(f->arena, mark);
	}
}

/* ---- What must be there ---- */

struct expect_arg {
	struct fixture *f;
	const struct index_def *def;
	struct arena *arena;
	uint64_t expected;
	uint64_t stored;
	struct name_range range; /* of the next page */
	struct rev_entry_page page;
	struct arena_mark begun; /* what the page reads lies behind it */
	uint64_t on_page;        /* expected */
};

static enum status
count_body(struct kv_tx *tx, void *arg)
{
	struct expect_arg *a = arg;
	struct index_work work = { .arena = a->arena };
	struct index_range all;
	const struct index_interval everything = { 0 };
	uint64_t total;

	arena_clear(a->arena);
	TRY(index_range_make(a->f->db, a->def, &everything, &work, &all));
	TRY(index_range_count(tx, a->f->db, &all, SIZE_MAX, &a->stored));
	TRY(index_range_count_exactly(tx, a->f->db, &all, &total));
	assert_int_equal(total, a->stored);
	return STATUS_OK;
}

/* A page of documents has its entries. */
static enum status
page_body(struct kv_tx *tx, void *arg)
{
	struct expect_arg *a = arg;
	struct index_work work = { .arena = a->arena };

	arena_reset(a->arena, a->begun);
	a->on_page = 0;
	TRY(rev_all_docs_page(tx, a->f->db, &a->range, a->arena, &a->page));
	for (size_t i = 0; i < a->page.count; i++) {
		struct arena_mark mark = arena_mark(a->arena);
		struct index_pairs pairs = { 0 };
		struct index_source source = { .id = a->page.entries[i].id };
		struct rev_doc doc;

		if (str_starts_with(source.id, STR("_design/")))
			continue;
		TRY(rev_doc_read(tx, a->f->db, source.id, a->arena, &doc));
		source.body = doc.packed;
		source.leaves = doc.leaves;
		source.count = doc.count;
		TRY(index_entries_make(a->f->db, a->def, &source, &work, &pairs));
		for (size_t k = 0; k < pairs.count; k++) {
			struct kv_future *f = kv_get(tx, pairs.pairs[k].key, KV_SNAPSHOT);
			struct str value;

			TRY(kv_future_wait(f));
			assert_true(kv_future_value(f, &value));
			assert_true(str_eq(value, pairs.pairs[k].value));
			kv_future_free(f);
		}
		a->on_page += pairs.count;
		arena_reset(a->arena, mark);
	}
	return STATUS_OK;
}

/*
 * Every document's entries are there, and there are no others: the numbers are the same. Nobody
 * writes meanwhile, so each page may be read by itself: all of them take a busy cluster longer than
 * it keeps a version.
 */
static void
expect_entries(struct expect_arg *a)
{
	assert_int_equal(kv_run_read(a->f->calm, count_body, a, NULL), STATUS_OK);
	a->range = (struct name_range){ .limit = PAGE };
	do {
		a->begun = arena_mark(a->arena);
		assert_int_equal(kv_run_read(a->f->calm, page_body, a, NULL), STATUS_OK);
		a->expected += a->on_page;
		a->range.begin = arena_dup(a->arena, a->page.last);
		a->range.has_begin = a->range.exclusive_begin = true;
	} while (a->page.more);
	assert_int_equal(a->stored, a->expected);
}

static void
finding_print(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	(void)fprintf(stderr, "# %s: %s\n", finding->kind, finding->text);
}

static enum status
verify_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = finding_print };

	return catalog_verify_store(tx, &options, arg, NULL);
}

/* What `frond verify` finds. */
static uint64_t
findings_of(struct fixture *f)
{
	struct catalog_verify_sum sum;

	assert_int_equal(kv_run_read(f->calm, verify_body, &sum, NULL), STATUS_OK);
	return sum.findings;
}

/* Every document has its entries and nothing else has any; how many that are. */
static uint64_t
check_all_entries(struct fixture *f, uint64_t number)
{
	struct expect_arg arg = { .f = f, .arena = arena_new(256 * 1024 * 1024) };

	fixture_reopen(f);
	arg.def = index_find(f->db, number);
	assert_non_null(arg.def);
	assert_int_equal(arg.def->state, INDEX_READY);
	expect_entries(&arg);
	assert_int_equal(findings_of(f), 0);
	arena_free(arg.arena);
	return arg.stored;
}

static void
check_entries(struct fixture *f, uint64_t number, uint64_t expected)
{
	assert_int_equal(check_all_entries(f, number), expected);
}

static struct index_build_key
build_key(struct fixture *f, uint64_t number)
{
	return (struct index_build_key){ .space = CATALOG_SPACE_COUCH,
					 .db_name = STR("db"),
					 .db_number = f->db->number,
					 .number = number };
}

static enum index_state
build_steps(struct fixture *f, uint64_t number, uint64_t preferred, unsigned steps)
{
	struct index_build_key key = build_key(f, number);
	enum index_state state;
	struct err err = { 0 };

	if (index_build_run(f->store, &key, preferred, steps, &state, &err) != STATUS_OK)
		fail_msg("index_build_run: %s", err.text);
	return state;
}

static void
chores_start_building(struct fixture *f, struct chores **ret)
{
	const struct index_builder_options options = { .store = f->store,
						       .threads = 2,
						       .percent = 90 };

	*ret = chores_new(f->store);
	assert_non_null(*ret);
	index_chores_add(*ret, &options);
	assert_int_equal(chores_start(*ret, NULL), STATUS_OK);
}

struct total_arg {
	struct fixture *f;
	uint64_t total;
};

static enum status
total_body(struct kv_tx *tx, void *arg)
{
	struct total_arg *a = arg;

	return index_total_count(tx, a->f->db, &a->total);
}

static uint64_t
entries_total(struct fixture *f)
{
	struct total_arg arg = { .f = f };

	assert_int_equal(kv_run_read(f->calm, total_body, &arg, NULL), STATUS_OK);
	return arg.total;
}

/* ---- Tests ---- */

/* The first step has more entries than a transaction holds: it begins anew with fewer documents. */
static void
a_step_that_no_transaction_holds_is_made_smaller(void **state)
{
	enum {
		MANY_DOCS = 500,
		MANY_ELEMENTS = 60,
		MANY_BATCH = 50,
		ELEMENT_BYTES = 120,
	};
	static struct rev_result results[MANY_BATCH];
	static struct rev_edit edits[MANY_BATCH];
	AUTO(buf_release) struct buf body = BUF_INIT(2 * MANY_ELEMENTS * ELEMENT_BYTES);
	struct fixture *f = *state;
	uint64_t number;

	buf_append_cstr(&body, "{\"n\":[");
	for (int i = 0; i < MANY_ELEMENTS; i++)
		buf_printf(&body, "%s\"%0*d\"", i ? "," : "", ELEMENT_BYTES, i);
	buf_append_cstr(&body, "]}");
	buf_append_byte(&body, '\0');
	for (int i = 0; i < MANY_DOCS; i += MANY_BATCH) {
		struct arena_mark mark = arena_mark(f->arena);

		for (int k = 0; k < MANY_BATCH; k++)
			edits[k] = fixture_edit(f, arena_printf(f->arena, "d%05d", i + k).ptr, NULL,
						body.ptr);
		fixture_write(f, edits, MANY_BATCH, results);
		arena_reset(f->arena, mark);
	}
	number = create_index(f, INDEX_MULTIKEY);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_READY);
	assert_int_equal(findings_of(f), 0);
	assert_int_equal(entries_total(f), MANY_DOCS * MANY_ELEMENTS);
}

static void
every_document_gets_its_entry(void **state)
{
	struct fixture *f = *state;
	uint64_t number;

	put_many(f, 0, docs(), 1);
	fixture_put(f, "without", NULL, "{\"other\":1}");
	fixture_put(f, "_design/d", NULL, "{\"n\":1}");
	number = create_index(f, 0);
	assert_int_equal(index_find(f->db, number)->state, INDEX_BUILDING);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_READY);
	check_entries(f, number, docs());
}

/* The entries that a build makes are those that writers take out. */
static void
index_of_revisions_is_built_as_it_is_kept(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a", NULL, "{}");
	uint64_t number;

	fixture_put(f, "b", NULL, "{\"n\":1}");
	number = create_index_on(f, &column_rev, 0);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_READY);
	fixture_reopen(f);
	assert_int_equal(entries_total(f), 2);
	fixture_put(f, "a", rev, "{\"n\":2}");
	assert_int_equal(entries_total(f), 2);
	assert_int_equal(findings_of(f), 0);
}

/* ---- Stretches ---- */

static size_t
stretches_of(struct fixture *f, uint64_t number)
{
	struct index_build_record records[INDEX_BUILD_STRETCHES];
	struct kv_tx *tx = fixture_begin(f);
	size_t count;

	assert_int_equal(
		index_build_records(tx, f->db, number, KV_SNAPSHOT, f->arena, records, &count),
		STATUS_OK);
	kv_tx_free(tx);
	return count;
}

static void
tend_all(struct fixture *f)
{
	struct err err = { 0 };
	bool more = true;

	while (more)
		assert_int_equal(catalog_tally_tend(f->store, f->db, NULL, &more, &err), STATUS_OK);
}

/* The bounds are as short as they can be: so there are documents of every such id. */
static void
documents_are_built_in_stretches(void **state)
{
	struct fixture *f = *state;
	uint64_t number;
	char id[16];

	put_many(f, 0, docs(), 1);
	for (int i = 0; i < docs() / 10; i++) {
		(void)snprintf(id, sizeof(id), "d%04d", i);
		fixture_put(f, id, NULL, "{\"n\":-1}");
		(void)snprintf(id, sizeof(id), "d%03d", i / 10);
		if (i % 10 == 0)
			fixture_put(f, id, NULL, "{\"n\":-1}");
	}
	tend_all(f);
	number = create_index(f, 0);
	assert_int_equal(build_steps(f, number, 0, 0), INDEX_BUILDING);
	assert_in_range(stretches_of(f, number), 2, INDEX_BUILD_STRETCHES);
	assert_int_equal(build_steps(f, number, 1, STEPS_MAX), INDEX_READY);
	fixture_reopen(f);
	assert_int_equal(entries_total(f), docs() + docs() / 10 + docs() / 100);
	assert_int_equal(findings_of(f), 0);
}

/* What another thread of the process is at is left to it; so is the end of the build. */
static void
threads_of_a_process_take_different_stretches(void **state)
{
	struct fixture *f = *state;
	struct index_build_key key;
	enum index_state index_state;
	struct err err = { 0 };
	size_t count;

	put_many(f, 0, docs(), 1);
	tend_all(f);
	key = build_key(f, create_index(f, 0));
	key.claims = true;
	assert_int_equal(index_build_run(f->store, &key, 0, 0, &index_state, &err), STATUS_OK);
	count = stretches_of(f, key.number);
	if (test_store_is_cluster() && count == 1)
		return; /* too few documents for two: what is left to others is all there is */
	assert_in_range(count, 2, INDEX_BUILD_STRETCHES);
	for (uint64_t i = 0; i < count; i++) {
		assert_true(index_builds_claim(&key, i));
		assert_false(index_builds_claim(&key, i));
	}
	assert_int_equal(index_build_run(f->store, &key, 0, 1, &index_state, &err), STATUS_OK);
	assert_int_equal(index_state, INDEX_BUILDING);
	assert_int_equal(entries_total(f), 0);
	index_builds_leave(&key, count - 1);
	assert_int_equal(index_build_run(f->store, &key, 0, STEPS_MAX, &index_state, &err),
			 STATUS_OK);
	assert_int_equal(index_state, INDEX_BUILDING);
	assert_in_range(entries_total(f), 1, docs() - 1);
	for (uint64_t i = 0; i + 1 < count; i++)
		index_builds_leave(&key, i);
	assert_int_equal(index_build_run(f->store, &key, 0, STEPS_MAX, &index_state, &err),
			 STATUS_OK);
	assert_int_equal(index_state, INDEX_READY);
	check_entries(f, key.number, docs());
}

static void
index_of_an_empty_database_is_ready_at_once(void **state)
{
	struct fixture *f = *state;
	uint64_t number = create_index(f, 0);

	assert_int_equal(build_steps(f, number, 0, 1), INDEX_READY);
	fixture_put(f, "a", NULL, "{\"n\":1}");
	check_entries(f, number, 1);
}

static void
what_is_written_between_two_steps_is_kept_by_its_writers(void **state)
{
	struct fixture *f = *state;
	uint64_t number, count = docs();
	unsigned at = 0;

	put_many(f, 0, docs(), 1);
	number = create_index(f, 0);
	while (build_steps(f, number, at, 1) == INDEX_BUILDING) {
		char id[16];
		const char *rev;

		/* New ones, and ones that may lie on either side of the build. */
		(void)snprintf(id, sizeof(id), "e%05u", at);
		rev = fixture_put(f, id, NULL, "{\"n\":7}");
		count++;
		if (at % 2) {
			fixture_delete(f, id, rev);
			count--;
		}
		(void)snprintf(id, sizeof(id), "d%05u", (at * 997) % docs());
		assert_int_not_equal(fixture_tree(f, id, false)[0], 0);
		rev = arena_dup(f->arena, str_from_cstr(fixture_tree(f, id, false))).ptr;
		if (!strchr(rev, '#')) {
			char plain[80];

			(void)snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(rev, "! "), rev);
			if (at % 3)
				fixture_put(f, id, plain, "{\"n\":\"changed\"}");
			else {
				fixture_delete(f, id, plain);
				count--;
			}
		}
		assert_in_range(++at, 1, STEPS_MAX);
	}
	check_entries(f, number, count);
}

/* What damages one entry, or its document's: each is found, and told from where it is seen. */
static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct expect_arg *a = arg;
	struct index_work work = { .arena = a->arena };
	const struct index_interval everything = { 0 };
	struct index_range all;
	struct kv_future *f;
	struct kv_range pairs;
	const struct kv_range_options options = { .limit = 2 };

	arena_clear(a->arena);
	TRY(index_range_make(a->f->db, a->def, &everything, &work, &all));
	f = kv_get_range(tx, all.begin, all.end, &options);
	TRY(kv_future_wait(f));
	pairs = kv_future_range(f);
	assert_int_equal(pairs.count, 2);
	if (a->expected == 0)
		return kv_clear(tx, pairs.pairs[0].key);
	return kv_set(tx, pairs.pairs[1].key, pairs.pairs[0].value);
}

static void
verify_finds_entries_that_are_missing_or_wrong(void **state)
{
	struct fixture *f = *state;
	struct expect_arg arg = { .f = f, .arena = arena_new(1024 * 1024) };
	uint64_t number;

	put_many(f, 0, 10, 1);
	number = create_index(f, INDEX_COVERING);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_READY);
	check_entries(f, number, 10);
	arg.def = index_find(f->db, number);
	arg.expected = 1; /* the values of another one */
	assert_int_equal(kv_run(f->store, damage_body, &arg, NULL, NULL), STATUS_OK);
	assert_int_equal(findings_of(f), 1);
	arg.expected = 0; /* an entry less, so that counters are wrong, too */
	assert_int_equal(kv_run(f->store, damage_body, &arg, NULL, NULL), STATUS_OK);
	assert_in_range(findings_of(f), 3, 5);
	arena_free(arg.arena);
}

static void
unique_index_over_equal_values_fails_and_names_them(void **state)
{
	struct fixture *f = *state;
	uint64_t end = clock_after_ms(PATIENCE_MS);
	const struct index_def *def;
	struct chores *chores;
	uint64_t number;

	put_many(f, 0, 20, 1);
	fixture_put(f, "same", NULL, "{\"n\":7}");
	number = create_index(f, INDEX_UNIQUE);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_FAILED);
	fixture_reopen(f);
	def = index_find(f->db, number);
	assert_int_equal(def->state, INDEX_FAILED);
	assert_non_null(strstr(arena_dup(f->arena, def->failure).ptr, "\"same\""));
	/* Nobody keeps it any more, and its entries go. */
	fixture_put(f, "also", NULL, "{\"n\":7}");
	chores_start_building(f, &chores);
	while (entries_total(f) && clock_mono_ns() < end)
		(void)usleep(10 * 1000);
	assert_int_equal(entries_total(f), 0);
	chores_stop(chores);
	chores_free(chores);
	fixture_reopen(f);
	assert_int_equal(index_find(f->db, number)->state, INDEX_FAILED);
}

/* A definition under a key that is longer than that of one is none, whatever its value is. */
static enum status
longer_key_body(struct kv_tx *tx, void *arg)
{
	struct create_arg *a = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(1024);
	struct kv_future *f;
	struct str value;

	index_key_def(&key, a->f->db, a->number);
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	assert_true(kv_future_value(f, &value));
	tuple_put_u64(&key, 1);
	return a->flags ? kv_clear(tx, buf_str(&key)) : kv_set(tx, buf_str(&key), value);
}

static void
verify_finds_what_is_no_definition(void **state)
{
	struct fixture *f = *state;
	struct create_arg arg = { .f = f, .number = create_index(f, 0) };

	assert_int_equal(build_steps(f, arg.number, 0, STEPS_MAX), INDEX_READY);
	assert_int_equal(findings_of(f), 0);
	assert_int_equal(kv_run(f->store, longer_key_body, &arg, NULL, NULL), STATUS_OK);
	assert_true(findings_of(f) > 0);
	arg.flags = 1; /* clears it again */
	assert_int_equal(kv_run(f->store, longer_key_body, &arg, NULL, NULL), STATUS_OK);
	assert_int_equal(findings_of(f), 0);
}

/* As many are named as a failure has room for, and all are counted. */
static void
of_many_equal_values_some_are_named(void **state)
{
	struct fixture *f = *state;
	const char *failure;
	size_t named = 0;
	uint64_t number;

	for (int i = 0; i < INDEX_BUILD_VIOLATIONS + 4; i++)
		fixture_put(f, arena_printf(f->arena, "same%02d", i).ptr, NULL, "{\"n\":7}");
	number = create_index(f, INDEX_UNIQUE);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_FAILED);
	fixture_reopen(f);
	failure = arena_dup(f->arena, index_find(f->db, number)->failure).ptr;
	assert_non_null(strstr(failure, "23 documents have the values of others"));
	assert_non_null(strstr(failure, "[\"same01\",\"same02\","));
	for (const char *at = failure; (at = strstr(at, "\"same")); at++)
		named++;
	assert_int_equal(named, INDEX_BUILD_VIOLATIONS);
	assert_non_null(strstr(failure, "\"same20\"]"));
}

/* ---- What builds tell ---- */

static size_t
progress_of(struct fixture *f, size_t most, struct arena *arena, struct index_progress **ret,
	    enum status expected)
{
	struct kv_tx *tx = fixture_begin(f);
	size_t count = 0;

	assert_int_equal(index_progress_list(tx, most, arena, ret, &count), expected);
	kv_tx_free(tx);
	return count;
}

static void
builds_tell_how_far_they_are(void **state)
{
	struct fixture *f = *state;
	struct index_progress *list;
	uint64_t first, second;

	put_many(f, 0, OVERTAKEN_DOCS, 1);
	assert_int_equal(progress_of(f, 5, f->arena, &list, STATUS_OK), 0);
	first = create_index(f, 0);
	second = create_index(f, 0);
	assert_int_equal(progress_of(f, 5, f->arena, &list, STATUS_OK), 2);
	/* Nobody has begun. */
	assert_int_equal(list[0].total, 0);
	assert_int_equal(list[0].started_ms, 0);
	assert_int_equal(build_steps(f, first, 0, 1), INDEX_BUILDING);
	for (size_t most = 0; most <= 3; most++)
		assert_int_equal(progress_of(f, most, f->arena, &list, STATUS_OK),
				 most < 2 ? most : 2);
	assert_true(str_eq(list[0].db_name, f->db->name));
	assert_true(str_eq(list[0].owner, STR("_design/x")));
	assert_true(str_eq(list[0].name, STR("by-n")));
	assert_true(list[0].done > 0 && list[0].done <= list[0].total);
	assert_true(list[0].started_ms > 0 && list[0].updated_ms >= list[0].started_ms);
	assert_int_equal(list[1].done, 0);
	/* All texts are there, or the arena is full. */
	for (size_t bytes = 0, enough = 0; enough < 3; bytes += 16) {
		struct arena *little = arena_new(bytes);
		struct kv_tx *tx = fixture_begin(f);
		size_t count;
		enum status status = index_progress_list(tx, 3, little, &list, &count);

		if (status != (arena_is_full(little) ? STATUS_LIMIT : STATUS_OK))
			fail_msg("%zu bytes: %s", bytes, status_name(status));
		if (status == STATUS_OK) {
			assert_int_equal(count, 2);
			assert_true(str_eq(list[1].name, STR("by-n")));
		}
		enough += status == STATUS_OK;
		kv_tx_free(tx);
		arena_free(little);
	}
	assert_int_equal(build_steps(f, first, 0, STEPS_MAX), INDEX_READY);
	assert_int_equal(progress_of(f, 5, f->arena, &list, STATUS_OK), 1);
	assert_int_equal(build_steps(f, second, 0, STEPS_MAX), INDEX_READY);
	assert_int_equal(progress_of(f, 5, f->arena, &list, STATUS_OK), 0);
}

struct keeping {
	struct fixture *f;
	const struct index_def *def;
	struct arena *arena;
	uint64_t failing;
	uint64_t asked; /* how often memory was asked for */
	size_t kept;
};

enum {
	KEPT_DOCS = 12,
};

static enum status
keep_documents(struct index_writer *writer, void *arg)
{
	struct keeping *k = arg;
	enum status status = STATUS_OK;

	(void)mem_fail_only(k->failing);
	for (int i = 0; status == STATUS_OK && i < KEPT_DOCS; i++) {
		char id[3000], body[3000];
		const struct index_source source = { .id = str_of(id, sizeof(id)),
						     .body = str_of(body, sizeof(body)) };

		memset(id, 'a' + i, sizeof(id));
		memset(body, 'v', sizeof(body));
		memcpy(body, "{\"n\":\"", 6);
		memcpy(body + sizeof(body) - 2, "\"}", 2);
		status = index_build_document(writer, k->def, &source, true);
	}
	k->asked = mem_fail_only(0);
	return status;
}

static enum status
keep_body(struct kv_tx *tx, void *arg)
{
	struct keeping *k = arg;
	const struct kv_range_options options = { .limit = 2 * KEPT_DOCS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = BUF_INIT(64);
	AUTO(buf_release) struct buf end = BUF_INIT(64);
	struct kv_future *f;

	TRY(index_writer_run(tx, k->f->db, 2, k->arena, k->f->arena, keep_documents, k));
	index_key_entries(&begin, k->f->db, k->def->number);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	k->kept = kv_future_range(f).count;
	return STATUS_OK;
}

/* Whichever allocation fails, a build that goes on has all entries. */
static void
a_build_loses_no_entry_that_is_kept(void **state)
{
	struct fixture *f = *state;
	uint64_t number = create_index(f, INDEX_COVERING);
	struct keeping k = { .f = f, .def = index_find(f->db, number) };
	bool failed = true;

	for (k.failing = 1; failed; k.failing++) {
		struct kv_tx *tx;
		enum status status;

		k.arena = arena_new(64 << 20);
		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
		status = keep_body(tx, &k);
		failed = k.asked >= k.failing;
		if (status == STATUS_OK)
			assert_int_equal(k.kept, KEPT_DOCS);
		else
			assert_true(failed);
		kv_tx_free(tx);
		arena_free(k.arena);
		assert_true(k.failing < 5000);
	}
}

static void
chore_builds_and_clears(void **state)
{
	struct fixture *f = *state;
	struct create_arg drop = { .f = f };
	struct chores *chores;
	uint64_t end = clock_after_ms(PATIENCE_MS);
	uint64_t number;

	put_many(f, 0, docs(), 1);
	number = create_index(f, 0);
	chores_start_building(f, &chores);
	while (index_find(f->db, number)->state == INDEX_BUILDING && clock_mono_ns() < end) {
		(void)usleep(10 * 1000);
		fixture_reopen(f);
	}
	check_entries(f, number, docs());
	drop.number = number;
	assert_int_equal(kv_run(f->store, drop_body, &drop, NULL, NULL), STATUS_OK);
	while (index_find(f->db, number) && clock_mono_ns() < end) {
		(void)usleep(10 * 1000);
		fixture_reopen(f);
	}
	assert_null(index_find(f->db, number));
	chores_stop(chores);
	chores_free(chores);
}

/* ---- Several processes ---- */

/* One of several that share the store: its own cache of descriptions, a builder and a writer. */
struct process {
	struct fixture *f;
	struct index_build_key key;
	unsigned number;
	struct catalog_cache *cache;
	struct arena *arena;
	struct rev_edit edits[4]; /* of any document; the last is a deletion */
	unsigned seed;
	unsigned written;
	struct str id; /* that the attempt edits */
	struct rev_edit edit;
	struct rev_result result;
	enum status builder_status, writer_status;
};

static void *
process_build(void *arg)
{
	struct process *p = arg;
	enum index_state state = INDEX_BUILDING;
	unsigned preferred = p->number * 5;
	struct err err = { 0 };

	while (state == INDEX_BUILDING && p->builder_status == STATUS_OK)
		p->builder_status = index_build_run(p->f->store, &p->key, preferred++, 1, &state,
						    &err);
	return NULL;
}

static enum status
process_edit(struct kv_tx *tx, void *arg)
{
	struct process *p = arg;
	struct catalog_db *db;
	struct rev_doc doc;
	enum status status;

	arena_clear(p->arena);
	TRY(rev_db_open(tx, p->cache, STR("db"), &db, NULL));
	p->edit.id = p->id;
	p->edit.parent = (struct rev_id){ 0 };
	status = rev_doc_read(tx, db, p->id, p->arena, &doc);
	if (status == STATUS_OK) {
		p->edit.parent.pos = doc.rev.pos;
		p->edit.parent.hash = arena_dup(p->arena, doc.rev.hash);
	}
	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		status = STATUS_OK;
	if (status == STATUS_OK && (!p->edit.deleted || p->edit.parent.pos))
		status = rev_write(tx, db, &p->edit, 1, 0, p->arena, &p->result, NULL);
	catalog_db_unref(db);
	return status;
}

static void *
process_write(void *arg)
{
	struct process *p = arg;
	char id[16];

	for (unsigned i = 0; i < PROCESS_WRITES && p->writer_status == STATUS_OK; i++) {
		p->seed = p->seed * 1103515245 + 12345;
		(void)snprintf(id, sizeof(id), "d%05u", (p->seed >> 8) % (docs() + docs() / 4));
		p->id = str_from_cstr(id);
		p->edit = p->edits[(p->seed >> 4) % 4];
		p->writer_status = kv_run(p->f->store, process_edit, p, NULL, NULL);
		p->written += p->result.status == STATUS_OK;
	}
	return NULL;
}

static void
three_processes_build_while_they_write(void **state)
{
	struct fixture *f = *state;
	struct process processes[PROCESSES];
	pthread_t builders[PROCESSES], writers[PROCESSES];
	uint64_t number;

	put_many(f, 0, docs(), 1);
	number = create_index(f, 0);
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct process *p = &processes[i];

		*p = (struct process){ .f = f,
				       .key = build_key(f, number),
				       .number = i,
				       .seed = i + 1,
				       .cache = catalog_cache_new(),
				       .arena = arena_new(16 * 1024 * 1024) };
		assert_non_null(p->cache);
		assert_non_null(p->arena);
		p->edits[0] = fixture_edit(f, "x", NULL, "{\"n\":-1}");
		p->edits[1] = fixture_edit(f, "x", NULL, "{\"n\":\"text\",\"m\":[1,2]}");
		p->edits[2] = fixture_edit(f, "x", NULL, "{\"m\":1}");
		p->edits[3] = fixture_edit(f, "x", NULL, NULL);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct process *p = &processes[i];

		assert_int_equal(pthread_create(&builders[i], NULL, process_build, p), 0);
		assert_int_equal(pthread_create(&writers[i], NULL, process_write, p), 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(pthread_join(builders[i], NULL), 0);
		assert_int_equal(pthread_join(writers[i], NULL), 0);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(processes[i].builder_status, STATUS_OK);
		assert_int_equal(processes[i].writer_status, STATUS_OK);
		assert_true(processes[i].written > PROCESS_WRITES / 2);
		catalog_cache_free(processes[i].cache);
		arena_free(processes[i].arena);
	}
	assert_in_range(check_all_entries(f, number), docs() / 2, docs() + docs() / 4);
}

/* ---- Writers in the way ---- */

/*
 * Somebody who writes a document of every attempt at a step while it is made, if it has more than
 * FEW documents: always one that nobody has written since the index was made.
 */
struct obstacle {
	const struct index_documents *documents;
	struct process *writer;
	index_visitor *visitor;
	void *visitor_arg;
	char id[16]; /* the first document of the attempt */
	unsigned writes;
};

enum {
	FEW = 10,
	OBSTRUCTED_DOCS = 600,
};

static struct obstacle *obstacle;

static enum status
obstructed_visitor(void *arg, const struct index_source *source)
{
	struct obstacle *o = arg;

	if (!o->id[0])
		(void)snprintf(o->id, sizeof(o->id), "%.*s", STR_ARG(source->id));
	return o->visitor(o->visitor_arg, source);
}

static enum status
obstructed_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
		 const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
		 void *arg, struct index_passed *ret)
{
	struct obstacle *o = obstacle;
	struct process *p = o->writer;

	o->visitor = visitor;
	o->visitor_arg = arg;
	o->id[0] = '\0';
	TRY(o->documents->visit(tx, db, def, stretch, arena, obstructed_visitor, o, ret));
	if (stretch->limit <= FEW || !o->id[0])
		return STATUS_OK;
	o->writes++;
	p->id = str_from_cstr(o->id);
	p->edit = p->edits[0];
	return kv_run(p->f->store, process_edit, p, NULL, NULL);
}

static void
build_goes_on_though_every_large_step_meets_a_writer(void **state)
{
	struct fixture *f = *state;
	struct process writer = { .f = f,
				  .cache = catalog_cache_new(),
				  .arena = arena_new(16 * 1024 * 1024) };
	struct obstacle o = { .documents = index_documents_of(f->db), .writer = &writer };
	struct index_documents obstructed = *o.documents;
	uint64_t number;

	assert_non_null(writer.cache);
	assert_non_null(writer.arena);
	writer.edits[0] = fixture_edit(f, "x", NULL, "{\"n\":-1}");
	put_many(f, 0, OBSTRUCTED_DOCS, 1);
	number = create_index(f, 0);
	obstructed.visit = obstructed_visit;
	obstacle = &o;
	index_documents_register(&obstructed);
	assert_int_equal(build_steps(f, number, 0, STEPS_MAX), INDEX_READY);
	index_documents_register(o.documents);
	assert_in_range(o.writes, 5, OBSTRUCTED_DOCS / 2);
	check_entries(f, number, OBSTRUCTED_DOCS);
	catalog_cache_free(writer.cache);
	arena_free(writer.arena);
}

/* ---- Two that make the stretches ---- */

/* Another builder that makes them and does a step, before the first one commits its own. */
static struct overtaker {
	struct fixture *f;
	const struct index_documents *documents;
	uint64_t number;
	unsigned cuts;
	uint64_t visited; /* documents, by both */
} overtaker;

static enum index_state
overtaker_step(void)
{
	struct index_build_key key = build_key(overtaker.f, overtaker.number);
	enum index_state state;
	struct err err = { 0 };

	if (index_build_run(overtaker.f->calm, &key, 0, 1, &state, &err) != STATUS_OK)
		fail_msg("index_build_run: %s", err.text);
	return state;
}

static enum status
overtaken_cut(struct kv_tx *tx, const struct catalog_db *db, size_t parts, struct arena *arena,
	      const struct str **ret_ids, size_t *ret_count, uint64_t *ret_documents)
{
	TRY(overtaker.documents->cut(tx, db, parts, arena, ret_ids, ret_count, ret_documents));
	if (overtaker.cuts++ == 0)
		assert_int_equal(overtaker_step(), INDEX_BUILDING);
	return STATUS_OK;
}

static enum status
counted_visit(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	      const struct index_stretch *stretch, struct arena *arena, index_visitor *visitor,
	      void *arg, struct index_passed *ret)
{
	TRY(overtaker.documents->visit(tx, db, def, stretch, arena, visitor, arg, ret));
	overtaker.visited += ret->count;
	return STATUS_OK;
}

static void
stretches_are_made_by_one_builder_and_no_document_is_visited_twice(void **state)
{
	struct fixture *f = *state;
	struct index_documents documents = *index_documents_of(f->db);

	put_many(f, 0, OVERTAKEN_DOCS, 1);
	overtaker = (struct overtaker){ .f = f,
					.documents = index_documents_of(f->db),
					.number = create_index(f, 0) };
	documents.cut = overtaken_cut;
	documents.visit = counted_visit;
	index_documents_register(&documents);
	for (unsigned i = 0; overtaker_step() == INDEX_BUILDING; i++)
		assert_in_range(i, 0, STEPS_MAX);
	index_documents_register(overtaker.documents);
	assert_int_equal(overtaker.cuts, 2);
	assert_int_equal(overtaker.visited, OVERTAKEN_DOCS);
	check_entries(f, overtaker.number, OVERTAKEN_DOCS);
}

/* ---- The end of the process; the embedded engine's only ---- */

static void
open_store(struct fixture *f)
{
	struct kv_options options = { .create = true, .no_sync = true, .shape = &rev_store_shape };
	char url[256];

	(void)snprintf(url, sizeof(url), "embedded:%s/store", f->dir);
	assert_int_equal(kv_open(url, &options, &f->store, NULL), STATUS_OK);
	f->calm = f->store;
}

/* This program as another process: it does some steps of a build and kills itself. */
static int
build_and_be_killed(char **argv)
{
	struct fixture f = { 0 };
	struct catalog_db db = { .number = strtoull(argv[2], NULL, 10) };

	rev_register();
	(void)snprintf(f.dir, sizeof(f.dir), "%s", argv[1]);
	open_store(&f);
	f.db = &db;
	if (build_steps(&f, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), 2) !=
	    INDEX_BUILDING) {
		kv_close(f.store);
		return 0;
	}
	(void)raise(SIGKILL);
	return 1;
}

static bool
run_and_be_killed(struct fixture *f, uint64_t db_number, uint64_t number, unsigned preferred)
{
	char texts[3][24];
	pid_t child;
	int how;

	(void)snprintf(texts[0], sizeof(texts[0]), "%llu", (unsigned long long)db_number);
	(void)snprintf(texts[1], sizeof(texts[1]), "%llu", (unsigned long long)number);
	(void)snprintf(texts[2], sizeof(texts[2]), "%u", preferred);
	child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "test_index_build", f->dir, texts[0], texts[1], texts[2],
		      (char *)NULL);
		_exit(1);
	}
	assert_int_not_equal(child, -1);
	assert_int_equal(waitpid(child, &how, 0), child);
	if (WIFEXITED(how))
		assert_int_equal(WEXITSTATUS(how), 0);
	return WIFSIGNALED(how);
}

static void
process_that_is_killed_goes_on_where_it_was(void **state)
{
	struct fixture *f = *state;
	uint64_t db_number = f->db->number, number;
	unsigned kills = 0;

	put_many(f, 0, 4 * docs(), 1);
	number = create_index(f, 0);
	catalog_db_unref(f->db);
	f->db = NULL;
	kv_close(f->store);
	f->store = NULL;
	while (run_and_be_killed(f, db_number, number, kills)) {
		kills++;
		assert_in_range(kills, 1, STEPS_MAX);
	}
	assert_in_range(kills, 2, STEPS_MAX);
	open_store(f);
	check_entries(f, number, 4 * docs());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(every_document_gets_its_entry),
		TEST(a_step_that_no_transaction_holds_is_made_smaller),
		TEST(index_of_revisions_is_built_as_it_is_kept),
		TEST(documents_are_built_in_stretches),
		TEST(threads_of_a_process_take_different_stretches),
		TEST(index_of_an_empty_database_is_ready_at_once),
		TEST(what_is_written_between_two_steps_is_kept_by_its_writers),
		TEST(verify_finds_entries_that_are_missing_or_wrong),
		TEST(unique_index_over_equal_values_fails_and_names_them),
		TEST(verify_finds_what_is_no_definition),
		TEST(of_many_equal_values_some_are_named),
		TEST(builds_tell_how_far_they_are),
		TEST(a_build_loses_no_entry_that_is_kept),
		TEST(chore_builds_and_clears),
		TEST(three_processes_build_while_they_write),
		TEST(build_goes_on_though_every_large_step_meets_a_writer),
		TEST(stretches_are_made_by_one_builder_and_no_document_is_visited_twice),
		TEST(process_that_is_killed_goes_on_where_it_was), /* last: embedded alone */
	};
	size_t count = sizeof(tests) / sizeof(tests[0]);

	if (argc == 5)
		return build_and_be_killed(argv);
	return _cmocka_run_group_tests("tests", tests, test_store_cases(tests, count, 1), NULL,
				       NULL);
}

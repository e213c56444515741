/* What is stored of sessions: rows and their results, and how old ones are removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/keys.h"
#include "catalog/store_format.h"
#include "door/mongo/txn/session.h"
#include "store.h"

enum {
	LARGE_BYTES = 250 * 1000,
	SESSIONS = 1200, /* more than one turn of the sweep looks at */
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	char large[LARGE_BYTES];
};

static int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/frond-session-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &err), STATUS_OK);
	for (size_t i = 0; i < sizeof(f->large); i++)
		f->large[i] = (char)('a' + i % 26);
	*state = f;
	return 0;
}

static int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* One write of a session: reads its row, and writes another one. */
struct step {
	struct session_id id;
	int64_t number;
	struct str results;
	uint64_t after; /* the pages that are not read again */
	struct session_row before;
	struct buf known; /* before it */
};

static enum status
step_body(struct kv_tx *tx, void *arg)
{
	struct step *s = arg;

	TRY(session_read(tx, &s->id, &s->before, NULL));
	buf_clear(&s->known);
	TRY(session_results(tx, &s->id, &s->before, s->after, &s->known));
	s->before.results = STR("");
	if (!s->results.ptr)
		return STATUS_OK;
	TRY(session_read(tx, &s->id, &s->before, NULL));
	return session_write(tx, &s->id, &s->before, s->number, SESSION_WRITES, s->results);
}

/* What was known before, which the caller compares; `results` without bytes: only looks. */
static void
step(struct fixture *f, struct step *s, int64_t number, struct str results)
{
	s->number = number;
	s->results = results;
	assert_int_equal(kv_run(f->store, step_body, s, NULL, NULL), STATUS_OK);
}

static void
results_of_a_number_add_up_and_end_with_the_next(void **state)
{
	struct fixture *f = *state;
	struct step s = { .id = { STR("0123456789abcdef"), STR("ann") },
			  .known = BUF_INIT(SESSION_KNOWN_BYTES) };
	struct step other = { .id = { STR("0123456789abcdef"), STR("bob") },
			      .known = BUF_INIT(SESSION_KNOWN_BYTES) };
	struct str large = str_of(f->large, sizeof(f->large));

	step(f, &s, 1, STR("one"));
	assert_false(s.before.is_there);
	step(f, &s, 1, large);
	assert_true(str_eq(buf_str(&s.known), STR("one")));
	step(f, &s, 1, STR("two"));
	assert_int_equal(s.known.len, 3 + LARGE_BYTES);
	step(f, &s, 0, (struct str){ 0 });
	assert_int_equal(s.known.len, 6 + LARGE_BYTES);
	assert_memory_equal(s.known.ptr + 3, f->large, LARGE_BYTES);
	assert_memory_equal(s.known.ptr + 3 + LARGE_BYTES, "two", 3);

	step(f, &other, 0, (struct str){ 0 });
	assert_false(other.before.is_there);

	step(f, &s, 2, STR("three"));
	step(f, &s, 0, (struct str){ 0 });
	assert_int_equal(s.before.number, 2);
	assert_true(str_eq(buf_str(&s.known), STR("three")));
	buf_release(&s.known);
	buf_release(&other.known);
}

/* How many turns it takes to look at all. */
static unsigned
sweep(struct fixture *f, uint64_t ms)
{
	struct buf place = CATALOG_KEY_INIT;
	unsigned turns = 0;
	bool more = true;

	for (; more; turns++)
		assert_int_equal(session_sweep(f->store, ms, &place, &more, NULL), STATUS_OK);
	buf_release(&place);
	return turns;
}

static void
old_sessions_are_removed(void **state)
{
	struct fixture *f = *state;
	struct step s = { .known = BUF_INIT(SESSION_KNOWN_BYTES) };
	uint64_t now = clock_wall_ms();
	char id[SESSION_ID_BYTES + 1];

	for (int i = 0; i < SESSIONS; i++) {
		(void)snprintf(id, sizeof(id), "%016d", i);
		s.id = (struct session_id){ str_from_cstr(id), STR("") };
		step(f, &s, 1, i % 100 ? STR("x") : str_of(f->large, sizeof(f->large)));
	}
	assert_true(sweep(f, now - 60 * 1000) > 1);
	step(f, &s, 0, (struct str){ 0 });
	assert_true(s.before.is_there);
	assert_true(sweep(f, now + 60 * 60 * 1000) > 1);
	for (int i = 0; i < SESSIONS; i += 50) {
		(void)snprintf(id, sizeof(id), "%016d", i);
		step(f, &s, 0, (struct str){ 0 });
		assert_false(s.before.is_there);
	}
	assert_int_equal(sweep(f, now), 1);
	buf_release(&s.known);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(results_of_a_number_add_up_and_end_with_the_next,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(old_sessions_are_removed, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests_name("mongo_session", tests, NULL, NULL);
}

/*
 * What the removing of versions answers when a call of the store fails, when its memory ends and
 * when what it reads is damaged; and by what it conflicts (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_world.h"
#include "model/timed/timed_int.h"
#include "model/timed/versions.h"

enum {
	BETWEEN_MS = 700, /* two changes */
	REST_MS = 3000,   /* after which the sweep looks at what was changed */
	PIECES_BYTES = TIMED_RECORD_BYTES + 100,
};

/* ---- The world ---- */

static enum status
fill_bound(struct timed *t, struct world *w)
{
	(void)w;
	return timed_history_set(
		t, (struct timed_history_bounds){ .seconds = 1000 * 1000, .versions = 1 });
}

/* Also by bytes, more than there are. */
static enum status
fill_bounds(struct timed *t, struct world *w)
{
	(void)w;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 1000 * 1000,
								   .bytes = INT64_MAX,
								   .versions = 1 });
}

/* A value in the header, a member whose value lies in pieces, and an item that begins anew. */
static enum status
fill_changes(struct timed *t, struct world *w)
{
	struct str value = arena_printf(w->arena, "value %llu", (unsigned long long)w->now_ms);
	struct timed_member member = { .name = STR("m") };
	char *bytes = arena_bytes(w->arena, PIECES_BYTES);
	struct timed_item item;

	memset(bytes, 'a', PIECES_BYTES);
	member.value = str_of(bytes, PIECES_BYTES);
	TRY(timed_item_open(t, STR("v"), w->arena, &item));
	TRY(timed_value_set(&item, value, (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 }));
	TRY(timed_item_open(t, STR("h"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, &member, 1));
	TRY(timed_item_open(t, STR("n"), w->arena, &item));
	TRY(timed_item_delete(&item));
	TRY(timed_item_open(t, STR("n"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_HASH, &member, 1));
	w->now_ms += BETWEEN_MS;
	return STATUS_OK;
}

static enum status
trim(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	struct timed_tended tended = { 0 };

	*ret_done = 0;
	*ret_more = false;
	TRY(timed_now(t));
	TRY(timed_history_tend(t, &tended));
	return timed_trim(t, &tended, ret_done, ret_more);
}

/* Leaves jobs behind. */
static enum status
fill_jobs(struct timed *t, struct world *w)
{
	uint64_t done;
	bool more;

	w->now_ms += REST_MS;
	TRY(trim(t, &done, &more));
	assert_true(more);
	return STATUS_OK;
}

static world_fill *const fills[] = {
	fill_bound,   fill_changes, fill_changes, fill_changes, fill_changes,
	fill_changes, fill_jobs,    fill_changes, fill_changes,
};

static world_fill *const fills_counted[] = {
	fill_bounds,  fill_changes, fill_changes, fill_changes, fill_changes,
	fill_changes, fill_jobs,    fill_changes, fill_changes,
};

/* ---- Probes ---- */

static enum status
trim_slice(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t done;
	bool more;

	(void)item;
	TRY(trim(t, &done, &more));
	buf_printf(&p->said, "%llu %d", (unsigned long long)done, more);
	return STATUS_OK;
}

static enum status
trim_of(struct probe *p)
{
	return world_item(p, NULL, trim_slice);
}

static const struct probe_op ops[] = {
	{ "remove versions", trim_of,
	  "ok, conflicts 16 0+0; 1: C/O 2: C/CNCOCOC~COC 3-5: C/C~OC 6-9: C/O 10: O/ "
	  "11-14: OC/OCNCOCO 15-18: C/O 19: O/ 20-26: OC/OCNCOCOC 27-30: C/O 31: O/ "
	  "32: C/CNCOCOC 33-39: O/ 40-41: O/O 42: C/O 43: O/ 44-45: O/O 46: C/O 47: O/ "
	  "48-49: O/O 50: C/O 51: O/ 52-53: O/O 54: C/O 55: C/COC 56: O/ 57-58: O/O "
	  "59: C/O 60: C/COC 61: O/ 62-63: O/O 64: C/O 65: C/COC" },
};

static const struct probe_op ops_counted[] = {
	{ "remove versions whose bytes are counted", trim_of,
	  "ok, conflicts 26 0+0; 1: C/O 2: C/CNCOCOCOC~COC 3-4: C/O 5-7: C/C~OC 8-11: "
	  "C/O 12-13: O/ 14: OC/OCNCOCO 15: O/O 16: OC/OCNCOCO 17: O/O 18: OC/OCNCOCO "
	  "19: O/O 20: OC/OCNCOCO 21-24: C/O 25-26: O/ 27-28: OC/OCNCOCOC 29: O/O "
	  "30-31: OC/OCNCOCOC 32: O/O 33-34: OC/OCNCOCOC 35: O/O 36: OC/OCNCOCOC "
	  "37-40: C/O 41-42: O/ 43: C/CNCOCOC 44-50: O/ 51-52: O/O 53: C/O 54: O/ "
	  "55-56: O/O 57: C/O 58: O/ 59-60: O/O 61: C/O 62: O/ 63-64: O/O 65: C/O 66: "
	  "C/COC 67: O/ 68-69: O/O 70: C/O 71: C/COC 72: O/ 73-74: O/O 75: C/O 76: "
	  "C/COC" },
};

static int
setup_with(void **state, world_fill *const *filling, size_t count)
{
	struct world **w = (struct world **)state;

	world_open(filling, count, w);
	(*w)->now_ms = START_MS + 20 * 1000;
	return 0;
}

static int
setup(void **state)
{
	return setup_with(state, fills, sizeof(fills) / sizeof(fills[0]));
}

static int
setup_counted(void **state)
{
	return setup_with(state, fills_counted, sizeof(fills_counted) / sizeof(fills_counted[0]));
}

static int
teardown(void **state)
{
	world_close(*state);
	return 0;
}

static void
removing_versions_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, ops, 1);
}

static void
removing_counted_versions_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, ops_counted, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(removing_versions_hands_failures_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(removing_counted_versions_hands_failures_on,
						setup_counted, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

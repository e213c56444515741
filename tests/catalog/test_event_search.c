/*
 * Searches of events over several pages, of records that are written by hand: between which moments
 * they find, how many, in which order, and how much of it they keep meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/catalog_int.h"
#include "catalog/events.h"
#include "catalog/keys.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "kv/keyspace.h"
#include "store.h"
#include "tiny.h"

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	EVENTS = 3 * CATALOG_EVENTS_PAGE + 100,
	STEP = 1009, /* between the numbers of neighbouring names; prime, and no factor of EVENTS */
	SHORT = 6,   /* bytes of a name */
	SOME = 10,
};

#define TINY ((enum catalog_space)TINY_SPACE)

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct catalog_events_wanted wanted;
	unsigned all;          /* events that there are numbers of */
	unsigned first, count; /* to write */
	unsigned name_bytes;
	uint8_t incarnation;
	uint64_t version;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	assert_non_null(f);
	tiny_register();
	test_make_dir("events", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	f->all = EVENTS;
	f->name_bytes = SHORT;
	f->version = 1;
	f->wanted = (struct catalog_events_wanted){ .space = TINY, .most = SOME };
	memset(&f->wanted.before, 0xff, sizeof(f->wanted.before));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* The Sequence of event number `n`, all of them of one version and one after the other. */
static struct catalog_seq
seq_of(const struct fixture *f, unsigned n)
{
	struct catalog_seq seq = { .bytes = { f->incarnation } };

	for (unsigned i = 0; i < 8; i++)
		seq.bytes[1 + i] = (uint8_t)(f->version >> (56 - 8 * i));
	seq.bytes[9] = (uint8_t)(n >> 8);
	seq.bytes[10] = (uint8_t)n;
	return seq;
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	char name[CATALOG_NAME_BYTES + 1];

	for (unsigned i = f->first; i < f->first + f->count; i++) {
		struct catalog_seq seq = seq_of(f, i * STEP % f->all);
		size_t at;

		snprintf(name, sizeof(name), "%0*u", (int)f->name_bytes, i);
		catalog_key_name(&key, KV_ROOT_EVENTS, TINY, str_from_cstr(name));
		buf_clear(&value);
		at = catalog_event_record_put(CATALOG_EVENT_DELETED, f->incarnation, tiny_kind(),
					      &value);
		memcpy(value.ptr + at, seq.bytes + 1, KV_VERSIONSTAMP_BYTES);
		TRY(catalog_key_status(&key));
		TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	}
	return STATUS_OK;
}

static void
write_events(struct fixture *f, unsigned first, unsigned count)
{
	f->first = first;
	f->count = count;
	assert_int_equal(kv_run(f->store, write_body, f, NULL, NULL), STATUS_OK);
}

static void
read_page(struct fixture *f, struct catalog_events *s)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_events_page(tx, s, NULL), STATUS_OK);
	kv_tx_free(tx);
}

/* Searches, and asserts that exactly the events of these numbers are found, in their order. */
static void
assert_found(struct fixture *f, unsigned first, unsigned count, bool left_out)
{
	struct catalog_events s;

	catalog_events_init(&s, &f->wanted, f->arena, NULL);
	while (!s.done)
		read_page(f, &s);
	catalog_events_sort(&s);
	assert_int_equal(s.count, count);
	assert_int_equal(s.left_out, left_out);
	for (unsigned i = 0; i < count; i++) {
		struct catalog_event event = catalog_events_at(&s, i);
		struct catalog_seq seq = seq_of(f, f->wanted.newest_first ? first - i : first + i);
		unsigned name = (unsigned)strtoul(
			arena_printf(f->arena, "%.*s", STR_ARG(event.name)).ptr, NULL, 10);

		assert_int_equal(catalog_seq_cmp(&event.seq, &seq), 0);
		assert_int_equal(event.kind, CATALOG_EVENT_DELETED);
		assert_int_equal(event.name.len, f->name_bytes);
		seq = seq_of(f, name * STEP % f->all);
		assert_int_equal(catalog_seq_cmp(&event.seq, &seq), 0);
	}
	catalog_events_release(&s);
}

static void
the_oldest_or_the_newest_are_found_between_two_moments(void **state)
{
	struct fixture *f = *state;

	write_events(f, 0, EVENTS);
	assert_found(f, 0, SOME, true);
	f->wanted.newest_first = true;
	assert_found(f, EVENTS - 1, SOME, true);
	f->wanted.newest_first = false;
	f->wanted.after = seq_of(f, 99);
	assert_found(f, 100, SOME, true);
	f->wanted.before = seq_of(f, 100 + SOME);
	assert_found(f, 100, SOME, false);
	f->wanted.newest_first = true;
	assert_found(f, 100 + SOME - 1, SOME, false);
	f->wanted.before = seq_of(f, 100 + SOME - 1);
	assert_found(f, 100 + SOME - 2, SOME - 1, false);
	f->wanted.most = SOME - 1;
	assert_found(f, 100 + SOME - 2, SOME - 1, false);
	f->wanted.most = SOME - 2;
	assert_found(f, 100 + SOME - 2, SOME - 2, true);
	f->wanted.before = seq_of(f, 100);
	assert_found(f, 0, 0, false);
}

static void
what_happened_since_is_left_to_the_next_search(void **state)
{
	struct fixture *f = *state;
	struct catalog_events s;

	f->wanted.most = 100;
	write_events(f, 0, 5);
	catalog_events_init(&s, &f->wanted, f->arena, NULL);
	read_page(f, &s);
	catalog_events_sort(&s);
	assert_int_equal(s.count, 5);
	f->version = s.version; /* which it can have seen at most */
	catalog_events_release(&s);
	write_events(f, 5, 1);
	f->version += 1000;
	write_events(f, 6, 1);
	f->version = UINT64_MAX / 2;
	write_events(f, 7, 1);
	/* In a later Incarnation than the store's nothing has happened yet. */
	f->version = 1;
	f->incarnation = 1;
	write_events(f, 8, 1);
	f->incarnation = 0;
	catalog_events_init(&s, &f->wanted, f->arena, NULL);
	read_page(f, &s);
	assert_true(s.done);
	catalog_events_sort(&s);
	assert_int_equal(s.count, 6);
	catalog_events_release(&s);
}

/* Twice as many as are wanted, and a page; then as many as are wanted. */
static void
more_than_is_wanted_is_dropped_between_pages(void **state)
{
	static const struct {
		size_t most;
		size_t kept[4]; /* behind each page */
	} cases[] = {
		{ SOME, { CATALOG_EVENTS_PAGE, SOME, CATALOG_EVENTS_PAGE + SOME, SOME } },
		{ CATALOG_EVENTS_PAGE / 2,
		  { CATALOG_EVENTS_PAGE, 2 * CATALOG_EVENTS_PAGE, CATALOG_EVENTS_PAGE / 2,
		    CATALOG_EVENTS_PAGE / 2 + 100 } },
		{ CATALOG_EVENTS_PAGE / 2 - 1,
		  { CATALOG_EVENTS_PAGE, CATALOG_EVENTS_PAGE / 2 - 1,
		    3 * CATALOG_EVENTS_PAGE / 2 - 1, 3 * CATALOG_EVENTS_PAGE / 2 + 99 } },
	};
	struct fixture *f = *state;

	write_events(f, 0, EVENTS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct catalog_events s;

		f->wanted.most = cases[i].most;
		catalog_events_init(&s, &f->wanted, f->arena, NULL);
		for (size_t page = 0; page < 4; page++) {
			assert_false(s.done);
			read_page(f, &s);
			if (s.names.len != cases[i].kept[page] * SHORT)
				fail_msg("of %zu: %zu behind page %zu", cases[i].most,
					 s.names.len / SHORT, page);
			assert_int_equal(s.left_out,
					 page > 1 || s.names.len < SHORT * (page + 1) *
									   CATALOG_EVENTS_PAGE);
		}
		assert_true(s.done);
		catalog_events_sort(&s);
		assert_int_equal(s.count, cases[i].most);
		catalog_events_release(&s);
		assert_found(f, 0, (unsigned)cases[i].most, true);
	}
}

/* Their names take more than the room that there is for names: two MiB, and one name behind. */
static void
fewer_are_found_if_their_names_are_long(void **state)
{
	enum {
		NAMES_BYTES = 2 * 1024 * 1024,
		FOUND = NAMES_BYTES / CATALOG_NAME_BYTES + 1,
	};
	struct fixture *f = *state;

	f->name_bytes = CATALOG_NAME_BYTES;
	f->wanted.most = CATALOG_EVENTS_MOST;
	f->all = FOUND + 2;
	write_events(f, 0, f->all);
	assert_found(f, 0, FOUND, true);
	f->wanted.before = seq_of(f, FOUND);
	assert_found(f, 0, FOUND, false);
	f->wanted.before = seq_of(f, FOUND - 1);
	assert_found(f, 0, FOUND - 1, false);
}

/* Twice as many bytes as are kept in the end, and no fewer; the last page has what is left. */
static void
names_are_dropped_between_pages_if_they_are_too_long(void **state)
{
	enum {
		NAMES_BYTES = 2 * 1024 * 1024,
		BYTES = 128,
		FULL = 2 * NAMES_BYTES / BYTES,
	};
	struct fixture *f = *state;

	f->name_bytes = BYTES;
	f->wanted.most = CATALOG_EVENTS_MOST;
	f->all = FULL + 1;
	for (unsigned more = 0; more < 2; more++) {
		struct catalog_events s;
		size_t kept = 0;

		/* The limit of one transaction is below what all of them take. */
		for (unsigned i = 0; !more && i < FULL; i += FULL / 8)
			write_events(f, i, FULL / 8);
		if (more)
			write_events(f, FULL, 1);
		catalog_events_init(&s, &f->wanted, f->arena, NULL);
		while (!s.done) {
			assert_int_equal(s.names.len, kept * BYTES);
			assert_false(s.left_out);
			read_page(f, &s);
			kept += CATALOG_EVENTS_PAGE;
		}
		assert_true(kept > FULL + 1);
		assert_int_equal(s.names.len, more ? NAMES_BYTES + BYTES : 2 * NAMES_BYTES);
		assert_int_equal(s.left_out, more);
		catalog_events_release(&s);
		assert_found(f, 0, NAMES_BYTES / BYTES + 1, true);
	}
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(the_oldest_or_the_newest_are_found_between_two_moments),
		CASE(what_happened_since_is_left_to_the_next_search),
		CASE(more_than_is_wanted_is_dropped_between_pages),
		CASE(fewer_are_found_if_their_names_are_long),
		CASE(names_are_dropped_between_pages_if_they_are_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Leases of several processes at one store, exchanged by hand: who may take which, from which
 * moment on a process counts as dead, and what each knows afterwards. The clocks stand still but
 * for what a test lets pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/lease.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "store.h"

enum {
	KNOWN_BYTES = 1 << 16,
	TEXTS = 2,
};

#define LOST "0123456789abcdef" /* a process that has been killed */

/* ---- The clocks of this thread ---- */

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);
uint64_t __real_clock_boot_us(void);
uint64_t __wrap_clock_boot_us(void);

static _Thread_local uint64_t now_us; /* 0: clocks go as they do */

uint64_t
__wrap_clock_mono_ns(void)
{
	return now_us ? now_us * 1000 : __real_clock_mono_ns();
}

uint64_t
__wrap_clock_boot_us(void)
{
	return now_us ? now_us : __real_clock_boot_us();
}

static void
pass_ms(uint64_t ms)
{
	now_us += ms * 1000;
}

/* ---- A clear that another transaction comes in front of ---- */

enum status __real_kv_clear(struct kv_tx *tx, struct str key);
enum status __wrap_kv_clear(struct kv_tx *tx, struct str key);

static struct kv_store *clears_first; /* NULL: no other one comes */
static enum status other_cleared;

enum status
__wrap_kv_clear(struct kv_tx *tx, struct str key)
{
	struct kv_store *store = clears_first;

	clears_first = NULL;
	if (store)
		other_cleared = lease_clear(store, LEASE_JOBS, STR("a"), NULL);
	return __real_kv_clear(tx, key);
}

/* ---- A process ---- */

struct process {
	struct leases *leases;
	struct str wants[4]; /* leases; the first one without a name is the end */
	bool keeps;          /* leaves those that it holds as they are */
	bool got[4];
	unsigned asked;
	enum status status;    /* of asking */
	uint64_t takes_ms;     /* that pass while it asks */
	struct process *meets; /* exchanges while this one asks first */
};

static enum status
process_ask(struct lease_exchange *x, void *arg)
{
	const struct str texts[TEXTS] = { STR("text"), STR("") };
	struct process *p = arg;
	struct process *meets = p->meets;

	p->asked++;
	pass_ms(p->takes_ms);
	p->meets = NULL;
	if (meets)
		assert_int_equal(leases_exchange(meets->leases, false, NULL), STATUS_OK);
	for (size_t i = 0; i < 4 && p->wants[i].ptr; i++) {
		struct lease_entry *e = lease_find(x, p->wants[i]);

		p->got[i] = lease_is_free(x, e);
		if (p->got[i] && p->keeps)
			e->kept = true;
		else if (p->got[i])
			TRY(lease_hold(x, p->wants[i], e, texts));
	}
	return p->status;
}

static void
process_begin(struct process *p, struct kv_store *store, size_t known_bytes)
{
	const struct leases_config config = {
		.store = store,
		.space = LEASE_JOBS,
		.texts = TEXTS,
		.known_bytes = known_bytes,
		.ask = process_ask,
		.arg = p,
	};

	memset(p, 0, sizeof(*p));
	p->leases = leases_new(&config);
	assert_non_null(p->leases);
}

static void
exchange(struct process *p)
{
	assert_int_equal(leases_exchange(p->leases, false, NULL), STATUS_OK);
	leases_adopt(p->leases);
}

/* ---- The store ---- */

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct process first;
	struct process second;
	enum lease_space space; /* of what is written */
	struct str name;
	struct str value; /* ptr NULL: to clear */
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128], url[256];

	assert_non_null(f);
	test_make_dir("leases", f->dir, sizeof(f->dir));
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &f->store, NULL), STATUS_OK);
	now_us = __real_clock_boot_us();
	process_begin(&f->first, f->store, KNOWN_BYTES);
	process_begin(&f->second, f->store, KNOWN_BYTES);
	f->first.wants[0] = f->second.wants[0] = STR("a");
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	now_us = 0;
	leases_free(f->first.leases);
	leases_free(f->second.leases);
	leases_free(NULL);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(LEASE_KEY_BYTES);

	TRY(lease_record_key(f->space, f->name, &key));
	return f->value.ptr ? kv_set(tx, buf_str(&key), f->value) : kv_clear(tx, buf_str(&key));
}

static void
write_record(struct fixture *f, enum lease_space space, struct str name, struct str value)
{
	f->space = space;
	f->name = name;
	f->value = value;
	assert_int_equal(kv_run(f->store, write_body, f, NULL, NULL), STATUS_OK);
}

/* What a process leaves that holds the lease of that name. */
static void
write_lease(struct fixture *f, struct str name)
{
	const struct lease_record lease = { .process = STR(LOST),
					    .texts = { STR("of"), STR("it") } };
	AUTO(buf_release) struct buf value = BUF_INIT(LEASE_KEY_BYTES);

	lease_record_put(&lease, TEXTS, &value);
	write_record(f, LEASE_JOBS, name, buf_str(&value));
}

static void
write_beat(struct fixture *f, struct str process, uint64_t count, uint64_t ms)
{
	AUTO(buf_release) struct buf value = BUF_INIT(LEASE_KEY_BYTES);

	lease_record_put_beat(count, ms, &value);
	write_record(f, LEASE_BEATS, process, buf_str(&value));
}

static enum status
count_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(LEASE_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(LEASE_KEY_BYTES);
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	f->value.len = 0;
	TRY(lease_record_key(f->space, (struct str){ NULL, 0 }, &key));
	TRY(tuple_prefix_end(buf_str(&key), &end));
	TRY(kv_scan_init(&scan, tx, buf_str(&key), buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		f->value.len++;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static size_t
records_of(struct fixture *f, enum lease_space space)
{
	f->space = space;
	assert_int_equal(kv_run_read(f->store, count_body, f, NULL), STATUS_OK);
	return f->value.len;
}

/* What a process knows of the lease of that name; NULL: nothing. */
static const struct lease_entry *
known(const struct process *p, const char *name)
{
	size_t count;
	const struct lease_entry *entries = leases_known(p->leases, &count);

	for (size_t i = 0; i < count; i++)
		if (str_eq(entries[i].name, str_from_cstr(name)))
			return &entries[i];
	return NULL;
}

/* ---- Taking and giving ---- */

static void
a_lease_belongs_to_one_until_it_is_given_back(void **state)
{
	struct fixture *f = *state;

	exchange(&f->first);
	assert_true(f->first.got[0]);
	/* An exchange knows what it has met, which is not yet what it writes. */
	assert_null(known(&f->first, "a"));
	exchange(&f->first);
	assert_true(known(&f->first, "a")->mine);
	assert_true(known(&f->first, "a")->kept);
	assert_true(str_eq(known(&f->first, "a")->record.texts[0], STR("text")));
	exchange(&f->second);
	assert_false(f->second.got[0]);
	assert_false(known(&f->second, "a")->mine);
	/* One that is kept as it is stays as well. */
	f->first.keeps = true;
	exchange(&f->first);
	f->first.keeps = false;
	exchange(&f->second);
	assert_false(f->second.got[0]);
	/* It asks for another one: that is two records, of which one is given back. */
	f->first.wants[0] = STR("b");
	exchange(&f->first);
	assert_int_equal(records_of(f, LEASE_JOBS), 1);
	exchange(&f->second);
	assert_true(f->second.got[0]);
	assert_int_equal(records_of(f, LEASE_JOBS), 2);
	assert_int_equal(records_of(f, LEASE_BEATS), 2);
}

static void
a_process_that_leaves_gives_back_all_that_is_its_own(void **state)
{
	struct fixture *f = *state;

	f->first.wants[1] = STR("b");
	f->second.wants[0] = STR("c");
	exchange(&f->first);
	exchange(&f->second);
	assert_int_equal(records_of(f, LEASE_JOBS), 3);
	f->first.asked = 0;
	assert_int_equal(leases_exchange(f->first.leases, true, NULL), STATUS_OK);
	assert_int_equal(f->first.asked, 0);
	assert_int_equal(records_of(f, LEASE_JOBS), 1);
	assert_int_equal(records_of(f, LEASE_BEATS), 1);
	exchange(&f->second);
	assert_true(known(&f->second, "c")->mine);
}

static void
of_two_that_ask_at_once_one_gets_it(void **state)
{
	struct fixture *f = *state;

	f->first.meets = &f->second;
	exchange(&f->first);
	leases_adopt(f->second.leases);
	assert_true(f->second.got[0]);
	assert_int_equal(f->first.asked, 2); /* again after the other one */
	assert_false(f->first.got[0]);
}

static void
a_failure_of_asking_is_the_exchange_s(void **state)
{
	struct fixture *f = *state;

	f->first.status = STATUS_FORBIDDEN;
	assert_int_equal(leases_exchange(f->first.leases, false, NULL), STATUS_FORBIDDEN);
	assert_int_equal(records_of(f, LEASE_JOBS), 0);
	assert_int_equal(records_of(f, LEASE_BEATS), 0);
}

/* ---- The dead ---- */

static void
a_process_is_dead_after_more_than_its_time_in_silence(void **state)
{
	struct fixture *f = *state;

	write_lease(f, STR("a"));
	write_beat(f, STR(LOST), 1, 1000);
	exchange(&f->first);
	assert_false(f->first.got[0]);
	pass_ms(1000);
	exchange(&f->first);
	assert_false(f->first.got[0]);
	/* It has shown that it lives: its time begins anew. */
	write_beat(f, STR(LOST), 2, 1000);
	now_us++;
	exchange(&f->first);
	pass_ms(1000);
	exchange(&f->first);
	assert_false(f->first.got[0]);
	now_us++;
	exchange(&f->first);
	assert_true(f->first.got[0]);
	exchange(&f->first);
	assert_true(known(&f->first, "a")->mine);
}

static void
a_process_without_a_beat_is_dead(void **state)
{
	struct fixture *f = *state;

	write_lease(f, STR("a"));
	exchange(&f->first);
	assert_true(f->first.got[0]);
	/* One whose beat has been there is so after an exchange that has not met it. */
	write_lease(f, STR("a"));
	write_beat(f, STR(LOST), 1, LEASE_MS);
	exchange(&f->first);
	assert_false(f->first.got[0]);
	write_record(f, LEASE_BEATS, STR(LOST), (struct str){ NULL, 0 });
	exchange(&f->first);
	exchange(&f->first);
	assert_true(f->first.got[0]);
}

static void
a_beat_that_is_nobody_s_keeps_nobody_alive(void **state)
{
	struct fixture *f = *state;

	write_lease(f, STR("a"));
	write_beat(f, STR(LOST "g"), 1, LEASE_MS);
	exchange(&f->first);
	assert_true(f->first.got[0]);
}

static void
who_forgets_meets_others_for_the_first_time(void **state)
{
	struct fixture *f = *state;
	size_t count;

	write_lease(f, STR("a"));
	write_beat(f, STR(LOST), 1, 1000);
	exchange(&f->first);
	assert_non_null(known(&f->first, "a"));
	leases_forget(f->first.leases);
	(void)leases_known(f->first.leases, &count);
	assert_int_equal(count, 0);
	pass_ms(1001);
	exchange(&f->first);
	assert_false(f->first.got[0]);
	/* And who does not forget adds up what has passed. */
	pass_ms(1001);
	exchange(&f->first);
	assert_true(f->first.got[0]);
}

/* ---- What is certain ---- */

static void
a_process_is_certain_for_a_time_since_its_exchange_began(void **state)
{
	struct fixture *f = *state;

	assert_false(leases_are_certain(NULL));
	assert_true(leases_are_certain(f->first.leases));
	pass_ms(leases_give_up_ms());
	assert_true(leases_are_certain(f->first.leases));
	now_us++;
	assert_false(leases_are_certain(f->first.leases));
	/* What is not adopted changes nothing. */
	f->first.takes_ms = leases_give_up_ms() / 2;
	assert_int_equal(leases_exchange(f->first.leases, false, NULL), STATUS_OK);
	assert_false(leases_are_certain(f->first.leases));
	leases_adopt(f->first.leases);
	pass_ms(leases_give_up_ms() - f->first.takes_ms);
	assert_true(leases_are_certain(f->first.leases));
	now_us++;
	assert_false(leases_are_certain(f->first.leases));
}

static void
the_time_of_a_process_has_parts(void **state)
{
	(void)state;
	assert_int_equal(leases_beat_ms(), LEASE_MS / 6);
	assert_int_equal(leases_give_up_ms(), LEASE_MS * 7 / 12);
	leases_set_time(LEASE_LEAST_MS);
	assert_int_equal(leases_beat_ms(), LEASE_LEAST_MS / 6);
	assert_int_equal(leases_give_up_ms(), LEASE_LEAST_MS * 7 / 12);
	leases_set_time(LEASE_MS);
}

static void
nothing_is_known_of_no_leases(void **state)
{
	size_t count = 1;

	(void)state;
	assert_null(leases_known(NULL, &count));
	assert_int_equal(count, 0);
}

/* ---- Records of others ---- */

static void
a_lease_of_a_newer_format_is_left_alone(void **state)
{
	struct fixture *f = *state;

	write_record(f, LEASE_JOBS, STR("a"), STR("\x15\x07\x02then\0"));
	exchange(&f->first);
	assert_false(f->first.got[0]);
	assert_true(known(&f->first, "a")->newer);
	assert_false(known(&f->first, "a")->mine);
	assert_int_equal(leases_exchange(f->first.leases, true, NULL), STATUS_OK);
	assert_int_equal(records_of(f, LEASE_JOBS), 1);
}

/* Behind it others are read. */
static void
a_lease_that_cannot_be_read_is_free(void **state)
{
	struct fixture *f = *state;

	write_record(f, LEASE_JOBS, STR("a"), STR("\x01short\0"));
	write_lease(f, STR("b"));
	write_beat(f, STR(LOST), 1, LEASE_MS);
	f->first.wants[1] = STR("b");
	exchange(&f->first);
	assert_true(f->first.got[0]);
	assert_false(f->first.got[1]);
	assert_null(known(&f->first, "a"));
	exchange(&f->first);
	assert_true(known(&f->first, "a")->mine);
}

static enum status
write_number_body(struct kv_tx *tx, void *arg)
{
	const enum lease_space spaces[] = { LEASE_BEATS, LEASE_JOBS };
	AUTO(buf_release) struct buf key = BUF_INIT(LEASE_KEY_BYTES);

	(void)arg;
	for (size_t i = 0; i < 2; i++) {
		TRY(lease_record_key(spaces[i], (struct str){ NULL, 0 }, &key));
		tuple_put_u64(&key, 7);
		TRY(kv_set(tx, buf_str(&key), STR("?")));
	}
	return STATUS_OK;
}

/* As a newer frond might write them. */
static void
a_key_that_names_nothing_is_passed_over(void **state)
{
	struct fixture *f = *state;
	size_t count;

	assert_int_equal(kv_run(f->store, write_number_body, NULL, NULL, NULL), STATUS_OK);
	exchange(&f->first);
	exchange(&f->first);
	(void)leases_known(f->first.leases, &count);
	assert_int_equal(count, 1);
	assert_true(known(&f->first, "a")->mine);
}

/* Each of them has a name of its own; together they take more than a process has for them. */
static void
more_leases_than_there_is_room_for_are_a_limit(void **state)
{
	struct fixture *f = *state;
	struct process small;
	char name[512];

	process_begin(&small, f->store, 4096);
	exchange(&small);
	memset(name, 'n', sizeof(name));
	for (int i = 0; i < 8; i++) {
		name[0] = (char)('a' + i);
		write_lease(f, str_of(name, sizeof(name)));
	}
	assert_int_equal(leases_exchange(small.leases, false, NULL), STATUS_LIMIT);
	exchange(&f->first);
	leases_free(small.leases);
}

/* ---- Clearing others' ---- */

static void
a_lease_is_cleared_whoever_holds_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lease_clear(f->store, LEASE_JOBS, STR("a"), NULL), STATUS_NOT_FOUND);
	exchange(&f->first);
	assert_int_equal(lease_clear(f->store, LEASE_CHORES, STR("a"), NULL), STATUS_NOT_FOUND);
	assert_int_equal(lease_clear(f->store, LEASE_JOBS, STR("a"), NULL), STATUS_OK);
	assert_int_equal(records_of(f, LEASE_JOBS), 0);
}

static void
a_lease_is_cleared_by_one_of_two(void **state)
{
	struct fixture *f = *state;

	exchange(&f->first);
	other_cleared = STATUS_IO;
	clears_first = f->store;
	assert_int_equal(lease_clear(f->store, LEASE_JOBS, STR("a"), NULL), STATUS_NOT_FOUND);
	assert_int_equal(other_cleared, STATUS_OK);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_lease_belongs_to_one_until_it_is_given_back),
		CASE(a_process_that_leaves_gives_back_all_that_is_its_own),
		CASE(of_two_that_ask_at_once_one_gets_it),
		CASE(a_failure_of_asking_is_the_exchange_s),
		CASE(a_process_is_dead_after_more_than_its_time_in_silence),
		CASE(a_process_without_a_beat_is_dead),
		CASE(a_beat_that_is_nobody_s_keeps_nobody_alive),
		CASE(who_forgets_meets_others_for_the_first_time),
		CASE(a_process_is_certain_for_a_time_since_its_exchange_began),
		cmocka_unit_test(the_time_of_a_process_has_parts),
		cmocka_unit_test(nothing_is_known_of_no_leases),
		CASE(a_lease_of_a_newer_format_is_left_alone),
		CASE(a_lease_that_cannot_be_read_is_free),
		CASE(a_key_that_names_nothing_is_passed_over),
		CASE(more_leases_than_there_is_room_for_are_a_limit),
		CASE(a_lease_is_cleared_whoever_holds_it),
		CASE(a_lease_is_cleared_by_one_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Limits by person and address, on a clock that the tests move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "access/limits.h"
#include "access/settings.h"
#include "base/clock.h"

#define HERE  STR("127.0.0.1:40312")
#define THERE STR("192.0.2.1:40312")

static uint64_t now_ns;

/* ---- In place of base/clock.c ---- */

uint64_t
clock_mono_ns(void)
{
	return now_ns;
}

uint64_t
clock_cpu_ns(void)
{
	return now_ns;
}

uint64_t
clock_boot_us(void)
{
	return now_ns / 1000;
}

void
clock_boot_id(uint8_t ret[CLOCK_BOOT_ID_BYTES])
{
	memset(ret, 0, CLOCK_BOOT_ID_BYTES);
}

uint64_t
clock_wall_us(void)
{
	return now_ns / 1000;
}

uint64_t
clock_wall_ms(void)
{
	return clock_wall_us() / 1000;
}

/* ---- Requests ---- */

static void
pass_ms(uint64_t ms)
{
	now_ns += ms * CLOCK_NS_PER_MS;
}

static int
setup(void **state)
{
	now_ns = CLOCK_NS_PER_MS;
	*state = limits_new(NULL);
	return *state ? 0 : -1;
}

static int
teardown(void **state)
{
	limits_free(*state);
	return 0;
}

/* A request from that peer, and of that person, that moves so many bytes. */
static enum status
request_of(struct limits *l, const struct access_settings *s, struct str peer, struct str name,
	   uint64_t bytes)
{
	struct limits_claim claim = { 0 };
	struct err err = { 0 };
	enum status status;

	limits_set(l, s);
	status = limits_enter_address(&claim, l, peer, &err);

	if (status == STATUS_OK && name.len)
		status = limits_enter_person(&claim, l, name, &err);
	if (status == STATUS_TOO_MANY) {
		assert_true(claim.retry_s >= 1);
		assert_non_null(strstr(err.text, "[limits] "));
	}
	limits_leave(&claim, bytes);
	return status;
}

static void
nothing_is_limited_unless_set(void **state)
{
	const struct access_settings s = { 0 };

	for (int i = 0; i < 10000; i++)
		assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 1000000), STATUS_OK);
}

static void
an_address_may_ask_so_often(void **state)
{
	const struct access_settings s = { .address_requests = 20 };
	int passed = 0;

	for (int i = 0; i < 100; i++)
		passed += request_of(*state, &s, HERE, STR(""), 0) == STATUS_OK;
	assert_int_equal(passed, 20);
	assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 0), STATUS_TOO_MANY);
	assert_int_equal(request_of(*state, &s, THERE, STR("jan"), 0), STATUS_OK);
	/* A twentieth of a second pays for one more. */
	pass_ms(49);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_TOO_MANY);
	pass_ms(1);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_OK);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_TOO_MANY);
}

static void
a_person_is_one_from_wherever_they_come(void **state)
{
	const struct access_settings s = { .person_requests = 1 };

	assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 0), STATUS_OK);
	assert_int_equal(request_of(*state, &s, THERE, STR("jan"), 0), STATUS_TOO_MANY);
	assert_int_equal(request_of(*state, &s, THERE, STR("eva"), 0), STATUS_OK);
	assert_int_equal(request_of(*state, &s, THERE, STR(""), 0), STATUS_OK);
}

static void
bytes_are_paid_for_by_waiting(void **state)
{
	const struct access_settings s = { .address_bytes = 1000000, .person_bytes = 1000 };

	/* Of the first large one nobody knew, and the next has to wait for it. */
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 1150000), STATUS_OK);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_TOO_MANY);
	pass_ms(150);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_TOO_MANY);
	pass_ms(1);
	assert_int_equal(request_of(*state, &s, HERE, STR(""), 0), STATUS_OK);
	/* However much it was, the wait has a bound. */
	assert_int_equal(request_of(*state, &s, THERE, STR("jan"), UINT64_C(1) << 60), STATUS_OK);
	pass_ms(3599 * 1000);
	assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 0), STATUS_TOO_MANY);
	pass_ms(1000);
	assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 0), STATUS_OK);
}

static void
bytes_of_no_request_are_paid_for_by_whom_no_claim_counts(void **state)
{
	const struct access_settings s = { .address_bytes = 1000, .person_bytes = 1000 };
	struct limits_claim claim = { 0 };
	struct limits *l = *state;

	limits_set(l, &s);
	assert_int_equal(limits_enter_address(&claim, l, HERE, NULL), STATUS_OK);
	/* The address has a request, whose end counts them. */
	limits_count_bytes(l, &claim, HERE, STR("jan"), 2000);
	limits_leave(&claim, 0);
	assert_int_equal(request_of(l, &s, HERE, STR(""), 0), STATUS_OK);
	assert_int_equal(request_of(l, &s, THERE, STR("jan"), 0), STATUS_TOO_MANY);
	assert_int_equal(request_of(l, &s, THERE, STR("eva"), 0), STATUS_OK);
	pass_ms(2000);
	limits_count_bytes(l, &claim, THERE, STR(""), 2000);
	assert_int_equal(request_of(l, &s, THERE, STR(""), 0), STATUS_TOO_MANY);
	assert_int_equal(request_of(l, &s, HERE, STR("jan"), 0), STATUS_OK);
}

static void
refused_requests_cost_nothing(void **state)
{
	const struct access_settings s = { .person_requests = 10 };

	for (int i = 0; i < 1000; i++)
		(void)request_of(*state, &s, HERE, STR("jan"), 0);
	pass_ms(100);
	assert_int_equal(request_of(*state, &s, HERE, STR("jan"), 0), STATUS_OK);
}

static void
requests_at_a_time_are_given_back(void **state)
{
	const struct access_settings s = { .person_open = 2 };
	struct limits_claim a = { 0 }, b = { 0 }, c = { 0 };

	limits_set(*state, &s);
	assert_int_equal(limits_enter_person(&a, *state, STR("jan"), NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&b, *state, STR("jan"), NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&c, *state, STR("jan"), NULL), STATUS_TOO_MANY);
	limits_leave(&c, 0); /* of a request that was refused: takes nothing from the others */
	assert_int_equal(limits_enter_person(&c, *state, STR("jan"), NULL), STATUS_TOO_MANY);
	limits_leave(&a, 0);
	assert_int_equal(limits_enter_person(&c, *state, STR("jan"), NULL), STATUS_OK);
	limits_leave(&b, 0);
	limits_leave(&c, 0);
}

/* A connection's commands that come together share a claim, of which each is paid for. */
static void
requests_that_share_a_claim_are_one_at_a_time(void **state)
{
	const struct access_settings s = { .person_open = 1, .person_requests = 3 };
	struct limits_claim jan = { 0 }, eva = { 0 };

	limits_set(*state, &s);
	for (int i = 0; i < 3; i++)
		assert_int_equal(limits_enter_person(&jan, *state, STR("jan"), NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&jan, *state, STR("jan"), NULL), STATUS_TOO_MANY);
	/* Another person logs in on the connection: the first one does nothing there any more. */
	assert_int_equal(limits_enter_person(&jan, *state, STR("eva"), NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&eva, *state, STR("eva"), NULL), STATUS_TOO_MANY);
	pass_ms(1000);
	assert_int_equal(limits_enter_person(&eva, *state, STR("jan"), NULL), STATUS_OK);
	limits_leave(&eva, 0);
	limits_leave(&jan, 0);
	assert_int_equal(limits_enter_person(&eva, *state, STR("eva"), NULL), STATUS_OK);
	limits_leave(&eva, 0);
}

static enum status
database_by(struct limits_claim *claim, struct str name, struct err *err)
{
	return limits_take_database(claim, CATALOG_SPACE_COUCH, name, err);
}

static void
databases_are_counted_by_the_hour(void **state)
{
	const struct access_settings s = { .address_databases = 3, .person_databases = 2 };
	struct limits_claim jan = { 0 }, eva = { 0 };
	struct err err = { 0 };

	limits_set(*state, &s);
	assert_int_equal(limits_enter_address(&jan, *state, HERE, NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&jan, *state, STR("jan"), NULL), STATUS_OK);
	assert_int_equal(limits_enter_address(&eva, *state, HERE, NULL), STATUS_OK);
	assert_int_equal(limits_enter_person(&eva, *state, STR("eva"), NULL), STATUS_OK);
	assert_int_equal(database_by(&jan, STR("a"), NULL), STATUS_OK);
	assert_int_equal(database_by(&jan, STR("b"), NULL), STATUS_OK);
	/* Its transaction is run again. */
	assert_int_equal(database_by(&jan, STR("b"), NULL), STATUS_OK);
	assert_int_equal(database_by(&jan, STR("c"), &err), STATUS_TOO_MANY);
	assert_non_null(strstr(err.text, "person_databases"));
	assert_in_range(jan.retry_s, 1000, 1801);
	assert_int_equal(database_by(&eva, STR("d"), NULL), STATUS_OK);
	assert_int_equal(database_by(&eva, STR("e"), &err), STATUS_TOO_MANY);
	assert_non_null(strstr(err.text, "address_databases"));
	limits_leave(&jan, 0);
	limits_leave(&eva, 0);
}

/* A request that no limit holds of creates as many as it wants. */
static void
databases_of_no_limit_are_not_counted(void **state)
{
	struct access_settings s = { .address_databases = 1 };
	struct limits_claim nobody = { 0 }, jan = { 0 };

	limits_set(*state, &s);
	assert_int_equal(database_by(&nobody, STR("a"), NULL), STATUS_OK);
	assert_int_equal(database_by(&nobody, STR("b"), NULL), STATUS_OK);
	/* Of a person no databases are counted here, and of this request no address. */
	s = (struct access_settings){ .address_databases = 1, .person_requests = 10 };
	limits_set(*state, &s);
	assert_int_equal(limits_enter_person(&jan, *state, STR("jan"), NULL), STATUS_OK);
	assert_int_equal(database_by(&jan, STR("a"), NULL), STATUS_OK);
	assert_int_equal(database_by(&jan, STR("b"), NULL), STATUS_OK);
	limits_leave(&jan, 0);
	limits_leave(&nobody, 0);
}

static void
bytes_of_no_request_count_by_the_limits_that_are_there(void **state)
{
	const struct access_settings person = { .person_bytes = 1000 };
	const struct access_settings address = { .address_bytes = 1000 };
	const struct access_settings both = { .address_bytes = 1000, .person_bytes = 1000 };
	const struct limits_claim claim = { 0 };

	limits_set(*state, &person);
	limits_count_bytes(*state, &claim, HERE, STR("jan"), 2000);
	limits_set(*state, &both);
	assert_int_equal(request_of(*state, &both, HERE, STR(""), 0), STATUS_OK);
	assert_int_equal(request_of(*state, &both, THERE, STR("jan"), 0), STATUS_TOO_MANY);
	limits_set(*state, &address);
	limits_count_bytes(*state, &claim, HERE, STR("eva"), 2000);
	assert_int_equal(request_of(*state, &both, HERE, STR(""), 0), STATUS_TOO_MANY);
	assert_int_equal(request_of(*state, &both, THERE, STR("eva"), 0), STATUS_OK);
}

static void
what_is_refused_is_said_with_its_limit(void **state)
{
	static const struct {
		struct access_settings s;
		uint64_t bytes; /* of the request before */
		const char *text;
	} cases[] = {
		{ { .address_requests = 1 },
		  0,
		  "too many requests a second of one address: the limit, [limits] "
		  "address_requests, is 1. Try again in 2 s." },
		{ { .address_bytes = 1 },
		  5,
		  "too many bytes a second of one address: the limit, [limits] address_bytes, "
		  "is 1. Try again in 5 s." },
		{ { .person_requests = 1 },
		  0,
		  "too many requests a second of one person: the limit, [limits] "
		  "person_requests, is 1. Try again in 2 s." },
		{ { .person_bytes = 1 },
		  5,
		  "too many bytes a second of one person: the limit, [limits] person_bytes, is "
		  "1. Try again in 5 s." },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct limits_claim claim = { 0 };
		struct err err = { 0 };
		enum status status;

		pass_ms(10000);
		assert_int_equal(request_of(*state, &cases[i].s, HERE, STR("jan"), cases[i].bytes),
				 STATUS_OK);
		status = limits_enter_address(&claim, *state, HERE, &err);
		if (status == STATUS_OK)
			status = limits_enter_person(&claim, *state, STR("jan"), &err);
		assert_int_equal(status, STATUS_TOO_MANY);
		assert_string_equal(err.text, cases[i].text);
		limits_leave(&claim, 0);
	}
}

/* Far more of them than there are entries: who is under way stays known. */
static void
many_addresses_do_not_make_a_person_forgotten(void **state)
{
	const struct access_settings s = { .address_requests = 1, .person_open = 1 };
	struct limits_claim jan = { 0 }, again = { 0 };
	char peer[64];

	limits_set(*state, &s);
	assert_int_equal(limits_enter_person(&jan, *state, STR("jan"), NULL), STATUS_OK);
	for (unsigned i = 0; i < 4 * LIMITS_ENTRIES; i++) {
		(void)snprintf(peer, sizeof(peer), "10.%u.%u.%u:1", i >> 16 & 255, i >> 8 & 255,
			       i & 255);
		assert_int_equal(request_of(*state, &s, str_from_cstr(peer), STR(""), 0),
				 STATUS_OK);
	}
	assert_int_equal(limits_enter_person(&again, *state, STR("jan"), NULL), STATUS_TOO_MANY);
	limits_leave(&jan, 0);
	assert_int_equal(limits_enter_person(&again, *state, STR("jan"), NULL), STATUS_OK);
	limits_leave(&again, 0);
}

/* One request of each of these addresses, which has as many in a second as `s` says. */
static unsigned
refused_of(struct limits *l, const struct access_settings *s, unsigned net, unsigned count)
{
	unsigned refused = 0;
	char peer[64];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(peer, sizeof(peer), "%u.%u.%u.%u:1", net, i >> 16 & 255,
			       i >> 8 & 255, i & 255);
		refused += request_of(l, s, str_from_cstr(peer), STR(""), 0) != STATUS_OK;
	}
	return refused;
}

/* Where there is no room for all, those are forgotten that have asked for nothing for longest. */
static void
who_has_asked_lately_is_remembered(void **state)
{
	const struct access_settings s = { .address_requests = 1 };

	assert_int_equal(refused_of(*state, &s, 10, 4 * LIMITS_ENTRIES), 0);
	pass_ms(1);
	assert_int_equal(refused_of(*state, &s, 11, LIMITS_ENTRIES / 64), 0);
	pass_ms(1);
	assert_int_equal(refused_of(*state, &s, 12, LIMITS_ENTRIES / 32), 0);
	assert_int_equal(refused_of(*state, &s, 11, LIMITS_ENTRIES / 64), LIMITS_ENTRIES / 64);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_limited_unless_set),
		T(an_address_may_ask_so_often),
		T(a_person_is_one_from_wherever_they_come),
		T(bytes_are_paid_for_by_waiting),
		T(bytes_of_no_request_are_paid_for_by_whom_no_claim_counts),
		T(refused_requests_cost_nothing),
		T(requests_at_a_time_are_given_back),
		T(requests_that_share_a_claim_are_one_at_a_time),
		T(databases_are_counted_by_the_hour),
		T(databases_of_no_limit_are_not_counted),
		T(bytes_of_no_request_count_by_the_limits_that_are_there),
		T(what_is_refused_is_said_with_its_limit),
		T(many_addresses_do_not_make_a_person_forgotten),
		T(who_has_asked_lately_is_remembered),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

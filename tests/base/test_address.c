#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/address.h"
#include "base/address_path.h"

static void
addresses_are_taken_apart_and_put_together(void **state)
{
	char host[ADDRESS_HOST_BYTES];
	char text[ADDRESS_TEXT_BYTES];
	uint16_t port = 0;

	(void)state;
	assert_int_equal(address_parse("[::1]:80", host, &port, NULL), STATUS_OK);
	assert_string_equal(host, "::1");
	assert_int_equal(port, 80);
	address_write(host, port, text);
	assert_string_equal(text, "[::1]:80");
	assert_int_equal(address_parse("localhost:81", host, &port, NULL), STATUS_OK);
	assert_true(address_is_loopback(host));
	address_write(host, port, text);
	assert_string_equal(text, "127.0.0.1:81");
	assert_int_equal(address_parse("10.0.0.1:82", host, &port, NULL), STATUS_OK);
	assert_false(address_is_loopback(host));
}

static void
hosts_to_listen_on_are_ip_addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1", "0.0.0.0",      "::",
					    "::1",       "fe80::1%eth0", "localhost" };
	static const char *const bad[] = { "", "nowhere", "1.2.3", "127.0.0.1:80", "[::1]", "::x" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(address_check_host(good[i], good[i], NULL), STATUS_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(address_check_host(bad[i], bad[i], NULL), STATUS_INVALID);
}

static void
hosts_overlap_where_one_port_cannot_serve_both(void **state)
{
	(void)state;
	assert_true(address_overlaps("127.0.0.1", "127.0.0.1"));
	assert_true(address_overlaps("localhost", "127.0.0.1"));
	assert_true(address_overlaps("0.0.0.0", "10.0.0.1"));
	assert_true(address_overlaps("10.0.0.1", "0.0.0.0"));
	assert_true(address_overlaps("::1", "0:0:0:0:0:0:0:1"));
	assert_true(address_overlaps("::", "::1"));
	assert_false(address_overlaps("127.0.0.1", "127.0.0.2"));
	assert_false(address_overlaps("0.0.0.0", "::1"));
	assert_false(address_overlaps("nowhere", "nowhere"));
	assert_true(address_overlaps("/run/frond/rows", "/run/frond/rows"));
	assert_false(address_overlaps("/run/frond/rows", "/run/frond/cql"));
	assert_false(address_overlaps("/run/frond/rows", "127.0.0.1"));
}

static void
paths_of_unix_sockets_are_addresses_without_a_port(void **state)
{
	char longest[ADDRESS_PATH_BYTES + 1] = "";
	char text[ADDRESS_TEXT_BYTES];
	struct err err = { 0 };

	(void)state;
	assert_true(address_is_path("/run/frond/rows"));
	assert_false(address_is_path("127.0.0.1:5984"));
	assert_false(address_is_path(""));
	address_write("/run/frond/rows", 0, text);
	assert_string_equal(text, "/run/frond/rows");
	memset(longest, '/', 1);
	memset(longest + 1, 'p', ADDRESS_PATH_BYTES - 2);
	assert_int_equal(address_check_path(longest, &err), STATUS_OK);
	longest[ADDRESS_PATH_BYTES - 1] = 'p';
	assert_int_equal(address_check_path(longest, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "107 bytes at most"));
	assert_int_equal(address_check_path("/run/frond/", &err), STATUS_INVALID);
	assert_int_equal(address_check_path("/", &err), STATUS_INVALID);
	/* A header of a request may say anything; only settings have paths. */
	assert_false(address_is_loopback("/run/frond/rows"));
	assert_false(address_names_loopback(STR("/run/frond/rows")));
}

static void
only_the_loopback_is_the_loopback(void **state)
{
	static const char *const own[] = { "localhost",   "LocalHost:5984", "127.0.0.1",
					   "127.0.0.2:1", "127.255.0.1:80", "[::1]",
					   "[::1]:5984",  "localhost:",     "[0:0:0:0:0:0:0:1]:1" };
	static const char *const others[] = {
		"",
		"127.0.0.1.example.com",
		"127.example.com:5984",
		"localhost.example",
		"0.0.0.0",
		"10.0.0.1:5984",
		"example.com",
		"::1",
		"[::2]:1",
		"localhost:99999",
		"localhost:5984:1",
		"localhost:x",
		"[::1]x:80",
		"127.0.0.1@example.com",
		"128.0.0.1",
		"127.0.0.1/x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!address_names_loopback(str_from_cstr(own[i])))
			fail_msg("%s", own[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (address_names_loopback(str_from_cstr(others[i])))
			fail_msg("%s", others[i]);
	assert_false(address_is_loopback("127.0.0.1.example.com"));
}

static void
addresses_are_told_apart_by_host_or_network(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "127.0.0.1:1", "127.0.0.1:2", true },
		{ "127.0.0.1:1", "127.0.0.2:1", false },
		{ "[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:2", true },
		{ "[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1", false },
		{ "[::ffff:10.1.2.3]:1", "10.1.2.3:4", true },
		{ "[::1]:1", "127.0.0.1:1", false },
		{ "twin:1", "twin:2", true },
		{ "twin:1", "other:1", false },
	};
	struct address_block a;
	struct address_block b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		address_block_of(str_from_cstr(cases[i].a), &a);
		address_block_of(str_from_cstr(cases[i].b), &b);
		if (address_block_eq(&a, &b) != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

static void
what_is_no_address_changes_nothing(void **state)
{
	static const char *const bad[] = { "",       "127.0.0.1", ":80",     "host:",
					   "host:x", "h:-1",      "h:65536", "::1:80" };
	char host[ADDRESS_HOST_BYTES] = "before";
	char long_host[ADDRESS_HOST_BYTES + 4];
	struct err err = { 0 };
	uint16_t port = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(address_parse(bad[i], host, &port, &err), STATUS_INVALID);
	memset(long_host, 'h', sizeof(long_host));
	memcpy(long_host + ADDRESS_HOST_BYTES, ":80", sizeof(":80"));
	assert_int_equal(address_parse(long_host, host, &port, &err), STATUS_INVALID);
	assert_non_null(strstr(err.text, "longer than 255"));
	assert_string_equal(host, "before");
	assert_int_equal(port, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart_and_put_together),
		cmocka_unit_test(hosts_to_listen_on_are_ip_addresses),
		cmocka_unit_test(hosts_overlap_where_one_port_cannot_serve_both),
		cmocka_unit_test(paths_of_unix_sockets_are_addresses_without_a_port),
		cmocka_unit_test(only_the_loopback_is_the_loopback),
		cmocka_unit_test(addresses_are_told_apart_by_host_or_network),
		cmocka_unit_test(what_is_no_address_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

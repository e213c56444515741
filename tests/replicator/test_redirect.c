/* Which redirects a replication follows: those that stay at the server that was named. */
#include "common.h"

#include "replicator/redirect.h"

static void
only_redirects_to_the_same_server_are_allowed(void **state)
{
	static const struct {
		const char *from, *location;
		bool allowed;
	} cases[] = {
		{ "http://a:5984/db/_changes", "/other/_changes?x=1", true },
		{ "http://a:5984/db/", "../db2", true },
		{ "http://a:5984/db", "http://a:5984/db/", true },
		{ "http://a:5984/db", "HTTP://A:5984/db/", true },
		{ "http://a/db", "http://a:80/db/", true },
		{ "https://a/db", "https://a:443/db/", true },
		{ "http://a:5984/db", "https://a/db", true },
		{ "http://a:5984/db", "https://a:5984/db", true },
		{ "http://a:5984/db", "https://a:6984/db", false },
		{ "https://a/db", "http://a/db", false },
		{ "http://a:5984/db", "http://a:5985/db", false },
		{ "http://a:5984/db", "http://b:5984/db", false },
		{ "http://a:5984/db", "//b:5984/db", false },
		{ "http://a:5984/db", "http://127.0.0.1:5984/db", false },
		{ "http://127.0.0.1:1/db", "http://localhost:1/db", false },
		{ "http://a:5984/db", "http://a:5984@b/db", false },
		{ "http://a:5984/db", "http://a.b:5984/db", false },
		{ "http://a:5984/db", "file:///etc/passwd", false },
		{ "http://a:5984/db", "ftp://a/db", false },
		{ "http://[::1]:5984/db", "http://[::1]:5984/x", true },
		{ "http://[::1]:5984/db", "http://[::2]:5984/x", false },
		{ "not a url", "/", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (redirect_is_allowed(cases[i].from, str_from_cstr(cases[i].location)) !=
		    cases[i].allowed)
			fail_msg("from %s to %s", cases[i].from, cases[i].location);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_redirects_to_the_same_server_are_allowed),
	};

	return cmocka_run_group_tests_name("redirects", tests, NULL, NULL);
}

/* A store that other servers use, too: what asking it costs a request. */
#include "common.h"
#include "index/view/keys.h"
#include "kv/faulty/faulty.h"
#include "store.h"

/*
 * What an operation costs is the least that it has cost in several looks: the threads that work in
 * the background are counted, too. On a busy machine each of some looks may meet one of them, so
 * where a look does not change what the next one costs, there are up to LOOKS_MOST of them, until
 * one has cost what it may.
 */
enum {
	LOOKS = 10,
	LOOKS_MOST = 200,
};

static int
setup_shared(void **state)
{
	/* The embedded engine that says it is shared, and fails never. */
	assert_int_equal(setenv("FROND_TEST_FAULTS", "shared=1,rate=0,delay=0,watch=0", 1), 0);
	return setup(state);
}

/* What a GET begins, after it has been answered once. */
static uint64_t
transactions_of(const char *target, int status)
{
	uint64_t least = UINT64_MAX;

	door_expect(d, "GET", target, NULL, status, "");
	for (int i = 0; i < LOOKS_MOST && least > 1; i++) {
		uint64_t before = kv_faulty_transactions();
		uint64_t begun;

		door_expect(d, "GET", target, NULL, status, "");
		begun = kv_faulty_transactions() - before;
		if (begun < least)
			least = begun;
	}
	return least;
}

static void
reading_a_document_takes_one_transaction(void **state)
{
	(void)state;
	door_create(d, "one");
	door_expect(d, "PUT", "/one/a", "{\"n\":1}", 201, "ok");
	door_expect(d, "PUT", "/one/a/file", "text", 409, "conflict");
	assert_int_equal(transactions_of("/one/a", 200), 1);
	assert_int_equal(transactions_of("/one/a?conflicts=true", 200), 1);
	assert_int_equal(transactions_of("/one/none", 404), 1);
	assert_int_equal(transactions_of("/one/a?path=/n", 200), 1);
	assert_int_equal(transactions_of("/none/a", 404), 1);
}

/* What a write begins; each look writes to the next document. */
static uint64_t
transactions_of_writes(const char *method, const char *target, const char *body, int status)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < LOOKS_MOST && least > 1; i++) {
		uint64_t before = kv_faulty_transactions();
		uint64_t begun;

		door_expect(d, method, format("%s%d", target, i), body, status, "");
		begun = kv_faulty_transactions() - before;
		if (begun < least)
			least = begun;
	}
	return least;
}

static void
writing_a_document_takes_one_transaction(void **state)
{
	(void)state;
	door_create(d, "written");
	door_expect(d, "PUT", "/written/a", "{\"n\":1}", 201, "ok");
	for (int i = 0; i < LOOKS_MOST; i++)
		door_expect(d, "PUT", format("/written/c%d", i), "{\"n\":1}", 201, "ok");
	assert_int_equal(transactions_of_writes("PUT", "/written/d", "{\"n\":1}", 201), 1);
	assert_int_equal(transactions_of_writes("PUT", "/written/c", "{\"n\":2}", 409), 1);
	assert_int_equal(transactions_of_writes("DELETE", "/written/e", NULL, 404), 1);
	assert_int_equal(transactions_of_writes("PUT", "/none/d", "{}", 404), 1);
}

/*
 * How often a query of this many documents by an index waits for the store. The next request of the
 * connection begins when the query's transaction has ended.
 */
static uint64_t
round_trips_of_query(unsigned documents)
{
	uint64_t before;

	door_expect(d, "GET", "/", NULL, 200, "Welcome");
	before = kv_faulty_round_trips();
	door_expect(d, "POST", "/many/_find",
		    format("{\"selector\":{\"n\":{\"$lt\":%u}},\"limit\":1000}", documents), 200,
		    "\"docs\"");
	door_expect(d, "GET", "/", NULL, 200, "Welcome");
	return kv_faulty_round_trips() - before;
}

static void
documents_of_an_index_are_fetched_together(void **state)
{
	char docs[8192] = "{\"docs\":[";
	uint64_t few;

	(void)state;
	for (unsigned i = 0; i < 150; i++) {
		size_t len = strlen(docs);

		(void)snprintf(docs + len, sizeof(docs) - len, "%s{\"_id\":\"d%u\",\"n\":%u}",
			       i ? "," : "", (i * 37) % 150, i);
	}
	strcat(docs, "]}");
	door_create(d, "many");
	door_expect(d, "POST", "/many/_bulk_docs", docs, 201, "ok");
	door_expect(d, "POST", "/many/_index", "{\"index\":{\"fields\":[\"n\"]}}", 200, "created");
	/* The first question also reads the definitions of indexes, which its loop then keeps. */
	(void)round_trips_of_query(2);
	few = round_trips_of_query(2);
	/* The entries in two stretches, the winners at once, the bodies 64 at a time. */
	assert_in_range(round_trips_of_query(150), few, few + 4);
}

/* How often an answer waits for the store, which is to be `most` times at most. */
static uint64_t
round_trips_of(const char *target, const char *expected, uint64_t most)
{
	uint64_t least = UINT64_MAX;
	uint64_t before, trips;

	for (int i = 0; i < LOOKS_MOST && least > most; i++) {
		door_expect(d, "GET", "/", NULL, 200, "Welcome");
		before = kv_faulty_round_trips();
		door_expect(d, "GET", target, NULL, 200, expected);
		door_expect(d, "GET", "/", NULL, 200, "Welcome");
		trips = kv_faulty_round_trips() - before;
		if (trips < least)
			least = trips;
	}
	return least;
}

/* How often a removal of that many indexes waits for the store; all but one are not there. */
static uint64_t
round_trips_of_bulk_delete(unsigned names)
{
	AUTO(buf_release) struct buf body = BUF_INIT(64 * 1024);
	uint64_t before;

	door_expect(d, "PUT", "/gone/_design/there",
		    "{\"language\":\"query\",\"views\":{\"v\":{\"map\":"
		    "{\"fields\":{\"a\":\"asc\"}}}}}",
		    201, "ok");
	buf_append_cstr(&body, "{\"docids\":[\"there\"");
	for (unsigned i = 1; i < names; i++)
		buf_printf(&body, ",\"%u\"", i);
	buf_append_cstr(&body, "]}");
	buf_append_byte(&body, '\0');
	assert_int_equal(buf_status(&body), STATUS_OK);
	door_expect(d, "GET", "/", NULL, 200, "Welcome");
	before = kv_faulty_round_trips();
	door_expect(d, "POST", "/gone/_index/_bulk_delete", body.ptr, 200,
		    "{\"success\":[{\"id\":\"_design/there\",\"ok\":true}],\"fail\":[{\"id\":");
	door_expect(d, "GET", "/", NULL, 200, "Welcome");
	return kv_faulty_round_trips() - before;
}

static void
names_of_indexes_are_looked_for_together(void **state)
{
	uint64_t few;

	(void)state;
	door_create(d, "gone");
	(void)round_trips_of_bulk_delete(2);
	few = round_trips_of_bulk_delete(2);
	/* A thousand at a time, each in a transaction of a few reads. */
	assert_in_range(round_trips_of_bulk_delete(3000), few, few + 2 * 8);
}

static void
a_view_that_is_up_to_date_costs_its_rows(void **state)
{
	(void)state;
	if (!getenv("FROND_JS_WORKER"))
		skip();
	door_create(d, "viewed");
	for (int i = 0; i < 300; i++)
		door_expect(d, "PUT", format("/viewed/d%03d", i), format("{\"n\":%d}", i), 201,
			    "ok");
	door_expect(d, "PUT", "/viewed/_design/v",
		    "{\"views\":{\"n\":{\"map\":\"function (doc) { emit(doc.n, null); }\","
		    "\"reduce\":\"_count\"}}}",
		    201, "ok");
	/* The first question has the view built, and the loop remember that it is up to date. */
	door_expect(d, "GET", "/viewed/_design/v/_view/n", NULL, 200, "300");
	/*
	 * What is remembered is asked for, the sums on the way to the place, and the rows. How many
	 * levels of sums a view has is drawn with its seed: mostly two, and one more in a hundred.
	 */
	assert_in_range(round_trips_of("/viewed/_design/v/_view/n"
				       "?reduce=false&limit=1&startkey=7",
				       "d007", 6),
			2, 4 + VIEW_LEVELS);
	assert_in_range(
		round_trips_of("/viewed/_design/v/_view/n?reduce=false&limit=100", "d099", 4), 2,
		4);
	assert_in_range(round_trips_of("/viewed/_design/v/_view/n", "300", 4), 2, 4);
}

static void
what_another_server_has_changed_holds_at_once(void **state)
{
	(void)state;
	door_create(d, "changed");
	door_expect(d, "PUT", "/changed/a%20b", "{}", 201, "ok");
	door_expect(d, "GET", "/changed/a+b", NULL, 200, "a b");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd/decode_plus_to_space", "\"false\"", 200,
		    "");
	door_expect(d, "GET", "/changed/a+b", NULL, 404, "missing");
	door_expect(d, "DELETE", "/_node/_local/_config/chttpd/decode_plus_to_space", NULL, 200,
		    "");
	door_expect(d, "GET", "/changed/a+b", NULL, 200, "a b");
	door_expect(d, "GET", "/changed/_all_docs", NULL, 200, "a b");
	door_expect(d, "DELETE", "/changed", NULL, 200, "ok");
	door_expect(d, "GET", "/changed/a+b", NULL, 404, "Database does not exist.");
}

/* How often a PUT waits for the store, and how many transactions it begins. */
static void
cost_of_put(const char *target, uint64_t *ret_trips, uint64_t *ret_transactions)
{
	*ret_trips = *ret_transactions = UINT64_MAX;
	for (int i = 0; i < LOOKS; i++) {
		uint64_t trips, transactions;

		door_expect(d, "GET", "/", NULL, 200, "Welcome");
		trips = kv_faulty_round_trips();
		transactions = kv_faulty_transactions();
		door_expect(d, "PUT", format("%s%d", target, i), "{\"n\":1}", 201, "ok");
		transactions = kv_faulty_transactions() - transactions;
		door_expect(d, "GET", "/", NULL, 200, "Welcome");
		trips = kv_faulty_round_trips() - trips;
		if (trips < *ret_trips)
			*ret_trips = trips;
		if (transactions < *ret_transactions)
			*ret_transactions = transactions;
	}
}

static void
a_database_without_validators_pays_nothing_for_them(void **state)
{
	uint64_t trips;
	uint64_t transactions;

	(void)state;
	door_create(d, "free");
	door_expect(d, "PUT", "/free/_design/d", "{\"filters\":{\"f\":\"f\"}}", 201, "ok");
	cost_of_put("/free/a", &trips, &transactions);
	assert_int_equal(trips, 1); /* for the end of the document's branches */
	/* The one that has asked for the settings that hold. */
	assert_int_equal(transactions, 1);
}

/* ---- People ---- */

#define ADMIN "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define ANNA  "Authorization: Basic YW5uYTphcHBsZQ==\r\n"

/*
 * How often a GET waits for the store. The settings are read anew before, if they have to be, and
 * the transaction has ended when the next request begins.
 */
static uint64_t
round_trips_of_get(const char *headers, const char *target, int status)
{
	uint64_t before;

	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
	before = kv_faulty_round_trips();
	expect_as(headers, "GET", target, NULL, status, "");
	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
	return kv_faulty_round_trips() - before;
}

/* Empties the caches of all processes: the catalog changes by more than a new database. */
static void
change_catalog(void)
{
	expect_as(ADMIN, "PUT", "/other", NULL, 201, "ok");
	expect_as(ADMIN, "DELETE", "/other", NULL, 200, "ok");
}

static void
reading_a_document_waits_once_for_rights_and_once_for_the_document(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };
	struct door *without_people = d;

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_users/org.couchdb.user:anna",
		  "{\"type\":\"user\",\"name\":\"anna\",\"roles\":[],\"password\":\"apple\"}", 201,
		  "ok");
	expect_as(ADMIN, "PUT", "/hers", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/hers/_security", "{\"members\":{\"names\":[\"anna\"]}}", 200,
		  "ok");
	expect_as(ADMIN, "PUT", "/hers/a", "{\"n\":1}", 201, "ok");
	expect_as(ADMIN, "PUT", "/open", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/open/_security", "{}", 200, "ok");
	expect_as(ADMIN, "PUT", "/open/a", "{\"n\":1}", 201, "ok");
	expect_as(ANNA, "GET", "/hers/a", NULL, 200, "");
	expect_as(NULL, "GET", "/open/a", NULL, 200, "");

	assert_int_equal(round_trips_of_get(ADMIN, "/hers/a", 200), 1);
	/* Her record and the security object come together. */
	assert_int_equal(round_trips_of_get(ANNA, "/hers/a", 200), 2);
	assert_int_equal(round_trips_of_get(ANNA, "/open/a", 200), 2);
	assert_int_equal(round_trips_of_get(NULL, "/open/a", 200), 2);
	assert_int_equal(round_trips_of_get(NULL, "/hers/a", 401), 1);
	/* A database that the process does not know costs one more, for its description. */
	change_catalog();
	assert_int_equal(round_trips_of_get(ADMIN, "/hers/a", 200), 2);
	assert_int_equal(round_trips_of_get(ADMIN, "/hers/a", 200), 1);
	change_catalog();
	assert_int_equal(round_trips_of_get(NULL, "/open/a", 200), 3);
	/* Writers need more of a database than readers, and get it. */
	expect_as(ADMIN, "POST", "/open/_index", "{\"index\":{\"fields\":[\"n\"]}}", 200,
		  "created");
	change_catalog();
	expect_as(ADMIN, "GET", "/open/a", NULL, 200, "");
	expect_as(ADMIN, "PUT", "/open/b", "{\"n\":2}", 201, "ok");
	expect_as(ADMIN, "POST", "/open/_find", "{\"selector\":{\"n\":2}}", 200, "\"b\"");
	door_stop(d);
	d = without_people;
}

/* How often a write waits for the store. */
static uint64_t
round_trips_of_write(const char *headers, const char *method, const char *target, const char *body,
		     int status)
{
	uint64_t before;

	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
	before = kv_faulty_round_trips();
	expect_as(headers, method, target, body, status, "");
	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
	return kv_faulty_round_trips() - before;
}

static void
a_member_waits_once_for_rights_and_then_writes_as_an_administrator_does(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };
	static const char *const people[] = { ADMIN, ANNA, NULL };
	static const char *const bulk = "{\"docs\":[{},{},{}]}";
	enum {
		PUT,
		DELETE,
		BULK,
		WRITES,
	};
	uint64_t trips[3][WRITES];
	struct door *without_people = d;

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_users/org.couchdb.user:anna",
		  "{\"type\":\"user\",\"name\":\"anna\",\"roles\":[],\"password\":\"apple\"}", 201,
		  "ok");
	expect_as(ADMIN, "PUT", "/hers", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/hers/_security", "{}", 200, "ok");
	expect_as(ANNA, "PUT", "/hers/first", "{}", 201, "ok");
	for (size_t i = 0; i < 3; i++) {
		const char *doc = format("/hers/d%zu", i);
		const char *rev;

		trips[i][PUT] = round_trips_of_write(people[i], "PUT", doc, "{}", 201);
		expect_as(ADMIN, "GET", doc, NULL, 200, "_rev");
		rev = format("%s?rev=%s", doc, door_member(d, "_rev"));
		trips[i][DELETE] = round_trips_of_write(people[i], "DELETE", rev, NULL, 200);
		trips[i][BULK] = round_trips_of_write(people[i], "POST", "/hers/_bulk_docs", bulk,
						      201);
	}
	assert_int_equal(trips[0][PUT], 1);
	/* One wait more, for what comes together: her record, and the security object. */
	for (size_t i = 1; i < 3; i++)
		for (size_t k = 0; k < WRITES; k++)
			assert_int_equal(trips[i][k], trips[0][k] + 1);
	door_stop(d);
	d = without_people;
}

/* ---- Cookies of several servers ---- */

enum {
	SERVERS = 3,
	COOKIE_TEXT = 600,
};

static void
take_cookie(struct door *server, char ret[COOKIE_TEXT])
{
	const char *given;

	d = server;
	expect_as(NULL, "POST", "/_session", "{\"name\":\"anna\",\"password\":\"apple\"}", 200,
		  "ok");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(given);
	(void)snprintf(ret, COOKIE_TEXT, "Cookie: %.*s\r\n", (int)strcspn(given, ";"), given);
}

/* Each of the servers takes each of the cookies, or none of them does. */
static void
expect_taken(struct door *const servers[SERVERS], char cookies[SERVERS][COOKIE_TEXT], bool taken)
{
	for (size_t s = 0; s < SERVERS; s++)
		for (size_t c = 0; c < SERVERS; c++) {
			d = servers[s];
			expect_as(cookies[c], "GET", "/_session", NULL, 200,
				  taken ? "\"name\":\"anna\"" : "\"name\":null");
		}
}

static void
set_in_store(struct door *server, const char *name, const char *text)
{
	d = server;
	expect_as(ADMIN, "PUT", format("/_node/_local/_config/chttpd_auth/%s", name),
		  format("\"%s\"", text), 200, "\"");
}

static void
cookies_of_several_servers_outlive_their_secret_by_the_overlap(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };
	struct door *without_people = d;
	struct door *servers[SERVERS];
	char before[SERVERS][COOKIE_TEXT], during[SERVERS][COOKIE_TEXT];

	(void)state;
	servers[0] = d = door_start_with(true, settings, NULL);
	for (size_t s = 1; s < SERVERS; s++)
		servers[s] = door_start_beside(servers[0], true, settings);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_users/org.couchdb.user:anna",
		  "{\"type\":\"user\",\"name\":\"anna\",\"roles\":[],\"password\":\"apple\"}", 201,
		  "ok");
	for (size_t s = 0; s < SERVERS; s++)
		take_cookie(servers[s], before[s]);
	expect_taken(servers, before, true);

	set_in_store(servers[1], "secret", "another secret of all servers");
	expect_taken(servers, before, true);
	for (size_t s = 0; s < SERVERS; s++)
		take_cookie(servers[s], during[s]);
	expect_taken(servers, during, true);
	expect_taken(servers, before, true);

	/* Without an overlap the former ones end, at all servers at once. */
	set_in_store(servers[2], "secret_overlap", "0");
	expect_taken(servers, before, false);
	expect_taken(servers, during, true);
	set_in_store(servers[0], "secret", "a third secret of all servers");
	expect_taken(servers, during, false);
	expect_taken(servers, before, false);
	for (size_t s = SERVERS; s > 0; s--)
		door_stop(servers[s - 1]);
	d = without_people;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_database_without_validators_pays_nothing_for_them),
		cmocka_unit_test(reading_a_document_takes_one_transaction),
		cmocka_unit_test(writing_a_document_takes_one_transaction),
		cmocka_unit_test(documents_of_an_index_are_fetched_together),
		cmocka_unit_test(names_of_indexes_are_looked_for_together),
		cmocka_unit_test(a_view_that_is_up_to_date_costs_its_rows),
		cmocka_unit_test(what_another_server_has_changed_holds_at_once),
		/* With stores of their own; on a cluster that empties the one of the others. */
		cmocka_unit_test(
			reading_a_document_waits_once_for_rights_and_once_for_the_document),
		cmocka_unit_test(
			a_member_waits_once_for_rights_and_then_writes_as_an_administrator_does),
		cmocka_unit_test(cookies_of_several_servers_outlive_their_secret_by_the_overlap),
	};

	return cmocka_run_group_tests(tests, setup_shared, teardown);
}

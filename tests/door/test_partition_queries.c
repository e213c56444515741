/* Queries of one partition: _find, _explain and _index below _partition, and what serves them. */
#include "common.h"

#include "base/rand.h"
#include "kv/faulty/faulty.h"
#include "store.h"
#include "verified.h"

/* A partitioned database, made anew. */
static void
create_partitioned(const char *name)
{
	(void)door_request(d, "DELETE", format("/%s", name), NULL, NULL);
	door_expect(d, "PUT", format("/%s?partitioned=true", name), NULL, 201, "ok");
}

/* What frond verify says of the whole store, its indexes included: nothing. */
static int
check_store(void **state)
{
	(void)state;
	verified_none(kv_faulty_inner(d->store));
	return 0;
}

/* A query of this path that must be answered with these documents. */
static void
expect_ids(const char *path, const char *body, const char *expected)
{
	door_expect(d, "POST", path, body, 200, "{\"docs\":[");
	assert_string_equal(found_ids(), expected);
}

/* Six documents in two partitions, n counting through both; a design document besides. */
static void
make_two(const char *db)
{
	create_partitioned(db);
	for (int i = 1; i <= 6; i++)
		door_expect(d, "PUT", format("/%s/%s:%d", db, i % 2 ? "bar" : "foo", i),
			    format("{\"n\":%d,\"s\":\"x\"}", i), 201, "ok");
	door_expect(d, "PUT", format("/%s/_design/foo:9", db), "{\"n\":3,\"s\":\"x\"}", 201, "ok");
}

static void
index_on(const char *db, const char *field, const char *partitioned)
{
	door_expect(
		d, "POST", format("/%s/_index", db),
		format("{\"index\":{\"fields\":[\"%s\"]},\"ddoc\":\"%s%s\",\"name\":\"%s\"%s%s}",
		       field, field, partitioned, field, *partitioned ? ",\"partitioned\":" : "",
		       partitioned),
		200, "created");
}

static void
a_query_of_a_partition_sees_nothing_else(void **state)
{
	(void)state;
	make_two("p");
	expect_ids("/p/_partition/foo/_find", "{\"selector\":{}}", "foo:2,foo:4,foo:6");
	expect_ids("/p/_partition/foo/_find", "{\"selector\":{\"n\":{\"$gt\":2}}}", "foo:4,foo:6");
	expect_ids("/p/_partition/foo/_find", "{\"selector\":{\"_id\":{\"$gt\":\"a\"}}}",
		   "foo:2,foo:4,foo:6");
	expect_ids("/p/_partition/foo/_find", "{\"selector\":{\"_id\":{\"$lt\":\"foo:4\"}}}",
		   "foo:2");
	expect_ids("/p/_partition/foo/_find", "{\"selector\":{\"_id\":\"bar:1\"}}", "");
	expect_ids("/p/_partition/none/_find", "{\"selector\":{}}", "");
	expect_ids("/p/_partition/fo/_find", "{\"selector\":{}}", "");
	expect_ids("/p/_find?partition=bar", "{\"selector\":{}}", "bar:1,bar:3,bar:5");
	expect_ids("/p/_find", "{\"selector\":{},\"partition\":\"bar\"}", "bar:1,bar:3,bar:5");
	expect_ids("/p/_find", "{\"selector\":{},\"partition\":\"\",\"limit\":4}",
		   "bar:1,bar:3,bar:5,foo:2");
	expect_ids("/p/_partition/foo/_find",
		   "{\"selector\":{\"_id\":{\"$gt\":null}},\"sort\":[{\"_id\":\"desc\"}]}",
		   "foo:6,foo:4,foo:2");
	door_expect(d, "POST", "/p/_partition/foo/_find",
		    "{\"selector\":{},\"execution_stats\":true}", 200,
		    "\"total_docs_examined\":3,");
}

static void
a_partitioned_index_serves_queries_of_partitions_alone(void **state)
{
	(void)state;
	make_two("q");
	index_on("q", "n", "");
	door_expect(d, "GET", "/q/_index", NULL, 200,
		    "\"name\":\"n\",\"type\":\"json\",\"partitioned\":true,");
	door_expect(d, "GET", "/q/_partition/foo/_index", NULL, 200, "{\"total_rows\":2,");
	expect_ids("/q/_partition/foo/_find",
		   "{\"selector\":{\"n\":{\"$gt\":2}},\"execution_stats\":true}", "foo:4,foo:6");
	door_has(d, "\"total_keys_examined\":2,\"total_docs_examined\":2,");
	door_has_not(d, "warning");
	expect_ids("/q/_partition/foo/_find",
		   "{\"selector\":{\"s\":\"x\"},\"sort\":[{\"n\":\"desc\"}],\"limit\":2}",
		   "foo:6,foo:4");
	expect_ids("/q/_partition/foo/_find",
		   format("{\"selector\":{\"s\":\"x\"},\"sort\":[{\"n\":\"desc\"}],\"limit\":2,"
			  "\"bookmark\":\"%s\"}",
			  found_bookmark()),
		   "foo:2");
	/* Another partition's bookmark is a place before all of this one, or behind it. */
	expect_ids("/q/_partition/bar/_find",
		   format("{\"selector\":{\"s\":\"x\"},\"sort\":[{\"n\":\"desc\"}],"
			  "\"bookmark\":\"%s\"}",
			  found_bookmark()),
		   "bar:5,bar:3,bar:1");
	door_expect(d, "POST", "/q/_find", "{\"selector\":{},\"sort\":[\"n\"]}", 400,
		    "No global index exists for this sort, try indexing by the sort fields.");
	door_expect(d, "POST", "/q/_partition/foo/_find", "{\"selector\":{},\"sort\":[\"s\"]}", 400,
		    "No partitioned index exists for this sort, try indexing by the sort fields.");
	expect_ids("/q/_find", "{\"selector\":{\"n\":{\"$gt\":4}}}", "bar:5,foo:6");
	door_has(d, "No matching index found");
	/* What is written afterwards is in the index, too. */
	door_expect(d, "PUT", "/q/foo:7", "{\"n\":2.5,\"s\":\"x\"}", 201, "ok");
	expect_ids("/q/_partition/foo/_find", "{\"selector\":{\"n\":{\"$gt\":2}},\"sort\":[\"n\"]}",
		   "foo:7,foo:4,foo:6");
}

static void
a_global_index_serves_queries_of_all_partitions_alone(void **state)
{
	(void)state;
	make_two("g");
	index_on("g", "n", "false");
	door_expect(d, "GET", "/g/_index", NULL, 200, "\"partitioned\":false,");
	door_expect(d, "GET", "/g/_design/nfalse", NULL, 200,
		    "\"options\":{\"partitioned\":false}");
	expect_ids("/g/_find", "{\"selector\":{\"n\":{\"$gt\":2}},\"sort\":[\"n\"]}",
		   "bar:3,foo:4,bar:5,foo:6");
	door_has_not(d, "warning");
	door_expect(d, "POST", "/g/_partition/foo/_find", "{\"selector\":{},\"sort\":[\"n\"]}", 400,
		    "No partitioned index exists for this sort");
	expect_ids("/g/_partition/foo/_find", "{\"selector\":{\"n\":{\"$gt\":2}}}", "foo:4,foo:6");
	door_has(d, "No matching index found");
	/* An index beside it has to be partitioned alike. */
	door_expect(d, "POST", "/g/_index",
		    "{\"index\":{\"fields\":[\"s\"]},\"ddoc\":\"nfalse\",\"name\":\"s\"}", 400,
		    "invalid_partitioned_option");
	index_on("g", "n", "true");
	expect_ids("/g/_partition/foo/_find", "{\"selector\":{\"n\":{\"$gt\":2}}}", "foo:4,foo:6");
	door_has_not(d, "warning");
	door_create(d, "plain");
	door_expect(d, "POST", "/plain/_index",
		    "{\"index\":{\"fields\":[\"s\"]},\"partitioned\":true}", 400,
		    "partitioned option cannot be true in a non-partitioned database");
}

static void
explain_shows_the_partition(void **state)
{
	(void)state;
	make_two("e");
	index_on("e", "n", "");
	door_expect(d, "POST", "/e/_partition/foo/_explain", "{\"selector\":{\"n\":{\"$gte\":3}}}",
		    200,
		    "{\"dbname\":\"e\",\"index\":{\"ddoc\":\"_design/n\",\"name\":\"n\",\"type\":"
		    "\"json\",\"partitioned\":true,");
	door_has(d, "}]}},\"partitioned\":true,\"selector\":");
	door_has(d, "\"partition\":\"foo\",\"r\":1,");
	door_has(d, "\"reduce\":false,\"partition\":\"foo\",\"start_key\":[3],");
	door_expect(d, "POST", "/e/_explain", "{\"selector\":{\"n\":{\"$gte\":3}}}", 200,
		    "{\"dbname\":\"e\",\"index\":{\"ddoc\":null,\"name\":\"_all_docs\"");
	door_has(d, "\"partition\":\"\",\"r\":1,");
	door_has(d, "\"reasons\":[{\"name\":\"scope_mismatch\"}]");
	door_has(d, "\"reduce\":false,\"partition\":null,");
}

static void
what_is_wrong_with_a_partition_is_told(void **state)
{
	(void)state;
	make_two("w");
	door_create(d, "none");
	door_expect(d, "POST", "/w/_partition/_x/_find", "{\"selector\":{}}", 400,
		    "Partition must not start with an underscore");
	door_expect(d, "POST", "/w/_partition/_find", "{\"selector\":{}}", 400,
		    "Partition must not start with an underscore");
	door_expect(d, "POST", "/w/_find", "{\"selector\":{},\"partition\":\"_x\"}", 400,
		    "illegal_partition");
	door_expect(d, "POST", "/w/_find", "{\"selector\":{},\"partition\":1}", 400,
		    "illegal_partition");
	door_expect(d, "POST", "/w/_partition/foo/_find", "{\"selector\":{},\"partition\":\"bar\"}",
		    400, "Conflicting values for `partition`: bar in the body");
	door_expect(d, "POST", "/w/_find?partition=foo", "{\"selector\":{},\"partition\":\"bar\"}",
		    400, "Conflicting values");
	door_expect(d, "POST", "/none/_partition/foo/_find", "{\"selector\":{}}", 400,
		    "database is not partitioned");
	door_expect(d, "POST", "/none/_partition/foo/_explain", "{\"selector\":{}}", 400,
		    "database is not partitioned");
	door_expect(d, "GET", "/none/_partition/foo/_index", NULL, 400,
		    "database is not partitioned");
	door_expect(d, "POST", "/none/_find", "{\"selector\":{},\"partition\":\"foo\"}", 400,
		    "`partition` parameter is not supported on this db");
	door_expect(d, "GET", "/w/_partition/foo/_find", NULL, 405, "method_not_allowed");
	door_expect(d, "POST", "/gone/_partition/foo/_find", "{\"selector\":{}}", 404, "not_found");
}

/* Names of partitions that are alike for as long as a key of an entry has room. */
static void
long_names_of_partitions_are_told_apart(void **state)
{
	static char a[3001], b[3001], field[1200];

	(void)state;
	memset(a, 'x', 3000);
	memset(b, 'x', 3000);
	b[2999] = 'y';
	memset(field, 'n', sizeof(field) - 1);
	create_partitioned("l");
	index_on("l", "n", "");
	door_expect(d, "PUT", format("/l/%s:1", a), "{\"n\":1}", 201, "ok");
	door_expect(d, "PUT", format("/l/%s:2", b), "{\"n\":2}", 201, "ok");
	door_expect(d, "POST", format("/l/_partition/%s/_find", b),
		    "{\"selector\":{\"n\":{\"$gt\":0}},\"fields\":[\"n\"],\"sort\":[\"n\"]}", 200,
		    "{\"docs\":[\r\n{\"n\":2}\r\n]");
}

/* ---- Random queries ---- */

enum {
	RANDOM_DOCS = 120,
	RANDOM_PARTITIONS = 5,
	RANDOM_QUERIES = 150,
	RANDOM_VALUES = 12,
};

/* A document as this test knows it. */
struct known {
	bool there;
	int partition, n, m;
};

static struct known docs[RANDOM_DOCS];
static struct rand_seq randoms;

static int
pick(int limit)
{
	return (int)rand_seq_below(&randoms, (uint64_t)limit);
}

static void
random_write(const char *db, int i)
{
	struct known *k = &docs[i];
	const char *path = format("/%s/p%d:%03d", db, k->partition, i);
	const char *rev = "";

	if (k->there) {
		door_expect(d, "GET", path, NULL, 200, "_rev");
		rev = format("?rev=%s", door_member(d, "_rev"));
	}
	if (k->there && pick(4) == 0) {
		door_expect(d, "DELETE", format("%s%s", path, rev), NULL, 200, "ok");
		k->there = false;
		return;
	}
	k->there = true;
	k->n = pick(RANDOM_VALUES);
	k->m = pick(RANDOM_VALUES);
	door_expect(d, "PUT", format("%s%s", path, rev),
		    format("{\"n\":%d,\"u\":%d,\"m\":%d}", k->n, k->n, k->m), 201, "ok");
}

/*
 * A query of a partition, or of all (-1), by a range and a least m: of n, which is indexed, sorted
 * by it, or of u, which has the same values, by id.
 */
static void
random_query(const char *db)
{
	int partition = pick(RANDOM_PARTITIONS + 1) - 1;
	int low = pick(RANDOM_VALUES), high = low + pick(RANDOM_VALUES),
	    least = pick(RANDOM_VALUES);
	bool sorted = pick(2), descending = sorted && pick(2);
	static char expected[8192];
	const char *path = partition < 0 ? format("/%s/_find", db)
					 : format("/%s/_partition/p%d/_find", db, partition);
	size_t len = 0;

	expected[0] = '\0';
	for (int value = sorted ? 0 : -1; value < (sorted ? RANDOM_VALUES : 0); value++) {
		for (int at = 0; at < RANDOM_PARTITIONS * RANDOM_DOCS; at++) {
			int forward = sorted && descending
					      ? RANDOM_PARTITIONS * RANDOM_DOCS - 1 - at
					      : at;
			const struct known *k = &docs[forward % RANDOM_DOCS];
			int n = descending ? RANDOM_VALUES - 1 - value : value;

			if (!k->there || k->partition != forward / RANDOM_DOCS || k->n < low ||
			    k->n > high || k->m < least || (sorted && k->n != n) ||
			    (partition >= 0 && k->partition != partition))
				continue;
			len += (size_t)snprintf(expected + len, sizeof(expected) - len,
						"%sp%d:%03d", len ? "," : "", k->partition,
						forward % RANDOM_DOCS);
		}
	}
	expect_ids(path,
		   format("{\"selector\":{\"%c\":{\"$gte\":%d,\"$lte\":%d},\"m\":{\"$gte\":%d}},"
			  "\"limit\":1000%s}",
			  sorted ? 'n' : 'u', low, high, least,
			  !sorted      ? ""
			  : descending ? ",\"sort\":[{\"n\":\"desc\"}]"
				       : ",\"sort\":[\"n\"]"),
		   expected);
}

static void
random_queries_find_what_a_naive_filter_finds(void **state)
{
	(void)state;
	randoms.state = test_seed();
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)randoms.state);
	create_partitioned("r");
	memset(docs, 0, sizeof(docs));
	for (int i = 0; i < RANDOM_DOCS; i++) {
		docs[i].partition = pick(RANDOM_PARTITIONS);
		if (i < RANDOM_DOCS / 2)
			random_write("r", i);
	}
	index_on("r", "n", "");
	index_on("r", "n", "false");
	for (int i = 0; i < RANDOM_QUERIES; i++) {
		random_write("r", pick(RANDOM_DOCS));
		random_query("r");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_query_of_a_partition_sees_nothing_else, check_store),
		cmocka_unit_test_teardown(a_partitioned_index_serves_queries_of_partitions_alone,
					  check_store),
		cmocka_unit_test_teardown(a_global_index_serves_queries_of_all_partitions_alone,
					  check_store),
		cmocka_unit_test_teardown(explain_shows_the_partition, check_store),
		cmocka_unit_test_teardown(what_is_wrong_with_a_partition_is_told, check_store),
		cmocka_unit_test_teardown(long_names_of_partitions_are_told_apart, check_store),
		cmocka_unit_test_teardown(random_queries_find_what_a_naive_filter_finds,
					  check_store),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

/* Checkpoints: what two ends remember, and where they agree. */
#include "common.h"

#include "replicator/checkpoint.h"

static struct arena *arena;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(1 << 20);
	return arena ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static struct checkpoint_found
compare(const char *source, const char *target)
{
	struct checkpoint_found found;

	assert_int_equal(checkpoint_compare(source ? str_from_cstr(source) : (struct str){ 0 },
					    target ? str_from_cstr(target) : (struct str){ 0 },
					    arena, &found),
			 STATUS_OK);
	return found;
}

#define ENTRY(session, seq) "{\"session_id\":\"" session "\",\"recorded_seq\":" seq "}"

static void
ends_without_checkpoints_begin_at_the_beginning(void **state)
{
	struct checkpoint_found found = compare(NULL, NULL);

	(void)state;
	assert_str(found.seq, "0");
	assert_int_equal(found.history_count, 0);
	assert_str(compare("{}", "{}").seq, "0");
	assert_str(compare("{\"session_id\":\"a\",\"source_last_seq\":7}", NULL).seq, "0");
}

/* Of the newest entry behind which both ends agree; what is no count says nothing. */
static void
figures_are_those_of_the_newest_common_entry(void **state)
{
	const char *log = "{\"session_id\":\"a\",\"source_last_seq\":7,\"history\":["
			  "{\"session_id\":\"a\",\"recorded_seq\":7,\"docs_written\":12,"
			  "\"missing_checked\":27,\"docs_read\":-1,\"bulk_get_docs\":\"9\"},"
			  "{\"session_id\":\"b\",\"recorded_seq\":3,\"docs_written\":5}]}";
	struct checkpoint_found found = compare(log, log);

	(void)state;
	assert_int_equal(found.counts.docs_written, 12);
	assert_int_equal(found.counts.revisions_checked, 27);
	assert_int_equal(found.counts.docs_read, 0);
	assert_int_equal(found.counts.missing_found, 0);
	assert_int_equal(compare(NULL, log).counts.docs_written, 0);
}

static void
one_session_is_gone_on_from(void **state)
{
	const char *log = "{\"session_id\":\"a\",\"source_last_seq\":\"7-x\",\"history\":[" ENTRY(
		"a", "\"7-x\"") "]}";
	struct checkpoint_found found = compare(log, log);

	(void)state;
	assert_str(found.seq, "\"7-x\"");
	assert_int_equal(found.history_count, 1);
}

static void
the_newest_session_that_both_remember_counts(void **state)
{
	const char *newer = "{\"session_id\":\"c\",\"source_last_seq\":9,\"history\":[" ENTRY(
		"c", "9") "," ENTRY("b", "5") "," ENTRY("a", "2") "]}";
	const char *older = "{\"session_id\":\"b\",\"source_last_seq\":5,\"history\":[" ENTRY(
		"b", "5") "," ENTRY("a", "2") "]}";
	struct checkpoint_found found = compare(newer, older);

	(void)state;
	assert_str(found.seq, "5");
	assert_int_equal(found.history_count, 1);
	found = compare(older, newer);
	assert_str(found.seq, "5");
	assert_int_equal(found.history_count, 1);
}

static void
strangers_have_nothing_in_common(void **state)
{
	const char *a = "{\"session_id\":\"a\",\"source_last_seq\":9,\"history\":[" ENTRY("a",
											  "9") "]}";
	const char *b = "{\"session_id\":\"b\",\"source_last_seq\":5,\"history\":[" ENTRY("b",
											  "5") "]}";

	(void)state;
	assert_str(compare(a, b).seq, "0");
}

static void
what_is_no_checkpoint_is_none(void **state)
{
	const char *log = "{\"session_id\":\"a\",\"source_last_seq\":9,\"history\":[]}";

	(void)state;
	assert_str(compare("[]", log).seq, "0");
	assert_str(compare("{\"history\":[1,{}]}", "{\"history\":[{},2]}").seq, "0");
	assert_str(compare("{", log).seq, "0");
}

static void
a_checkpoint_has_couchdbs_members_and_fifty_sessions(void **state)
{
	struct checkpoint_session session = { .id = "s", .started = "then", .start_seq = STR("0") };
	const struct checkpoint_counts counts = { .docs_read = 3 };
	struct checkpoint_found before = { .seq = STR("0") };
	struct buf out = BUF_INIT(1 << 20);
	struct str many[100];
	size_t sessions = 0;

	(void)state;
	for (size_t i = 0; i < 100; i++)
		many[i] = STR("{\"old\":1}");
	before.history = many;
	before.history_count = 100;
	checkpoint_write(&session, STR("\"9-x\""), 1500, &counts, &before, &out);
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	assert_non_null(strstr(out.ptr, "\"session_id\":\"s\",\"source_last_seq\":\"9-x\","
					"\"replication_id_version\":4"));
	assert_non_null(strstr(out.ptr, "\"docs_read\":3"));
	assert_non_null(strstr(out.ptr, "\"end_time\":\"Thu, 01 Jan 1970 00:00:01 GMT\""));
	for (const char *at = out.ptr; (at = strstr(at, "{\"old\":1}")); at++)
		sessions++;
	assert_int_equal(sessions, CHECKPOINT_HISTORY - 1);
	buf_release(&out);
}

static void
dates_are_written_as_http_and_couchdb_have_them(void **state)
{
	char date[CHECKPOINT_DATE_BYTES];

	(void)state;
	checkpoint_http_date(784111777000, date);
	assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
	checkpoint_iso_date(784111777000, date);
	assert_string_equal(date, "1994-11-06T08:49:37Z");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_without_checkpoints_begin_at_the_beginning),
		cmocka_unit_test(figures_are_those_of_the_newest_common_entry),
		cmocka_unit_test(one_session_is_gone_on_from),
		cmocka_unit_test(the_newest_session_that_both_remember_counts),
		cmocka_unit_test(strangers_have_nothing_in_common),
		cmocka_unit_test(what_is_no_checkpoint_is_none),
		cmocka_unit_test(a_checkpoint_has_couchdbs_members_and_fifty_sessions),
		cmocka_unit_test(dates_are_written_as_http_and_couchdb_have_them),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}

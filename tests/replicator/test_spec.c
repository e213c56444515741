/* Replications as they are asked for: what is read, what is refused, and what they are called. */
#include "common.h"

#include "replicator/spec.h"

static const struct repl_defaults defaults = {
	.self = "http://127.0.0.1:5984/",
	.workers = 4,
	.batch = 500,
	.connections = 20,
	.timeout_ms = 30000,
	.retries = 5,
	.use_checkpoints = true,
	.use_bulk_get = true,
	.checkpoint_ms = 30000,
};

static struct repl_spec *
read(const char *text)
{
	struct repl_spec *spec = NULL;
	struct err err = { 0 };

	if (repl_spec_new(str_from_cstr(text), STR("bob"), (struct str){ 0 }, &defaults, &spec,
			  &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	return spec;
}

static void
assert_refused(const char *text, enum status status, const char *reason)
{
	struct repl_spec *spec = NULL;
	struct err err = { 0 };

	assert_int_equal(repl_spec_new(str_from_cstr(text), STR(""), (struct str){ 0 }, &defaults,
				       &spec, &err),
			 status);
	assert_string_equal(err.text, reason);
}

#define ENDS "\"source\":\"http://u:p@h:5984/a\",\"target\":\"b\""

static void
ends_are_urls_with_credentials_or_names(void **state)
{
	struct repl_spec *s = read("{\"source\":\"http://bob:s%40cret@h:1234/x/db\","
				   "\"target\":\"other/db\"}");

	(void)state;
	assert_str(s->source.url, "http://h:1234/x/db/");
	assert_str(s->source.name, "http://h:1234/x/db/");
	assert_string_equal(s->source.user, "bob");
	assert_string_equal(s->source.password, "s@cret");
	assert_true(s->target.local);
	assert_str(s->target.url, "other/db");
	assert_str(s->target.name, "http://127.0.0.1:5984/other%2Fdb/");
	repl_spec_free(s);
	s = read("{\"source\":{\"url\":\"https://u:p@h/db/\",\"headers\":{\"X-A\":\"b\"},"
		 "\"auth\":{\"basic\":{\"username\":\"n\",\"password\":\"w\"}}},\"target\":\"b\"}");
	assert_str(s->source.url, "https://h/db/");
	assert_string_equal(s->source.user, "n");
	assert_string_equal(s->source.password, "w");
	assert_int_equal(s->source.headers_count, 1);
	assert_str(s->source.headers[0].value, "b");
	repl_spec_free(s);
}

static void
options_are_read_and_kept_within_bounds(void **state)
{
	struct repl_spec *s = read("{" ENDS ",\"continuous\":true,\"create_target\":true,"
				   "\"create_target_params\":{\"q\":2,\"partitioned\":false},"
				   "\"worker_processes\":1000,\"worker_batch_size\":\"7\","
				   "\"doc_ids\":[\"b\",\"a\",\"b\"],\"since_seq\":\"9-x\","
				   "\"use_checkpoints\":false,\"unknown\":1}");

	(void)state;
	assert_true(s->continuous && s->create_target && s->by_ids);
	assert_str(s->create_params, "q=2&partitioned=false");
	assert_int_equal(s->options.workers, SPEC_WORKERS_MAX);
	assert_int_equal(s->options.batch, 7);
	assert_str(s->ids, "[\"a\",\"b\"]");
	assert_str(s->since, "\"9-x\"");
	assert_false(s->options.use_checkpoints);
	assert_int_equal(s->options.retries, 5);
	repl_spec_free(s);
}

static void
escapes_in_ids_are_undone(void **state)
{
	struct repl_spec *s = read("{" ENDS ",\"doc_ids\":[\"_design%2Fd\",\"_design/d\","
				   "\"a+b\",\"100%\",\"%zz\",\"%ff\",\"%C3%A4\"]}");

	(void)state;
	assert_str(s->ids, "[\"%ff\",\"%zz\",\"100%\",\"_design/d\",\"a+b\",\"\xc3\xa4\"]");
	repl_spec_free(s);
}

static void
what_makes_no_sense_is_refused_in_couchdbs_words(void **state)
{
	(void)state;
	assert_refused("{}", STATUS_INVALID, "Missing replicator database");
	assert_refused("[]", STATUS_INVALID, "Request body must be a JSON object");
	assert_refused("{\"source\":\"ftp://h/a\",\"target\":\"b\"}", STATUS_INVALID,
		       "source has an invalid url");
	assert_refused("{\"source\":\"a\",\"target\":{\"url\":5}}", STATUS_INVALID,
		       "target has an invalid url");
	assert_refused("{" ENDS ",\"continuous\":1}", STATUS_INVALID,
		       "parameter `continuous` must be a boolean");
	assert_refused("{" ENDS ",\"doc_ids\":[],\"selector\":{}}", STATUS_INVALID,
		       "`doc_ids`,`filter`,`selector` are mutually exclusive");
	assert_refused("{" ENDS ",\"worker_processes\":-1}", STATUS_INVALID,
		       "parameter `worker_processes` must be an integer");
	assert_refused("{\"source\":{\"url\":\"http://h/a\",\"headers\":{\"X\":\"a\\r\\nY: b\"}},"
		       "\"target\":\"b\"}",
		       STATUS_INVALID, "the value of a header must be a line");
}

static void
assert_same_id(const char *a, const char *b, bool same)
{
	struct repl_spec *sa = read(a);
	struct repl_spec *sb = read(b);
	char ia[SPEC_ID_BYTES + 1], ib[SPEC_ID_BYTES + 1];
	char fa[SPEC_FULL_ID_BYTES], fb[SPEC_FULL_ID_BYTES];

	repl_spec_id(sa, STR("store"), ia, fa);
	repl_spec_id(sb, STR("store"), ib, fb);
	if ((strcmp(ia, ib) == 0) != same)
		fail_msg("%s and %s: %s and %s", a, b, ia, ib);
	repl_spec_free(sa);
	repl_spec_free(sb);
}

static void
an_id_is_of_the_work_and_not_of_how_it_is_done(void **state)
{
	static const char base[] = "{" ENDS "}";

	(void)state;
	assert_same_id(base, base, true);
	assert_same_id(base, "{\"source\":\"http://u:other@h/a\",\"target\":\"b\"}", true);
	assert_same_id(base, "{" ENDS ",\"continuous\":true,\"worker_batch_size\":3}", true);
	assert_same_id("{" ENDS ",\"doc_ids\":[\"a\",\"b\"]}",
		       "{" ENDS ",\"doc_ids\":[\"b\",\"a\"]}", true);
	assert_same_id(base, "{\"source\":\"http://v:p@h/a\",\"target\":\"b\"}", false);
	assert_same_id(base, "{\"source\":\"http://u:p@h:81/a\",\"target\":\"b\"}", false);
	assert_same_id(base, "{\"source\":\"http://u:p@h/a\",\"target\":\"c\"}", false);
	assert_same_id(base, "{" ENDS ",\"selector\":{}}", false);
	assert_same_id(base, "{" ENDS ",\"winning_revs_only\":true}", false);
	assert_same_id(base, "{" ENDS ",\"since_seq\":1}", false);
}

static void
an_id_is_told_with_its_options(void **state)
{
	struct repl_spec *s = read("{" ENDS ",\"continuous\":true,\"create_target\":true}");
	char id[SPEC_ID_BYTES + 1];
	char other[SPEC_ID_BYTES + 1];
	char full[SPEC_FULL_ID_BYTES];

	(void)state;
	repl_spec_id(s, STR("store"), id, full);
	assert_int_equal(strlen(id), SPEC_ID_BYTES);
	assert_int_equal(strncmp(full, id, SPEC_ID_BYTES), 0);
	assert_string_equal(full + SPEC_ID_BYTES, "+continuous+create_target");
	repl_spec_id(s, STR("elsewhere"), other, full);
	assert_string_not_equal(id, other);
	repl_spec_free(s);
}

static void
cancelling_by_id_needs_no_ends(void **state)
{
	struct repl_spec *s = read("{\"cancel\":true,\"_local_id\":\"ab continuous\"}");

	(void)state;
	assert_true(s->cancel);
	assert_str(s->given_id, "ab+continuous");
	repl_spec_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_urls_with_credentials_or_names),
		cmocka_unit_test(options_are_read_and_kept_within_bounds),
		cmocka_unit_test(escapes_in_ids_are_undone),
		cmocka_unit_test(what_makes_no_sense_is_refused_in_couchdbs_words),
		cmocka_unit_test(an_id_is_of_the_work_and_not_of_how_it_is_done),
		cmocka_unit_test(an_id_is_told_with_its_options),
		cmocka_unit_test(cancelling_by_id_needs_no_ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

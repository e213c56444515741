/*
 * What collections store: a record that is parsed is the one that was put, whatever its bytes are;
 * what is longer, shorter, or beyond a limit is corrupt.
 */
#include "again.h"
#include "bson/bson.h"
#include "model/plain/plain_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	ARENA_BYTES = 1 << 20,
};

static struct arena *arena;
static struct err err;

/* {"a": "text"} */
#define DOCUMENT                                                                                   \
	STR("\x11\0\0\0\x02"                                                                       \
	    "a\0\x05\0\0\0text\0\0")

static const uint8_t text_id[PLAIN_TEXT_ID_BYTES] = { 1, 0, 2 };

/* ---- Records: parsed, and put again ---- */

static enum status
root_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct plain_root root;

	TRY(plain_root_parse(value, with, &root, e));
	plain_root_put(&root, ret);
	return STATUS_OK;
}

static enum status
leaf_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct plain_leaf leaf;

	(void)e;
	TRY(plain_leaf_parse(value, with, &leaf));
	return plain_leaf_put(&leaf, ret);
}

static enum status
text_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct plain_text text;

	TRY(plain_text_parse(value, with, &text, e));
	plain_text_put(&text, ret);
	return STATUS_OK;
}

static enum status
event_again(struct str value, struct arena *with, struct buf *ret, struct err *e)
{
	struct plain_event event = { 0 };

	TRY(plain_event_parse(value, with, &event, e));
	plain_event_put(&event, ret);
	return STATUS_OK;
}

/* ---- Samples ---- */

static void
put_whole(struct buf *ret)
{
	const struct plain_root root = { .form = PLAIN_FORM_WHOLE, .document = DOCUMENT };

	plain_root_put(&root, ret);
}

static void
put_root_of_text(struct buf *ret)
{
	struct plain_root root = { .form = PLAIN_FORM_TEXT, .length = 70000 };

	memcpy(root.text, text_id, sizeof(root.text));
	plain_root_put(&root, ret);
}

static void
put_root_of_leaves(struct buf *ret)
{
	const struct plain_root root = {
		.form = PLAIN_FORM_LEAVES,
		.length = 300,
		.next = 5,
		.id = { .type = BSON_STRING, .as_text = STR("i\0d") },
	};

	plain_root_put(&root, ret);
}

static void
put_text(struct buf *ret)
{
	const struct plain_text text = { .length = 70000, .owner = STR("ow\0ner") };

	plain_text_put(&text, ret);
}

static void
put_staged_text(struct buf *ret)
{
	const struct plain_text text = { .length = 70000, .staged_ms = 1000 };

	plain_text_put(&text, ret);
}

static struct plain_event
event_sample(void)
{
	return (struct plain_event){
		.ms = 1000,
		.kind = PLAIN_EVENT_UPDATE,
		.id = { .type = BSON_INT32, .as_n = 7 },
		.detail = DOCUMENT,
	};
}

static void
put_event(struct buf *ret)
{
	const struct plain_event event = event_sample();

	plain_event_put(&event, ret);
}

static void
put_event_without_detail(struct buf *ret)
{
	struct plain_event event = event_sample();

	event.detail_is_cut = true;
	event.detail = STR("");
	plain_event_put(&event, ret);
}

static void
put_event_of_session(struct buf *ret)
{
	static const char session[PLAIN_SESSION_BYTES] = { 3, 0, 4 };
	struct plain_event event = event_sample();

	event.session = str_of(session, sizeof(session));
	event.number = -300;
	plain_event_put(&event, ret);
}

static const struct again_record records[] = {
	{ "whole document", put_whole, root_again, PLAIN_FORM_WHOLE, 0 },
	{ "document in a text", put_root_of_text, root_again, PLAIN_FORM_TEXT, 0 },
	{ "document in leaves", put_root_of_leaves, root_again, PLAIN_FORM_LEAVES, 0 },
	{ "text", put_text, text_again, 1, 1 }, /* at the NUL */
	{ "text that was written ahead", put_staged_text, text_again, 1, 0 },
	{ "event", put_event, event_again, 2, 0 },
	{ "event without a detail", put_event_without_detail, event_again, 2, 0 },
	{ "event of a session", put_event_of_session, event_again, 3, 0 },
};

/* ---- Tests ---- */

static void
a_record_that_is_read_is_the_one_that_was_put(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(records); i++)
		again_check(&records[i], arena);
}

/* A leaf has no format of its own. */
static void
a_leaf_that_is_read_is_the_one_that_was_put(void **state)
{
	static const struct {
		const char *name;
		struct plain_leaf leaf;
		size_t ends;
	} cases[] = {
		{ "string", { 3, { .type = BSON_STRING, .as_text = STR("te\0xt") }, 0 }, 1 },
		{ "document", { 3, { .type = BSON_DOCUMENT }, 9 }, 0 },
		{ "array", { 300, { .type = BSON_ARRAY }, 0 }, 0 },
		{ "null", { 3, { .type = BSON_NULL }, 0 }, 0 },
		{ "number", { 3, { .type = BSON_INT64, .as_n = -5 }, 0 }, 0 },
		{ "regex",
		  { 3, { .type = BSON_REGEX, .as_text = STR("a"), .as_more = STR("i") }, 0 },
		  0 },
		{ "pointer",
		  { 3,
		    { .type = BSON_DB_POINTER,
		      .as_text = STR("collection"),
		      .as_more = STR("123456789012") },
		    0 },
		  0 },
		{ "code",
		  { 3, { .type = BSON_CODE_SCOPE, .as_text = STR("f()"), .as_more = DOCUMENT }, 0 },
		  0 },
		{ "identifier",
		  { 3, { .type = BSON_OBJECT_ID, .as_text = STR("123456789012") }, 0 },
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct again_record record = { .name = cases[i].name, .again = leaf_again };
		AUTO(buf_release) struct buf value = BUF_INIT(AGAIN_BYTES);
		size_t ends = 0;

		assert_int_equal(plain_leaf_put(&cases[i].leaf, &value), STATUS_OK);
		if (!again_is_read(&record, arena, buf_str(&value)))
			fail_msg("%s is not read", cases[i].name);
		for (size_t len = 0; len < value.len; len++)
			ends += again_is_read(&record, arena, str_of(value.ptr, len));
		if (ends != cases[i].ends)
			fail_msg("%s: %zu lengths are read", cases[i].name, ends);
		tuple_put_u64(&value, 7);
		if (again_is_read(&record, arena, buf_str(&value)))
			fail_msg("%s is read with more behind it", cases[i].name);
	}
}

/* Events are of a kind, and their sessions have one length. */
static void
events_have_their_limits(void **state)
{
	static const char session[PLAIN_SESSION_BYTES + 1] = { 3, 0, 4 };
	static const struct {
		unsigned kind;
		size_t session_bytes;
		enum status status;
	} cases[] = {
		{ 0, 0, STATUS_CORRUPT },
		{ 1, 0, STATUS_OK },
		{ PLAIN_EVENT_DELETE, 0, STATUS_OK },
		{ PLAIN_EVENT_DELETE + 1, 0, STATUS_CORRUPT },
		{ 1, PLAIN_SESSION_BYTES - 1, STATUS_CORRUPT },
		{ 1, PLAIN_SESSION_BYTES, STATUS_OK },
		{ 1, PLAIN_SESSION_BYTES + 1, STATUS_CORRUPT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(AGAIN_BYTES);
		struct plain_event event = event_sample();

		event.kind = (enum plain_event_kind)cases[i].kind;
		if (cases[i].session_bytes)
			event.session = str_of(session, cases[i].session_bytes);
		plain_event_put(&event, &value);
		assert_int_equal(buf_status(&value), STATUS_OK);
		assert_int_equal(plain_event_parse(buf_str(&value), arena, &event, &err),
				 cases[i].status);
	}
}

/* The first format, which no length of a detail is in, is read on. */
static void
an_event_of_the_first_format_is_read(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(AGAIN_BYTES);
	struct plain_event event;

	(void)state;
	tuple_put_u64(&value, 1);
	tuple_put_u64(&value, 1000);
	tuple_put_u64(&value, PLAIN_EVENT_DELETE);
	tuple_put_bool(&value, false);
	tuple_put_bytes(&value, STR("\x10\x07\0\0\0"));
	assert_int_equal(plain_event_parse(buf_str(&value), arena, &event, &err), STATUS_OK);
	assert_int_equal(bson_integer(&event.id), 7);
	assert_int_equal(event.detail.len, 0);
	buf_append_str(&value, DOCUMENT);
	assert_int_equal(plain_event_parse(buf_str(&value), arena, &event, &err), STATUS_OK);
	assert_true(str_eq(event.detail, DOCUMENT));
	value.len--;
	assert_int_equal(plain_event_parse(buf_str(&value), arena, &event, &err), STATUS_CORRUPT);
}

/* A text was written ahead, or its owner is known. */
static void
a_text_was_written_ahead_or_has_an_owner(void **state)
{
	(void)state;
	for (uint64_t staged = 0; staged < 2; staged++) {
		for (size_t owned = 0; owned < 2; owned++) {
			AUTO(buf_release) struct buf value = BUF_INIT(AGAIN_BYTES);
			struct plain_text text = { .staged_ms = staged,
						   .length = 1,
						   .owner = str_of("o", owned) };

			plain_text_put(&text, &value);
			assert_int_equal(plain_text_parse(buf_str(&value), arena, &text, &err),
					 staged != owned ? STATUS_OK : STATUS_CORRUPT);
		}
	}
}

static void
a_sequence_is_an_incarnation_and_a_stamp(void **state)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1, 0, 2 };

	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		AUTO(buf_release) struct buf tail = BUF_INIT(100);
		struct catalog_seq seq;

		tuple_put_u64(&tail, UINT8_MAX + more);
		tuple_put_versionstamp(&tail, stamp);
		assert_int_equal(plain_seq_parse(buf_str(&tail), &seq),
				 more ? STATUS_CORRUPT : STATUS_OK);
		if (more)
			continue;
		assert_int_equal(seq.bytes[0], UINT8_MAX);
		assert_memory_equal(seq.bytes + 1, stamp, sizeof(stamp));
		for (size_t len = 0; len < tail.len; len++)
			assert_int_equal(plain_seq_parse(str_of(tail.ptr, len), &seq),
					 STATUS_CORRUPT);
		tuple_put_u64(&tail, 7);
		assert_int_equal(plain_seq_parse(buf_str(&tail), &seq), STATUS_CORRUPT);
	}
}

static void
a_reference_to_an_image_is_read_whole(void **state)
{
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	struct plain_image_ref ref;

	(void)state;
	tuple_put_u64(&value, 1);
	tuple_put_uuid(&value, text_id);
	tuple_put_u64(&value, 70000);
	assert_int_equal(plain_image_ref_parse(buf_str(&value), &ref, &err), STATUS_OK);
	assert_memory_equal(ref.text, text_id, sizeof(text_id));
	assert_int_equal(ref.length, 70000);
	for (size_t len = 0; len < value.len; len++)
		assert_int_equal(plain_image_ref_parse(str_of(value.ptr, len), &ref, &err),
				 STATUS_CORRUPT);
	tuple_put_u64(&value, 7);
	assert_int_equal(plain_image_ref_parse(buf_str(&value), &ref, &err), STATUS_CORRUPT);
	value.ptr[1] = AGAIN_BEYOND;
	assert_int_equal(plain_image_ref_parse(buf_str(&value), &ref, &err), STATUS_NEWER);
	buf_clear(&value);
	tuple_put_u64(&value, 1);
	tuple_put_str(&value, STR("0123456789abcdef"));
	tuple_put_u64(&value, 70000);
	assert_int_equal(plain_image_ref_parse(buf_str(&value), &ref, &err), STATUS_CORRUPT);
}

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(ARENA_BYTES);
	return arena ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_that_is_read_is_the_one_that_was_put),
		TEST(a_leaf_that_is_read_is_the_one_that_was_put),
		TEST(events_have_their_limits),
		TEST(an_event_of_the_first_format_is_read),
		TEST(a_text_was_written_ahead_or_has_an_owner),
		TEST(a_sequence_is_an_incarnation_and_a_stamp),
		TEST(a_reference_to_an_image_is_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

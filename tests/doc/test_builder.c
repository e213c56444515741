#include "doc/builder.h"

#include <stdio.h>
#include <stdlib.h>

#include "doc/reader.h"
#include "doc_test.h"
#include "random_scalar.h"

enum {
	ROUNDS = 3000,
	DEPTH = 4,
	NAMES = 6,
};

static void
start(struct doc_builder *b, struct arena *arena, size_t packed_bytes, struct err *err)
{
	const struct doc_builder_options options = {
		.arena = arena,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = packed_bytes,
		.err = err,
	};

	doc_builder_start(b, &options);
}

/* ---- What a reader says, built again ---- */

struct rebuilder {
	struct doc_builder *builder;
	struct buf pieces; /* of the long text that is being read */
	size_t events;
};

static enum status
rebuild_begin(void *to, enum doc_container container)
{
	struct rebuilder *r = to;

	r->events++;
	return doc_builder_begin(r->builder, container);
}

static enum status
rebuild_key(void *to, struct str name)
{
	struct rebuilder *r = to;

	return doc_builder_key(r->builder, name, DOC_NO_TEXT, 0);
}

static enum status
rebuild_scalar(void *to, const struct doc_scalar *s)
{
	struct rebuilder *r = to;

	r->events++;
	return doc_builder_scalar(r->builder, s);
}

static enum status
rebuild_piece(void *to, const struct doc_scalar *piece, bool first)
{
	struct rebuilder *r = to;

	assert_int_equal(first, r->pieces.len == 0);
	buf_append_str(&r->pieces, piece->text);
	return STATUS_OK;
}

static enum status
rebuild_pieces_end(void *to, enum doc_kind kind)
{
	struct rebuilder *r = to;
	const struct doc_scalar s = { .kind = kind, .text = buf_str(&r->pieces) };
	enum status status = doc_builder_scalar(r->builder, &s);

	buf_clear(&r->pieces);
	return status;
}

static enum status
rebuild_end(void *to, enum doc_container container)
{
	struct rebuilder *r = to;
	size_t count;

	(void)container;
	return doc_builder_end(r->builder, 0, &count);
}

static const struct doc_events rebuild_events = {
	.begin = rebuild_begin,
	.key = rebuild_key,
	.scalar = rebuild_scalar,
	.piece = rebuild_piece,
	.pieces_end = rebuild_pieces_end,
	.end = rebuild_end,
};

static void
assert_reads_back(const struct doc_built *built, enum doc_reading reading, struct arena *arena)
{
	struct rebuilder r = { .builder = doc_builder_new(), .pieces = BUF_INIT(TEST_MAX_BYTES) };
	struct doc_built again;
	struct doc_reader reader;

	assert_non_null(r.builder);
	start(r.builder, arena, 0, NULL);
	doc_reader_init(&reader, reading, &rebuild_events, &r);
	for (size_t i = 0; i < built->count; i++)
		assert_int_equal(
			doc_reader_leaf(&reader, built->leaves[i].key, built->leaves[i].value),
			STATUS_OK);
	assert_int_equal(doc_reader_end(&reader), STATUS_OK);
	doc_reader_release(&reader);
	assert_int_equal(doc_builder_finish(r.builder, &again), STATUS_OK);
	assert_int_equal(again.count, built->count);
	for (size_t i = 0; i < built->count; i++) {
		assert_true(str_eq(again.leaves[i].key, built->leaves[i].key));
		assert_true(str_eq(again.leaves[i].value, built->leaves[i].value));
	}
	doc_builder_free(r.builder);
	buf_release(&r.pieces);
}

/* ---- Random trees ---- */

static void
build_random(struct doc_builder *b, struct rand_seq *r, struct arena *arena, int depth)
{
	static const char *const names[NAMES] = { "", "a", "b", "ab", "a\x01", "\xc3\xa9" };
	enum doc_container container = rand_seq_below(r, 2) ? DOC_OBJECT : DOC_ARRAY;
	struct doc_scalar s;
	size_t count;

	if (depth == 0 || rand_seq_below(r, 3) == 0) {
		do
			s = random_scalar_any(r, arena);
		while (s.kind == DOC_EMPTY_ARRAY || s.kind == DOC_EMPTY_OBJECT);
		assert_int_equal(doc_builder_scalar(b, &s), STATUS_OK);
		return;
	}
	assert_int_equal(doc_builder_begin(b, container), STATUS_OK);
	for (uint64_t n = rand_seq_below(r, 5); n; n--) {
		if (container == DOC_OBJECT)
			assert_int_equal(
				doc_builder_key(b, str_from_cstr(names[rand_seq_below(r, NAMES)]),
						DOC_NO_TEXT, 0),
				STATUS_OK);
		build_random(b, r, arena, depth - 1);
	}
	assert_int_equal(doc_builder_end(b, 0, &count), STATUS_OK);
}

static void
random_values_of_all_kinds_are_read_back(void **state)
{
	struct rand_seq r = { 1 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_builder *b = doc_builder_new();
	struct doc_built built;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		start(b, arena, 0, NULL);
		build_random(b, &r, arena, DEPTH);
		assert_int_equal(doc_builder_finish(b, &built), STATUS_OK);
		for (size_t j = 1; j < built.count; j++)
			assert_true(str_cmp(built.leaves[j - 1].key, built.leaves[j].key) < 0);
		/* An empty object has no leaf, and no leaf is no value. */
		assert_reads_back(&built, built.count ? DOC_READ_VALUE : DOC_READ_DOCUMENT, arena);
		arena_clear(arena);
	}
	doc_builder_free(b);
	arena_free(arena);
}

static void
long_texts_and_bytes_lie_in_pieces(void **state)
{
	static const enum doc_kind kinds[] = { DOC_TEXT, DOC_BYTES };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_builder *b = doc_builder_new();
	size_t len = 350000;
	char *bytes = arena_bytes(arena, len);
	struct doc_built built;
	size_t count;

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		const struct doc_scalar s = { .kind = kinds[kind], .text = { bytes, len } };

		memset(bytes, kind ? 0 : 'x', len);
		start(b, arena, 0, NULL);
		assert_int_equal(doc_builder_begin(b, DOC_OBJECT), STATUS_OK);
		assert_int_equal(doc_builder_key(b, STR("long"), DOC_NO_TEXT, 0), STATUS_OK);
		assert_int_equal(doc_builder_scalar(b, &s), STATUS_OK);
		assert_int_equal(doc_builder_key(b, STR("m"), DOC_NO_TEXT, 0), STATUS_OK);
		assert_int_equal(doc_builder_text(b, STR("short"), DOC_NO_TEXT), STATUS_OK);
		assert_int_equal(doc_builder_end(b, 0, &count), STATUS_OK);
		assert_int_equal(count, 2);
		assert_int_equal(doc_builder_finish(b, &built), STATUS_OK);
		assert_int_equal(built.count, kind ? 9 : 5);
		assert_reads_back(&built, DOC_READ_DOCUMENT, arena);
	}
	doc_builder_free(b);
	arena_free(arena);
}

static void
values_that_cannot_be_split_are_refused_with_their_path(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_builder *b = doc_builder_new();
	char *bytes = arena_bytes(arena, KV_LIMIT_VALUE_BYTES);
	const struct doc_scalar s = { .kind = DOC_CODE, .text = { bytes, KV_LIMIT_VALUE_BYTES } };
	struct err err = { 0 };

	(void)state;
	memset(bytes, 'x', KV_LIMIT_VALUE_BYTES);
	start(b, arena, 0, &err);
	assert_int_equal(doc_builder_begin(b, DOC_ARRAY), STATUS_OK);
	assert_int_equal(doc_builder_scalar(b, &s), STATUS_DOC_TOO_LARGE);
	assert_string_equal(err.text, "/0 is a value longer than 100000 bytes");
	doc_builder_free(b);
	arena_free(arena);
}

static void
marks_of_members_that_a_later_one_replaces_are_told(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_builder *b = doc_builder_new();
	struct doc_built built;
	struct doc_span *dropped;
	size_t count;

	(void)state;
	start(b, arena, 0, NULL);
	assert_int_equal(doc_builder_begin(b, DOC_OBJECT), STATUS_OK);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(
			doc_builder_key(b, i == 1 ? STR("b") : STR("a"), DOC_NO_TEXT, 10 * i),
			STATUS_OK);
		assert_int_equal(doc_builder_text(b, STR("x"), DOC_NO_TEXT), STATUS_OK);
	}
	assert_int_equal(doc_builder_end(b, 30, &count), STATUS_OK);
	assert_int_equal(count, 2);
	dropped = doc_builder_dropped(b, &count);
	assert_int_equal(count, 1);
	assert_int_equal(dropped[0].begin, 0);
	assert_int_equal(dropped[0].end, 10);
	assert_int_equal(doc_builder_finish(b, &built), STATUS_OK);
	assert_int_equal(built.count, 2);
	doc_builder_free(b);
	arena_free(arena);
}

/* Without texts that a syntax has written already. */
static void
packed_text_is_made_of_events_alone(void **state)
{
	const struct doc_scalar scalars[] = {
		{ .kind = DOC_NULL },
		{ .kind = DOC_BOOL, .truth = true },
		{ .kind = DOC_INT64, .n = -7 },
		{ .kind = DOC_DOUBLE, .d = 0.5 },
		{ .kind = DOC_TEXT, .text = { "a\"\n", 3 } },
		{ .kind = DOC_NUMBER, .d = 1.1, .text = { "1.10", 4 } },
	};
	const struct doc_scalar other = { .kind = DOC_MIN_KEY };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_builder *b = doc_builder_new();
	struct doc_built built;
	size_t count;

	(void)state;
	start(b, arena, 1000, NULL);
	assert_int_equal(doc_builder_begin(b, DOC_OBJECT), STATUS_OK);
	assert_int_equal(doc_builder_key(b, STR("b"), DOC_NO_TEXT, 0), STATUS_OK);
	assert_int_equal(doc_builder_begin(b, DOC_ARRAY), STATUS_OK);
	for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
		assert_int_equal(doc_builder_scalar(b, &scalars[i]), STATUS_OK);
	assert_int_equal(doc_builder_end(b, 0, &count), STATUS_OK);
	assert_int_equal(doc_builder_key(b, STR("a"), DOC_NO_TEXT, 0), STATUS_OK);
	assert_int_equal(doc_builder_text(b, STR("x"), DOC_NO_TEXT), STATUS_OK);
	assert_int_equal(doc_builder_end(b, 0, &count), STATUS_OK);
	assert_int_equal(doc_builder_finish(b, &built), STATUS_OK);
	assert_true(str_eq(built.packed,
			   STR("{\"a\":\"x\",\"b\":[null,true,-7,0.5,\"a\\\"\\n\",1.10]}")));
	start(b, arena, 1000, NULL);
	assert_int_equal(doc_builder_begin(b, DOC_ARRAY), STATUS_OK);
	assert_int_equal(doc_builder_scalar(b, &other), STATUS_INVALID);
	doc_builder_free(b);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_values_of_all_kinds_are_read_back),
		cmocka_unit_test(long_texts_and_bytes_lie_in_pieces),
		cmocka_unit_test(values_that_cannot_be_split_are_refused_with_their_path),
		cmocka_unit_test(marks_of_members_that_a_later_one_replaces_are_told),
		cmocka_unit_test(packed_text_is_made_of_events_alone),
	};

	return cmocka_run_group_tests_name("builder", tests, NULL, NULL);
}

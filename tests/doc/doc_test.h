/* Helpers of the tests of doc/. */
#ifndef FROND_TESTS_DOC_DOC_TEST_H
#define FROND_TESTS_DOC_DOC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "doc/doc.h"

enum {
	TEST_MAX_BYTES = 1 << 27,
};

static const struct doc_limits test_limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES,
					       .path_bytes = KV_LIMIT_KEY_BYTES };

static inline struct doc
explode_or_fail(struct str text, struct arena *arena)
{
	struct err err = { 0 };
	struct doc doc;

	if (doc_explode_text(text, arena, &test_limits, 0, &doc, &err) != STATUS_OK)
		fail_msg("%.*s: %s", (int)(text.len < 200 ? text.len : 200), text.ptr, err.text);
	return doc;
}

static inline void
assemble_or_fail(const struct doc *doc, struct buf *out)
{
	struct doc_assembler a;

	buf_append_byte(out, '{');
	doc_assemble_init_object(&a, out, false);
	for (size_t i = 0; i < doc->count; i++)
		assert_int_equal(doc_assemble_leaf(&a, doc->leaves[i].key, doc->leaves[i].value),
				 STATUS_OK);
	assert_int_equal(doc_assemble_end(&a), STATUS_OK);
	doc_assemble_release(&a);
}

/* The document `text`, taken apart and put together again, is `expected`. */
static inline void
assert_comes_back_as(struct str text, struct str expected)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc doc;

	assert_non_null(arena);
	doc = explode_or_fail(text, arena);
	for (size_t i = 1; i < doc.count; i++)
		assert_true(str_cmp(doc.leaves[i - 1].key, doc.leaves[i].key) < 0);
	assemble_or_fail(&doc, &out);
	if (!str_eq(buf_str(&out), expected))
		fail_msg("%.*s came back as %.*s", STR_ARG(text), STR_ARG(buf_str(&out)));
	buf_release(&out);
	arena_free(arena);
}

#endif

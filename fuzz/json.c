/*
 * Any bytes as JSON: a document that can be taken apart comes back as JSON that has the same
 * leaves, and the leaves are in order.
 */
#include <stdlib.h>

#include "doc/doc.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
assemble(const struct doc *doc, struct buf *out)
{
	struct doc_assembler a;

	buf_append_byte(out, '{');
	doc_assemble_init_object(&a, out, false);
	for (size_t i = 0; i < doc->count; i++)
		if (doc_assemble_leaf(&a, doc->leaves[i].key, doc->leaves[i].value) != STATUS_OK)
			abort();
	if (doc_assemble_end(&a) != STATUS_OK)
		abort();
	doc_assemble_release(&a);
}

static void
check(const struct doc *doc, struct arena *arena, const struct doc_limits *limits)
{
	struct buf out = BUF_INIT(MAX_BYTES);
	struct doc again;

	assemble(doc, &out);
	if (doc_explode_text(buf_str(&out), arena, limits, 0, &again, NULL) != STATUS_OK ||
	    again.count != doc->count)
		abort();
	for (size_t i = 0; i < doc->count; i++) {
		if (!str_eq(doc->leaves[i].key, again.leaves[i].key) ||
		    !str_eq(doc->leaves[i].value, again.leaves[i].value))
			abort();
		if (i && str_cmp(doc->leaves[i - 1].key, doc->leaves[i].key) >= 0)
			abort();
	}
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct doc_limits limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct arena *arena = arena_new(MAX_BYTES);
	struct err err = { 0 };
	struct doc doc;
	enum status status;

	if (!arena)
		return 0;
	status = doc_explode_text(str_of(data, size), arena, &limits, 0, &doc, &err);
	if (status == STATUS_OK)
		check(&doc, arena, &limits);
	else if (!err.text[0])
		abort();
	arena_free(arena);
	return 0;
}

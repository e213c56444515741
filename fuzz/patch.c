/*
 * A patch and a document, both any bytes, the kind in the first byte and a newline between them:
 * whatever comes out is a document with its leaves in order, and a merge patch that has been
 * applied changes nothing when it is applied again.
 */
#include <stdlib.h>

#include "doc/patch.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct doc_limits limits = { .doc_bytes = DOC_LIMIT_DEFAULT_BYTES,
					  .path_bytes = KV_LIMIT_KEY_BYTES };

static bool
same_leaves(const struct doc *a, const struct doc *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!str_eq(a->leaves[i].key, b->leaves[i].key) ||
		    !str_eq(a->leaves[i].value, b->leaves[i].value))
			return false;
	return true;
}

static void
check(const struct doc_patch *patch, const struct doc *doc, struct arena *arena)
{
	struct err err = { 0 };
	struct doc once;
	struct doc twice;
	enum status status = doc_patch_apply(patch, doc->leaves, doc->count, &limits, 0, arena,
					     &once, &err);

	if (status != STATUS_OK) {
		if (!err.text[0] || status == STATUS_CORRUPT)
			abort();
		return;
	}
	for (size_t i = 1; i < once.count; i++)
		if (str_cmp(once.leaves[i - 1].key, once.leaves[i].key) >= 0)
			abort();
	if (patch->kind != DOC_PATCH_MERGE)
		return;
	status = doc_patch_apply(patch, once.leaves, once.count, &limits, 0, arena, &twice, &err);
	if (status != STATUS_LIMIT && (status != STATUS_OK || !same_leaves(&once, &twice)))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *newline = size ? memchr(text + 1, '\n', size - 1) : NULL;
	struct arena *arena = arena_new(MAX_BYTES);
	struct doc_patch patch;
	struct err err = { 0 };
	struct doc doc;

	if (arena && newline) {
		struct str before = str_of(text + 1, (size_t)(newline - text) - 1);
		struct str behind = str_of(newline + 1, size - before.len - 2);

		if (doc_explode_text(behind, arena, &limits, 0, &doc, NULL) == STATUS_OK) {
			if (doc_patch_read(text[0] & 1 ? DOC_PATCH_JSON : DOC_PATCH_MERGE, before,
					   arena, &patch, &err) == STATUS_OK)
				check(&patch, &doc, arena);
			else if (!err.text[0])
				abort();
		}
	}
	arena_free(arena);
	return 0;
}

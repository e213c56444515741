/*
 * Any bytes as a root value and as a packed document: what is in its form in every byte is what its
 * own leaves are packed to, and looking for a path never reads past the end. Any bytes as JSON:
 * both forms of a document agree.
 */
#include <stdlib.h>

#include "doc/packed.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
find_some(struct str packed, struct arena *arena)
{
	static const char *const paths[] = { "", "/", "/a", "/a/0", "/0/a", "/a/b/1" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct doc_pointer pointer;
		struct str value;

		if (doc_pointer_parse(str_from_cstr(paths[i]), arena, &pointer, NULL) ==
			    STATUS_OK &&
		    doc_packed_find(packed, &pointer, &value) == STATUS_OK)
			must(value.ptr >= packed.ptr &&
			     value.ptr + value.len <= packed.ptr + packed.len);
	}
}

static void
check_packed(struct str packed, struct arena *arena)
{
	struct kv_pair *leaves;
	struct str again;
	size_t count;

	find_some(packed, arena);
	if (doc_packed_check(packed, arena) != STATUS_OK)
		return;
	must(doc_unpack(packed, arena, &leaves, &count) == STATUS_OK);
	must(doc_pack(leaves, count, packed.len, arena, &again) == STATUS_OK);
	must(str_eq(again, packed));
}

static void
check_both(struct str text, struct arena *arena)
{
	struct doc_limits limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES,
				     .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc leaves, packed;
	struct str text_of_leaves;
	enum status status = doc_explode_text(text, arena, &limits, 0, &leaves, NULL);

	limits.packed_bytes = MAX_BYTES;
	must(doc_explode_text(text, arena, &limits, 0, &packed, NULL) == status);
	if (status != STATUS_OK)
		return;
	must(str_eq(leaves.term, packed.term) && leaves.path_bytes == packed.path_bytes);
	must(doc_pack(leaves.leaves, leaves.count, MAX_BYTES, arena, &text_of_leaves) == STATUS_OK);
	must(str_eq(text_of_leaves, packed.packed));
	check_packed(packed.packed, arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct str packed;

	if (!arena)
		return 0;
	if (doc_root_read(str_of(data, size), &packed, NULL) == STATUS_OK && packed.ptr)
		check_packed(packed, arena);
	check_packed(str_of(data, size), arena);
	check_both(str_of(data, size), arena);
	arena_free(arena);
	return 0;
}

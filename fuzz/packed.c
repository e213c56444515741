/*
 * Any bytes as a root value and as a packed document: what is in its form in every byte is what its
 * own leaves are packed to, and looking for a path never reads past the end. Any bytes as JSON:
 * both forms of a document agree.
 */
#include <stdlib.h>

#include "doc/packed.h"
#include "doc/packed_find.h"
#include "doc/root.h"

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

/* A byte at a time. In a text that is packed the same value is found. */
static void
find_in_pieces(struct str text, const struct doc_pointer *pointer, bool is_packed, struct str value)
{
	struct buf out = BUF_INIT(MAX_BYTES);
	enum status status = STATUS_OK;
	struct doc_finder f;

	doc_finder_init(&f, pointer, &out);
	for (size_t i = 0; i < text.len && status == STATUS_OK && !f.done; i++)
		status = doc_finder_feed(&f, str_of(text.ptr + i, 1));
	if (is_packed)
		must(f.done == (value.ptr != NULL) && (!f.done || str_eq(buf_str(&out), value)));
	doc_finder_release(&f);
	buf_release(&out);
}

static void
find_some(struct str packed, bool is_packed, struct arena *arena)
{
	static const char *const paths[] = { "", "/", "/a", "/a/0", "/0/a", "/a/b/1" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct doc_pointer pointer;
		struct str value = { NULL, 0 };

		if (doc_pointer_parse(str_from_cstr(paths[i]), arena, &pointer, NULL) != STATUS_OK)
			continue;
		if (doc_packed_find(packed, &pointer, &value) == STATUS_OK)
			must(value.ptr >= packed.ptr &&
			     value.ptr + value.len <= packed.ptr + packed.len);
		find_in_pieces(packed, &pointer, is_packed, value);
	}
}

static void
check_packed(struct str packed, struct arena *arena)
{
	struct kv_pair *leaves;
	struct str again;
	size_t count;

	bool is_packed = doc_packed_check(packed, arena) == STATUS_OK;

	find_some(packed, is_packed, arena);
	if (!is_packed)
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
	struct doc_root root;

	if (!arena)
		return 0;
	if (doc_root_read(str_of(data, size), &root, NULL) == STATUS_OK && root.packed.ptr)
		check_packed(root.packed, arena);
	check_packed(str_of(data, size), arena);
	check_both(str_of(data, size), arena);
	arena_free(arena);
	return 0;
}

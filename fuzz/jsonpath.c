/*
 * Any line as a JSONPath, and what follows it as the JSON text of the tree that it goes through. A
 * path that names one member or element at each step leads to one node at most, a text that is
 * written is read as the same tree, and copies are equal.
 */
#include <stdlib.h>
#include <string.h>

#include "jtree/jsonpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 64 * 1024 * 1024,
	TEXT_BYTES = 1024 * 1024,
};

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
write_tree(const struct jtree_node *node, struct buf *out)
{
	must(jtree_write(node, &jtree_dense, 0, out) == STATUS_OK);
	must(buf_status(out) == STATUS_OK);
}

static void
check_text(struct jtree_node *root, struct arena *arena)
{
	struct buf text = BUF_INIT(TEXT_BYTES), again = BUF_INIT(TEXT_BYTES);
	struct jtree_node *read, *copy;
	bool equal;

	write_tree(root, &text);
	must(jtree_read(buf_str(&text), arena, &read, NULL) == STATUS_OK);
	write_tree(read, &again);
	must(str_eq(buf_str(&text), buf_str(&again)));
	must(jtree_height(root) <= JTREE_DEPTH);
	must(jtree_copy(arena, root, &copy) == STATUS_OK);
	must(jtree_equal(arena, root, copy, &equal) == STATUS_OK && equal);
	buf_release(&text);
	buf_release(&again);
}

static void
check_path(const struct jsonpath *path, struct jtree_node *root, struct arena *arena)
{
	const struct jsonpath *parent = NULL;
	struct jsonpath_matches m, above;
	struct str name;
	bool fits;

	if (jsonpath_find(path, root, NULL, arena, &m, NULL) != STATUS_OK)
		return;
	must(m.count <= 1 || !jsonpath_is_single(path));
	must(!jsonpath_is_root(path) || (m.count == 1 && m.nodes[0] == root));
	for (size_t i = 0; i < m.count; i++)
		must(jtree_depth(m.nodes[i]) <= JTREE_DEPTH);
	must(jsonpath_parent(path, arena, &parent, &name, &fits) == STATUS_OK);
	if (!fits || !jsonpath_is_single(path) || !m.count)
		return;
	must(jsonpath_find(parent, root, NULL, arena, &above, NULL) == STATUS_OK);
	must(above.count == 1 && above.nodes[0] == m.nodes[0]->parent);
	must(!name.ptr || str_eq(name, m.nodes[0]->name));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	struct arena *arena = arena_new(ARENA_BYTES);
	const struct jsonpath *path = NULL;
	struct jtree_node *root;

	must(arena != NULL);
	(void)jsonpath_compile(str_of(data, len), arena, &path, NULL);
	if (end && jtree_read(str_of(end + 1, size - len - 1), arena, &root, NULL) == STATUS_OK) {
		check_text(root, arena);
		if (path)
			check_path(path, root, arena);
	}
	arena_free(arena);
	return 0;
}

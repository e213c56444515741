/* Reading parts of a document in leaves: the values at some paths, as a smaller document. */
#include <assert.h>

#include "model/plain/plain_int.h"

/* A name on the way of one or more paths. */
struct part_node {
	struct str name;
	struct part_node *first, *next;
	bool whole; /* a path ends here */
	bool named; /* a path that has names only goes on from here: an array is read as a whole */
};

struct parts {
	struct plain *p;
	enum kv_read mode;
	struct arena *arena;
	size_t record_bytes;
	struct buf key; /* of the container whose members are read */
	struct bson_builder b;
};

/* A member that is there. */
struct part_found {
	const struct part_node *node;
	struct plain_leaf leaf;
};

/* ---- The paths as a tree ---- */

static struct part_node *
node_member(struct part_node *node, struct str name, struct arena *arena)
{
	struct part_node *member = node->first;

	while (member && !str_eq(member->name, name))
		member = member->next;
	if (member)
		return member;
	member = arena_zalloc(arena, sizeof(*member));
	if (!member)
		return NULL;
	*member = (struct part_node){ .name = name, .next = node->first };
	node->first = member;
	return member;
}

static enum status
tree_add(struct part_node *root, const struct plain_part *part, struct arena *arena)
{
	struct part_node *node = root;
	struct str rest = part->path;
	bool more = true;

	for (size_t depth = 0; more; depth++) {
		more = rest.len && memchr(rest.ptr, '.', rest.len);
		node = node_member(node, str_cut(&rest, '.'), arena);
		if (!node)
			return STATUS_LIMIT;
		node->named = node->named || (more && !part->positions);
		/* Nothing lies deeper than documents can be, so the rest of the path says nothing.
		 */
		more = more && depth < BSON_DEPTH;
	}
	node->whole = true;
	return STATUS_OK;
}

/* ---- Members ---- */

static size_t
node_count(const struct part_node *node)
{
	size_t count = 0;

	for (const struct part_node *n = node->first; n; n = n->next)
		count++;
	return count;
}

/* Makes x->key that of a member. STATUS_NOT_FOUND: no document has one with such a name. */
static enum status
member_key(struct parts *x, struct str name, bool array)
{
	uint32_t position = 0;

	if (!array)
		tuple_put_str(&x->key, name);
	else if (plain_step_is_position(name, &position))
		tuple_put_u64(&x->key, position);
	else
		return STATUS_NOT_FOUND;
	return catalog_key_status(&x->key) == STATUS_KEY_TOO_LARGE ? STATUS_NOT_FOUND
								   : catalog_key_status(&x->key);
}

static enum status
member_read(struct parts *x, struct kv_future *f, struct plain_leaf *ret)
{
	enum status status;
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	status = plain_leaf_parse(value, x->arena, ret);
	kv_future_free(f);
	return status == STATUS_CORRUPT ? plain_fail_corrupt(x->p, buf_str(&x->key), "a leaf")
					: status;
}

/* The members of the container at x->key that are there, in their order: one round trip. */
static enum status
members_find(struct parts *x, const struct part_node *node, bool array, struct part_found *found,
	     size_t *ret_count)
{
	struct kv_future *futures[PLAIN_PARTS_MOST];
	size_t i = 0, count = 0, len = x->key.len;

	for (const struct part_node *n = node->first; n; n = n->next, i++) {
		enum status status = member_key(x, n->name, array);

		assert(i < PLAIN_PARTS_MOST);
		futures[i] = status == STATUS_OK ? kv_get(x->p->tx, buf_str(&x->key), x->mode)
						 : NULL;
		x->key.len = len;
		if (status != STATUS_OK && status != STATUS_NOT_FOUND)
			return status;
	}
	i = 0;
	for (const struct part_node *n = node->first; n; n = n->next, i++) {
		struct part_found one = { .node = n };
		enum status status = STATUS_NOT_FOUND;
		size_t at = count;

		if (futures[i])
			status = member_read(x, futures[i], &one.leaf);
		if (status == STATUS_NOT_FOUND)
			continue;
		TRY(status);
		for (; at && found[at - 1].leaf.ordinal > one.leaf.ordinal; at--)
			found[at] = found[at - 1];
		found[at] = one;
		count++;
	}
	assert(count <= i);
	*ret_count = count;
	return STATUS_OK;
}

/* True if all paths below an array lead to its elements by their positions. */
static bool
node_is_of_elements(const struct part_node *node)
{
	uint32_t position;
	bool elements = !node->named;

	for (const struct part_node *n = node->first; n && elements; n = n->next)
		elements = plain_step_is_position(n->name, &position);
	return elements;
}

/*
 * How many elements an array has as far as it is read: all of them if a path leads behind its end,
 * where writers put new ones.
 */
static uint64_t
array_count(const struct part_node *node, uint64_t all)
{
	uint64_t count = 0;
	uint32_t position = 0;

	for (const struct part_node *n = node->first; n; n = n->next)
		if (plain_step_is_position(n->name, &position) && position >= count)
			count = (uint64_t)position + 1;
	return count < all ? count : all;
}

static void
put_nulls(struct parts *x, uint64_t *at, uint64_t to)
{
	for (; *at < to; ++*at)
		bson_put_null(&x->b, STR(""));
}

static enum status read_members(struct parts *x, const struct part_node *node,
				const struct plain_leaf *container);

/* Puts a member whose key is x->key. */
static enum status
read_member(struct parts *x, const struct part_found *found, struct str name)
{
	const struct part_node *node = found->node;
	const struct bson_value *v = &found->leaf.value;
	struct bson_value whole = *v;

	if (!bson_is_container(v)) {
		bson_put(&x->b, name, v);
		return STATUS_OK;
	}
	if (node->whole || (v->type == BSON_ARRAY && !node_is_of_elements(node))) {
		TRY(plain_read_value(x->p, buf_str(&x->key), x->record_bytes, x->mode, x->arena,
				     &whole));
		bson_put(&x->b, name, &whole);
		return STATUS_OK;
	}
	if (v->type == BSON_ARRAY)
		bson_begin_array(&x->b, name);
	else
		bson_begin_document(&x->b, name);
	TRY(read_members(x, node, &found->leaf));
	bson_end(&x->b);
	return STATUS_OK;
}

/* Calls itself for members, as deep as the document is. */
static enum status
read_members(struct parts *x, const struct part_node *node, const struct plain_leaf *container)
{
	size_t count, len = x->key.len;
	struct part_found *found = arena_alloc(x->arena, (node_count(node) + 1) * sizeof(*found));
	bool array = container->value.type == BSON_ARRAY;
	uint64_t at = 0;

	assert(len >= x->record_bytes);
	if (!found)
		return STATUS_LIMIT;
	TRY(members_find(x, node, array, found, &count));
	for (size_t i = 0; i < count; i++) {
		struct str name = array ? STR("") : found[i].node->name;

		if (array)
			put_nulls(x, &at, found[i].leaf.ordinal);
		TRY(member_key(x, found[i].node->name, array));
		TRY(read_member(x, &found[i], name));
		x->key.len = len;
		at++;
	}
	if (array)
		put_nulls(x, &at, array_count(node, container->next));
	return buf_status(x->b.out);
}

/* ---- The whole ---- */

static enum status
read_parts(struct plain *p, struct str key, const struct plain_root *root,
	   const struct part_node *tree, enum kv_read mode, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(arena));
	const struct plain_leaf document = { .value = BSON_OF_DOCUMENT(BSON_EMPTY) };
	struct parts x = { .p = p,
			   .mode = mode,
			   .arena = arena,
			   .record_bytes = key.len,
			   .key = CATALOG_KEY_INIT };
	enum status status;

	buf_append_str(&x.key, key);
	status = catalog_key_status(&x.key);
	bson_builder_init(&x.b, &out);
	bson_begin(&x.b);
	bson_put(&x.b, STR("_id"), &root->id);
	if (status == STATUS_OK)
		status = read_members(&x, tree, &document);
	bson_end(&x.b);
	buf_release(&x.key);
	TRY(status);
	TRY(buf_status(&out));
	*ret = buf_dup(&out, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
plain_get_parts(struct plain *p, const struct bson_value *id, const struct plain_part *parts,
		size_t count, enum kv_read mode, struct arena *arena, struct str *ret,
		bool *ret_whole)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct part_node tree = { 0 };
	struct plain_root root;

	*ret_whole = plain_scheme_of(p->db) == PLAIN_PACKED || count > PLAIN_PARTS_MOST;
	if (*ret_whole)
		return plain_get(p, id, mode, arena, ret);
	for (size_t i = 0; i < count; i++)
		TRY(tree_add(&tree, &parts[i], arena));
	TRY(plain_key_record(p->db, id, &key, p->err));
	TRY(plain_get_root(p, buf_str(&key), mode, arena, &root));
	*ret_whole = root.form != PLAIN_FORM_LEAVES;
	if (*ret_whole)
		return plain_read_root(p, buf_str(&key), &root, mode, arena, ret);
	return read_parts(p, buf_str(&key), &root, &tree, mode, arena, ret);
}

/*
 * Leaves of documents: their keys and records.
 *
 *     (body, TREE)             → the root
 *     (body, TREE, step, …)    → (format, ordinal, …): a scalar, an object, an array, a long text
 *     (body, TREE, step, …, b"", n) → bytes of a long text
 */
#include <assert.h>
#include <endian.h>
#include <math.h>

#include "base/utf8.h"
#include "catalog/format.h"
#include "doc/scalar.h"
#include "loop/step.h"
#include "model/timed/items/json_int.h"

/* ---- Records ---- */

/* An integer beyond int64_t, as a scalar has it. */
static void
unsigned_put(uint64_t n, struct buf *value)
{
	uint64_t magnitude = htobe64(n);

	doc_scalar_put(value,
		       &(struct doc_scalar){ .kind = DOC_INTEGER,
					     .text = str_of(&magnitude, sizeof(magnitude)) });
}

static void
scalar_put(const struct jtree_node *node, struct buf *value)
{
	struct doc_scalar s = { .kind = DOC_NULL };

	switch (node->kind) {
	case JTREE_UNSIGNED:
		unsigned_put(node->u, value);
		return;
	case JTREE_BOOL:
		s.kind = DOC_BOOL;
		s.truth = node->truth;
		break;
	case JTREE_INT:
		s.kind = DOC_INT64;
		s.n = node->i;
		break;
	case JTREE_DOUBLE:
		s.kind = DOC_DOUBLE;
		s.d = node->d;
		break;
	case JTREE_TEXT:
		s.kind = DOC_TEXT;
		s.text = node->text;
		break;
	case JTREE_NULL:
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		break;
	}
	doc_scalar_put(value, &s);
}

static enum status
scalar_take(const struct doc_scalar *s, struct jtree_node *ret)
{
	uint64_t magnitude;

	*ret = (struct jtree_node){ .kind = JTREE_NULL, .whole = true };
	switch ((int)s->kind) {
	case DOC_NULL:
		return STATUS_OK;
	case DOC_BOOL:
		ret->kind = JTREE_BOOL;
		ret->truth = s->truth;
		return STATUS_OK;
	case DOC_INT64:
		ret->kind = JTREE_INT;
		ret->i = s->n;
		return STATUS_OK;
	case DOC_DOUBLE:
		ret->kind = JTREE_DOUBLE;
		ret->d = s->d;
		return isfinite(s->d) ? STATUS_OK : STATUS_CORRUPT;
	case DOC_TEXT:
		ret->kind = JTREE_TEXT;
		ret->text = s->text;
		return utf8_valid_prefix(s->text) == s->text.len ? STATUS_OK : STATUS_CORRUPT;
	case DOC_INTEGER:
		if (s->negative || s->text.len != sizeof(magnitude))
			return STATUS_CORRUPT;
		memcpy(&magnitude, s->text.ptr, sizeof(magnitude));
		ret->kind = JTREE_UNSIGNED;
		ret->u = be64toh(magnitude);
		return STATUS_OK;
	default:
		return STATUS_CORRUPT;
	}
}

void
timed_json_leaf_put(const struct timed_json_leaf *leaf, struct buf *value)
{
	tuple_put_u64(value, leaf->form);
	tuple_put_u64(value, leaf->ordinal);
	if (leaf->form == TIMED_JSON_SCALAR) {
		scalar_put(&leaf->scalar, value);
		return;
	}
	tuple_put_u64(value, leaf->count);
	if (leaf->form != TIMED_JSON_LONG)
		tuple_put_i64(value, leaf->next);
}

enum status
timed_json_leaf_parse(struct str value, struct buf *scratch, struct timed_json_leaf *ret,
		      struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct timed_json_leaf leaf = { .count = 0 };
	struct doc_scalar s;
	uint64_t form;

	TRY(catalog_format_next(&r, "leaf of a document", TIMED_JSON_ARRAY, &form, err));
	if (form < TIMED_JSON_SCALAR)
		return STATUS_CORRUPT;
	leaf.form = (enum timed_json_form)form;
	TRY(tuple_next_u64(&r, &leaf.ordinal));
	if (leaf.form == TIMED_JSON_SCALAR) {
		TRY(doc_scalar_read(r.rest, scratch, &s));
		TRY(scalar_take(&s, &leaf.scalar));
	} else {
		TRY(tuple_next_u64(&r, &leaf.count));
		if (leaf.form != TIMED_JSON_LONG)
			TRY(tuple_next_i64(&r, &leaf.next));
		if (r.rest.len || leaf.count > JSON_CHILDREN || leaf.next > JSON_PLACES ||
		    leaf.next < -JSON_PLACES ||
		    (leaf.form == TIMED_JSON_LONG &&
		     (!leaf.count || leaf.count > TIMED_LENGTH_BYTES)))
			return STATUS_CORRUPT;
	}
	*ret = leaf;
	return STATUS_OK;
}

/* ---- Keys ---- */

enum status
json_root_key(struct timed_item *item, struct buf *ret)
{
	*ret = timed_arena_buf(item->arena, item->body.len + JSON_STEP_MORE);
	buf_append_str(ret, item->body);
	tuple_put_u64(ret, TIMED_PART_TREE);
	return buf_status(ret);
}

/* Appends the step that leads to the node from its container. */
static void
step_put(const struct jtree_node *node, struct buf *key)
{
	if (node->parent->kind == JTREE_ARRAY)
		tuple_put_i64(key, node->place);
	else
		tuple_put_str(key, node->name);
}

enum status
json_node_key(struct timed_item *item, const struct jtree_node *node, size_t more, struct buf *ret)
{
	const struct jtree_node *way[JTREE_DEPTH + 1];
	size_t depth = 0, bytes = item->body.len + JSON_STEP_MORE + more;

	for (; node->parent; node = node->parent) {
		assert(depth <= JTREE_DEPTH);
		way[depth++] = node;
		bytes += 2 * node->name.len + JSON_STEP_MORE;
	}
	*ret = timed_arena_buf(item->arena, bytes);
	buf_append_str(ret, item->body);
	tuple_put_u64(ret, TIMED_PART_TREE);
	while (depth)
		step_put(way[--depth], ret);
	return buf_status(ret);
}

enum status
json_below(struct timed_item *item, struct str key, struct str *ret_begin, struct str *ret_end)
{
	TRY(timed_key_with(item->arena, key, 0, ret_begin));
	return timed_key_with(item->arena, key, CATALOG_KEY_LAST, ret_end);
}

/* ---- Nodes ---- */

enum status
json_leaf_node(struct timed_item *item, const struct timed_json_leaf *leaf, struct jtree_node **ret)
{
	struct jtree_node *node;

	TRY(jtree_new(item->arena, JTREE_NULL, &node));
	*ret = node;
	if (leaf->form == TIMED_JSON_SCALAR) {
		*node = leaf->scalar;
		if (node->kind == JTREE_TEXT)
			TRY(arena_copy(item->arena, leaf->scalar.text, &node->text));
	} else if (leaf->form == TIMED_JSON_LONG) {
		node->kind = JTREE_TEXT;
		node->text = str_of(NULL, (size_t)leaf->count);
		node->whole = false;
	} else {
		node->kind = leaf->form == TIMED_JSON_OBJECT ? JTREE_OBJECT : JTREE_ARRAY;
		node->count = leaf->count;
		node->next = leaf->next;
		node->whole = !leaf->count;
	}
	node->ordinal = leaf->ordinal;
	return STATUS_OK;
}

/* Writes the pieces of a long text. */
static enum status
pieces_write(struct timed_item *item, struct str key, struct str text)
{
	for (uint64_t n = 0; text.len; n++) {
		struct arena_mark mark = arena_mark(item->arena);
		struct buf piece = timed_arena_buf(item->arena, key.len + 2 * JSON_STEP_MORE);
		size_t len = text.len < TIMED_JSON_PIECE_BYTES ? text.len : TIMED_JSON_PIECE_BYTES;

		buf_append_str(&piece, key);
		json_put_pieces(&piece);
		tuple_put_u64(&piece, n);
		TRY(buf_status(&piece));
		TRY(timed_data_set(item->t, buf_str(&piece), str_of(text.ptr, len)));
		arena_reset(item->arena, mark);
		text = str_skip(text, len);
	}
	return STATUS_OK;
}

enum status
json_leaf_write(struct timed_item *item, struct str key, const struct jtree_node *node)
{
	struct arena_mark mark = arena_mark(item->arena);
	struct timed_json_leaf leaf = { .form = TIMED_JSON_SCALAR, .ordinal = node->ordinal };
	struct buf value;

	if (jtree_is_container(node)) {
		leaf.form = node->kind == JTREE_OBJECT ? TIMED_JSON_OBJECT : TIMED_JSON_ARRAY;
		leaf.count = node->count;
		leaf.next = node->next;
	} else if (node->kind == JTREE_TEXT && node->text.len > TIMED_JSON_PIECE_BYTES) {
		leaf.form = TIMED_JSON_LONG;
		leaf.count = node->text.len;
		TRY(pieces_write(item, key, node->text));
	} else {
		leaf.scalar = *node;
	}
	value = timed_arena_buf(item->arena,
				JSON_LEAF_MORE +
					(leaf.form == TIMED_JSON_SCALAR && node->kind == JTREE_TEXT
						 ? 2 * node->text.len
						 : 0));
	timed_json_leaf_put(&leaf, &value);
	TRY(buf_status(&value));
	TRY(timed_data_set(item->t, key, buf_str(&value)));
	arena_reset(item->arena, mark);
	return STATUS_OK;
}

/* `key` is that of the node, and comes back as it was. */
static enum status
leaves_write(struct timed_item *item, struct jtree_node *node, struct buf *key)
{
	size_t len = key->len;

	if (jtree_is_container(node))
		node->next = node->kind == JTREE_OBJECT ? (int64_t)node->count : 0;
	TRY(json_leaf_write(item, buf_str(key), node));
	for (uint64_t i = 0; jtree_is_container(node) && i < node->count; i++) {
		struct jtree_node *child = node->children[i];

		child->ordinal = node->kind == JTREE_OBJECT ? i : 0;
		child->place = (int64_t)i;
		step_put(child, key);
		TRY(buf_status(key));
		TRY(leaves_write(item, child, key));
		key->len = len;
	}
	return STATUS_OK;
}

enum status
json_leaves_write(struct timed_item *item, struct jtree_node *node)
{
	struct buf key;

	TRY(json_node_key(item, node, TIMED_JSON_PATH_BYTES + JSON_STEP_MORE, &key));
	return leaves_write(item, node, &key);
}

/* Bytes of a name in a key, where each NUL takes two. */
static size_t
escaped_bytes(struct str name)
{
	size_t bytes = name.len;

	for (size_t i = 0; i < name.len; i++)
		bytes += !name.ptr[i];
	return bytes;
}

enum status
json_leaves_measure(const struct jtree_node *node, size_t way, size_t *ret_bytes, size_t *ret_way)
{
	TRY(step_count(1));
	*ret_way = way > *ret_way ? way : *ret_way;
	*ret_bytes += way + JSON_PAIR_MORE;
	if (node->kind == JTREE_TEXT)
		*ret_bytes += node->text.len +
			      node->text.len / TIMED_JSON_PIECE_BYTES * (way + JSON_PAIR_MORE);
	for (uint64_t i = 0; jtree_is_container(node) && i < node->count; i++) {
		const struct jtree_node *child = node->children[i];
		size_t more = node->kind == JTREE_OBJECT ? escaped_bytes(child->name) : 0;

		TRY(json_leaves_measure(child, way + more + JSON_STEP_MORE, ret_bytes, ret_way));
	}
	return STATUS_OK;
}

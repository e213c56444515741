/* JSON texts to trees. */
#include "jtree/jtree.h"

#include "doc/doc_int.h"
#include "doc/json.h"

struct reading {
	struct json_reader *reader;
	struct arena *arena;
	struct jtree_node *root; /* NULL: nothing was read yet */
	struct jtree_node *open; /* the innermost container that has not ended; NULL: none */
	struct str name;         /* of the next member */
	unsigned depth;
	struct err *err;
};

/* What the reader has in its scratch buffer is copied. */
static enum status
text_keep(const struct reading *r, struct str text, struct str *ret)
{
	*ret = text;
	if (!text.len || (text.ptr >= r->reader->begin && text.ptr < r->reader->end))
		return STATUS_OK;
	return arena_copy(r->arena, text, ret);
}

static void
number_take(const struct json_reader *reader, struct jtree_node *node)
{
	struct json_number n;

	json_number_read(reader->text, reader->is_integer, &n);
	if (n.form == JSON_NUMBER_SHORT && (n.n || reader->text.ptr[0] != '-')) {
		node->kind = JTREE_INT;
		node->i = n.n;
	} else if (n.form == JSON_NUMBER_LONG && str_to_i64(reader->text, &node->i)) {
		node->kind = JTREE_INT;
	} else if (n.form == JSON_NUMBER_LONG && str_to_u64(reader->text, &node->u)) {
		node->kind = JTREE_UNSIGNED;
	} else {
		node->kind = JTREE_DOUBLE;
		node->d = n.form == JSON_NUMBER_DOUBLE ? n.d : doc_number_double(reader->text);
	}
}

/* Puts a node where the text has it. `*ret` is the node: a name that comes again has one. */
static enum status
node_place(struct reading *r, struct jtree_node *node, struct jtree_node **ret)
{
	struct jtree_node *old;

	*ret = node;
	if (!r->open) {
		r->root = node;
		return STATUS_OK;
	}
	if (r->open->kind == JTREE_ARRAY)
		return jtree_insert(r->arena, r->open, r->open->count, &node, 1);
	TRY(jtree_member(r->arena, r->open, r->name, &old));
	if (!old)
		return jtree_add(r->arena, r->open, r->name, node);
	jtree_assign(old, node);
	*ret = old;
	return STATUS_OK;
}

static enum status
container_begin(struct reading *r, enum jtree_kind kind)
{
	struct jtree_node *node;

	if (r->depth++ == JTREE_DEPTH)
		return err_set(r->err, STATUS_JSON_DEPTH, "recursion limit exceeded (JTREE_DEPTH)");
	TRY(jtree_new(r->arena, kind, &node));
	TRY(node_place(r, node, &node));
	r->open = node;
	return STATUS_OK;
}

static enum status
scalar_take(struct reading *r, enum json_token token)
{
	struct jtree_node *node;

	TRY(jtree_new(r->arena, JTREE_NULL, &node));
	if (token == JSON_STRING) {
		node->kind = JTREE_TEXT;
		TRY(text_keep(r, r->reader->text, &node->text));
	} else if (token == JSON_NUMBER) {
		number_take(r->reader, node);
	} else if (token != JSON_NULL) {
		node->kind = JTREE_BOOL;
		node->truth = token == JSON_TRUE;
	}
	return node_place(r, node, &node);
}

static enum status
token_take(struct reading *r, enum json_token token)
{
	switch (token) {
	case JSON_OBJECT_BEGIN:
		return container_begin(r, JTREE_OBJECT);
	case JSON_ARRAY_BEGIN:
		return container_begin(r, JTREE_ARRAY);
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		r->depth--;
		r->open = r->open->parent;
		return STATUS_OK;
	case JSON_KEY:
		return text_keep(r, r->reader->text, &r->name);
	case JSON_STRING:
	case JSON_NUMBER:
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		return scalar_take(r, token);
	case JSON_END:
		break;
	}
	return STATUS_OK;
}

enum status
jtree_read(struct str text, struct arena *arena, struct jtree_node **ret, struct err *err)
{
	AUTO(json_reader_release) struct json_reader reader;
	struct reading r = { .reader = &reader, .arena = arena, .err = err };
	enum json_token token;

	json_reader_init(&reader, text, err);
	do {
		TRY(json_next(&reader, &token));
		TRY(token_take(&r, token));
	} while (token != JSON_END);
	*ret = r.root;
	return STATUS_OK;
}

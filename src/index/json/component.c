#include "index/json/component.h"

#include <assert.h>

#include "doc/doc_int.h"
#include "index/collate.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"

enum {
	/* A component before it is cut: its share, and one scalar more. */
	COMPONENT_BYTES = 4 * INDEX_COMPONENTS_BYTES + DOC_KEY_DIGITS,
	COMPONENT_MOST = 2 * INDEX_COMPONENTS_BYTES +
			 DOC_KEY_DIGITS, /* that a caller may ask for */
};

/* A component while it is made. */
struct component {
	struct buf raw;
	enum doc_key_order order;
	struct index_work *w;
	size_t enough; /* bytes of `raw`, behind which everything is cut */
	bool cut;      /* something of the value is not in `raw` */
};

/* ---- Scalars ---- */

static enum status
component_put_text(struct component *c, struct str text)
{
	/* More than the share is cut off later, which also says that it was. */
	AUTO(buf_release) struct buf key = BUF_INIT(COMPONENT_BYTES);
	struct doc_scalar s = { .kind = DOC_TEXT, .text = text };

	if (c->order == DOC_KEY_COUCH) {
		TRY(collate_sort_key(text, c->enough, c->w, &key));
		s.text = buf_str(&key);
	} else if (text.len > c->enough) {
		s.text = str_of(text.ptr, c->enough);
	}
	return doc_key_put(&c->raw, c->order, &s);
}

/* A number that has no key of its own, because it has too many digits, lies at the end of all. */
static enum status
component_put_scalar(struct component *c, const struct doc_scalar *s)
{
	struct doc_scalar end = { .kind = DOC_DOUBLE };
	enum status status;

	if (s->kind == DOC_TEXT)
		return component_put_text(c, s->text);
	status = doc_key_put(&c->raw, c->order, s);
	if (status != STATUS_LIMIT || buf_status(&c->raw) != STATUS_OK)
		return status;
	c->cut = true;
	end.d = s->text.len && s->text.ptr[0] == '-' ? -__builtin_inf() : __builtin_inf();
	return doc_key_put(&c->raw, c->order, &end);
}

static enum status
component_put_number(struct component *c, struct str text)
{
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct json_number number;
	struct doc_scalar s;
	bool is_integer;

	if (json_number_len(text, &is_integer) != text.len || text.len == 0)
		return STATUS_CORRUPT;
	json_number_read(text, is_integer, &number);
	json_number_scalar(&number, magnitude, &s);
	return component_put_scalar(c, &s);
}

/* A leaf that is no text. */
static enum status
component_put_leaf(struct component *c, const struct leaf_value *v)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct doc_scalar s = { .kind = DOC_EMPTY_OBJECT };

	if (v->count)
		TRY(doc_scalar_read(v->leaves[0].value, &scratch, &s));
	return component_put_scalar(c, &s);
}

/* ---- Containers ---- */

/* In an object: what stands before the value of a member. JSON's orders do not look at its kind. */
static enum status
component_put_member(struct component *c, struct str name)
{
	AUTO(buf_release) struct buf key = BUF_INIT(COMPONENT_BYTES);

	if (c->order == DOC_KEY_COUCH) {
		TRY(collate_sort_key(name, c->enough, c->w, &key));
		name = buf_str(&key);
	} else if (name.len > c->enough) {
		name = str_of(name.ptr, c->enough);
	}
	doc_key_member(&c->raw, c->order, name, DOC_NULL);
	return buf_status(&c->raw);
}

static enum status
component_put_name(struct component *c, const struct tuple_elem *name)
{
	const struct kv_pair leaf = { { "", 0 }, name->encoding };
	const struct leaf_value as_value = { &leaf, 1, 0 };
	struct str text;

	TRY(leaf_text(&as_value, c->w, &text));
	return component_put_member(c, text);
}

/* Any value but a container with children. */
static enum status
component_put_childless(struct component *c, const struct leaf_value *v)
{
	enum leaf_kind kind;
	struct str text;

	TRY(leaf_kind(v, &kind));
	if (kind != LEAF_STRING)
		return component_put_leaf(c, v);
	TRY(leaf_text(v, c->w, &text));
	return component_put_text(c, text);
}

/* A container with children: goes through them with a stack of its own, until it is enough. */
static enum status
component_put_container(struct component *c, const struct leaf_value *v)
{
	struct leaf_iter *open = arena_alloc(c->w->arena, DOC_KEY_DEPTH * sizeof(*open));
	struct leaf_value child = *v;
	struct tuple_elem name;
	size_t depth = 0;
	enum status status;
	enum leaf_kind kind;

	if (!open)
		return STATUS_LIMIT;
	/* The first turn opens `v` itself; so there always is an iterator to go on with. */
	assert(leaf_has_children(v));
	for (;;) {
		TRY(index_count(c->w, 1));
		if (leaf_has_children(&child) && depth < DOC_KEY_DEPTH) {
			TRY(leaf_kind(&child, &kind));
			doc_key_begin(&c->raw, c->order,
				      kind == LEAF_OBJECT ? DOC_OBJECT : DOC_ARRAY);
			open[depth++] = (struct leaf_iter){ .rest = child };
		} else {
			TRY(component_put_childless(c, &child));
		}
		while ((status = leaf_next(&open[depth - 1], &name, &child)) == STATUS_NOT_FOUND) {
			doc_key_end(&c->raw);
			if (--depth == 0)
				return buf_status(&c->raw);
		}
		TRY(status);
		if (name.kind == TUPLE_STRING)
			TRY(component_put_name(c, &name));
		TRY(buf_status(&c->raw));
		if (c->raw.len > c->enough)
			return STATUS_OK; /* whatever follows is cut */
	}
}

/* ---- Values ---- */

static enum status
component_put_value_leaf(struct component *c, const struct leaf_value *v)
{
	return leaf_has_children(v) ? component_put_container(c, v) : component_put_childless(c, v);
}

/* ---- Values as a packed body writes them ---- */

static enum status
component_put_token(struct component *c, enum json_token token, const struct json_reader *r)
{
	const struct doc_scalar null = { .kind = DOC_NULL };
	const struct doc_scalar truth = { .kind = DOC_BOOL, .truth = token == JSON_TRUE };

	switch (token) {
	case JSON_OBJECT_BEGIN:
	case JSON_ARRAY_BEGIN:
		doc_key_begin(&c->raw, c->order,
			      token == JSON_OBJECT_BEGIN ? DOC_OBJECT : DOC_ARRAY);
		return buf_status(&c->raw);
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		doc_key_end(&c->raw);
		return buf_status(&c->raw);
	case JSON_KEY:
		return component_put_member(c, r->text);
	case JSON_STRING:
		return component_put_text(c, r->text);
	case JSON_NUMBER:
		return component_put_number(c, r->text);
	case JSON_TRUE:
	case JSON_FALSE:
		return component_put_scalar(c, &truth);
	case JSON_NULL:
		return component_put_scalar(c, &null);
	case JSON_END:
		break;
	}
	return STATUS_CORRUPT;
}

/* Goes through a text, whose members are in the order of keys, until it is enough. */
static enum status
component_put_tokens(struct component *c, struct str text)
{
	AUTO(json_reader_release) struct json_reader r;
	enum json_token token;

	json_reader_init(&r, text, NULL);
	for (;;) {
		TRY(json_next(&r, &token));
		if (token == JSON_END)
			return STATUS_OK;
		TRY(component_put_token(c, token, &r));
		if (c->raw.len > c->enough)
			return STATUS_OK;
	}
}

/* What is a single text or number, most often, needs no reader of JSON. */
static enum status
component_put_json(struct component *c, struct str text)
{
	char first = text.ptr[0];

	if (first == '"' && text.len >= 2 && !memchr(text.ptr, '\\', text.len))
		return component_put_text(c, str_of(text.ptr + 1, text.len - 2));
	if (first == '-' || (first >= '0' && first <= '9'))
		return component_put_number(c, text);
	return component_put_tokens(c, text);
}

/* ---- In the key ---- */

static enum status
component_make(struct component *c, const struct index_value *value)
{
	const struct doc_scalar null = { .kind = DOC_NULL };

	if (!value->found)
		return component_put_scalar(c, &null);
	if (!value->text.ptr)
		return component_put_value_leaf(c, &value->leaf);
	return value->text.len ? component_put_json(c, value->text) : STATUS_CORRUPT;
}

enum status
index_json_component_put(struct buf *key, const struct index_def *def, size_t column,
			 const struct index_value *value, struct index_work *w, bool *ret_cut)
{
	struct component c = {
		.raw = BUF_INIT(COMPONENT_BYTES),
		.order = def->order,
		.w = w,
		.enough = index_component_share(def) + 1,
	};
	enum status status;

	/* One scalar may follow what is enough before it is noticed: it fits, too. */
	assert(c.enough <= COMPONENT_MOST);
	status = component_make(&c, value);

	if (status == STATUS_OK)
		status = index_component_finish(key, def, column, &c.raw, ret_cut);
	if (status == STATUS_OK && c.cut)
		*ret_cut = true;
	buf_release(&c.raw);
	return status;
}

/* A text that may have white space, and whose objects' members are in any order. */
static enum status
component_put_any(struct component *c, struct str text)
{
	struct leaf_value leaf;

	if (!memchr(text.ptr, '{', text.len))
		return component_put_tokens(c, text);
	TRY(leaf_parse(text, c->w->arena, &leaf, NULL));
	return component_put_value_leaf(c, &leaf);
}

enum status
index_json_component_of_text(struct buf *raw, enum doc_key_order order, struct str text,
			     size_t most, struct index_work *w)
{
	struct component c = {
		.raw = BUF_INIT(COMPONENT_BYTES),
		.order = order,
		.w = w,
		.enough = most < COMPONENT_MOST ? most + 1 : COMPONENT_MOST,
	};
	enum status status = component_put_any(&c, text);

	if (status == STATUS_OK && (c.cut || c.raw.len > most))
		status = STATUS_KEY_TOO_LARGE;
	else if (status == STATUS_OK)
		buf_append_buf(raw, &c.raw);
	buf_release(&c.raw);
	return status == STATUS_OK ? buf_status(raw) : status;
}

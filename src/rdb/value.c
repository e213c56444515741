/* Values, part by part. */
#include "rdb/value_int.h"

#include <math.h>
#include <stdlib.h>

#include "loop/step.h"

enum {
	SCORE_BYTES = 128, /* of a score as text */
	SCORE_NAN = 253,   /* instead of the length of such a text */
	SCORE_INFINITE = 254,
	SCORE_LEAST = 255,
	NODE_PLAIN = 1, /* of a list: one element */
	NODE_PACKED = 2,
	MODULE_TAG_BYTES = 9,
};

/* How the elements of a value lie. */
enum form {
	FORM_NONE,
	FORM_STRING,
	FORM_ELEMENTS, /* each is a string, with what belongs to it */
	FORM_NODE,     /* in one container */
	FORM_NODES,    /* in several */
	FORM_LIST,     /* likewise, or alone where they are long */
	FORM_STREAM,
	FORM_MODULE,
};

static const struct shape {
	enum rdb_type type;
	enum form form;
	enum rdb_pack_kind pack;
	bool score_text;  /* a score is text, else eight bytes */
	bool expires;     /* fields have times */
	bool from_least;  /* which count from the soonest one */
	unsigned version; /* of a stream */
} shapes[] = {
	[0] = { .type = RDB_STRING, .form = FORM_STRING },
	[1] = { .type = RDB_LIST, .form = FORM_ELEMENTS },
	[2] = { .type = RDB_SET, .form = FORM_ELEMENTS },
	[3] = { .type = RDB_ZSET, .form = FORM_ELEMENTS, .score_text = true },
	[4] = { .type = RDB_HASH, .form = FORM_ELEMENTS },
	[5] = { .type = RDB_ZSET, .form = FORM_ELEMENTS },
	[7] = { .type = RDB_MODULE, .form = FORM_MODULE },
	[9] = { .type = RDB_HASH, .form = FORM_NODE, .pack = RDB_ZIPMAP },
	[10] = { .type = RDB_LIST, .form = FORM_NODE, .pack = RDB_ZIPLIST },
	[11] = { .type = RDB_SET, .form = FORM_NODE, .pack = RDB_INTSET },
	[12] = { .type = RDB_ZSET, .form = FORM_NODE, .pack = RDB_ZIPLIST },
	[13] = { .type = RDB_HASH, .form = FORM_NODE, .pack = RDB_ZIPLIST },
	[14] = { .type = RDB_LIST, .form = FORM_NODES, .pack = RDB_ZIPLIST },
	[15] = { .type = RDB_STREAM, .form = FORM_STREAM, .pack = RDB_LISTPACK, .version = 1 },
	[16] = { .type = RDB_HASH, .form = FORM_NODE, .pack = RDB_LISTPACK },
	[17] = { .type = RDB_ZSET, .form = FORM_NODE, .pack = RDB_LISTPACK },
	[18] = { .type = RDB_LIST, .form = FORM_LIST, .pack = RDB_LISTPACK },
	[19] = { .type = RDB_STREAM, .form = FORM_STREAM, .pack = RDB_LISTPACK, .version = 2 },
	[20] = { .type = RDB_SET, .form = FORM_NODE, .pack = RDB_LISTPACK },
	[21] = { .type = RDB_STREAM, .form = FORM_STREAM, .pack = RDB_LISTPACK, .version = 3 },
	[24] = { .type = RDB_HASH, .form = FORM_ELEMENTS, .expires = true, .from_least = true },
	[25] = { .type = RDB_HASH,
		 .form = FORM_NODE,
		 .pack = RDB_LISTPACK,
		 .expires = true,
		 .from_least = true },
};

/* ---- Entries of containers ---- */

static enum status
score_parse(struct rdb_input *in, struct str text, double *ret)
{
	char buf[SCORE_BYTES];
	char *end;

	if (!text.len || text.len >= sizeof(buf))
		return rdb_invalid(in, "a score is no number");
	memcpy(buf, text.ptr, text.len);
	buf[text.len] = '\0';
	*ret = strtod(buf, &end);
	return end == buf + text.len ? STATUS_OK : rdb_invalid(in, "a score is no number");
}

/* What comes behind the name, in the container. */
static enum status
node_rest(struct rdb_value *v, const struct shape *shape, struct rdb_part *ret)
{
	struct str score;
	int64_t expires;

	if (v->type == RDB_HASH)
		TRY(rdb_node_text(v, &ret->value));
	if (v->type == RDB_ZSET) {
		TRY(rdb_node_text(v, &score));
		TRY(score_parse(v->in, score, &ret->score));
	}
	if (shape->expires) {
		TRY(rdb_node_number(v, &expires));
		if (expires < 0)
			return rdb_invalid(v->in, "a field expires before 1970");
		ret->expires_ms = (uint64_t)expires;
	}
	return STATUS_OK;
}

/* Opens the next container of the value. STATUS_NOT_FOUND: there is none. */
static enum status
node_next(struct rdb_value *v, const struct shape *shape, struct rdb_part *ret)
{
	uint64_t kind = NODE_PACKED;
	struct str node;

	if (!v->left)
		return STATUS_NOT_FOUND;
	v->left--;
	TRY(step_count(1));
	arena_reset(v->in->arena, v->base);
	if (shape->form == FORM_LIST)
		TRY(rdb_read_length(v->in, &kind));
	TRY(rdb_read_string(v->in, &node));
	v->mark = arena_mark(v->in->arena);
	if (kind == NODE_PACKED)
		return rdb_node_open(v, shape->pack, node);
	v->pack.kind = RDB_PACK_NONE;
	ret->name = node;
	return kind == NODE_PLAIN ? STATUS_OK : rdb_invalid(v->in, "a node has an unknown form");
}

/* The next element of those that lie in containers. */
static enum status
packed_next(struct rdb_value *v, const struct shape *shape, struct rdb_part *ret)
{
	for (;;) {
		enum status status = STATUS_NOT_FOUND;

		if (v->pack.kind != RDB_PACK_NONE)
			status = rdb_node_next_text(v, &ret->name);
		if (status == STATUS_OK)
			return node_rest(v, shape, ret);
		if (status != STATUS_NOT_FOUND)
			return status;
		TRY(node_next(v, shape, ret));
		if (v->pack.kind == RDB_PACK_NONE)
			return STATUS_OK;
	}
}

/* ---- Elements that are strings ---- */

/* A score that is a text behind its length. */
static enum status
score_text_read(struct rdb_input *in, double *ret)
{
	uint64_t len;
	struct str text;

	TRY(rdb_read_number(in, 1, &len));
	if (len >= SCORE_NAN) {
		*ret = len == SCORE_NAN        ? (double)NAN
		       : len == SCORE_INFINITE ? (double)INFINITY
					       : -(double)INFINITY;
		return STATUS_OK;
	}
	if (!rdb_take(in, (size_t)len, &text))
		return rdb_invalid(in, "it ends too early");
	return score_parse(in, text, ret);
}

static enum status
element_next(struct rdb_value *v, const struct shape *shape, struct rdb_part *ret)
{
	if (!v->left)
		return STATUS_NOT_FOUND;
	v->left--;
	if (shape->expires) {
		TRY(rdb_read_length(v->in, &ret->expires_ms));
		/* 0: not at all; 1: at the soonest of all. */
		if (ret->expires_ms &&
		    __builtin_add_overflow(ret->expires_ms - 1, v->least_ms, &ret->expires_ms))
			return rdb_invalid(v->in, "a field expires too late");
	}
	TRY(rdb_read_string(v->in, &ret->name));
	if (v->type == RDB_HASH)
		return rdb_read_string(v->in, &ret->value);
	if (v->type != RDB_ZSET)
		return STATUS_OK;
	return shape->score_text ? score_text_read(v->in, &ret->score)
				 : rdb_read_double(v->in, &ret->score);
}

/* ---- All of them ---- */

enum status
rdb_value_begin(struct rdb_input *in, unsigned code, struct rdb_value *ret)
{
	const struct shape *shape;
	uint64_t ignored;

	if (code >= sizeof(shapes) / sizeof(*shapes) || shapes[code].form == FORM_NONE)
		return err_set(in->err, STATUS_INVALID, "it has a value of an unknown type, %u",
			       code);
	shape = &shapes[code];
	*ret = (struct rdb_value){ .type = shape->type, .in = in, .code = code, .left = 1 };
	ret->base = ret->mark = arena_mark(in->arena);
	ret->stream.version = shape->version;
	if (shape->form == FORM_MODULE) {
		TRY(rdb_read_length(in, &ignored));
		return rdb_module_skip(in);
	}
	if (shape->from_least)
		TRY(rdb_read_number(in, 8, &ret->least_ms));
	if (shape->form == FORM_NODE || shape->form == FORM_STRING)
		return STATUS_OK;
	return rdb_read_length(in, &ret->left);
}

static enum status
value_next_part(struct rdb_value *v, const struct shape *shape, struct rdb_part *ret)
{
	switch (shape->form) {
	case FORM_STRING:
	case FORM_ELEMENTS:
		return element_next(v, shape, ret);
	case FORM_NODE:
	case FORM_NODES:
	case FORM_LIST:
		return packed_next(v, shape, ret);
	case FORM_STREAM:
		return rdb_stream_next(v, ret);
	case FORM_MODULE:
	case FORM_NONE:
		break;
	}
	return STATUS_NOT_FOUND;
}

enum status
rdb_value_next(struct rdb_value *v, struct rdb_part *ret)
{
	enum status status;

	*ret = (struct rdb_part){ .kind = RDB_PART_ELEMENT };
	TRY(step_count(1));
	arena_reset(v->in->arena, v->mark);
	status = value_next_part(v, &shapes[v->code], ret);
	if (status == STATUS_OK && v->type == RDB_ZSET && isnan(ret->score))
		return rdb_invalid(v->in, "a score is no number");
	return status;
}

enum status
rdb_value_skip(struct rdb_value *v, uint64_t *ret_parts)
{
	struct rdb_part part;
	enum status status;

	*ret_parts = 0;
	while ((status = rdb_value_next(v, &part)) == STATUS_OK)
		++*ret_parts;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

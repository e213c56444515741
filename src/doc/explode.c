#include "doc/doc.h"

#include "base/mem.h"
#include "doc/explode_int.h"

/*
 * One pass over the tokens builds three things side by side: the encoded path of where the reader
 * is, the leaves or the packed text, and the Erlang term. Order and duplicates are settled object
 * by object, as each one ends: explode_order.c.
 *
 * A text that turns out too long for being packed is read again from its beginning, which has cost
 * what reading that much of it costs.
 */

enum {
	LEAVES_FIRST = 64,
	MEMBERS_FIRST = 64,
	SPECIALS_FIRST = 8,
	EMPTY_BYTES = 2, /* {} */
	/* The term of any value takes fewer bytes than 4 times its text. */
	TERM_MAX_BYTES = 4 * DOC_LIMIT_MAX_BYTES,
	VALUE_MAX_BYTES = 2 * DOC_LIMIT_MAX_BYTES,
	ROOM_KEEP_BYTES = 64 * 1024, /* of each buffer, from one document to the next */
};

static inline struct frame *
top(struct exploder *x)
{
	return &x->frames[x->depth - 1];
}

/* ---- Failures ---- */

static enum status
fail_at_path(struct exploder *x, enum status status, const char *what, size_t limit)
{
	struct buf drawn = BUF_INIT(SIZE_MAX);

	doc_path_draw(buf_str(&x->path), &drawn);
	err_set(x->err, status, "%.*s %s %zu bytes", STR_ARG(buf_str(&drawn)), what, limit);
	buf_release(&drawn);
	return status;
}

static enum status
check_buffers(struct exploder *x)
{
	const struct buf *all[] = { &x->path, &x->value, &x->term, &x->text };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (buf_status(all[i]) != STATUS_OK)
			return err_set(x->err, buf_status(all[i]),
				       "no memory for taking the document apart");
	return STATUS_OK;
}

static enum status
check_path(struct exploder *x)
{
	if (x->path.len > x->path_max)
		x->path_max = x->path.len;
	if (x->prefix_bytes + x->path.len <= x->limits->path_bytes)
		return STATUS_OK;
	return fail_at_path(x, STATUS_PATH_TOO_LONG, "makes a key longer than",
			    x->limits->path_bytes);
}

/* Of what has been read, without the special members. */
static size_t
text_bytes(const struct exploder *x)
{
	return (size_t)(x->r->at - x->begin) - x->specials_bytes;
}

static enum status
check_size(struct exploder *x)
{
	if (text_bytes(x) <= x->limits->doc_bytes)
		return STATUS_OK;
	return err_set(x->err, STATUS_DOC_TOO_LARGE, "the document is larger than %zu bytes",
		       x->limits->doc_bytes);
}

/* ---- Leaves ---- */

/* A leaf at the current path with the value in x->value. */
static enum status
add_leaf(struct exploder *x)
{
	struct kv_pair *leaf;
	char *bytes;

	TRY(check_buffers(x));
	TRY(check_path(x));
	if (x->value.len > KV_LIMIT_VALUE_BYTES)
		return fail_at_path(x, STATUS_DOC_TOO_LARGE, "is a number longer than",
				    KV_LIMIT_VALUE_BYTES);
	bytes = arena_bytes(x->arena, x->path.len + x->value.len);
	if (!bytes)
		return err_set(x->err, STATUS_LIMIT,
			       "the document's leaves exceed the memory limit "
			       "of a request");
	leaf = explode_list_add(&x->leaves, sizeof(*leaf), LEAVES_FIRST);
	if (!leaf)
		return explode_fail_memory(x);
	if (x->path.len)
		memcpy(bytes, x->path.ptr, x->path.len);
	memcpy(bytes + x->path.len, x->value.ptr, x->value.len);
	leaf->key = str_of(bytes, x->path.len);
	leaf->value = str_of(bytes + x->path.len, x->value.len);
	return STATUS_OK;
}

/* The longest start of `s`, in whole characters, that fits a piece when it is encoded. */
static size_t
piece_len(struct str s)
{
	size_t encoded = 2; /* type code and end */
	size_t at = 0;
	size_t whole = 0;

	while (at < s.len) {
		encoded += s.ptr[at] ? 1 : 2;
		if (encoded > DOC_STRING_PIECE_BYTES)
			return whole;
		at++;
		if (at == s.len || ((uint8_t)s.ptr[at] & 0xc0) != 0x80)
			whole = at;
	}
	return whole;
}

static enum status
add_split_string(struct exploder *x, struct str s)
{
	size_t path_bytes = x->path.len;

	for (uint64_t i = 0; s.len; i++) {
		size_t n = piece_len(s);

		x->path.len = path_bytes;
		tuple_put_null(&x->path);
		tuple_put_u64(&x->path, i);
		buf_clear(&x->value);
		tuple_put_str(&x->value, str_of(s.ptr, n));
		TRY(add_leaf(x));
		s = str_skip(s, n);
	}
	x->path.len = path_bytes;
	return STATUS_OK;
}

/* Whether the string that the reader is at stands in the text as it is to be written. */
static bool
is_verbatim(const struct exploder *x)
{
	return x->r->text.ptr == x->r->token_begin + 1;
}

/* ---- The packed text ---- */

static enum status
pack_value(struct exploder *x, struct str text)
{
	if (buf_reserve(&x->text, text.len + 1)) {
		memcpy(x->text.ptr + x->text.len, text.ptr, text.len);
		x->text.ptr[x->text.len + text.len] = ',';
		x->text.len += text.len + 1;
	}
	return check_path(x);
}

/* The string that the reader is at, quotes included, and what follows it. */
static void
pack_string(struct exploder *x, char behind)
{
	size_t n = x->r->text.len + 2;

	if (!is_verbatim(x)) {
		json_write_str(&x->text, x->r->text);
		buf_append_byte(&x->text, (uint8_t)behind);
	} else if (buf_reserve(&x->text, n + 1)) {
		memcpy(x->text.ptr + x->text.len, x->r->token_begin, n);
		x->text.ptr[x->text.len + n] = behind;
		x->text.len += n + 1;
	}
}

/* The container ends: its last comma becomes a bracket, and unless it is the whole, one follows. */
static enum status
pack_end(struct exploder *x, const struct frame *f)
{
	if (x->text.len > f->begin)
		x->text.len--;
	buf_append_byte(&x->text, f->object ? '}' : ']');
	if (x->depth)
		buf_append_byte(&x->text, ',');
	return STATUS_OK;
}

/* ---- Values ---- */

static enum status
add_string(struct exploder *x, struct str s)
{
	doc_term_binary(&x->term, s);
	if (x->packing) {
		pack_string(x, ',');
		return check_path(x);
	}
	tuple_put_str(&x->value, s);
	if (x->value.len > DOC_STRING_PIECE_BYTES)
		return add_split_string(x, s);
	return add_leaf(x);
}

static enum status
add_literal(struct exploder *x, enum json_token token)
{
	struct str name = token == JSON_NULL   ? STR("null")
			  : token == JSON_TRUE ? STR("true")
					       : STR("false");

	doc_term_atom(&x->term, name);
	if (x->packing)
		return pack_value(x, name);
	if (token == JSON_NULL)
		tuple_put_null(&x->value);
	else
		tuple_put_bool(&x->value, token == JSON_TRUE);
	return add_leaf(x);
}

static enum status
add_number(struct exploder *x)
{
	doc_number_put(x->packing ? NULL : &x->value, &x->term, x->r->text, x->r->is_integer);
	return x->packing ? pack_value(x, x->r->text) : add_leaf(x);
}

/* ---- Containers ---- */

static void
open_frame(struct exploder *x, bool object)
{
	static const uint8_t tuple_of_one[] = { TERM_SMALL_TUPLE, 1 };
	static const uint8_t list_header[TERM_LIST_HEADER_BYTES] = { TERM_LIST };

	if (object)
		buf_append(&x->term, tuple_of_one, sizeof(tuple_of_one));
	if (x->packing)
		buf_append_byte(&x->text, object ? '{' : '[');
	x->frames[x->depth++] = (struct frame){
		.object = object,
		.all_bytes = true,
		.path_bytes = x->path.len,
		.begin = items_count(x),
		.member = x->members.count,
		.term = x->term.len,
	};
	buf_append(&x->term, list_header, sizeof(list_header));
}

/* Ends the list that starts at `at` in the term, now that its length is known. */
static void
end_term_list(struct exploder *x, size_t at, size_t count)
{
	uint32_t n = htobe32((uint32_t)count);

	if (buf_status(&x->term) != STATUS_OK)
		return;
	if (count)
		memcpy(x->term.ptr + at + 1, &n, sizeof(n));
	else
		x->term.len = at;
	buf_append_byte(&x->term, TERM_NIL);
}

/* As end_term_list(), for a list whose elements are all SMALL_INTEGERs: it becomes a STRING. */
static void
end_term_string(struct exploder *x, size_t at, size_t count)
{
	char *out;

	if (buf_status(&x->term) != STATUS_OK)
		return;
	out = x->term.ptr + at;
	*out++ = TERM_STRING;
	*out++ = (char)(count >> 8);
	*out++ = (char)count;
	for (size_t i = 0; i < count; i++)
		*out++ = x->term.ptr[at + TERM_LIST_HEADER_BYTES + 2 * i + 1];
	x->term.len = (size_t)(out - x->term.ptr);
}

static enum status
close_object(struct exploder *x, const struct frame *f)
{
	size_t count;

	TRY(explode_order(x, f, &count));
	end_term_list(x, f->term, count);
	if (x->packing)
		return pack_end(x, f);
	if (count || !x->depth)
		return STATUS_OK;
	tuple_open(&x->value);
	tuple_open(&x->value);
	tuple_close(&x->value);
	tuple_close(&x->value);
	return add_leaf(x);
}

static enum status
close_array(struct exploder *x, const struct frame *f)
{
	if (f->count && f->all_bytes && f->count <= TERM_STRING_MAX)
		end_term_string(x, f->term, f->count);
	else
		end_term_list(x, f->term, f->count);
	if (x->packing)
		return pack_end(x, f);
	if (f->count)
		return STATUS_OK;
	tuple_open(&x->value);
	tuple_close(&x->value);
	return add_leaf(x);
}

static enum status
close_frame(struct exploder *x)
{
	struct frame *f = &x->frames[--x->depth];

	x->path.len = f->path_bytes;
	buf_clear(&x->value);
	return f->object ? close_object(x, f) : close_array(x, f);
}

/* ---- Tokens ---- */

static enum status
read_special(struct exploder *x)
{
	const char *begin = x->r->token_begin;
	struct doc_special *special = explode_list_add(&x->specials, sizeof(*special),
						       SPECIALS_FIRST);
	enum json_token token;

	if (!special)
		return explode_fail_memory(x);
	special->name = arena_dup(x->arena, x->r->text);
	if (!special->name.ptr)
		return err_set(x->err, STATUS_LIMIT,
			       "a special member's name exceeds the memory "
			       "limit of a request");
	TRY(json_next(x->r, &token));
	TRY(json_skip(x->r, token, &special->text));
	x->specials_bytes += (size_t)(x->r->at - begin) + 1; /* and a comma */
	return STATUS_OK;
}

/* A name that lasts until the object ends; ptr is NULL when there is no room. */
static struct str
lasting_name(struct exploder *x)
{
	return is_verbatim(x) ? x->r->text : arena_dup(x->arena, x->r->text);
}

/* CouchDB has members of its own that are part of the body, for replications and access lists. */
static bool
is_special(struct str name)
{
	static const char *const of_body[] = {
		"_access",
		"_replication_id",
		"_replication_state",
		"_replication_state_reason",
		"_replication_state_time",
		"_replication_stats",
	};

	if (name.len == 0 || name.ptr[0] != '_')
		return false;
	for (size_t i = 0; i < sizeof(of_body) / sizeof(of_body[0]); i++)
		if (str_eq(name, str_from_cstr(of_body[i])))
			return false;
	return true;
}

static enum status
read_key(struct exploder *x)
{
	static const uint8_t pair[] = { TERM_SMALL_TUPLE, 2 };
	struct frame *f = top(x);
	struct member *m;

	m = explode_list_add(&x->members, sizeof(*m), MEMBERS_FIRST);
	if (!m)
		return explode_fail_memory(x);
	x->path.len = f->path_bytes;
	tuple_put_str(&x->path, x->r->text);
	*m = (struct member){
		.name.len = x->path.len - f->path_bytes - 1,
		.begin = items_count(x),
		.term = x->term.len,
	};
	if (x->packing) {
		m->name = lasting_name(x);
		if (!m->name.ptr)
			return explode_fail_memory(x);
		pack_string(x, ':');
	}
	buf_append(&x->term, pair, sizeof(pair));
	doc_term_binary(&x->term, x->r->text);
	/* Also here, so that a path that only grows is stopped before it has a leaf. */
	return check_path(x);
}

/* A value's first token: its path is the current one. */
static enum status
read_value(struct exploder *x, enum json_token token)
{
	struct frame *f = top(x);
	size_t term = x->term.len;

	if (!f->object) {
		x->path.len = f->path_bytes;
		tuple_put_u64(&x->path, f->count++);
	}
	buf_clear(&x->value);
	switch (token) {
	case JSON_OBJECT_BEGIN:
	case JSON_ARRAY_BEGIN:
		f->all_bytes = false;
		open_frame(x, token == JSON_OBJECT_BEGIN);
		return check_path(x);
	case JSON_STRING:
		f->all_bytes = false;
		return add_string(x, x->r->text);
	case JSON_NUMBER:
		TRY(add_number(x));
		if (buf_status(&x->term) == STATUS_OK &&
		    (uint8_t)x->term.ptr[term] != TERM_SMALL_INTEGER)
			f->all_bytes = false;
		return STATUS_OK;
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		f->all_bytes = false;
		return add_literal(x, token);
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
	case JSON_KEY:
	case JSON_END:
		break;
	}
	return err_set(x->err, STATUS_INVALID, "not a value");
}

static enum status
read_token(struct exploder *x)
{
	enum json_token token;

	TRY(json_next(x->r, &token));
	if (token == JSON_KEY && x->depth == 1 && is_special(x->r->text))
		return read_special(x);
	TRY(check_size(x));
	TRY(buf_status(&x->text));
	if (token == JSON_KEY)
		return read_key(x);
	if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
		return close_frame(x);
	return read_value(x, token);
}

/* ---- What has been made ---- */

static void *
copy_list(struct exploder *x, const struct list *l, size_t item_bytes)
{
	void *items = arena_alloc(x->arena, l->count * item_bytes);

	if (items && l->count)
		memcpy(items, l->items, l->count * item_bytes);
	return items;
}

static enum status
fail_room(struct exploder *x)
{
	return err_set(x->err, STATUS_LIMIT, "the document exceeds the memory limit of a request");
}

static enum status
finish(struct exploder *x, struct doc *ret)
{
	struct doc doc = {
		.count = x->leaves.count,
		.specials_count = x->specials.count,
		/* Among nothing but special members there is a comma less. */
		.json_bytes = text_bytes(x) < EMPTY_BYTES ? EMPTY_BYTES : text_bytes(x),
		.path_bytes = x->path_max,
	};

	if (x->packing)
		TRY(buf_status(&x->text));
	TRY(check_buffers(x));
	if (x->packing) {
		doc.packed = arena_dup(x->arena, buf_str(&x->text));
		if (!doc.packed.ptr)
			return fail_room(x);
	}
	doc.leaves = copy_list(x, &x->leaves, sizeof(*doc.leaves));
	doc.specials = copy_list(x, &x->specials, sizeof(*doc.specials));
	doc.term = explode_copy_term(x);
	if (!doc.leaves || !doc.specials || !doc.term.ptr)
		return fail_room(x);
	*ret = doc;
	return STATUS_OK;
}

/* ---- Room ---- */

struct doc_room {
	struct exploder x;
};

struct doc_room *
doc_room_new(void)
{
	struct doc_room *room = mem_alloc(sizeof(*room));

	if (!room)
		return NULL;
	/* The frames are set as they are opened. */
	memset(&room->x, 0, offsetof(struct exploder, frames));
	buf_init(&room->x.path, VALUE_MAX_BYTES);
	buf_init(&room->x.value, VALUE_MAX_BYTES);
	buf_init(&room->x.term, TERM_MAX_BYTES);
	return room;
}

void
doc_room_free(struct doc_room *room)
{
	struct exploder *x;

	if (!room)
		return;
	x = &room->x;
	buf_release(&x->path);
	buf_release(&x->value);
	buf_release(&x->term);
	buf_release(&x->text);
	mem_free(x->leaves.items);
	mem_free(x->members.items);
	mem_free(x->moved.items);
	mem_free(x->holes.items);
	mem_free(x->specials.items);
	mem_free(room);
}

static void
list_clear(struct list *l, size_t item_bytes)
{
	l->count = 0;
	if (l->cap * item_bytes <= ROOM_KEEP_BYTES)
		return;
	mem_free(l->items);
	*l = (struct list){ 0 };
}

static void
trim(struct buf *b, size_t keep_bytes)
{
	if (b->cap > keep_bytes)
		buf_release(b);
	else
		buf_clear(b);
}

/* Forgets the last document, and what only a large one needs. */
static void
room_clear(struct exploder *x, size_t packed_bytes)
{
	trim(&x->path, ROOM_KEEP_BYTES);
	trim(&x->value, ROOM_KEEP_BYTES);
	trim(&x->term, ROOM_KEEP_BYTES);
	/* Its limit decides what is packed, and what is there already is not held against it. */
	trim(&x->text, packed_bytes < ROOM_KEEP_BYTES ? packed_bytes : ROOM_KEEP_BYTES);
	x->text.max_bytes = packed_bytes;
	list_clear(&x->leaves, sizeof(struct kv_pair));
	list_clear(&x->members, sizeof(struct member));
	list_clear(&x->moved, 1);
	list_clear(&x->holes, sizeof(struct hole));
	list_clear(&x->specials, sizeof(struct doc_special));
	x->specials_bytes = 0;
	x->depth = 0;
	x->path_max = 0;
}

/* ---- The whole ---- */

/* Goes on to the end of the object that is `depth` containers deep, checking the text. */
static enum status
skip_rest(struct json_reader *r, unsigned depth)
{
	enum json_token token;

	while (r->depth >= depth)
		TRY(json_next(r, &token));
	return STATUS_OK;
}

static enum status
explode(struct exploder *x, bool object, struct doc *ret)
{
	unsigned depth = x->r->depth;
	enum status status = STATUS_OK;

	open_frame(x, object);
	while (x->depth && status == STATUS_OK)
		status = read_token(x);
	if (status == STATUS_DOC_TOO_LARGE || status == STATUS_PATH_TOO_LONG) {
		enum status rest = skip_rest(x->r, depth);

		return rest == STATUS_OK ? status : rest;
	}
	TRY(status);
	return finish(x, ret);
}

/*
 * The container whose first token has been read; packed if `packed_bytes` are enough for it.
 * STATUS_LIMIT with `*ret_long` where they are not.
 */
static enum status
explode_into(struct doc_room *room, struct json_reader *r, bool object, struct arena *arena,
	     const struct doc_limits *limits, size_t prefix_bytes, size_t packed_bytes,
	     bool *ret_long, struct doc *ret, struct err *err)
{
	struct exploder *x = &room->x;
	enum status status;

	room_clear(x, packed_bytes);
	x->r = r;
	x->arena = arena;
	x->limits = limits;
	x->prefix_bytes = prefix_bytes;
	x->err = err;
	x->packing = packed_bytes > 0;
	x->begin = r->token_begin;
	status = explode(x, object, ret);
	*ret_long = status == STATUS_LIMIT && x->text.failed == STATUS_LIMIT;
	if (r->failed != STATUS_OK && err && r->err && err != r->err)
		*err = *r->err;
	return status;
}

static enum status
explode_object(struct doc_room *room, struct json_reader *r, struct arena *arena,
	       const struct doc_limits *limits, size_t prefix_bytes, struct doc *ret,
	       struct err *err)
{
	struct arena_mark mark = arena_mark(arena);
	const struct json_reader begin = *r;
	bool too_long = false;
	enum status status;

	status = explode_into(room, r, true, arena, limits, prefix_bytes, limits->packed_bytes,
			      &too_long, ret, err);
	if (!too_long)
		return status;
	arena_reset(arena, mark);
	json_rewind(r, &begin);
	status = explode_into(room, r, true, arena, limits, prefix_bytes, 0, &too_long, ret, err);
	ret->unpackable = limits->packed_bytes;
	return status;
}

static enum status
room_take(struct doc_room **ret, struct err *err)
{
	*ret = doc_room_new();
	if (!*ret)
		return err_set(err, STATUS_NOMEM, "no memory for taking the document apart");
	return STATUS_OK;
}

enum status
doc_explode(struct json_reader *r, struct doc_room *room, struct arena *arena,
	    const struct doc_limits *limits, size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct doc_room *own = NULL;
	enum status status;

	if (!room) {
		TRY(room_take(&own, err));
		room = own;
	}
	status = explode_object(room, r, arena, limits, prefix_bytes, ret, err);
	doc_room_free(own);
	return status;
}

/* A text that is one such container and nothing else. */
static enum status
explode_text(struct str text, bool object, struct arena *arena, const struct doc_limits *limits,
	     size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct doc_room *room;
	struct json_reader r;
	enum json_token token;
	enum status status;
	bool too_long;

	TRY(room_take(&room, err));
	json_reader_init(&r, text, err);
	status = json_next(&r, &token);
	if (status == STATUS_OK && token != (object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN))
		status = err_set(err, STATUS_INVALID,
				 object ? "a document must be a JSON object"
					: "this must be a JSON array");
	if (status == STATUS_OK && object)
		status = explode_object(room, &r, arena, limits, prefix_bytes, ret, err);
	else if (status == STATUS_OK)
		status = explode_into(room, &r, false, arena, limits, prefix_bytes, 0, &too_long,
				      ret, err);
	if (status == STATUS_OK)
		status = json_next(&r, &token); /* nothing behind it */
	json_reader_release(&r);
	doc_room_free(room);
	return status;
}

enum status
doc_explode_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		 size_t prefix_bytes, struct doc *ret, struct err *err)
{
	return explode_text(text, true, arena, limits, prefix_bytes, ret, err);
}

enum status
doc_explode_array_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		       struct doc *ret, struct err *err)
{
	return explode_text(text, false, arena, limits, 0, ret, err);
}

const struct doc_special *
doc_find_special(const struct doc *doc, struct str name)
{
	for (size_t i = doc->specials_count; i-- > 0;)
		if (str_eq(doc->specials[i].name, name))
			return &doc->specials[i];
	return NULL;
}

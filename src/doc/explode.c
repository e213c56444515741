#include "doc/doc.h"

#include <stdlib.h>

#include "base/mem.h"
#include "doc/doc_int.h"

/*
 * One pass over the tokens builds three things side by side: the encoded path of where the reader
 * is, the leaves, and the Erlang term.
 *
 * Order and duplicates are settled object by object, as each one ends. Its members' names are
 * sorted, if they did not come in order, and its leaves, which lie behind each other member by
 * member, are moved accordingly. Of equal names all but the last go, with all their leaves; their
 * bytes in the term are remembered as holes and closed at the end.
 */

enum {
	INSERTION_SORT_MEMBERS = 16,
	LEAVES_FIRST = 64,
	MEMBERS_FIRST = 64,
	HOLES_FIRST = 8,
	SPECIALS_FIRST = 8,
	/* The term of any value takes fewer bytes than 4 times its text. */
	TERM_MAX_BYTES = 4 * DOC_LIMIT_MAX_BYTES,
	VALUE_MAX_BYTES = 2 * DOC_LIMIT_MAX_BYTES,
};

/* A growing array of plain things, on the counted heap. */
struct list {
	void *items;
	size_t count;
	size_t cap;
};

struct member {
	uint64_t name_start; /* the first eight bytes of the encoded name, for comparing */
	struct str name;     /* encoded, in the key of the member's first leaf */
	size_t leaf;         /* the first of its leaves */
	size_t leaves;       /* how many; known when the object ends */
	size_t term;         /* where its pair starts in the term... */
	size_t term_end;     /* ...and ends; known when the object ends */
};

/* A container that the reader is inside of. */
struct frame {
	bool object;
	bool all_bytes;    /* an array of nothing but integers from 0 to 255, so far */
	size_t path_bytes; /* of the container's own path */
	size_t leaf;       /* the first of its leaves */
	size_t member;     /* the first of its members in the list of members */
	size_t count;      /* an array's elements */
	size_t term;       /* where its list starts in the term */
};

struct hole {
	size_t begin;
	size_t end;
};

struct exploder {
	struct json_reader *r;
	struct arena *arena;
	const struct doc_limits *limits;
	size_t prefix_bytes;
	struct err *err;

	const char *begin; /* of the document's text */
	size_t specials_bytes;
	size_t depth; /* frames in use */
	struct buf path;
	struct buf value;
	struct buf term;
	struct list leaves;  /* struct kv_pair */
	struct list members; /* struct member, of all open objects */
	struct list moved;   /* struct kv_pair, room for putting leaves in order */
	struct list holes;   /* struct hole */
	struct list specials;
	struct frame frames[JSON_DEPTH_LIMIT + 1];
};

static void *
list_add(struct list *l, size_t item_bytes, size_t first_cap)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : first_cap;
		void *items = mem_realloc(l->items, cap * item_bytes);

		if (!items)
			return NULL;
		l->items = items;
		l->cap = cap;
	}
	return (char *)l->items + l->count++ * item_bytes;
}

static bool
list_reserve(struct list *l, size_t item_bytes, size_t cap)
{
	void *items;

	if (l->cap >= cap)
		return true;
	items = mem_realloc(l->items, cap * item_bytes);
	if (!items)
		return false;
	l->items = items;
	l->cap = cap;
	return true;
}

static inline struct frame *
top(struct exploder *x)
{
	return &x->frames[x->depth - 1];
}

static inline struct kv_pair *
leaf_at(struct exploder *x, size_t i)
{
	return (struct kv_pair *)x->leaves.items + i;
}

static inline struct member *
member_at(struct exploder *x, size_t i)
{
	return (struct member *)x->members.items + i;
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
fail_memory(struct exploder *x)
{
	return err_set(x->err, STATUS_NOMEM, "no memory for taking the document apart");
}

static enum status
check_buffers(struct exploder *x)
{
	TRY(buf_status(&x->path));
	TRY(buf_status(&x->value));
	return buf_status(&x->term);
}

static enum status
check_path(struct exploder *x)
{
	if (x->prefix_bytes + x->path.len <= x->limits->path_bytes)
		return STATUS_OK;
	return fail_at_path(x, STATUS_PATH_TOO_LONG, "makes a key longer than",
			    x->limits->path_bytes);
}

static enum status
check_size(struct exploder *x)
{
	size_t bytes = (size_t)(x->r->at - x->begin) - x->specials_bytes;

	if (bytes <= x->limits->doc_bytes)
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
	leaf = list_add(&x->leaves, sizeof(*leaf), LEAVES_FIRST);
	if (!leaf)
		return fail_memory(x);
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

static enum status
add_string(struct exploder *x, struct str s)
{
	doc_term_binary(&x->term, s);
	tuple_put_str(&x->value, s);
	if (x->value.len > DOC_STRING_PIECE_BYTES)
		return add_split_string(x, s);
	return add_leaf(x);
}

static enum status
add_literal(struct exploder *x, enum json_token token)
{
	if (token == JSON_NULL) {
		tuple_put_null(&x->value);
		doc_term_atom(&x->term, STR("null"));
	} else {
		tuple_put_bool(&x->value, token == JSON_TRUE);
		doc_term_atom(&x->term, token == JSON_TRUE ? STR("true") : STR("false"));
	}
	return add_leaf(x);
}

/* ---- Containers ---- */

static void
open_frame(struct exploder *x, bool object)
{
	static const uint8_t tuple_of_one[] = { TERM_SMALL_TUPLE, 1 };
	static const uint8_t list_header[TERM_LIST_HEADER_BYTES] = { TERM_LIST };

	if (object)
		buf_append(&x->term, tuple_of_one, sizeof(tuple_of_one));
	x->frames[x->depth++] = (struct frame){
		.object = object,
		.all_bytes = true,
		.path_bytes = x->path.len,
		.leaf = x->leaves.count,
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

/* Equal names: as they came. */
static int
member_cmp(const struct member *a, const struct member *b)
{
	int c;

	if (a->name_start != b->name_start)
		return a->name_start < b->name_start ? -1 : 1;
	c = str_cmp(a->name, b->name);
	return c ? c : (a->leaf > b->leaf) - (a->leaf < b->leaf);
}

static int
member_qsort_cmp(const void *a, const void *b)
{
	return member_cmp(a, b);
}

static void
sort_members(struct member *members, size_t count)
{
	if (count > INSERTION_SORT_MEMBERS) {
		qsort(members, count, sizeof(*members), member_qsort_cmp);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct member m = members[i];
		size_t at = i;

		for (; at && member_cmp(&m, &members[at - 1]) < 0; at--)
			members[at] = members[at - 1];
		members[at] = m;
	}
}

/*
 * The members' names, and the ends of their stretches of leaves and term; `*ret_sorted` tells whether they
 * came in ascending order, none twice.
 */
static void
finish_members(struct exploder *x, const struct frame *f, bool *ret_sorted)
{
	size_t end = x->leaves.count;
	size_t term_end = x->term.len;

	*ret_sorted = true;
	for (size_t i = x->members.count; i-- > f->member;) {
		struct member *m = member_at(x, i);
		struct str key = leaf_at(x, m->leaf)->key;
		uint8_t start[sizeof(m->name_start)] = { 0 };
		size_t n;

		m->leaves = end - m->leaf;
		end = m->leaf;
		m->term_end = term_end;
		term_end = m->term;
		/* Behind the type code. */
		m->name.ptr = key.ptr + f->path_bytes + 1;
		n = m->name.len < sizeof(start) ? m->name.len : sizeof(start);
		memcpy(start, m->name.ptr, n);
		memcpy(&m->name_start, start, sizeof(start));
		m->name_start = be64toh(m->name_start);
		if (*ret_sorted && i + 1 < x->members.count) {
			const struct member *next = m + 1;

			*ret_sorted = m->name_start < next->name_start ||
				      (m->name_start == next->name_start &&
				       str_cmp(m->name, next->name) < 0);
		}
	}
}

/* A dead member's pair leaves the term. */
static enum status
add_hole(struct exploder *x, const struct member *dead)
{
	struct hole *hole = list_add(&x->holes, sizeof(*hole), HOLES_FIRST);

	if (!hole)
		return fail_memory(x);
	*hole = (struct hole){ dead->term, dead->term_end };
	return STATUS_OK;
}

/* Puts an object's members and their leaves in order; `*ret_count`: the members that remain. */
static enum status
order_members(struct exploder *x, const struct frame *f, size_t *ret_count)
{
	struct member *members = member_at(x, f->member);
	size_t count = x->members.count - f->member;
	struct kv_pair *moved;
	size_t leaves = 0;

	if (!list_reserve(&x->moved, sizeof(*moved), x->leaves.count - f->leaf))
		return fail_memory(x);
	moved = x->moved.items;
	sort_members(members, count);
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && str_eq(members[i].name, members[i + 1].name)) {
			TRY(add_hole(x, &members[i]));
			continue;
		}
		memcpy(moved + leaves, leaf_at(x, members[i].leaf),
		       members[i].leaves * sizeof(*moved));
		leaves += members[i].leaves;
		++*ret_count;
	}
	if (leaves)
		memcpy(leaf_at(x, f->leaf), moved, leaves * sizeof(*moved));
	x->leaves.count = f->leaf + leaves;
	return STATUS_OK;
}

static enum status
close_object(struct exploder *x, const struct frame *f)
{
	size_t count = x->members.count - f->member;
	bool sorted;

	finish_members(x, f, &sorted);
	if (!sorted)
		TRY(order_members(x, f, &count));
	x->members.count = f->member;
	end_term_list(x, f->term, count);
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
	struct doc_special *special = list_add(&x->specials, sizeof(*special), SPECIALS_FIRST);
	enum json_token token;

	if (!special)
		return fail_memory(x);
	special->name = arena_dup(x->arena, x->r->text);
	if (!special->name.ptr)
		return err_set(x->err, STATUS_LIMIT,
			       "a special member's name exceeds the memory "
			       "limit of a request");
	TRY(json_next(x->r, &token));
	TRY(json_skip(x->r, token, &special->text));
	x->specials_bytes += (size_t)(x->r->at - begin);
	return STATUS_OK;
}

static enum status
read_key(struct exploder *x)
{
	static const uint8_t pair[] = { TERM_SMALL_TUPLE, 2 };
	struct frame *f = top(x);
	struct member *m;

	if (x->depth == 1 && x->r->text.len && x->r->text.ptr[0] == '_')
		return read_special(x);
	m = list_add(&x->members, sizeof(*m), MEMBERS_FIRST);
	if (!m)
		return fail_memory(x);
	x->path.len = f->path_bytes;
	tuple_put_str(&x->path, x->r->text);
	*m = (struct member){
		.name.len = x->path.len - f->path_bytes - 1,
		.leaf = x->leaves.count,
		.term = x->term.len,
	};
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
		doc_number_put(&x->value, &x->term, x->r->text, x->r->is_integer);
		if (buf_status(&x->term) == STATUS_OK &&
		    (uint8_t)x->term.ptr[term] != TERM_SMALL_INTEGER)
			f->all_bytes = false;
		return add_leaf(x);
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
	TRY(check_size(x));
	if (token == JSON_KEY)
		return read_key(x);
	if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
		return close_frame(x);
	return read_value(x, token);
}

/* ---- The whole ---- */

static int
hole_cmp(const void *a, const void *b)
{
	const struct hole *ha = a;
	const struct hole *hb = b;

	return (ha->begin > hb->begin) - (ha->begin < hb->begin);
}

/* Copies the term without its holes, which may lie inside each other. */
static struct str
copy_term(struct exploder *x)
{
	struct hole *holes = x->holes.items;
	char *bytes = arena_bytes(x->arena, x->term.len);
	size_t from = 0;
	size_t to = 0;

	if (!bytes)
		return (struct str){ NULL, 0 };
	if (x->holes.count)
		qsort(holes, x->holes.count, sizeof(*holes), hole_cmp);
	for (size_t i = 0; i < x->holes.count; i++) {
		if (holes[i].begin > from) {
			memcpy(bytes + to, x->term.ptr + from, holes[i].begin - from);
			to += holes[i].begin - from;
		}
		if (holes[i].end > from)
			from = holes[i].end;
	}
	memcpy(bytes + to, x->term.ptr + from, x->term.len - from);
	return str_of(bytes, to + x->term.len - from);
}

static void *
copy_list(struct exploder *x, const struct list *l, size_t item_bytes)
{
	void *items = arena_alloc(x->arena, l->count * item_bytes);

	if (items && l->count)
		memcpy(items, l->items, l->count * item_bytes);
	return items;
}

static enum status
finish(struct exploder *x, struct doc *ret)
{
	struct doc doc = {
		.count = x->leaves.count,
		.specials_count = x->specials.count,
		.json_bytes = (size_t)(x->r->at - x->begin) - x->specials_bytes,
	};

	TRY(check_buffers(x));
	doc.leaves = copy_list(x, &x->leaves, sizeof(*doc.leaves));
	doc.specials = copy_list(x, &x->specials, sizeof(*doc.specials));
	doc.term = copy_term(x);
	if (!doc.leaves || !doc.specials || !doc.term.ptr)
		return err_set(x->err, STATUS_LIMIT,
			       "the document exceeds the memory limit of a request");
	*ret = doc;
	return STATUS_OK;
}

static void
exploder_free(struct exploder *x)
{
	buf_release(&x->path);
	buf_release(&x->value);
	buf_release(&x->term);
	mem_free(x->leaves.items);
	mem_free(x->members.items);
	mem_free(x->moved.items);
	mem_free(x->holes.items);
	mem_free(x->specials.items);
	mem_free(x);
}

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
explode(struct exploder *x, struct doc *ret)
{
	unsigned depth = x->r->depth;
	enum status status = STATUS_OK;

	open_frame(x, true);
	while (x->depth && status == STATUS_OK)
		status = read_token(x);
	if (status == STATUS_DOC_TOO_LARGE || status == STATUS_PATH_TOO_LONG) {
		enum status rest = skip_rest(x->r, depth);

		return rest == STATUS_OK ? status : rest;
	}
	TRY(status);
	return finish(x, ret);
}

enum status
doc_explode(struct json_reader *r, struct arena *arena, const struct doc_limits *limits,
	    size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct exploder *x = mem_alloc(sizeof(*x));
	enum status status;

	if (!x)
		return err_set(err, STATUS_NOMEM, "no memory for taking the document apart");
	/* The frames are set as they are opened. */
	memset(x, 0, offsetof(struct exploder, frames));
	x->r = r;
	x->arena = arena;
	x->limits = limits;
	x->prefix_bytes = prefix_bytes;
	x->err = err;
	x->begin = r->token_begin;
	buf_init(&x->path, VALUE_MAX_BYTES);
	buf_init(&x->value, VALUE_MAX_BYTES);
	buf_init(&x->term, TERM_MAX_BYTES);
	status = explode(x, ret);
	if (r->failed != STATUS_OK && err && r->err && err != r->err)
		*err = *r->err;
	exploder_free(x);
	return status;
}

enum status
doc_explode_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		 size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct json_reader r;
	enum json_token token;
	enum status status;

	json_reader_init(&r, text, err);
	status = json_next(&r, &token);
	if (status == STATUS_OK && token != JSON_OBJECT_BEGIN)
		status = err_set(err, STATUS_INVALID, "a document must be a JSON object");
	if (status == STATUS_OK)
		status = doc_explode(&r, arena, limits, prefix_bytes, ret, err);
	if (status == STATUS_OK)
		status = json_next(&r, &token); /* nothing behind it */
	json_reader_release(&r);
	return status;
}

const struct doc_special *
doc_find_special(const struct doc *doc, struct str name)
{
	for (size_t i = doc->specials_count; i-- > 0;)
		if (str_eq(doc->specials[i].name, name))
			return &doc->specials[i];
	return NULL;
}

#include "doc/builder.h"

#include <assert.h>

#include "base/clear.h"
#include "base/mem.h"
#include "doc/builder_int.h"
#include "doc/doc.h"

/*
 * The encoded path of the current value grows and shrinks with the containers that are open. A
 * value becomes a leaf with that path, or text behind the text so far. Order and duplicates are
 * settled object by object, as each one ends: builder_order.c.
 */

enum {
	LEAVES_FIRST = 64,
	MEMBERS_FIRST = 64,
	VALUE_MAX_BYTES = 2 * DOC_LIMIT_MAX_BYTES,
	KEEP_BYTES = 64 * 1024, /* of each buffer, from one document to the next */
};

static inline struct builder_frame *
builder_top(struct doc_builder *b)
{
	return &b->frames[b->depth - 1];
}

/* ---- Failures ---- */

static enum status
builder_fail_at_path(struct doc_builder *b, enum status status, const char *what, size_t limit)
{
	struct buf drawn = BUF_INIT(SIZE_MAX);

	doc_path_draw(buf_str(&b->path), &drawn);
	err_set(b->options.err, status, "%.*s %s %zu bytes", STR_ARG(buf_str(&drawn)), what, limit);
	buf_release(&drawn);
	return status;
}

static enum status
builder_check_buffers(struct doc_builder *b)
{
	const struct buf *all[] = { &b->path, &b->value, &b->text };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (buf_status(all[i]) != STATUS_OK)
			return err_set(b->options.err, buf_status(all[i]),
				       "no memory for taking the document apart");
	return STATUS_OK;
}

static inline enum status
builder_check_path(struct doc_builder *b)
{
	if (b->path.len > b->path_max)
		b->path_max = b->path.len;
	if (b->options.prefix_bytes + b->path.len <= b->options.path_bytes)
		return STATUS_OK;
	return builder_fail_at_path(b, STATUS_PATH_TOO_LONG, "makes a key longer than",
				    b->options.path_bytes);
}

/* ---- Leaves ---- */

static bool
leaves_are_too_long(const struct doc_builder *b)
{
	return b->options.leaves_bytes && b->leaves_bytes > b->options.leaves_bytes;
}

/* A leaf at the current path with the value in b->value. */
static enum status
builder_add_leaf(struct doc_builder *b, enum doc_kind kind)
{
	struct kv_pair *leaf;
	char *bytes;

	TRY(builder_check_buffers(b));
	TRY(builder_check_path(b));
	if (b->value.len > KV_LIMIT_VALUE_BYTES)
		return builder_fail_at_path(b, STATUS_DOC_TOO_LARGE,
					    kind == DOC_NUMBER ? "is a number longer than"
							       : "is a value longer than",
					    KV_LIMIT_VALUE_BYTES);
	b->leaves_bytes += b->options.prefix_bytes + b->path.len + b->value.len +
			   KV_SIZE_EACH_BYTES;
	if (leaves_are_too_long(b))
		return STATUS_LIMIT; /* doc_builder_is_too_long() */
	bytes = arena_bytes(b->options.arena, b->path.len + b->value.len);
	if (!bytes)
		return err_set(b->options.err, STATUS_LIMIT,
			       "the document's leaves exceed the memory limit of a request, "
			       "%zu bytes",
			       arena_limit_bytes(b->options.arena));
	leaf = list_add(&b->leaves, sizeof(*leaf), LEAVES_FIRST);
	if (!leaf)
		return builder_fail_memory(b);
	if (b->path.len)
		memcpy(bytes, b->path.ptr, b->path.len);
	memcpy(bytes + b->path.len, b->value.ptr, b->value.len);
	leaf->key = str_of(bytes, b->path.len);
	leaf->value = str_of(bytes + b->path.len, b->value.len);
	return STATUS_OK;
}

/* The longest start of `s`, of a text in whole characters, that fits a piece when it is encoded. */
static size_t
piece_len(struct str s, bool text)
{
	size_t encoded = 2; /* type code and end */
	size_t at = 0;
	size_t whole = 0;

	while (at < s.len) {
		encoded += s.ptr[at] ? 1 : 2;
		if (encoded > DOC_STRING_PIECE_BYTES)
			return whole;
		at++;
		if (!text || at == s.len || ((uint8_t)s.ptr[at] & 0xc0) != 0x80)
			whole = at;
	}
	return whole;
}

static enum status
builder_add_pieces(struct doc_builder *b, enum doc_kind kind, struct str s)
{
	size_t path_bytes = b->path.len;

	for (uint64_t i = 0; s.len; i++) {
		struct doc_scalar piece = { .kind = kind };

		piece.text = str_of(s.ptr, piece_len(s, kind == DOC_TEXT));
		b->path.len = path_bytes;
		tuple_put_null(&b->path);
		tuple_put_u64(&b->path, i);
		buf_clear(&b->value);
		doc_scalar_put(&b->value, &piece);
		TRY(builder_add_leaf(b, kind));
		s = str_skip(s, piece.text.len);
	}
	b->path.len = path_bytes;
	return STATUS_OK;
}

/* ---- The packed text ---- */

/* A text in quotes, and what follows it: the one that the caller has, or one made of `s`. */
static inline enum status
builder_pack_text(struct doc_builder *b, struct str s, struct str written, char behind)
{
	if (!written.ptr) {
		json_write_str(&b->text, s);
		buf_append_byte(&b->text, (uint8_t)behind);
	} else if (buf_reserve(&b->text, written.len + 1)) {
		memcpy(b->text.ptr + b->text.len, written.ptr, written.len);
		b->text.ptr[b->text.len + written.len] = behind;
		b->text.len += written.len + 1;
	}
	return buf_status(&b->text);
}

static enum status
builder_pack_scalar(struct doc_builder *b, const struct doc_scalar *s)
{
	if (json_write_scalar(&b->text, s) == STATUS_CORRUPT)
		return err_set(b->options.err, STATUS_INVALID,
			       "the packed form has no values of this type");
	buf_append_byte(&b->text, ',');
	return buf_status(&b->text);
}

/* The container ends: its last comma becomes a bracket, and unless it is the whole, one follows. */
static enum status
builder_pack_end(struct doc_builder *b, const struct builder_frame *f)
{
	/* The text begins with the container's own bracket. */
	assert(b->text.failed != STATUS_OK || b->text.len >= f->begin);
	if (b->text.len > f->begin)
		b->text.len--;
	buf_append_byte(&b->text, f->object ? '}' : ']');
	if (b->depth)
		buf_append_byte(&b->text, ',');
	return buf_status(&b->text);
}

/* ---- Events ---- */

/* A value begins: in an array its path is the next position, in an object its key has set it. */
static inline void
builder_begin_value(struct doc_builder *b)
{
	struct builder_frame *f;

	if (!b->depth)
		return;
	f = builder_top(b);
	if (f->object)
		return;
	b->path.len = f->path_bytes;
	tuple_put_u64(&b->path, f->count++);
}

enum status
doc_builder_begin(struct doc_builder *b, enum doc_container container)
{
	bool object = container == DOC_OBJECT;

	/* Callers refuse what is nested more deeply: a syntax says so at the place. */
	assert(b->depth < sizeof(b->frames) / sizeof(b->frames[0]));
	builder_begin_value(b);
	if (b->packing)
		buf_append_byte(&b->text, object ? '{' : '[');
	b->frames[b->depth++] = (struct builder_frame){
		.object = object,
		.path_bytes = b->path.len,
		.begin = builder_items(b),
		.member = b->members.count,
	};
	return builder_check_path(b);
}

enum status
doc_builder_key(struct doc_builder *b, struct str name, struct str written, size_t mark)
{
	struct builder_frame *f = builder_top(b);
	struct builder_member *m;

	assert(f->object);
	m = list_add(&b->members, sizeof(*m), MEMBERS_FIRST);
	if (!m)
		return builder_fail_memory(b);
	b->path.len = f->path_bytes;
	tuple_put_str(&b->path, name);
	/* The rest is set when the object ends. */
	m->name.len = b->path.len - f->path_bytes - 1;
	m->begin = builder_items(b);
	m->mark = mark;
	if (b->packing) {
		/* Between the quotes of a text that lasts until the object ends. */
		m->name = written.ptr ? str_of(written.ptr + 1, written.len - 2)
				      : arena_dup(b->options.arena, name);
		if (!m->name.ptr)
			return builder_fail_memory(b);
		TRY(builder_pack_text(b, name, written, ':'));
	}
	/* Also here, so that a path that only grows is stopped before it has a leaf. */
	return builder_check_path(b);
}

enum status
doc_builder_text(struct doc_builder *b, struct str text, struct str written)
{
	builder_begin_value(b);
	if (b->packing) {
		TRY(builder_pack_text(b, text, written, ','));
		return builder_check_path(b);
	}
	buf_clear(&b->value);
	tuple_put_str(&b->value, text);
	if (b->value.len > DOC_STRING_PIECE_BYTES)
		return builder_add_pieces(b, DOC_TEXT, text);
	return builder_add_leaf(b, DOC_TEXT);
}

enum status
doc_builder_scalar(struct doc_builder *b, const struct doc_scalar *s)
{
	builder_begin_value(b);
	if (b->packing) {
		TRY(builder_pack_scalar(b, s));
		return builder_check_path(b);
	}
	buf_clear(&b->value);
	doc_scalar_put(&b->value, s);
	if (b->value.len > DOC_STRING_PIECE_BYTES && (s->kind == DOC_TEXT || s->kind == DOC_BYTES))
		return builder_add_pieces(b, s->kind, s->text);
	return builder_add_leaf(b, s->kind);
}

enum status
doc_builder_number_text(struct doc_builder *b, struct str text)
{
	assert(b->packing);
	builder_begin_value(b);
	TRY(builder_pack_text(b, text, text, ','));
	return builder_check_path(b);
}

/* The leaf of a container without children. An empty document has none. */
static enum status
builder_add_empty(struct doc_builder *b, const struct builder_frame *f)
{
	const struct doc_scalar empty = {
		.kind = f->object ? DOC_EMPTY_OBJECT : DOC_EMPTY_ARRAY,
	};

	if (f->object && !b->depth)
		return STATUS_OK;
	buf_clear(&b->value);
	doc_scalar_put(&b->value, &empty);
	return builder_add_leaf(b, empty.kind);
}

enum status
doc_builder_end(struct doc_builder *b, size_t mark, size_t *ret_count)
{
	struct builder_frame *f = builder_top(b);

	b->depth--;
	b->path.len = f->path_bytes;
	*ret_count = f->count;
	if (f->object)
		TRY(builder_order(b, f, mark, ret_count));
	if (b->packing)
		return builder_pack_end(b, f);
	return *ret_count ? STATUS_OK : builder_add_empty(b, f);
}

bool
doc_builder_is_too_long(const struct doc_builder *b)
{
	return b->text.failed == STATUS_LIMIT || leaves_are_too_long(b);
}

struct doc_span *
doc_builder_dropped(struct doc_builder *b, size_t *ret_count)
{
	*ret_count = b->dropped.count;
	return b->dropped.items;
}

enum status
doc_builder_finish(struct doc_builder *b, struct doc_built *ret)
{
	struct doc_built built = { .count = b->leaves.count, .path_bytes = b->path_max };
	struct arena *arena = b->options.arena;

	assert(!b->depth);
	TRY(builder_check_buffers(b));
	if (b->packing)
		built.packed = buf_dup(&b->text, arena);
	built.leaves = arena_alloc(arena, built.count * sizeof(*built.leaves));
	if ((b->packing && !built.packed.ptr) || !built.leaves)
		return err_set(b->options.err, STATUS_LIMIT,
			       "the document exceeds the memory limit of a request, %zu bytes",
			       arena_limit_bytes(arena));
	if (built.count)
		memcpy(built.leaves, b->leaves.items, built.count * sizeof(*built.leaves));
	*ret = built;
	return STATUS_OK;
}

/* ---- The builder itself ---- */

struct doc_builder *
doc_builder_new(void)
{
	struct doc_builder *b = mem_alloc(sizeof(*b));

	if (!b)
		return NULL;
	/* The frames are set as containers begin. */
	CLEAR_BEFORE(b, frames);
	buf_init(&b->path, VALUE_MAX_BYTES);
	buf_init(&b->value, VALUE_MAX_BYTES);
	return b;
}

void
doc_builder_set_part(struct doc_builder *b, struct budget_part *part)
{
	b->path.part = b->value.part = b->text.part = part;
}

void
doc_builder_free(struct doc_builder *b)
{
	if (!b)
		return;
	buf_release(&b->path);
	buf_release(&b->value);
	buf_release(&b->text);
	mem_free(b->leaves.items);
	mem_free(b->members.items);
	mem_free(b->moved.items);
	mem_free(b->dropped.items);
	mem_free(b);
}

static void
list_clear(struct list *l, size_t item_bytes)
{
	l->count = 0;
	if (l->cap * item_bytes <= KEEP_BYTES)
		return;
	mem_free(l->items);
	*l = (struct list){ 0 };
}

static void
buf_trim(struct buf *b, size_t keep_bytes)
{
	if (b->cap > keep_bytes)
		buf_release(b);
	else
		buf_clear(b);
}

void
doc_builder_start(struct doc_builder *b, const struct doc_builder_options *options)
{
	size_t packed_bytes = options->packed_bytes;

	buf_trim(&b->path, KEEP_BYTES);
	buf_trim(&b->value, KEEP_BYTES);
	/*
	 * What is packed depends on its limit alone, and not on how much memory is there already.
	 */
	buf_trim(&b->text, packed_bytes < KEEP_BYTES ? packed_bytes : KEEP_BYTES);
	b->text.max_bytes = packed_bytes;
	list_clear(&b->leaves, sizeof(struct kv_pair));
	list_clear(&b->members, sizeof(struct builder_member));
	list_clear(&b->moved, 1);
	list_clear(&b->dropped, sizeof(struct doc_span));
	b->options = *options;
	b->packing = packed_bytes > 0;
	b->depth = 0;
	b->path_max = 0;
	b->leaves_bytes = 0;
}

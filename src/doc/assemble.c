#include "doc/doc.h"

#include <math.h>

#include "base/utf8.h"
#include "doc/doc_int.h"

/*
 * The path of the last leaf tells which containers are open: one for each of its elements, an
 * object where the element is a string and an array where it is an integer. The next leaf's path
 * shares some of them, ends the others and begins its own.
 */

static void
init(struct doc_assembler *a, struct buf *out, bool root_object, bool has_members)
{
	a->out = out;
	buf_init(&a->last, KV_LIMIT_KEY_BYTES);
	a->open = 0;
	a->next_piece = 0;
	a->root_object = root_object;
	a->has_members = has_members;
	a->started = false;
	a->in_string = false;
}

void
doc_assemble_init(struct doc_assembler *a, struct buf *out)
{
	init(a, out, false, false);
}

void
doc_assemble_init_object(struct doc_assembler *a, struct buf *out, bool has_members)
{
	init(a, out, true, has_members);
}

void
doc_assemble_release(struct doc_assembler *a)
{
	buf_release(&a->last);
}

/* ---- Values ---- */

/* The content of a STRING element, escaped for JSON; NULs in it are encoded as 00 FF. */
static enum status
write_content(struct buf *out, const struct tuple_elem *e)
{
	struct str s = e->raw;

	while (e->escaped) {
		const char *nul = memchr(s.ptr, 0, s.len);
		struct str before = { s.ptr, nul ? (size_t)(nul - s.ptr) : 0 };

		if (!nul)
			break;
		if (utf8_valid_prefix(before) < before.len)
			return STATUS_CORRUPT;
		json_write_chars(out, before);
		buf_append_cstr(out, "\\u0000");
		s = str_skip(s, before.len + 2);
	}
	if (utf8_valid_prefix(s) < s.len)
		return STATUS_CORRUPT;
	json_write_chars(out, s);
	return STATUS_OK;
}

static enum status
write_string(struct buf *out, const struct tuple_elem *e)
{
	buf_append_byte(out, '"');
	TRY(write_content(out, e));
	buf_append_byte(out, '"');
	return STATUS_OK;
}

/* The next element is the last one. */
static enum status
next_and_end(struct tuple_reader *r, struct tuple_elem *ret)
{
	if (tuple_next(r, ret) != STATUS_OK || r->rest.len)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* () is an empty array, (()) an empty object, (double, text) a number. */
static enum status
write_nested(struct buf *out, const struct tuple_elem *nested)
{
	struct tuple_reader r = tuple_reader_nested(nested);
	struct tuple_elem e;
	bool is_integer;

	if (!r.rest.len) {
		buf_append(out, "[]", 2);
		return STATUS_OK;
	}
	TRY(tuple_next(&r, &e));
	if (e.kind == TUPLE_NESTED && !e.raw.len && !r.rest.len) {
		buf_append(out, "{}", 2);
		return STATUS_OK;
	}
	if (e.kind != TUPLE_DOUBLE)
		return STATUS_CORRUPT;
	TRY(next_and_end(&r, &e));
	if (e.kind != TUPLE_STRING || !e.raw.len ||
	    json_number_len(e.raw, &is_integer) != e.raw.len)
		return STATUS_CORRUPT;
	buf_append_str(out, e.raw);
	return STATUS_OK;
}

static enum status
write_value(struct buf *out, struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem e;

	TRY(next_and_end(&r, &e));
	switch (e.kind) {
	case TUPLE_NULL:
		buf_append(out, "null", 4);
		return STATUS_OK;
	case TUPLE_FALSE:
		buf_append(out, "false", 5);
		return STATUS_OK;
	case TUPLE_TRUE:
		buf_append(out, "true", 4);
		return STATUS_OK;
	case TUPLE_STRING:
		return write_string(out, &e);
	case TUPLE_INT:
	case TUPLE_BIGINT:
		doc_number_write_int(out, &e);
		return STATUS_OK;
	case TUPLE_DOUBLE:
		if (!isfinite(e.d))
			return STATUS_CORRUPT;
		json_write_double(out, e.d);
		return STATUS_OK;
	case TUPLE_NESTED:
		return write_nested(out, &e);
	case TUPLE_BYTES:
	case TUPLE_FLOAT:
	case TUPLE_UUID:
	case TUPLE_VERSIONSTAMP:
		break;
	}
	return STATUS_CORRUPT;
}

/* A piece of a split string; the quotes are written around all of them. */
static enum status
write_piece(struct buf *out, struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem e;

	TRY(next_and_end(&r, &e));
	return e.kind == TUPLE_STRING ? write_content(out, &e) : STATUS_CORRUPT;
}

/* ---- Paths ---- */

static size_t
common_len(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	size_t at = 0;

	while (n - at >= sizeof(uint64_t)) {
		uint64_t wa;
		uint64_t wb;

		memcpy(&wa, a.ptr + at, sizeof(wa));
		memcpy(&wb, b.ptr + at, sizeof(wb));
		if (wa != wb)
			return at + (size_t)__builtin_ctzll(le64toh(wa ^ wb)) / 8;
		at += sizeof(wa);
	}
	while (at < n && a.ptr[at] == b.ptr[at])
		at++;
	return at;
}

/* How many elements the path shares with the last one; `common` bytes of the two are equal. */
static size_t
shared_levels(const struct doc_assembler *a, struct str path, size_t common)
{
	size_t end = a->last.len;
	size_t n = a->open;

	while (n && end > common)
		end = a->levels[--n].at;
	/* A string's end that is a NUL inside the other string. */
	if (n && end == common && common < path.len && (uint8_t)path.ptr[common] == 0xff)
		n--;
	return n;
}

static void
close_levels(struct doc_assembler *a, size_t left)
{
	while (a->open > left)
		buf_append_byte(a->out, a->levels[--a->open].object ? '}' : ']');
}

/*
 * Goes into the container that `level` is the element of: the one of the last leaf's path, whose
 * element there was `before`, or a new one (NULL).
 */
static enum status
enter(struct doc_assembler *a, const struct doc_level *level, const struct doc_level *before)
{
	if (before) {
		if (level->object != before->object ||
		    (!level->object && level->index != before->index + 1))
			return STATUS_CORRUPT;
		buf_append_byte(a->out, ',');
		return STATUS_OK;
	}
	if (!level->object && level->index)
		return STATUS_CORRUPT;
	if (a->open || !a->root_object) {
		buf_append_byte(a->out, level->object ? '{' : '[');
		return STATUS_OK;
	}
	/* The caller wrote the brace. */
	if (!level->object)
		return STATUS_CORRUPT;
	if (a->has_members)
		buf_append_byte(a->out, ',');
	return STATUS_OK;
}

static enum status
add_level(struct doc_assembler *a, const struct tuple_elem *e, size_t at,
	  const struct doc_level *before)
{
	struct doc_level level = { .at = (uint16_t)at, .object = e->kind == TUPLE_STRING };

	if (a->open == JSON_DEPTH_LIMIT)
		return STATUS_CORRUPT;
	if (!level.object) {
		if (e->kind != TUPLE_INT || e->negative || e->magnitude > UINT32_MAX)
			return STATUS_CORRUPT;
		level.index = (uint32_t)e->magnitude;
	}
	TRY(enter(a, &level, before));
	if (level.object) {
		TRY(write_string(a->out, e));
		buf_append_byte(a->out, ':');
	}
	a->levels[a->open++] = level;
	return STATUS_OK;
}

/* `path` goes on behind the last path's as the next piece of its string. */
static enum status
add_next_piece(struct doc_assembler *a, struct str path, struct str value)
{
	struct tuple_reader r = tuple_reader(str_skip(path, a->last.len + 1));
	uint64_t piece;

	TRY(tuple_next_u64(&r, &piece));
	if (piece != a->next_piece || r.rest.len)
		return STATUS_CORRUPT;
	a->next_piece++;
	TRY(write_piece(a->out, value));
	return buf_status(a->out);
}

/* Behind the path's elements: the value, or the first piece of a split string. */
static enum status
add_value(struct doc_assembler *a, bool piece, struct tuple_reader *rest, struct str value)
{
	uint64_t first;

	if (!piece)
		return write_value(a->out, value);
	TRY(tuple_next_u64(rest, &first));
	if (first || rest->rest.len)
		return STATUS_CORRUPT;
	a->in_string = true;
	a->next_piece = 1;
	buf_append_byte(a->out, '"');
	return write_piece(a->out, value);
}

/* Ends what the last leaf opened and the path does not share, and opens what is new. */
static enum status
move_to(struct doc_assembler *a, struct str path, struct tuple_reader *ret_rest, bool *ret_piece)
{
	size_t common = common_len(buf_str(&a->last), path);
	size_t shared = shared_levels(a, path, common);
	size_t from = shared < a->open ? a->levels[shared].at : a->last.len;
	struct doc_level before_level;
	const struct doc_level *before = NULL;
	struct tuple_reader r;
	struct tuple_elem e;

	if (a->started) {
		if (shared == a->open || common == path.len ||
		    (common < a->last.len &&
		     (uint8_t)path.ptr[common] < (uint8_t)a->last.ptr[common]))
			return STATUS_CORRUPT;
		before_level = a->levels[shared];
		before = &before_level;
		close_levels(a, shared + 1);
		a->open = shared;
	}
	*ret_piece = false;
	for (r = tuple_reader(str_skip(path, from)); r.rest.len; before = NULL) {
		TRY(tuple_next(&r, &e));
		*ret_piece = e.kind == TUPLE_NULL;
		if (*ret_piece)
			break;
		TRY(add_level(a, &e, (size_t)(e.encoding.ptr - path.ptr), before));
	}
	/* Nothing new in a container that goes on. */
	if (before)
		return STATUS_CORRUPT;
	a->last.len = from;
	buf_append(&a->last, path.ptr + from, path.len - from - r.rest.len - (*ret_piece ? 1 : 0));
	*ret_rest = r;
	return buf_status(&a->last);
}

enum status
doc_assemble_leaf(struct doc_assembler *a, struct str path, struct str value)
{
	struct tuple_reader rest;
	bool piece;

	if (!path.len)
		path = STR("");
	if (path.len > KV_LIMIT_KEY_BYTES)
		return STATUS_CORRUPT;
	if (a->in_string) {
		if (path.len > a->last.len && !path.ptr[a->last.len] &&
		    str_starts_with(path, buf_str(&a->last)))
			return add_next_piece(a, path, value);
		buf_append_byte(a->out, '"');
		a->in_string = false;
	}
	TRY(move_to(a, path, &rest, &piece));
	if (a->root_object && !a->open)
		return STATUS_CORRUPT;
	a->started = true;
	TRY(add_value(a, piece, &rest, value));
	return buf_status(a->out);
}

enum status
doc_assemble_end(struct doc_assembler *a)
{
	if (a->in_string)
		buf_append_byte(a->out, '"');
	a->in_string = false;
	if (a->started)
		close_levels(a, 0);
	else if (a->root_object)
		buf_append_byte(a->out, '}');
	else
		return STATUS_NOT_FOUND;
	return buf_status(a->out);
}

#include "doc/reader.h"

#include <assert.h>

#include "base/utf8.h"
#include "doc/doc_int.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	LEAF_STEPS = 2,
	LEAF_BYTES_A_STEP = 64,
};

/*
 * The path of the last leaf tells which containers are open: one for each of its elements, an
 * object where the element is a text and an array where it is an integer. The next leaf's path
 * shares some of them, ends the others and begins its own.
 */

void
doc_reader_init(struct doc_reader *r, enum doc_reading reading, const struct doc_events *events,
		void *to)
{
	r->events = events;
	r->to = to;
	r->reading = reading;
	r->started = false;
	r->in_pieces = false;
	r->piece_kind = DOC_TEXT;
	r->next_piece = 0;
	buf_init(&r->last, KV_LIMIT_KEY_BYTES);
	r->open = 0;
	buf_init(&r->scratch, SIZE_MAX);
}

void
doc_reader_release(struct doc_reader *r)
{
	buf_release(&r->last);
	buf_release(&r->scratch);
}

/* ---- Values ---- */

static enum status
reader_add_scalar(struct doc_reader *r, struct str value)
{
	struct doc_scalar s;

	TRY(doc_scalar_read(value, &r->scratch, &s));
	switch ((int)s.kind) {
	case DOC_EMPTY_ARRAY:
		TRY(r->events->begin(r->to, DOC_ARRAY));
		return r->events->end(r->to, DOC_ARRAY);
	case DOC_EMPTY_OBJECT:
		TRY(r->events->begin(r->to, DOC_OBJECT));
		return r->events->end(r->to, DOC_OBJECT);
	default:
		return r->events->scalar(r->to, &s);
	}
}

/* The next piece of a text or bytes; all pieces are of the first one's kind. */
static enum status
reader_add_piece(struct doc_reader *r, struct str value)
{
	bool first = r->next_piece == 0;
	struct doc_scalar s;

	TRY(doc_scalar_read(value, &r->scratch, &s));
	if (first)
		r->piece_kind = s.kind;
	if (s.kind != r->piece_kind || (s.kind != DOC_TEXT && s.kind != DOC_BYTES))
		return STATUS_CORRUPT;
	r->next_piece++;
	return r->events->piece(r->to, &s, first);
}

static enum status
reader_end_pieces(struct doc_reader *r)
{
	if (!r->in_pieces)
		return STATUS_OK;
	r->in_pieces = false;
	return r->events->pieces_end(r->to, r->piece_kind);
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
reader_shared_levels(const struct doc_reader *r, struct str path, size_t common)
{
	size_t end = r->last.len;
	size_t n = r->open;

	while (n && end > common)
		end = r->levels[--n].at;
	/* Where a text ends in the last path, an FF in this one makes it a NUL in a longer text. */
	if (n && end == common && common < path.len && (uint8_t)path.ptr[common] == 0xff)
		n--;
	return n;
}

static enum status
reader_close_levels(struct doc_reader *r, size_t left)
{
	while (r->open > left) {
		bool object = r->levels[--r->open].object;

		TRY(r->events->end(r->to, object ? DOC_OBJECT : DOC_ARRAY));
	}
	return STATUS_OK;
}

static enum status
reader_add_key(struct doc_reader *r, const struct tuple_elem *e)
{
	struct str name = e->raw;

	if (e->escaped) {
		buf_clear(&r->scratch);
		tuple_unescape(e, &r->scratch);
		TRY(buf_status(&r->scratch));
		name = buf_str(&r->scratch);
	}
	if (utf8_valid_prefix(name) < name.len)
		return STATUS_CORRUPT;
	return r->events->key(r->to, name);
}

/*
 * Goes into the container that `level` is the element of: the one of the last leaf's path, whose
 * element there was `before`, or a new one (NULL).
 */
static enum status
reader_enter_container(struct doc_reader *r, const struct doc_level *level,
		       const struct doc_level *before)
{
	if (before) {
		bool follows = level->object || level->index == before->index + 1;

		return level->object == before->object && follows ? STATUS_OK : STATUS_CORRUPT;
	}
	if (!level->object && level->index)
		return STATUS_CORRUPT;
	if (!r->open && !level->object && r->reading == DOC_READ_DOCUMENT)
		return STATUS_CORRUPT;
	return r->events->begin(r->to, level->object ? DOC_OBJECT : DOC_ARRAY);
}

static enum status
reader_add_level(struct doc_reader *r, const struct tuple_elem *e, size_t at,
		 const struct doc_level *before)
{
	struct doc_level level = { .at = (uint16_t)at, .object = e->kind == TUPLE_STRING };

	if (r->open == JSON_DEPTH_LIMIT)
		return STATUS_CORRUPT;
	if (!level.object) {
		if (e->kind != TUPLE_INT || e->negative || e->magnitude > UINT32_MAX)
			return STATUS_CORRUPT;
		level.index = (uint32_t)e->magnitude;
	}
	TRY(reader_enter_container(r, &level, before));
	if (level.object)
		TRY(reader_add_key(r, e));
	r->levels[r->open++] = level;
	return STATUS_OK;
}

/* `path` goes on behind the last path's as the next piece of its text. */
static enum status
reader_add_next_piece(struct doc_reader *r, struct str path, struct str value)
{
	struct tuple_reader rest = tuple_reader(str_skip(path, r->last.len + 1));
	uint64_t piece;

	TRY(tuple_next_u64(&rest, &piece));
	if (piece != r->next_piece || rest.rest.len)
		return STATUS_CORRUPT;
	return reader_add_piece(r, value);
}

/* Behind the path's elements: the value, or the first piece of a text. */
static enum status
reader_add_value(struct doc_reader *r, bool piece, struct tuple_reader *rest, struct str value)
{
	uint64_t first;

	if (!piece)
		return reader_add_scalar(r, value);
	TRY(tuple_next_u64(rest, &first));
	if (first || rest->rest.len)
		return STATUS_CORRUPT;
	r->in_pieces = true;
	r->next_piece = 0;
	return reader_add_piece(r, value);
}

/* Ends what the last leaf opened and the path does not share, and opens what is new. */
static enum status
reader_move_to(struct doc_reader *r, struct str path, struct tuple_reader *ret_rest,
	       bool *ret_piece)
{
	size_t common = common_len(buf_str(&r->last), path);
	size_t shared = reader_shared_levels(r, path, common);
	size_t from = shared < r->open ? r->levels[shared].at : r->last.len;
	struct doc_level before_level;
	const struct doc_level *before = NULL;
	struct tuple_reader rest;
	struct tuple_elem e;

	if (r->started) {
		if (shared == r->open || common == path.len ||
		    (common < r->last.len &&
		     (uint8_t)path.ptr[common] < (uint8_t)r->last.ptr[common]))
			return STATUS_CORRUPT;
		before_level = r->levels[shared];
		before = &before_level;
		TRY(reader_close_levels(r, shared + 1));
		r->open = shared;
	}
	*ret_piece = false;
	for (rest = tuple_reader(str_skip(path, from)); rest.rest.len; before = NULL) {
		TRY(tuple_next_elem(&rest, &e));
		*ret_piece = e.kind == TUPLE_NULL;
		if (*ret_piece)
			break;
		TRY(reader_add_level(r, &e, (size_t)(e.encoding.ptr - path.ptr), before));
	}
	/* Nothing new in a container that goes on. */
	if (before)
		return STATUS_CORRUPT;
	r->last.len = from;
	buf_append(&r->last, path.ptr + from,
		   path.len - from - rest.rest.len - (*ret_piece ? 1 : 0));
	*ret_rest = rest;
	return buf_status(&r->last);
}

enum status
doc_reader_leaf(struct doc_reader *r, struct str path, struct str value)
{
	struct tuple_reader rest;
	bool piece;

	TRY(step_count(LEAF_STEPS + (uint32_t)(value.len / LEAF_BYTES_A_STEP)));
	if (!path.len)
		path = STR("");
	if (path.len > KV_LIMIT_KEY_BYTES)
		return STATUS_CORRUPT;
	if (r->in_pieces) {
		if (path.len > r->last.len && !path.ptr[r->last.len] &&
		    str_starts_with(path, buf_str(&r->last)))
			return reader_add_next_piece(r, path, value);
		TRY(reader_end_pieces(r));
	}
	TRY(reader_move_to(r, path, &rest, &piece));
	if (r->reading == DOC_READ_DOCUMENT && !r->open)
		return STATUS_CORRUPT;
	r->started = true;
	return reader_add_value(r, piece, &rest, value);
}

enum status
doc_reader_end(struct doc_reader *r)
{
	TRY(reader_end_pieces(r));
	if (r->started)
		return reader_close_levels(r, 0);
	if (r->reading != DOC_READ_DOCUMENT)
		return STATUS_NOT_FOUND;
	TRY(r->events->begin(r->to, DOC_OBJECT));
	return r->events->end(r->to, DOC_OBJECT);
}

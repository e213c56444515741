#include "doc/term.h"

#include <assert.h>
#include <stdlib.h>

#include "doc/doc.h"
#include "loop/step.h"

enum {
	TERM_NEW_FLOAT = 70,
	TERM_SMALL_INTEGER = 97,
	TERM_INTEGER = 98,
	TERM_ATOM = 100,
	TERM_SMALL_TUPLE = 104,
	TERM_NIL = 106,
	TERM_STRING = 107, /* a list of integers from 0 to 255 */
	TERM_LIST = 108,
	TERM_BINARY = 109,
	TERM_SMALL_BIG = 110,
	TERM_LARGE_BIG = 111,

	TERM_STRING_MAX = 65535,
	TERM_LIST_HEADER_BYTES = 5,

	/* The term of any value takes fewer bytes than 4 times its JSON text. */
	TERM_MAX_BYTES = 4 * DOC_LIMIT_MAX_BYTES,
};

void
term_init(struct term_writer *t)
{
	buf_init(&t->out, TERM_MAX_BYTES);
	t->depth = 1;
}

void
term_release(struct term_writer *t)
{
	buf_release(&t->out);
}

void
term_clear(struct term_writer *t, size_t keep_bytes)
{
	if (t->out.cap > keep_bytes)
		buf_release(&t->out);
	else
		buf_clear(&t->out);
	t->depth = 1;
}

static inline struct term_list *
term_top(struct term_writer *t)
{
	return &t->lists[t->depth - 1];
}

/* ---- Terms ---- */

static void
term_put_u32(struct buf *out, uint32_t n)
{
	n = htobe32(n);
	buf_append(out, &n, sizeof(n));
}

static void
term_put_binary(struct buf *out, struct str s)
{
	uint32_t n = htobe32((uint32_t)s.len);
	char *at;

	if (!buf_reserve(out, 1 + sizeof(n) + s.len))
		return;
	at = out->ptr + out->len;
	*at++ = TERM_BINARY;
	memcpy(at, &n, sizeof(n));
	if (s.len)
		memcpy(at + sizeof(n), s.ptr, s.len);
	out->len += 1 + sizeof(n) + s.len;
}

static void
term_put_atom(struct buf *out, struct str name)
{
	buf_append_byte(out, TERM_ATOM);
	buf_append_byte(out, 0);
	buf_append_byte(out, (uint8_t)name.len);
	buf_append_str(out, name);
}

static void
term_put_big(struct buf *out, bool negative, const struct doc_integer *n)
{
	size_t bytes = doc_integer_bytes(n);

	if (bytes <= UINT8_MAX) {
		buf_append_byte(out, TERM_SMALL_BIG);
		buf_append_byte(out, (uint8_t)bytes);
	} else {
		buf_append_byte(out, TERM_LARGE_BIG);
		term_put_u32(out, (uint32_t)bytes);
	}
	buf_append_byte(out, negative);
	for (size_t i = 0; i < bytes; i++)
		buf_append_byte(out, doc_integer_byte(n, i));
}

static void
term_put_i64(struct buf *out, int64_t n)
{
	struct doc_integer big;

	if (n >= INT32_MIN && n <= INT32_MAX) {
		buf_append_byte(out, TERM_INTEGER);
		term_put_u32(out, (uint32_t)n);
		return;
	}
	big.count = 1;
	big.limbs[0] = n < 0 ? -(uint64_t)n : (uint64_t)n;
	term_put_big(out, n < 0, &big);
}

static void
term_put_float(struct buf *out, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	bits = htobe64(bits);
	buf_append_byte(out, TERM_NEW_FLOAT);
	buf_append(out, &bits, sizeof(bits));
}

static void
term_put_long_integer(struct buf *out, struct str text)
{
	bool negative = text.ptr[0] == '-';
	struct doc_integer n;

	if (text.len - negative > DOC_TERM_INT_DIGITS) {
		term_put_binary(out, text);
		return;
	}
	doc_integer_read(str_skip(text, negative), &n);
	term_put_big(out, negative, &n);
}

/* ---- Events ---- */

void
term_begin(struct term_writer *t, enum doc_container container)
{
	static const uint8_t tuple_of_one[] = { TERM_SMALL_TUPLE, 1 };
	static const uint8_t list_header[TERM_LIST_HEADER_BYTES] = { TERM_LIST };

	assert(t->depth < sizeof(t->lists) / sizeof(t->lists[0]));
	term_top(t)->all_bytes = false;
	if (container == DOC_OBJECT)
		buf_append(&t->out, tuple_of_one, sizeof(tuple_of_one));
	t->lists[t->depth++] = (struct term_list){
		.at = t->out.len,
		.all_bytes = container == DOC_ARRAY,
	};
	buf_append(&t->out, list_header, sizeof(list_header));
}

void
term_key(struct term_writer *t, struct str name)
{
	static const uint8_t pair[] = { TERM_SMALL_TUPLE, 2 };

	buf_append(&t->out, pair, sizeof(pair));
	term_put_binary(&t->out, name);
}

void
term_text(struct term_writer *t, struct str text)
{
	term_top(t)->all_bytes = false;
	term_put_binary(&t->out, text);
}

void
term_null(struct term_writer *t)
{
	term_top(t)->all_bytes = false;
	term_put_atom(&t->out, STR("null"));
}

void
term_bool(struct term_writer *t, bool value)
{
	term_top(t)->all_bytes = false;
	term_put_atom(&t->out, value ? STR("true") : STR("false"));
}

void
term_number(struct term_writer *t, const struct json_number *n)
{
	if (n->form == JSON_NUMBER_SHORT && n->n >= 0 && n->n <= UINT8_MAX) {
		buf_append_byte(&t->out, TERM_SMALL_INTEGER);
		buf_append_byte(&t->out, (uint8_t)n->n);
		return;
	}
	term_top(t)->all_bytes = false;
	if (n->form == JSON_NUMBER_SHORT)
		term_put_i64(&t->out, n->n);
	else if (n->form == JSON_NUMBER_LONG)
		term_put_long_integer(&t->out, n->text);
	else
		term_put_float(&t->out, n->d);
}

/* Ends the list that starts at `at`, now that its length is known. */
static void
term_end_list(struct buf *out, size_t at, size_t count)
{
	uint32_t n = htobe32((uint32_t)count);

	if (count)
		memcpy(out->ptr + at + 1, &n, sizeof(n));
	else
		out->len = at;
	buf_append_byte(out, TERM_NIL);
}

/* As term_end_list(), for a list whose elements are all SMALL_INTEGERs: it becomes a STRING. */
static void
term_end_string(struct buf *out, size_t at, size_t count)
{
	char *to = out->ptr + at;

	assert(out->len == at + TERM_LIST_HEADER_BYTES + 2 * count);
	*to++ = TERM_STRING;
	*to++ = (char)(count >> 8);
	*to++ = (char)count;
	for (size_t i = 0; i < count; i++)
		*to++ = out->ptr[at + TERM_LIST_HEADER_BYTES + 2 * i + 1];
	out->len = (size_t)(to - out->ptr);
}

void
term_end(struct term_writer *t, enum doc_container container, size_t count)
{
	const struct term_list *list = &t->lists[--t->depth];

	assert(t->depth);
	/* After a failure the bytes that the list began with may not be there. */
	if (buf_status(&t->out) != STATUS_OK)
		return;
	if (container == DOC_ARRAY && count && list->all_bytes && count <= TERM_STRING_MAX)
		term_end_string(&t->out, list->at, count);
	else
		term_end_list(&t->out, list->at, count);
}

static int
span_cmp(const void *a, const void *b)
{
	const struct doc_span *sa = a;
	const struct doc_span *sb = b;

	step_pause(1);
	return (sa->begin > sb->begin) - (sa->begin < sb->begin);
}

struct str
term_copy(const struct term_writer *t, struct doc_span *dropped, size_t count, struct arena *arena)
{
	char *bytes = arena_bytes(arena, t->out.len);
	size_t from = 0;
	size_t to = 0;

	if (!bytes)
		return (struct str){ NULL, 0 };
	if (count)
		qsort(dropped, count, sizeof(*dropped), span_cmp);
	for (size_t i = 0; i < count; i++) {
		/* A stretch that lies inside of the last one begins before `from`. */
		if (dropped[i].begin > from) {
			memcpy(bytes + to, t->out.ptr + from, dropped[i].begin - from);
			to += dropped[i].begin - from;
		}
		if (dropped[i].end > from)
			from = dropped[i].end;
	}
	memcpy(bytes + to, t->out.ptr + from, t->out.len - from);
	return str_of(bytes, to + t->out.len - from);
}

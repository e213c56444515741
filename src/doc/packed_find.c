#include "doc/packed_find.h"

#include "doc/doc_int.h"

void
doc_finder_init(struct doc_finder *f, const struct doc_pointer *pointer, struct buf *out)
{
	*f = (struct doc_finder){
		.pointer = pointer,
		.out = out,
		.state = pointer->count ? DOC_FINDER_VALUE : DOC_FINDER_TAKE_BEGIN,
		.name = BUF_INIT(SIZE_MAX),
	};
}

void
doc_finder_release(struct doc_finder *f)
{
	buf_release(&f->name);
}

/* The value of the token that was followed last begins behind the byte that was read last. */
static void
finder_follow(struct doc_finder *f)
{
	f->resolved++;
	f->state = f->resolved == f->pointer->count ? DOC_FINDER_TAKE_BEGIN : DOC_FINDER_VALUE;
}

/* `c` is the first byte of a value that has to be a container with the next token in it. */
static enum status
finder_enter_container(struct doc_finder *f, char c)
{
	struct str token = f->pointer->tokens[f->resolved];

	f->in_array = c == '[';
	if (c == '{') {
		buf_clear(&f->name);
		json_write_chars(&f->name, token);
		f->state = DOC_FINDER_FIRST_NAME;
		return buf_status(&f->name);
	}
	if (!f->in_array || !doc_pointer_position(token, &f->elements))
		return STATUS_NOT_FOUND;
	f->state = DOC_FINDER_FIRST_ELEMENT;
	return STATUS_OK;
}

static enum status
finder_begin_name(struct doc_finder *f, char c)
{
	if (c == '}' && f->state == DOC_FINDER_FIRST_NAME)
		return STATUS_NOT_FOUND;
	if (c != '"')
		return STATUS_CORRUPT;
	f->state = DOC_FINDER_NAME;
	f->in_string = true;
	f->matched = 0;
	f->differs = false;
	return STATUS_OK;
}

/* One byte of a name, or the quote behind it. */
static void
finder_read_name(struct doc_finder *f, char c)
{
	if (c == '"' && !f->escaped) {
		f->in_string = false;
		f->state = DOC_FINDER_COLON;
		return;
	}
	f->escaped = c == '\\' && !f->escaped;
	if (!f->differs && f->matched < f->name.len && f->name.ptr[f->matched] == c)
		f->matched++;
	else
		f->differs = true;
}

static enum status
finder_end_name(struct doc_finder *f, char c)
{
	if (c != ':')
		return STATUS_CORRUPT;
	if (!f->differs && f->matched == f->name.len)
		finder_follow(f);
	else
		f->state = DOC_FINDER_PASS_BEGIN;
	return STATUS_OK;
}

/* At the first byte of an element. */
static enum status
finder_choose_element(struct doc_finder *f)
{
	if (f->elements)
		f->state = DOC_FINDER_PASS_BEGIN;
	else
		finder_follow(f);
	return STATUS_OK;
}

/* `c` stands behind a value that was passed over. */
static enum status
finder_go_on_behind(struct doc_finder *f, char c)
{
	if (c != ',')
		return c == '}' || c == ']' ? STATUS_NOT_FOUND : STATUS_CORRUPT;
	if (!f->in_array) {
		f->state = DOC_FINDER_NEXT_NAME;
		return STATUS_OK;
	}
	f->elements--;
	return finder_choose_element(f);
}

/* At the first byte of a value, which is not consumed. */
static void
finder_begin_value(struct doc_finder *f)
{
	f->depth = 0;
	f->in_string = false;
	f->escaped = false;
	f->state = f->state == DOC_FINDER_TAKE_BEGIN ? DOC_FINDER_TAKE : DOC_FINDER_PASS;
}

/* Inside a string: goes on behind the quote that ends it, or to `end`. */
static const char *
skip_string(struct doc_finder *f, const char *at, const char *end)
{
	uint64_t high = 0;

	while (at < end) {
		if (f->escaped) {
			f->escaped = false;
			at++;
			continue;
		}
		at = json_scan_plain(at, end, &high);
		if (at == end)
			break;
		f->escaped = *at == '\\';
		f->in_string = *at != '"';
		at++;
		if (!f->in_string)
			break;
	}
	return at;
}

/*
 * Goes through the value that has begun, up to its end or the piece's. A number or a literal ends
 * in front of the byte behind it, any other value behind its last byte.
 */
static const char *
skip_value(struct doc_finder *f, const char *at, const char *end, bool *ret_ended)
{
	*ret_ended = false;
	while (at < end) {
		if (f->in_string) {
			at = skip_string(f, at, end);
			*ret_ended = !f->in_string && f->depth == 0;
		} else if (*at == '"') {
			f->in_string = true;
			at++;
		} else if (*at == '{' || *at == '[') {
			f->depth++;
			at++;
		} else if (*at == '}' || *at == ']') {
			/* At depth 0 it is the end of the container around a number. */
			*ret_ended = f->depth <= 1;
			if (f->depth) {
				f->depth--;
				at++;
			}
		} else if (*at == ',' && f->depth == 0) {
			*ret_ended = true;
		} else {
			at++;
		}
		if (*ret_ended)
			break;
	}
	return at;
}

static enum status
finder_take(struct doc_finder *f, const char **at, const char *end)
{
	const char *begin = *at;
	bool ended;

	*at = skip_value(f, begin, end, &ended);
	buf_append(f->out, begin, (size_t)(*at - begin));
	f->done = ended;
	return buf_status(f->out);
}

static void
finder_pass(struct doc_finder *f, const char **at, const char *end)
{
	bool ended;

	*at = skip_value(f, *at, end, &ended);
	if (ended)
		f->state = DOC_FINDER_BEHIND;
}

/* Reads on from `*at`, one byte or, inside of a value, many. */
static enum status
finder_step(struct doc_finder *f, const char **at, const char *end)
{
	switch (f->state) {
	case DOC_FINDER_VALUE:
		return finder_enter_container(f, *(*at)++);
	case DOC_FINDER_FIRST_NAME:
	case DOC_FINDER_NEXT_NAME:
		return finder_begin_name(f, *(*at)++);
	case DOC_FINDER_NAME:
		finder_read_name(f, *(*at)++);
		return STATUS_OK;
	case DOC_FINDER_COLON:
		return finder_end_name(f, *(*at)++);
	case DOC_FINDER_FIRST_ELEMENT:
		return **at == ']' ? STATUS_NOT_FOUND : finder_choose_element(f);
	case DOC_FINDER_PASS_BEGIN:
	case DOC_FINDER_TAKE_BEGIN:
		finder_begin_value(f);
		return STATUS_OK;
	case DOC_FINDER_PASS:
		finder_pass(f, at, end);
		return STATUS_OK;
	case DOC_FINDER_BEHIND:
		return finder_go_on_behind(f, *(*at)++);
	case DOC_FINDER_TAKE:
		break;
	}
	return finder_take(f, at, end);
}

enum status
doc_finder_feed(struct doc_finder *f, struct str piece)
{
	const char *at = piece.ptr;
	const char *end = piece.ptr + piece.len;

	while (at < end && !f->done)
		TRY(finder_step(f, &at, end));
	return STATUS_OK;
}

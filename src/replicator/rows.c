/* A state machine over bytes: outside of the array, between two rows, in a row. */
#include "replicator/rows.h"

#include <assert.h>

void
rows_init(struct rows *r, size_t row_bytes, struct budget_part *part)
{
	*r = (struct rows){
		.rest = BUF_INIT_OF(ROWS_REST_BYTES, part),
		.row = BUF_INIT_OF(row_bytes, part),
	};
}

void
rows_release(struct rows *r)
{
	buf_release(&r->rest);
	buf_release(&r->row);
}

/* Moves *at, which is inside of a string, to the string's end or to that of the data. */
static void
rows_skip_string(struct rows *r, struct str data, size_t *at)
{
	while (*at < data.len) {
		char c = data.ptr[(*at)++];

		if (r->escaped)
			r->escaped = false;
		else if (c == '\\')
			r->escaped = true;
		else if (c == '"') {
			r->in_string = false;
			return;
		}
	}
}

static bool
rows_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Notes one byte outside of strings. False if the nesting is too deep or a bracket too many. */
static bool
rows_note_byte(struct rows *r, char c)
{
	switch (c) {
	case '"':
		r->in_string = true;
		return true;
	case '{':
	case '[':
		return r->depth++ < ROWS_DEPTH;
	case '}':
	case ']':
		return r->depth-- > 0;
	default:
		return true;
	}
}

/* Takes bytes outside of the array, up to its beginning or to the end of the data. */
static enum status
rows_take_outside(struct rows *r, struct str *data)
{
	size_t at = 0;

	while (at < data->len && r->where == ROWS_OUTSIDE) {
		char c;

		if (r->in_string) {
			rows_skip_string(r, *data, &at);
			continue;
		}
		c = data->ptr[at++];
		if (!rows_note_byte(r, c))
			return STATUS_JSON_SYNTAX;
		if (c == '[' && r->depth == 2 && !r->had_array) {
			r->had_array = true;
			r->where = ROWS_BETWEEN;
		}
	}
	buf_append(&r->rest, data->ptr, at);
	*data = str_skip(*data, at);
	return buf_status(&r->rest);
}

/* Takes spaces and commas, up to a row, to the end of the array, or to that of the data. */
static enum status
rows_take_between(struct rows *r, struct str *data)
{
	size_t at = 0;

	while (at < data->len && (rows_is_space(data->ptr[at]) || data->ptr[at] == ','))
		at++;
	*data = str_skip(*data, at);
	r->between += at;
	if (r->between > ROWS_BETWEEN_BYTES)
		return STATUS_LIMIT;
	if (data->len) {
		r->where = data->ptr[0] == ']' ? ROWS_OUTSIDE : ROWS_IN_ROW;
		r->between = 0;
	}
	return STATUS_OK;
}

/* Moves *at through a row. True if it has come to the row's end. */
static bool
rows_scan_row(struct rows *r, struct str data, size_t *at, bool *ret_bad)
{
	assert(r->where == ROWS_IN_ROW && r->depth >= 2);
	while (*at < data.len) {
		char c;

		if (r->in_string) {
			rows_skip_string(r, data, at);
			continue;
		}
		c = data.ptr[*at];
		if (r->depth == 2 && (c == ',' || c == ']' || rows_is_space(c)))
			return true;
		(*at)++;
		if (!rows_note_byte(r, c)) {
			*ret_bad = true;
			return false;
		}
		if (r->depth < 2) {
			*ret_bad = true;
			return false;
		}
	}
	return false;
}

static enum status
rows_take_row(struct rows *r, struct str *data, struct str *ret)
{
	bool bad = false;
	size_t at = 0;
	bool whole = rows_scan_row(r, *data, &at, &bad);
	struct str piece = str_of(data->ptr, at);

	if (bad)
		return STATUS_JSON_SYNTAX;
	*data = str_skip(*data, at);
	if (whole)
		r->where = ROWS_BETWEEN;
	if (whole && r->row.len == 0 && piece.len <= r->row.max_bytes) {
		*ret = piece;
		return STATUS_OK;
	}
	buf_append_str(&r->row, piece);
	TRY(buf_status(&r->row));
	if (!whole)
		return STATUS_NOT_FOUND;
	*ret = buf_str(&r->row);
	return STATUS_OK;
}

enum status
rows_next(struct rows *r, struct str *data, struct str *ret)
{
	/* The caller is done with the row that the last call gave out. */
	if (r->where != ROWS_IN_ROW)
		buf_clear(&r->row);
	while (data->len) {
		enum status status;

		switch (r->where) {
		case ROWS_OUTSIDE:
			TRY(rows_take_outside(r, data));
			break;
		case ROWS_BETWEEN:
			TRY(rows_take_between(r, data));
			break;
		case ROWS_IN_ROW:
			status = rows_take_row(r, data, ret);
			if (status != STATUS_NOT_FOUND)
				return status;
			break;
		}
	}
	return STATUS_NOT_FOUND;
}

enum status
rows_end(struct rows *r, struct str *ret)
{
	if (r->where != ROWS_OUTSIDE || r->depth != 0 || r->in_string)
		return STATUS_JSON_SYNTAX;
	*ret = buf_str(&r->rest);
	return STATUS_OK;
}

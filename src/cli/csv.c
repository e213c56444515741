#include "cli/csv.h"

/* What a byte is. */
enum csv_byte {
	BYTE_OF_VALUE,
	BYTE_OF_MARKUP, /* a quote, a backslash, a carriage return in front of the line's end */
	BYTE_ENDS_VALUE,
	BYTE_ENDS_RECORD,
	BYTE_MISPLACED,
};

/* The one place that knows what belongs where: csv_scan() and csv_read() follow it alike. */
static enum csv_byte
scan_byte(struct csv_scan *s, char c)
{
	if (s->escaped) {
		s->escaped = false;
		return BYTE_OF_VALUE;
	}
	if (s->place == CSV_PLACE_RETURN && c != '\n') {
		s->place = CSV_PLACE_PLAIN;
		return BYTE_MISPLACED;
	}
	if (s->place == CSV_PLACE_QUOTED) {
		if (c == '"')
			s->place = CSV_PLACE_BEHIND;
		s->escaped = c == '\\';
		return c == '"' || c == '\\' ? BYTE_OF_MARKUP : BYTE_OF_VALUE;
	}
	switch (c) {
	case '\n':
		s->place = CSV_PLACE_BEGIN;
		return BYTE_ENDS_RECORD;
	case '\r':
		s->place = CSV_PLACE_RETURN;
		return BYTE_OF_MARKUP;
	case ',':
		s->place = CSV_PLACE_BEGIN;
		return BYTE_ENDS_VALUE;
	default:
		break;
	}
	if (c == '"' && s->place != CSV_PLACE_PLAIN) {
		/* Behind a closing quote it is one that was doubled. */
		bool doubled = s->place == CSV_PLACE_BEHIND;

		s->place = CSV_PLACE_QUOTED;
		return doubled ? BYTE_OF_VALUE : BYTE_OF_MARKUP;
	}
	if (s->place == CSV_PLACE_BEHIND) {
		s->place = CSV_PLACE_PLAIN;
		return BYTE_MISPLACED;
	}
	s->place = CSV_PLACE_PLAIN;
	s->escaped = c == '\\';
	return s->escaped ? BYTE_OF_MARKUP : BYTE_OF_VALUE;
}

size_t
csv_scan(struct csv_scan *s, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (scan_byte(s, text.ptr[i]) == BYTE_ENDS_RECORD) {
			s->done = true;
			return i + 1;
		}
	return text.len;
}

/* ---- Reading ---- */

struct fields {
	struct arena *arena;
	struct csv_field *list;
	size_t count, cap;
	char *bytes; /* of all values, one behind the other */
	size_t used;
	size_t from; /* where the value begins that is being read */
	bool quoted;
	struct err *err;
};

static enum status
field_end(struct fields *f)
{
	if (f->count == CSV_FIELDS)
		return err_set(f->err, STATUS_INVALID,
			       "a record has more than %d values (CSV_FIELDS)", CSV_FIELDS);
	TRY(arena_room(f->arena, &f->list, f->count, &f->cap, sizeof(*f->list)));
	f->list[f->count++] = (struct csv_field){
		.text = str_of(f->bytes + f->from, f->used - f->from), .quoted = f->quoted
	};
	f->from = f->used;
	f->quoted = false;
	return STATUS_OK;
}

/* What the record's bytes say, one after the other; `*ret` tells where the record ends. */
static enum status
fields_read(struct fields *f, struct str record, struct csv_scan *s, size_t *ret)
{
	for (size_t i = 0; i < record.len; i++) {
		bool begins = s->place == CSV_PLACE_BEGIN;

		switch (scan_byte(s, record.ptr[i])) {
		case BYTE_OF_VALUE:
			f->bytes[f->used++] = record.ptr[i];
			break;
		case BYTE_OF_MARKUP:
			f->quoted = f->quoted || (begins && s->place == CSV_PLACE_QUOTED);
			break;
		case BYTE_ENDS_VALUE:
			TRY(field_end(f));
			break;
		case BYTE_ENDS_RECORD:
			*ret = i + 1;
			return STATUS_OK;
		case BYTE_MISPLACED:
			return err_set(f->err, STATUS_INVALID,
				       "the value %zu goes on behind its closing quote, or has a "
				       "carriage return outside of quotes",
				       f->count + 1);
		}
	}
	*ret = record.len;
	return STATUS_OK;
}

enum status
csv_read(struct str record, struct arena *arena, struct csv_field **ret, size_t *ret_count,
	 struct err *err)
{
	struct fields f = { .arena = arena,
			    .bytes = arena_bytes(arena, record.len + 1),
			    .err = err };
	struct csv_scan s = { 0 };
	size_t len;

	if (!f.bytes)
		return STATUS_LIMIT;
	TRY(fields_read(&f, record, &s, &len));
	if (s.place == CSV_PLACE_QUOTED || s.escaped)
		return err_set(err, STATUS_INVALID, "the value %zu is not closed", f.count + 1);
	if (len < record.len)
		return err_set(err, STATUS_INVALID, "there is more than one record");
	TRY(field_end(&f));
	*ret = f.list;
	*ret_count = f.count;
	return STATUS_OK;
}

/* ---- Writing ---- */

void
csv_put(struct buf *out, struct str value)
{
	bool quoted = !value.len;

	for (size_t i = 0; i < value.len && !quoted; i++)
		quoted = value.ptr[i] == ',' || value.ptr[i] == '\r' || value.ptr[i] == '\n';
	if (quoted)
		buf_append_byte(out, '"');
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '"' || value.ptr[i] == '\\')
			buf_append_byte(out, '\\');
		buf_append_byte(out, (uint8_t)value.ptr[i]);
	}
	if (quoted)
		buf_append_byte(out, '"');
}

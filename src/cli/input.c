#include "cli/input.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/csv.h"
#include "doc/json.h"

enum {
	READ_BYTES = 256 * 1024,
	/* Room for a value, the closing byte behind it, and one more read. */
	WINDOW_BYTES = INPUT_VALUE_BYTES + READ_BYTES + 1,
	KEY_BYTES = 1024 * 1024, /* a member's name in a map */
};

/* How far a format with brackets has been read. */
enum stage {
	STAGE_OPENING,
	STAGE_FIRST, /* after the opening bracket */
	STAGE_NEXT,  /* after a value */
	STAGE_DONE,
};

struct input {
	input_reader *read;
	void *arg;
	enum input_format format;
	const char *rows_member;
	enum stage stage;
	char *window;
	size_t cap;
	size_t at;  /* what comes next */
	size_t end; /* of what has been read */
	bool eof;
	uint64_t bytes;
	uint64_t line;
	size_t given; /* the length of the item that was returned last; the next call consumes it */
	struct buf id;
};

static const char *const format_names[] = {
	[INPUT_AUTO] = "auto", [INPUT_LINES] = "lines",       [INPUT_ARRAY] = "array",
	[INPUT_MAP] = "map",   [INPUT_DOCUMENT] = "document", [INPUT_ROWS] = "rows",
	[INPUT_CSV] = "csv",
};

bool
input_format_parse(struct str name, enum input_format *ret)
{
	for (enum input_format f = INPUT_AUTO; f <= INPUT_CSV; f++) {
		if (f != INPUT_ROWS && str_eq(name, str_from_cstr(format_names[f]))) {
			*ret = f;
			return true;
		}
	}
	return false;
}

const char *
input_format_name(enum input_format format)
{
	return format_names[format];
}

enum status
input_read_fd(void *arg, char *to, size_t n, size_t *ret, struct err *err)
{
	const int *fd = arg;

	for (;;) {
		ssize_t got = read(*fd, to, n);

		if (got >= 0) {
			*ret = (size_t)got;
			return STATUS_OK;
		}
		if (errno != EINTR)
			return err_set(err, STATUS_IO, "cannot read: %s", strerror(errno));
	}
}

struct input *
input_new(input_reader *read, void *arg, enum input_format format, const char *rows_member)
{
	struct input *in = mem_zalloc(sizeof(*in));

	if (!in)
		return NULL;
	in->read = read;
	in->arg = arg;
	in->format = format;
	in->rows_member = rows_member;
	in->line = 1;
	buf_init(&in->id, KEY_BYTES);
	return in;
}

void
input_free(struct input *in)
{
	if (!in)
		return;
	buf_release(&in->id);
	mem_free(in->window);
	mem_free(in);
}

enum input_format
input_format(const struct input *in)
{
	return in->format;
}

uint64_t
input_bytes(const struct input *in)
{
	return in->bytes;
}

uint64_t
input_line(const struct input *in)
{
	return in->line;
}

/* ---- The window ---- */

/* Reads more into the window, whose bytes may move. STATUS_LIMIT: the window is full. */
static enum status
input_fill(struct input *in, struct err *err)
{
	enum status status;
	size_t got = 0;

	if (in->eof)
		return STATUS_OK;
	if (in->at > 0 && in->cap - in->end < READ_BYTES) {
		memmove(in->window, in->window + in->at, in->end - in->at);
		in->end -= in->at;
		in->at = 0;
	}
	if (in->cap - in->end < READ_BYTES) {
		size_t cap = in->cap ? in->cap * 2 : (size_t)2 * READ_BYTES;
		char *window;

		cap = cap < WINDOW_BYTES ? cap : WINDOW_BYTES;
		if (cap == in->end)
			return STATUS_LIMIT;
		window = mem_realloc(in->window, cap);
		if (!window)
			return err_set(err, STATUS_NOMEM, "out of memory");
		in->window = window;
		in->cap = cap;
	}
	status = in->read(in->arg, in->window + in->end, in->cap - in->end, &got, err);
	/* STATUS_NOT_FOUND would mean the end of the input to the caller of input_next(). */
	if (status == STATUS_NOT_FOUND)
		status = STATUS_IO;
	TRY(status);
	in->eof = got == 0;
	in->end += got;
	return STATUS_OK;
}

/* Consumes the next `n` bytes. */
static void
input_use(struct input *in, size_t n)
{
	const char *p = in->window + in->at;
	const char *end = p + n;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		in->line++;
		p++;
	}
	in->at += n;
	in->bytes += n;
}

static bool
input_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Skips white space. `*ret` is the byte that comes next, or 0 at the end of the input. */
static enum status
input_peek(struct input *in, char *ret, struct err *err)
{
	for (;;) {
		size_t n = 0;

		while (in->at + n < in->end && input_is_space(in->window[in->at + n]))
			n++;
		if (n)
			input_use(in, n);
		if (in->at < in->end || in->eof)
			break;
		TRY(input_fill(in, err));
	}
	*ret = '\0';
	if (in->at < in->end)
		*ret = in->window[in->at];
	return STATUS_OK;
}

/* ---- Values ---- */

struct scan {
	size_t depth;
	bool in_string;
	bool escaped;
	bool done;
};

/* Scans `n` bytes, and returns how many of them belong to the value. */
static size_t
scan_bytes(struct scan *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (s->in_string) {
			if (s->escaped)
				s->escaped = false;
			else if (c == '\\')
				s->escaped = true;
			else if (c == '"')
				s->in_string = false;
			if (s->in_string || s->depth)
				continue;
			s->done = true;
			return i + 1;
		}
		if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			s->depth++;
		} else if (s->depth == 0) {
			/* A number or a word ends before the first byte that is not part of it. */
			if (input_is_space(c) || c == ',' || c == ':' || c == '}' || c == ']') {
				s->done = true;
				return i;
			}
		} else if ((c == '}' || c == ']') && --s->depth == 0) {
			s->done = true;
			return i + 1;
		}
	}
	return n;
}

/*
 * Reads the value that comes next into the window as a whole, and tells its length. STATUS_LIMIT:
 * it is longer than INPUT_VALUE_BYTES, and `s` tells where in the value the window ends.
 * STATUS_JSON_SYNTAX: the input ends in the middle of it.
 */
static enum status
input_measure_value(struct input *in, struct scan *s, size_t *ret, struct err *err)
{
	size_t n = 0;

	*s = (struct scan){ 0 };
	for (;;) {
		n += scan_bytes(s, in->window + in->at + n, in->end - in->at - n);
		*ret = n;
		if (n > INPUT_VALUE_BYTES)
			return STATUS_LIMIT;
		if (s->done)
			return STATUS_OK;
		if (in->eof) {
			if (n && s->depth == 0 && !s->in_string)
				return STATUS_OK;
			return err_set(err, STATUS_JSON_SYNTAX,
				       "the input ends in the middle of the value that starts "
				       "here");
		}
		TRY(input_fill(in, err));
	}
}

/* Consumes the rest of a value that input_measure_value() found too long. */
static enum status
input_skip_value(struct input *in, struct scan *s, size_t scanned, struct err *err)
{
	input_use(in, scanned);
	while (!s->done) {
		size_t n;

		if (in->at == in->end) {
			if (in->eof)
				return err_set(err, STATUS_JSON_SYNTAX,
					       "the input ends in the middle of a value");
			TRY(input_fill(in, err));
		}
		n = scan_bytes(s, in->window + in->at, in->end - in->at);
		input_use(in, n);
	}
	return STATUS_OK;
}

/* Returns the value that comes next as an item. */
static enum status
input_take_value(struct input *in, struct input_item *ret, struct err *err)
{
	enum status status;
	struct scan s;
	size_t n = 0;
	char c;

	TRY(input_peek(in, &c, err));
	ret->line = in->line;
	status = input_measure_value(in, &s, &n, err);
	if (status == STATUS_LIMIT) {
		ret->too_large = true;
		return input_skip_value(in, &s, n, err);
	}
	TRY(status);
	if (n == 0)
		return err_set(err, STATUS_JSON_SYNTAX, "expected a value, not '%c'", c);
	ret->text = str_of(in->window + in->at, n);
	in->given = n;
	return STATUS_OK;
}

/* ---- Formats ---- */

static enum status
input_next_line(struct input *in, struct input_item *ret, struct err *err)
{
	size_t n = 0;

	for (;;) {
		const char *from = in->window + in->at;
		const char *newline = in->at < in->end
					      ? memchr(from + n, '\n', in->end - in->at - n)
					      : NULL;

		if (!newline && !in->eof && in->end - in->at <= INPUT_VALUE_BYTES) {
			n = in->end - in->at;
			TRY(input_fill(in, err));
			continue;
		}
		n = newline ? (size_t)(newline - from) : in->end - in->at;
		ret->line = in->line;
		if (n > INPUT_VALUE_BYTES) {
			ret->too_large = true;
			break;
		}
		if (n == 0 && !newline)
			return STATUS_NOT_FOUND;
		ret->text = str_trim(str_of(from, n));
		if (ret->text.len) {
			in->given = n + (newline ? 1 : 0);
			return STATUS_OK;
		}
		input_use(in, n + 1 > in->end - in->at ? n : n + 1);
		n = 0;
	}
	for (;;) { /* the rest of a line that is too long */
		const char *from = in->window + in->at;
		const char *newline = memchr(from, '\n', in->end - in->at);

		input_use(in, newline ? (size_t)(newline - from) + 1 : in->end - in->at);
		if (newline || in->eof)
			return STATUS_OK;
		TRY(input_fill(in, err));
	}
}

static bool
input_is_blank(struct str record)
{
	return str_eq(record, STR("\n")) || str_eq(record, STR("\r\n"));
}

/* Consumes the rest of a record of which `n` bytes were scanned. */
static enum status
input_skip_record(struct input *in, struct csv_scan *s, size_t n, struct err *err)
{
	for (;;) {
		input_use(in, n);
		if (s->done || (in->eof && in->at == in->end))
			return STATUS_OK;
		if (in->at == in->end)
			TRY(input_fill(in, err));
		n = csv_scan(s, str_of(in->window + in->at, in->end - in->at));
	}
}

/* A record of CSV, which has lines' ends in its quotes. Blank lines are skipped. */
static enum status
input_next_record(struct input *in, struct input_item *ret, struct err *err)
{
	for (;;) {
		struct csv_scan s = { 0 };
		size_t n = 0;

		for (;;) {
			n += csv_scan(&s, str_of(in->window + in->at + n, in->end - in->at - n));
			if (s.done || in->eof || n > INPUT_VALUE_BYTES)
				break;
			TRY(input_fill(in, err));
		}
		ret->line = in->line;
		if (n == 0)
			return STATUS_NOT_FOUND;
		if (n > INPUT_VALUE_BYTES) {
			ret->too_large = true;
			return input_skip_record(in, &s, n, err);
		}
		ret->text = str_of(in->window + in->at, n);
		if (!input_is_blank(ret->text)) {
			in->given = n;
			return STATUS_OK;
		}
		input_use(in, n);
	}
}

/* Consumes the byte that must come next. */
static enum status
input_expect(struct input *in, char wanted, struct err *err)
{
	char c;

	TRY(input_peek(in, &c, err));
	if (c == '\0')
		return err_set(err, STATUS_JSON_SYNTAX, "the input ends where '%c' is expected",
			       wanted);
	if (c != wanted)
		return err_set(err, STATUS_JSON_SYNTAX, "expected '%c', not '%c'", wanted, c);
	input_use(in, 1);
	return STATUS_OK;
}

/* Reads a member's name, into in->id, and the colon behind it. */
static enum status
input_take_key(struct input *in, struct err *err)
{
	struct input_item key = { 0 };
	struct json_reader r;
	enum json_token token = JSON_END;
	enum status status;

	TRY(input_take_value(in, &key, err));
	if (key.text.len == 0 || key.text.ptr[0] != '"')
		return err_set(err, STATUS_JSON_SYNTAX, "expected the name of a member");
	json_reader_init(&r, key.text, err);
	status = json_next(&r, &token);
	buf_clear(&in->id);
	if (status == STATUS_OK)
		buf_append_str(&in->id, r.text);
	json_reader_release(&r);
	TRY(status);
	if (buf_status(&in->id) != STATUS_OK)
		return err_set(err, buf_status(&in->id), "the name of a member is too long");
	input_use(in, in->given);
	in->given = 0;
	return input_expect(in, ':', err);
}

/* Skips to the first row, past the members before the one that has the rows. */
static enum status
input_find_rows(struct input *in, struct err *err)
{
	TRY(input_expect(in, '{', err));
	for (;;) {
		struct input_item value = { 0 };
		char c;

		TRY(input_take_key(in, err));
		TRY(input_peek(in, &c, err));
		if (c == '[' && str_eq(buf_str(&in->id), str_from_cstr(in->rows_member))) {
			input_use(in, 1);
			return STATUS_OK;
		}
		TRY(input_take_value(in, &value, err));
		input_use(in, in->given);
		in->given = 0;
		TRY(input_expect(in, ',', err));
	}
}

static enum status
input_check_end(struct input *in, struct err *err)
{
	char c;

	TRY(input_peek(in, &c, err));
	if (c != '\0')
		return err_set(err, STATUS_JSON_SYNTAX, "'%c' follows the end of the %s", c,
			       format_names[in->format]);
	in->stage = STAGE_DONE;
	return STATUS_NOT_FOUND;
}

/* Reads what follows the rows: the rest of the object. */
static enum status
input_finish_rows(struct input *in, struct err *err)
{
	char c;

	for (;;) {
		struct input_item value = { 0 };

		TRY(input_peek(in, &c, err));
		if (c == '}')
			break;
		TRY(input_expect(in, ',', err));
		TRY(input_take_key(in, err));
		TRY(input_take_value(in, &value, err));
		input_use(in, in->given);
		in->given = 0;
	}
	input_use(in, 1);
	return input_check_end(in, err);
}

static enum status
input_next_member(struct input *in, struct input_item *ret, struct err *err)
{
	bool map = in->format == INPUT_MAP;
	char closing = map ? '}' : ']';
	char c;

	if (in->stage == STAGE_OPENING) {
		if (in->format == INPUT_ROWS)
			TRY(input_find_rows(in, err));
		else
			TRY(input_expect(in, map ? '{' : '[', err));
		in->stage = STAGE_FIRST;
	}
	TRY(input_peek(in, &c, err));
	if (c == closing) {
		input_use(in, 1);
		return in->format == INPUT_ROWS ? input_finish_rows(in, err)
						: input_check_end(in, err);
	}
	if (in->stage == STAGE_NEXT)
		TRY(input_expect(in, ',', err));
	in->stage = STAGE_NEXT;
	if (map) {
		TRY(input_take_key(in, err));
		ret->id = buf_str(&in->id);
	}
	return input_take_value(in, ret, err);
}

static enum status
input_next_document(struct input *in, struct input_item *ret, struct err *err)
{
	char c;

	TRY(input_peek(in, &c, err));
	if (in->stage == STAGE_OPENING && c != '\0') {
		in->stage = STAGE_NEXT;
		return input_take_value(in, ret, err);
	}
	return input_check_end(in, err);
}

/* ---- Telling the formats apart ---- */

/* Rule 5: an object that is the whole input may hold documents, or be one. */
static enum input_format
input_judge_object(struct str text)
{
	enum input_format format = INPUT_DOCUMENT;
	enum json_token token;
	struct json_reader r;
	struct str value;
	size_t members = 0;

	json_reader_init(&r, text, NULL);
	if (json_next(&r, &token) != STATUS_OK)
		goto out;
	for (;;) {
		if (json_next(&r, &token) != STATUS_OK)
			goto out;
		if (token == JSON_OBJECT_END)
			break;
		if (str_eq(r.text, STR("_id")) || json_next(&r, &token) != STATUS_OK ||
		    token != JSON_OBJECT_BEGIN || json_skip(&r, token, &value) != STATUS_OK)
			goto out;
		members++;
	}
	if (members)
		format = INPUT_MAP;
out:
	json_reader_release(&r);
	return format;
}

static enum status
input_detect_format(struct input *in, struct err *err)
{
	enum status status;
	struct scan s;
	size_t after;
	size_t n = 0;
	char c;

	TRY(input_peek(in, &c, err));
	if (c != '{') {
		in->format = c == '[' ? INPUT_ARRAY : INPUT_LINES;
		return STATUS_OK;
	}
	status = input_measure_value(in, &s, &n, err);
	if (status == STATUS_LIMIT || status == STATUS_JSON_SYNTAX) {
		in->format = status == STATUS_LIMIT ? INPUT_MAP : INPUT_LINES;
		return STATUS_OK;
	}
	TRY(status);
	for (after = n;;) {
		while (in->at + after < in->end && input_is_space(in->window[in->at + after]))
			after++;
		if (in->at + after < in->end || in->eof)
			break;
		status = input_fill(in, err);
		if (status == STATUS_LIMIT)
			break;
		TRY(status);
	}
	if (in->at + after < in->end || !in->eof)
		in->format = INPUT_LINES;
	else
		in->format = input_judge_object(str_of(in->window + in->at, n));
	return STATUS_OK;
}

enum status
input_next(struct input *in, struct input_item *ret, struct err *err)
{
	*ret = (struct input_item){ 0 };
	if (in->given) {
		input_use(in, in->given);
		in->given = 0;
	}
	if (in->cap == 0)
		TRY(input_fill(in, err));
	if (in->format == INPUT_AUTO)
		TRY(input_detect_format(in, err));

	switch (in->format) {
	case INPUT_AUTO:
	case INPUT_LINES:
		return input_next_line(in, ret, err);
	case INPUT_DOCUMENT:
		return input_next_document(in, ret, err);
	case INPUT_CSV:
		return input_next_record(in, ret, err);
	case INPUT_ARRAY:
	case INPUT_MAP:
	case INPUT_ROWS:
		return in->stage == STAGE_DONE ? STATUS_NOT_FOUND : input_next_member(in, ret, err);
	}
	return STATUS_INVALID;
}

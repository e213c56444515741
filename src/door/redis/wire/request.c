#include "door/redis/wire/request.h"

#include <assert.h>

enum {
	ARGS_FIRST = 16,
	ARGS_KEPT = 1024, /* a longer array is freed after its request */
	QUICK_DIGITS = 9,
};

void
request_init(struct request *r, struct budget_part *part)
{
	*r = (struct request){ .bulk_bytes = REQUEST_BULK_BYTES,
			       .room = BUF_INIT_OF(REQUEST_ARGS * sizeof(*r->args), part) };
}

void
request_fini(struct request *r)
{
	buf_release(&r->room);
	r->args = NULL;
	r->cap = 0;
}

void
request_clear(struct request *r)
{
	if (r->cap > ARGS_KEPT)
		request_fini(r);
	r->at = r->count = r->expected = r->bulk_len = 0;
	r->in_array = r->in_bulk = false;
}

/* ---- Lines ---- */

/*
 * The line that begins at r->at, without its end; `*ret_next` is where the next one begins.
 * STATUS_NOT_FOUND: its end has not come.
 */
static enum status
request_line(const struct request *r, struct str in, struct str *ret, size_t *ret_next)
{
	struct str rest = str_skip(in, r->at);
	const char *end = memchr(rest.ptr, '\n', rest.len);

	if (!end)
		return STATUS_NOT_FOUND;
	*ret = str_of(rest.ptr, (size_t)(end - rest.ptr));
	*ret_next = r->at + ret->len + 1;
	if (ret->len && ret->ptr[ret->len - 1] == '\r')
		ret->len--;
	return STATUS_OK;
}

/* As request_line(); refuses a line that grows too long. */
static enum status
request_short_line(const struct request *r, struct str in, const char *too_long, struct str *ret,
		   size_t *ret_next, size_t *ret_need, struct err *err)
{
	enum status status = request_line(r, in, ret, ret_next);

	if (status == STATUS_NOT_FOUND && in.len - r->at > REQUEST_INLINE_BYTES)
		return err_set(err, STATUS_INVALID, "%s", too_long);
	*ret_need = in.len + 1;
	return status;
}

/*
 * The number of a line as clients write it, which is all there: the mark, a few digits, CR and LF.
 * False: the line has to be looked at as a whole.
 */
static inline bool
request_quick_number(const struct request *r, struct str in, char mark, int64_t *ret,
		     size_t *ret_next)
{
	const char *at = in.ptr + r->at, *end = in.ptr + in.len;
	const char *first = at + 1;
	int64_t n = 0;

	if (at == end || *at != mark)
		return false;
	/* Mostly one digit. */
	if (end - at >= 4 && at[2] == '\r' && at[3] == '\n' && (unsigned)(at[1] - '0') <= 9) {
		*ret = at[1] - '0';
		*ret_next = r->at + 4;
		return true;
	}
	for (at = first; at < end && *at >= '0' && *at <= '9'; at++) {
		if (at - first == QUICK_DIGITS)
			return false;
		n = 10 * n + (*at - '0');
	}
	if (at == first || end - at < 2 || at[0] != '\r' || at[1] != '\n')
		return false;
	*ret = n;
	*ret_next = (size_t)(at - in.ptr) + 2;
	return true;
}

static enum status
request_grow(struct request *r, struct err *err)
{
	enum status status;

	r->room.len = r->count * sizeof(*r->args);
	(void)buf_reserve(&r->room, (r->cap ? r->cap : ARGS_FIRST) * sizeof(*r->args));
	status = buf_status(&r->room);
	r->room.failed = STATUS_OK;
	if (status == STATUS_LIMIT)
		return err_set(err, status,
			       "there is no memory for so many arguments (memory_bytes)");
	r->args = (struct request_arg *)(void *)r->room.ptr;
	r->cap = r->room.cap / sizeof(*r->args);
	return status;
}

static enum status
request_add(struct request *r, size_t from, size_t len, struct err *err)
{
	if (r->count == r->cap)
		TRY(request_grow(r, err));
	r->args[r->count++] = (struct request_arg){ from, len };
	return STATUS_OK;
}

/* ---- Arrays of bulk strings ---- */

static enum status
request_read_array(struct request *r, struct str in, size_t *ret_need, struct err *err)
{
	struct str line;
	size_t next;
	int64_t n;

	if (!request_quick_number(r, in, '*', &n, &next)) {
		TRY(request_short_line(r, in, "Protocol error: too big mbulk count string", &line,
				       &next, ret_need, err));
		if (!str_to_i64(str_skip(line, 1), &n))
			n = INT64_MAX;
	}
	if (n > REQUEST_ARGS)
		return err_set(err, STATUS_INVALID, "Protocol error: invalid multibulk length");
	if (n > REQUEST_STRANGER_ARGS && r->stranger)
		return err_set(err, STATUS_INVALID,
			       "Protocol error: unauthenticated multibulk length");
	r->at = next;
	r->in_array = true;
	r->expected = n > 0 ? (size_t)n : 0;
	return STATUS_OK;
}

static enum status
request_read_length(struct request *r, struct str in, size_t *ret_need, struct err *err)
{
	struct str line;
	size_t next;
	int64_t n;

	if (!request_quick_number(r, in, '$', &n, &next)) {
		TRY(request_short_line(r, in, "Protocol error: too big bulk count string", &line,
				       &next, ret_need, err));
		if (!line.len || line.ptr[0] != '$')
			return err_set(err, STATUS_INVALID,
				       "Protocol error: expected '$', got '%c'",
				       line.len ? line.ptr[0] : '\r');
		if (!str_to_i64(str_skip(line, 1), &n))
			n = -1;
	}
	if (n < 0 || (uint64_t)n > r->bulk_bytes)
		return err_set(err, STATUS_INVALID, "Protocol error: invalid bulk length");
	if (n > REQUEST_STRANGER_BULK_BYTES && r->stranger)
		return err_set(err, STATUS_INVALID, "Protocol error: unauthenticated bulk length");
	r->at = next;
	r->in_bulk = true;
	r->bulk_len = (size_t)n;
	return STATUS_OK;
}

static enum status
request_read_bulks(struct request *r, struct str in, size_t *ret_need, struct err *err)
{
	while (r->count < r->expected) {
		if (!r->in_bulk)
			TRY(request_read_length(r, in, ret_need, err));
		*ret_need = r->at + r->bulk_len + 2;
		if (in.len < *ret_need)
			return STATUS_NOT_FOUND;
		TRY(request_add(r, r->at, r->bulk_len, err));
		r->at += r->bulk_len + 2;
		r->in_bulk = false;
	}
	return STATUS_OK;
}

/* ---- Words of a line ---- */

/* One character of a text in double quotes, whose first is not a quote. */
static size_t
split_escape(struct str s, size_t i, char *ret)
{
	int high, low;

	*ret = s.ptr[i];
	if (s.ptr[i] != '\\' || i + 1 == s.len)
		return i + 1;
	if (s.ptr[i + 1] == 'x' && i + 3 < s.len) {
		high = str_hex_digit(s.ptr[i + 2]);
		low = str_hex_digit(s.ptr[i + 3]);
		if (high >= 0 && low >= 0) {
			*ret = (char)(high << 4 | low);
			return i + 4;
		}
	}
	switch (s.ptr[i + 1]) {
	case 'n':
		*ret = '\n';
		break;
	case 'r':
		*ret = '\r';
		break;
	case 't':
		*ret = '\t';
		break;
	case 'b':
		*ret = '\b';
		break;
	case 'a':
		*ret = '\a';
		break;
	default:
		*ret = s.ptr[i + 1];
	}
	return i + 2;
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The part in quotes that begins at `i`; 0 if they do not end, or no space follows them. */
static size_t
split_quoted(struct str s, size_t i, char *out, size_t *len)
{
	char quote = s.ptr[i++];

	while (i < s.len && s.ptr[i] != quote) {
		if (quote == '"') {
			i = split_escape(s, i, &out[*len]);
		} else {
			if (s.ptr[i] == '\\' && i + 1 < s.len && s.ptr[i + 1] == '\'')
				i++;
			out[*len] = s.ptr[i++];
		}
		++*len;
	}
	if (i >= s.len || (i + 1 < s.len && !is_space(s.ptr[i + 1])))
		return 0;
	return i + 1;
}

/* A word that begins at `*at`, put together in `out`, which is as long as the line. */
static enum status
split_word(struct str s, size_t *at, char *out, struct str *ret)
{
	size_t i = *at;
	size_t len = 0;

	while (i < s.len && !is_space(s.ptr[i])) {
		if (s.ptr[i] == '"' || s.ptr[i] == '\'') {
			i = split_quoted(s, i, out, &len);
			if (!i)
				return STATUS_INVALID;
			break;
		}
		out[len++] = s.ptr[i++];
	}
	*ret = str_of(out, len);
	*at = i;
	return STATUS_OK;
}

/*
 * Cuts a line into words as Redis does: quotes, \n and \xff inside double ones. STATUS_INVALID for
 * quotes that are not balanced. The words are in the arena.
 */
static enum status
request_split(struct str line, struct arena *arena, struct str **ret, size_t *ret_count)
{
	char *out = arena_bytes(arena, line.len + 1);
	struct str *words = NULL;
	size_t cap = 0;
	size_t at = 0;

	*ret = NULL;
	*ret_count = 0;
	if (!out)
		return STATUS_NOMEM;
	for (;;) {
		while (at < line.len && is_space(line.ptr[at]))
			at++;
		if (at == line.len)
			return STATUS_OK;
		words = arena_grow(arena, words, *ret_count, &cap, sizeof(*words));
		if (!words)
			return STATUS_NOMEM;
		TRY(split_word(line, &at, out, &words[*ret_count]));
		out += words[*ret_count].len;
		++*ret_count;
		*ret = words;
	}
}

static enum status
request_read_inline(struct request *r, struct str in, struct arena *arena, size_t *ret_need,
		    struct err *err)
{
	struct str *words;
	struct str line;
	size_t count;
	size_t next;

	TRY(request_short_line(r, in, "Protocol error: too big inline request", &line, &next,
			       ret_need, err));
	if (request_split(line, arena, &words, &count) == STATUS_INVALID)
		return err_set(err, STATUS_INVALID, "Protocol error: unbalanced quotes in request");
	r->at = next;
	r->expected = count;
	return STATUS_OK;
}

/* ---- The whole ---- */

enum status
request_read(struct request *r, struct str in, struct arena *arena, size_t *ret_need,
	     struct err *err)
{
	*ret_need = 1;
	if (!in.len)
		return STATUS_NOT_FOUND;
	assert(r->at <= in.len);
	if (in.ptr[0] != '*')
		return request_read_inline(r, in, arena, ret_need, err);
	if (!r->in_array)
		TRY(request_read_array(r, in, ret_need, err));
	return request_read_bulks(r, in, ret_need, err);
}

enum status
request_args(const struct request *r, struct str in, struct arena *arena, struct str **ret)
{
	struct str *args;
	size_t count;

	if (!r->in_array) {
		struct str line = str_of(in.ptr, r->at);

		TRY(request_split(line, arena, ret, &count));
		assert(count == r->expected);
		return STATUS_OK;
	}
	args = arena_alloc(arena, (r->count ? r->count : 1) * sizeof(*args));
	if (!args)
		return STATUS_NOMEM;
	for (size_t i = 0; i < r->count; i++)
		args[i] = str_of(in.ptr + r->args[i].from, r->args[i].len);
	*ret = args;
	return STATUS_OK;
}

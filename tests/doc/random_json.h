/* Random documents as clients may send them: unsorted, with duplicates, white space and escapes. */
#ifndef FROND_TESTS_DOC_RANDOM_JSON_H
#define FROND_TESTS_DOC_RANDOM_JSON_H

#include "base/buf.h"
#include "base/rand.h"

static inline void
random_space(struct rand_seq *r, struct buf *out)
{
	if (rand_seq_below(r, 4) == 0)
		buf_append_cstr(out, rand_seq_below(r, 2) ? " \n" : "\t");
}

static inline void
random_string(struct rand_seq *r, struct buf *out)
{
	static const char *const pieces[] = {
		"a",       "b",   "0",       "1",       "zz",       "\\\"", "\\\\",           "\\/",
		"\\u0000", "\\n", "\\u001f", "\\u00e9", "\xc3\xa9", "~",    "\\ud83d\\ude00", "/",
	};

	buf_append_byte(out, '"');
	for (size_t n = rand_seq_below(r, 4); n; n--)
		buf_append_cstr(out, pieces[rand_seq_below(r, sizeof(pieces) / sizeof(*pieces))]);
	buf_append_byte(out, '"');
}

static inline void
random_scalar(struct rand_seq *r, struct buf *out)
{
	static const char *const values[] = {
		"null",
		"true",
		"false",
		"0",
		"-0",
		"17",
		"255",
		"-1815",
		"1.10",
		"0.1",
		"1e400",
		"1E-2",
		"-0.0",
		"18446744073709551616",
		"1.0",
		"256",
		"1e2",
		"5e-324",
		"[]",
		"{}",
		"123456789012345678901234567890",
	};

	if (rand_seq_below(r, 3) == 0)
		random_string(r, out);
	else
		buf_append_cstr(out, values[rand_seq_below(r, sizeof(values) / sizeof(*values))]);
}

static inline void random_value(struct rand_seq *r, unsigned depth, struct buf *out);

/* `top`: members whose names start with an underscore are there, too. */
static inline void
random_object(struct rand_seq *r, unsigned depth, bool top, struct buf *out)
{
	size_t count = rand_seq_below(r, top ? 24 : 6);

	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		random_space(r, out);
		if (top && rand_seq_below(r, 8) == 0)
			buf_append_cstr(out, "\"_special\"");
		else
			random_string(r, out);
		random_space(r, out);
		buf_append_byte(out, ':');
		random_value(r, depth, out);
	}
	random_space(r, out);
	buf_append_byte(out, '}');
}

static inline void
random_value(struct rand_seq *r, unsigned depth, struct buf *out)
{
	random_space(r, out);
	if (!depth || rand_seq_below(r, 3)) {
		random_scalar(r, out);
	} else if (rand_seq_below(r, 2)) {
		random_object(r, depth - 1, false, out);
	} else {
		size_t count = rand_seq_below(r, 5);

		buf_append_byte(out, '[');
		for (size_t i = 0; i < count; i++) {
			if (i)
				buf_append_byte(out, ',');
			random_value(r, depth - 1, out);
		}
		buf_append_byte(out, ']');
	}
	random_space(r, out);
}

#endif

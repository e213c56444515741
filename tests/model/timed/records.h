/*
 * Stored records as texts, and what their parsers have to refuse. A record is a row of words:
 *
 *     12 -3        integers of a tuple
 *     t f n        true, false, null
 *     b:abc s:abc  bytes, a string
 *     ( )          what a nested tuple has
 *     id uuid      the bytes "iiiiiiiiiiiiiii" (15); a UUID
 *     =abc x00ff   bytes that are no element: as they are, and as digits
 *     =a*300       the same byte again and again
 */
#ifndef FROND_TESTS_MODEL_TIMED_RECORDS_H
#define FROND_TESTS_MODEL_TIMED_RECORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/status.h"
#include "kv/tuple.h"

enum {
	RECORD_BYTES = 200 * 1000,
	RECORD_WORD_BYTES = 200,
};

/* Parses the bytes, and if it accepts them, writes what it has read. */
typedef enum status record_parse(struct str value, struct buf *ret_again);

static inline void
record_put_raw(const char *word, struct buf *ret)
{
	const char *star = strchr(word, '*');

	if (!star) {
		buf_append_cstr(ret, word);
		return;
	}
	for (long n = strtol(star + 1, NULL, 10); n > 0; n--)
		buf_append(ret, word, (size_t)(star - word));
}

static inline void
record_put_digits(const char *word, struct buf *ret)
{
	for (; word[0] && word[1]; word += 2) {
		const char digits[] = { word[0], word[1], 0 };

		buf_append_byte(ret, (uint8_t)strtoul(digits, NULL, 16));
	}
}

static inline void
record_put_word(const char *word, struct buf *ret)
{
	static const uint8_t uuid[16] = "uuuuuuuuuuuuuuuu";

	if (word[0] == '-')
		tuple_put_i64(ret, strtoll(word, NULL, 10));
	else if (word[0] >= '0' && word[0] <= '9')
		tuple_put_u64(ret, strtoull(word, NULL, 10));
	else if (!strncmp(word, "b:", 2))
		tuple_put_bytes(ret, str_from_cstr(word + 2));
	else if (!strncmp(word, "s:", 2))
		tuple_put_str(ret, str_from_cstr(word + 2));
	else if (!strcmp(word, "id"))
		tuple_put_bytes(ret, STR("iiiiiiiiiiiiiii"));
	else if (!strcmp(word, "uuid"))
		tuple_put_uuid(ret, uuid);
	else if (!strcmp(word, "("))
		tuple_open(ret);
	else if (!strcmp(word, ")"))
		tuple_close(ret);
	else if (!strcmp(word, "t") || !strcmp(word, "f"))
		tuple_put_bool(ret, word[0] == 't');
	else if (!strcmp(word, "n"))
		tuple_put_null(ret);
	else if (word[0] == '=')
		record_put_raw(word + 1, ret);
	else if (word[0] == 'x')
		record_put_digits(word + 1, ret);
	else
		fail_msg("no word of a record: %s", word);
}

static inline void
record_put(const char *text, struct buf *ret)
{
	char word[RECORD_WORD_BYTES];

	while (*text) {
		size_t len = strcspn(text, " ");

		assert_true(len < sizeof(word));
		memcpy(word, text, len);
		word[len] = 0;
		if (len)
			record_put_word(word, ret);
		text += len + (text[len] != 0);
	}
	assert_int_equal(buf_status(ret), STATUS_OK);
}

/* Parses a copy that ends where the record does, so that sanitizers see what is read behind it. */
static inline enum status
record_parse_copy(record_parse *parse, struct str value, struct buf *ret_again)
{
	char *copy = malloc(value.len + !value.len);
	enum status status;

	assert_non_null(copy);
	if (value.len)
		memcpy(copy, value.ptr, value.len);
	status = parse(str_of(copy, value.len), ret_again);
	free(copy);
	return status;
}

/*
 * In its place, where the rest of the record lies behind what was cut, and as a copy: both have to
 * answer the same. What is accepted is written as the same bytes.
 */
static inline enum status
record_status(record_parse *parse, struct str value)
{
	AUTO(buf_release) struct buf again = BUF_INIT(RECORD_BYTES);
	enum status status = parse(value, &again);

	assert_int_equal(buf_status(&again), STATUS_OK);
	if (status == STATUS_OK)
		assert_true(str_eq(buf_str(&again), value));
	buf_clear(&again);
	assert_int_equal(record_parse_copy(parse, value, &again), status);
	return status;
}

/* The status of a record that is told as a text. */
static inline void
record_is(record_parse *parse, const char *text, enum status expected)
{
	AUTO(buf_release) struct buf record = BUF_INIT(RECORD_BYTES);
	enum status status;

	record_put(text, &record);
	status = record_status(parse, buf_str(&record));
	if (status != expected)
		fail_msg("%s: %s, not %s", text, status_name(status), status_name(expected));
}

static inline void
record_is_refused(record_parse *parse, const char *text, struct str value, const char *how)
{
	enum status status = record_status(parse, value);

	if (status != STATUS_CORRUPT)
		fail_msg("%s, %s %zu bytes: %s", text, how, value.len, status_name(status));
}

/*
 * A record that is good, and corrupt with fewer bytes. `open`: so many bytes at its end are content
 * of any length. Otherwise it is corrupt with one byte more, too.
 */
static inline void
record_is_good(record_parse *parse, const char *text, size_t open)
{
	AUTO(buf_release) struct buf record = BUF_INIT(RECORD_BYTES);
	size_t len;

	record_is(parse, text, STATUS_OK);
	record_put(text, &record);
	assert_true(open <= record.len);
	len = record.len;
	for (size_t cut = 0; cut < len - open; cut++)
		record_is_refused(parse, text, str_of(record.ptr, cut), "cut to");
	for (unsigned byte = 0; !open && byte <= UINT8_MAX; byte++) {
		record.len = len;
		buf_append_byte(&record, (uint8_t)byte);
		record_is_refused(parse, text, buf_str(&record), "made longer to");
	}
}

#endif

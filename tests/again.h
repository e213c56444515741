/*
 * Stored records that are parsed and put again. What is read has to be what was put: each bit of a
 * sample is changed, it is cut at each length, it goes on behind its end, and each of its elements
 * is lost, comes twice, or is one of another kind.
 */
#ifndef FROND_TESTS_AGAIN_H
#define FROND_TESTS_AGAIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "kv/tuple.h"

enum {
	AGAIN_BYTES = 65536, /* of a record */
	AGAIN_BEYOND = 99,   /* a format that nobody has */
};

struct again_record {
	const char *name;
	void (*put)(struct buf *ret); /* a sample, which begins with its format number */
	/* Parses the value, and puts in `ret` what was read. */
	enum status (*again)(struct str value, struct arena *arena, struct buf *ret,
			     struct err *err);
	uint64_t format;
	size_t ends; /* so many shorter lengths end as a record may */
};

/*
 * True if it was read, and not refused. It is parsed as a copy that ends where the record does, so
 * that sanitizers see what is read behind it.
 */
static inline bool
again_is_read(const struct again_record *record, struct arena *arena, struct str value)
{
	AUTO(buf_release) struct buf again = BUF_INIT(AGAIN_BYTES);
	struct arena_mark mark = arena_mark(arena);
	char *copy = malloc(value.len + !value.len);
	struct err err = { 0 };
	enum status status;

	assert_non_null(copy);
	memcpy(copy, value.ptr, value.len);
	status = record->again(str_of(copy, value.len), arena, &again, &err);
	free(copy);
	if (status != STATUS_OK && status != STATUS_CORRUPT && status != STATUS_NEWER)
		fail_msg("%s: %s", record->name, status_name(status));
	/* What an older format can hold may be put in it. */
	if (status == STATUS_OK && !str_eq(buf_str(&again), value) && again.ptr[1] == value.ptr[1])
		fail_msg("%s: another one of %zu bytes is read", record->name, value.len);
	arena_reset(arena, mark);
	return status == STATUS_OK;
}

/* The element with this number of those that come in the place of others; false behind the last. */
static inline bool
again_put_other(struct buf *ret, unsigned number)
{
	static const uint8_t id[16] = { 1, 2, 3 };

	switch (number) {
	case 0:
		tuple_put_null(ret);
		return true;
	case 1:
	case 2:
		tuple_put_bool(ret, number == 2);
		return true;
	case 3:
	case 4:
	case 5:
		tuple_put_u64(ret, number == 3 ? 0 : number == 4 ? 1 : UINT64_MAX);
		return true;
	case 6:
		tuple_put_i64(ret, -1);
		return true;
	case 7:
	case 8:
		tuple_put_bytes(ret, number == 7 ? STR("") : STR("ab"));
		return true;
	case 9:
	case 10:
		tuple_put_str(ret, number == 9 ? STR("") : STR("ab"));
		return true;
	case 11:
		tuple_put_double(ret, 1);
		return true;
	case 12:
		tuple_put_uuid(ret, id);
		return true;
	case 13:
		tuple_open(ret);
		tuple_close(ret);
		return true;
	default:
		return false;
	}
}

/* Each element of the record lost, twice, and replaced by others. */
static inline void
again_check_elements(const struct again_record *record, struct arena *arena, struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_elem e;
	size_t begin = 0;

	while (tuple_next(&r, &e) == STATUS_OK) {
		size_t end = value.len - r.rest.len;
		AUTO(buf_release) struct buf changed = BUF_INIT(2 * AGAIN_BYTES);
		bool more = true;

		buf_append(&changed, value.ptr, begin);
		buf_append_str(&changed, r.rest);
		(void)again_is_read(record, arena, buf_str(&changed));
		buf_clear(&changed);
		buf_append(&changed, value.ptr, end);
		buf_append_str(&changed, str_skip(value, begin));
		(void)again_is_read(record, arena, buf_str(&changed));
		for (unsigned i = 0; more; i++) {
			buf_clear(&changed);
			buf_append(&changed, value.ptr, begin);
			more = again_put_other(&changed, i);
			buf_append_str(&changed, r.rest);
			assert_int_equal(buf_status(&changed), STATUS_OK);
			if (more)
				(void)again_is_read(record, arena, buf_str(&changed));
		}
		begin = end;
	}
}

static inline void
again_check(const struct again_record *record, struct arena *arena)
{
	AUTO(buf_release) struct buf value = BUF_INIT(AGAIN_BYTES);
	AUTO(buf_release) struct buf again = BUF_INIT(AGAIN_BYTES);
	struct err err = { 0 };
	size_t ends = 0;

	record->put(&value);
	assert_int_equal(buf_status(&value), STATUS_OK);
	assert_int_equal((unsigned char)value.ptr[1], record->format);
	if (!again_is_read(record, arena, buf_str(&value)))
		fail_msg("%s is not read", record->name);
	for (size_t len = 0; len < value.len; len++)
		ends += again_is_read(record, arena, str_of(value.ptr, len));
	if (ends != record->ends)
		fail_msg("%s: %zu lengths are read", record->name, ends);
	for (size_t at = 0; at < value.len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			value.ptr[at] = (char)(value.ptr[at] ^ 1 << bit);
			(void)again_is_read(record, arena, buf_str(&value));
			value.ptr[at] = (char)(value.ptr[at] ^ 1 << bit);
		}
	}
	again_check_elements(record, arena, buf_str(&value));
	tuple_put_u64(&value, 7);
	assert_int_equal(buf_status(&value), STATUS_OK);
	if (again_is_read(record, arena, buf_str(&value)))
		fail_msg("%s is read with more behind it", record->name);
	value.ptr[1] = AGAIN_BEYOND;
	assert_int_equal(record->again(buf_str(&value), arena, &again, &err), STATUS_NEWER);
	assert_non_null(strstr(err.text, "written by a newer frond"));
}

#endif

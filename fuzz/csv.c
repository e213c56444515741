/*
 * Any bytes as records of CSV: the pieces in which they come do not change where records end, a
 * record is read to its end, and what is written of its values reads as the same values.
 */
#include "cli/csv.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
};

/* The length of the record that the text begins with, read in pieces. */
static size_t
record_length(struct str text, size_t piece)
{
	struct csv_scan s = { 0 };
	size_t len = 0;

	while (!s.done && len < text.len) {
		size_t left = text.len - len;

		len += csv_scan(&s, str_of(text.ptr + len, left < piece ? left : piece));
	}
	return len;
}

static void
check_fields(struct arena *arena, const struct csv_field *fields, size_t count)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct csv_field *again;
	size_t again_count;

	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(&out, ',');
		if (!csv_is_null(&fields[i]))
			csv_put(&out, fields[i].text);
	}
	buf_append_cstr(&out, CSV_END);
	must(buf_status(&out) == STATUS_OK);
	must(record_length(buf_str(&out), SIZE_MAX) == out.len);
	must(csv_read(buf_str(&out), arena, &again, &again_count, NULL) == STATUS_OK);
	must(again_count == count);
	for (size_t i = 0; i < count; i++) {
		must(csv_is_null(&again[i]) == csv_is_null(&fields[i]));
		must(str_eq(again[i].text, fields[i].text));
		must(look(again[i].text) == look(fields[i].text));
	}
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size };
	size_t piece = 1 + (size ? data[0] % 16 : 0);
	struct arena *arena = arena_new(ARENA_BYTES);

	while (arena && rest.len) {
		size_t len = record_length(rest, SIZE_MAX), count;
		struct str record = str_of(rest.ptr, len);
		struct csv_field *fields;
		struct err err = { 0 };
		enum status status;

		must(len && record_length(rest, piece) == len);
		arena_clear(arena);
		status = csv_read(record, arena, &fields, &count, &err);
		must(status == STATUS_OK || (status == STATUS_INVALID && err.text[0]));
		must(strcmp(err.text, "there is more than one record") != 0);
		if (status == STATUS_OK)
			check_fields(arena, fields, count);
		rest = str_skip(rest, len);
	}
	arena_free(arena);
	return 0;
}

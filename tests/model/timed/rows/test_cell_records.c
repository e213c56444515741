/*
 * Records of rows that are damaged: cells of each form, and schemas. Each is cut at every length,
 * made longer, and given each member that it cannot have.
 */
#include "../records.h"

#include "base/arena.h"
#include "model/timed/timed_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
are_refused(record_parse *parse, const char *const *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_is(parse, records[i], STATUS_CORRUPT);
}

#define ARE_REFUSED(parse, ...)                                                                    \
	are_refused(parse, (const char *const[]){ __VA_ARGS__ },                                   \
		    COUNT(((const char *const[]){ __VA_ARGS__ })))

/* ---- Cells ---- */

static enum status
cell_parse(struct str value, struct buf *ret_again)
{
	struct err err = { 0 };
	struct timed_cell cell;

	TRY(timed_cell_parse(value, &cell, &err));
	timed_cell_put(&cell, ret_again);
	return STATUS_OK;
}

/* Times of a write: of seven bytes, as nearly all are, and of others. */
static const char *const times[] = { "0",
				     "7",
				     "281474976710655",     /* six bytes */
				     "281474976710656",     /* seven */
				     "1764460800000000",    /* seven */
				     "72057594037927935",   /* seven */
				     "72057594037927936" }; /* eight */

/* As the table says, never, and at a time. */
static const char *const expiries[] = { "n", "0", "1", "255", "9000000000000" };

/* (format, type, write time, expiry), the value. */
static void
cells_are_read_as_they_were_written(void **state)
{
	char text[RECORD_WORD_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT(times) * COUNT(expiries); i++) {
		const char *time = times[i / COUNT(expiries)];
		const char *expiry = expiries[i % COUNT(expiries)];

		for (unsigned type = 0; type < TIMED_TYPES; type++) {
			bool has_value = type == TIMED_LEAF || type == TIMED_VALUE;

			(void)snprintf(text, sizeof(text), "1 %u %s %s%s", type, time, expiry,
				       has_value ? " =abc" : "");
			record_is_good(cell_parse, text, has_value ? 2 : 0);
			/* With a value where there is none, without one where one is. */
			(void)snprintf(text, sizeof(text), "1 %u %s %s%s", type, time, expiry,
				       has_value ? "" : " =abc");
			record_is(cell_parse, text, STATUS_CORRUPT);
			(void)snprintf(text, sizeof(text), "3 %u %s %s -5%s", type, time, expiry,
				       has_value ? " =abc" : "");
			record_is_good(cell_parse, text, has_value ? 2 : 0);
			(void)snprintf(text, sizeof(text), "5 %u %s %s =abc", type, time, expiry);
			if (type == TIMED_INSERTED)
				record_is_good(cell_parse, text, 2);
			else
				record_is(cell_parse, text, STATUS_CORRUPT);
		}
		(void)snprintf(text, sizeof(text), "1 %u %s %s", TIMED_TYPES, time, expiry);
		record_is(cell_parse, text, STATUS_CORRUPT);
		(void)snprintf(text, sizeof(text), "0 1 %s %s", time, expiry);
		record_is(cell_parse, text, STATUS_CORRUPT);
		(void)snprintf(text, sizeof(text), "6 1 %s %s", time, expiry);
		record_is(cell_parse, text, STATUS_NEWER);
	}
	ARE_REFUSED(cell_parse, "-1 1 7 n", "1 -1 7 n", "1 1 -7 n", "1 1 7 -1", "1 1 7 t",
		    "1 1 1764460800000000 t", "1 1 1764460800000000 -1", "1 1 s:a n", "3 1 7 n n",
		    "3 1 7 n s:a", "3 1 1764460800000000 n",
		    /* integers that are not in their shortest form */
		    "1 x1500 7 n =abcdefgh", "1 1 x1b00ffffffffffff n",
		    "1 0 x1b00ffffffffffff n =abcdefgh");
}

/* (format, leaf, write time, expiry, bytes, kind), with a stamp in front of the bytes. */
static void
cells_in_pieces_are_of_texts(void **state)
{
	static const unsigned kinds[] = { DOC_TEXT, DOC_BYTES };
	char text[RECORD_WORD_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT(times) * COUNT(expiries); i++) {
		const char *time = times[i / COUNT(expiries)];
		const char *expiry = expiries[i % COUNT(expiries)];

		for (unsigned kind = 0; kind <= DOC_DURATION + 1; kind++) {
			bool fits = kind == kinds[0] || kind == kinds[1];

			(void)snprintf(text, sizeof(text), "2 0 %s %s 300 %u", time, expiry, kind);
			if (fits)
				record_is_good(cell_parse, text, 0);
			else
				record_is(cell_parse, text, STATUS_CORRUPT);
			(void)snprintf(text, sizeof(text), "4 0 %s %s 8 300 %u", time, expiry,
				       kind);
			if (fits)
				record_is_good(cell_parse, text, 0);
			else
				record_is(cell_parse, text, STATUS_CORRUPT);
		}
		(void)snprintf(text, sizeof(text), "2 0 %s %s 0 %u", time, expiry, DOC_TEXT);
		record_is(cell_parse, text, STATUS_CORRUPT);
		(void)snprintf(text, sizeof(text), "2 0 %s %s -1 %u", time, expiry, DOC_TEXT);
		record_is(cell_parse, text, STATUS_CORRUPT);
		for (unsigned type = 1; type < TIMED_TYPES; type++) {
			(void)snprintf(text, sizeof(text), "2 %u %s %s 300 %u", type, time, expiry,
				       DOC_TEXT);
			record_is(cell_parse, text, STATUS_CORRUPT);
		}
	}
}

/* ---- Schemas ---- */

static struct arena *arena;

static enum status
schema_parse(struct str value, struct buf *ret_again)
{
	struct timed_schema schema;
	struct err err = { 0 };

	arena_clear(arena);
	TRY(timed_schema_parse(value, arena, &schema, &err));
	timed_schema_put(&schema, ret_again);
	return STATUS_OK;
}

/* (format, hash components, ((name, descending), …), (columns…)) */
static void
a_schema_that_cannot_be_is_refused(void **state)
{
	(void)state;
	arena = arena_new(TIMED_SCHEMA_ARENA_BYTES);
	assert_non_null(arena);
	record_is_good(schema_parse, "1 1 ( ( s:a f ) ) ( )", 0);
	record_is_good(schema_parse, "1 1 ( ( s:a f ) ( s:b t ) ) ( s:x s:y )", 0);
	record_is_good(schema_parse, "1 2 ( ( s:a f ) ( s:b t ) ) ( s:x )", 0);
	ARE_REFUSED(schema_parse, "0 1 ( ( s:a f ) ) ( )", "1 0 ( ( s:a f ) ) ( )",
		    "1 2 ( ( s:a f ) ) ( )", "1 1 ( ) ( )", "1 -1 ( ( s:a f ) ) ( )",
		    "1 1 ( ( s:a ) ) ( )", "1 1 ( ( s:a 1 ) ) ( )", "1 1 ( ( b:a f ) ) ( )",
		    "1 1 ( ( f ) ) ( )", "1 1 ( s:a f ) ( )", "1 1 ( ( s:a f f ) ) ( )",
		    "1 1 ( ( s:a f ) ) ( b:x )", "1 1 ( ( s:a f ) ) ( 1 )", "1 1 s:a ( )",
		    "1 1 ( ( s:a f ) ) s:x", "1 1 ( ( s:a f ) ) ( ) 1",
		    "1 1 ( ( s:a f ) ) ( ) ( )");
	record_is(schema_parse, "2 1 ( ( s:a f ) ) ( )", STATUS_NEWER);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_read_as_they_were_written),
		cmocka_unit_test(cells_in_pieces_are_of_texts),
		cmocka_unit_test(a_schema_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("cell records", tests, NULL, NULL);
}

/*
 * CSV as cqlsh's COPY writes and reads it: records of values with commas between them, one a line.
 * A value with a comma or a line's end in it is in double quotes; a double quote and a backslash
 * have a backslash before them. What is read may also double the quotes inside of quotes.
 *
 * An empty value is null. In quotes it is an empty text, which cqlsh does not tell from null.
 * Plain functions.
 *
 * Debian's libcsv is not used: it knows no backslash, by which cqlsh writes quotes, and does not
 * tell a value in quotes from another one.
 */
#ifndef FROND_CLI_CSV_H
#define FROND_CLI_CSV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	CSV_FIELDS = 1000, /* values of a record */
};

/* ---- Writing ---- */

/* Appends a value, which is not null. */
void csv_put(struct buf *out, struct str value);
/* Ends a record, as RFC 4180 and cqlsh do. */
#define CSV_END "\r\n"

/* ---- Where records end ---- */

enum csv_place {
	CSV_PLACE_BEGIN, /* of a value */
	CSV_PLACE_PLAIN, /* in a value without quotes */
	CSV_PLACE_QUOTED,
	CSV_PLACE_BEHIND, /* the closing quote */
	CSV_PLACE_RETURN, /* behind a carriage return outside of quotes */
};

/* How far a stream has been read; all zero at its beginning. */
struct csv_scan {
	enum csv_place place;
	bool escaped; /* a backslash was the last byte */
	bool done;    /* the record has ended */
};

/* Returns how many of the bytes belong to the record, its end with them. */
size_t csv_scan(struct csv_scan *s, struct str text);

/* ---- Reading ---- */

struct csv_field {
	struct str text;
	bool quoted;
};

static inline bool
csv_is_null(const struct csv_field *f)
{
	return !f->text.len && !f->quoted;
}

/*
 * Takes a record apart; its end may be left out. The fields lie in the arena. STATUS_INVALID,
 * explained: more than CSV_FIELDS values, a quote that is not closed, something behind a closing
 * quote, more than one record. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status csv_read(struct str record, struct arena *arena, struct csv_field **ret,
			      size_t *ret_count, struct err *err);

#endif

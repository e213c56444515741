/*
 * MongoDB Extended JSON, version 2: BSON as JSON text and back. The canonical form keeps every
 * type; the relaxed one writes numbers and the dates of this era as people read them.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_BSON_JSON_H
#define FROND_BSON_JSON_H

#include "bson/bson.h"

enum bson_json_style {
	BSON_JSON_CANONICAL,
	BSON_JSON_RELAXED,
};

/* Appends a document, or a value, as JSON text without white space. The document was checked. */
void bson_json_write(struct buf *out, struct str document, enum bson_json_style style);
void bson_json_write_value(struct buf *out, const struct bson_value *v, enum bson_json_style style);

/*
 * Appends the document that a text is, which is one JSON object in either form, also mixed, and
 * with the older `$binary` and `$type` beside each other, `$regex` and `$options`, and `$date` as
 * text or number. STATUS_JSON_SYNTAX, STATUS_JSON_UTF8, STATUS_JSON_DEPTH and STATUS_INVALID (a
 * value that is not what its `$` name promises; a name with a NUL) with an explanation;
 * STATUS_LIMIT when the buffer is full; STATUS_NOMEM.
 */
MUST_USE enum status bson_json_read(struct str text, struct buf *out, struct err *err);

#endif

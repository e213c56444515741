/*
 * BSON as JSON text for functions in JavaScript (js/worker/mongo.js), which read it by
 * JSON.parse().
 *
 * Strings, finite doubles, booleans, null, arrays and documents are themselves. A value of another
 * type is a tagged string: "\u0001", a letter, a text:
 *
 *     s  a string that begins with \u0001     o  an ObjectId: hexadecimal digits
 *     f  a double: NaN, Infinity, -0, …       d  a date: milliseconds
 *     i  int32                                t  a timestamp: an unsigned integer
 *     l  int64                                b  binary: two digits of the subtype, base64
 *     n  Decimal128: its text                 r  a regular expression: options, "/", pattern
 *     c  code                                 u  undefined
 *     m  MinKey                               M  MaxKey
 *     x  a code with scope, or a DBPointer: base64 of its type and its bytes
 *
 * A document with names that are positions ("0", "17"), which objects of JavaScript would put in
 * front, is written as an array ["\u0001O", name, value, name, value, …], and so is one whose
 * name is "__proto__".
 *
 * Of several members with the same name JavaScript keeps the last. Symbols come as strings.
 */
#ifndef FROND_BSON_TAGGED_H
#define FROND_BSON_TAGGED_H

#include "bson/bson.h"

/* Appends a value. `ints`: int32 is tagged, so that it is told from a double on its way back. */
void bson_tagged_write(struct buf *out, const struct bson_value *v, bool ints);

/*
 * Appends a document {"": v} with the value that a text is, which may be any bytes. A plain number
 * is a double. STATUS_INVALID, STATUS_JSON_SYNTAX, STATUS_JSON_UTF8, STATUS_JSON_DEPTH with an
 * explanation; STATUS_LIMIT when the buffer is full, or for too many containers inside each other;
 * STATUS_NOMEM.
 */
MUST_USE enum status bson_tagged_read(struct str text, struct buf *out, struct err *err);

#endif

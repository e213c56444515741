/*
 * The text of one parameter of a query as a value, with CouchDB's refusals.
 *
 * CouchDB reads integers of any number of digits, and flags in two ways: those of lists must be
 * "true" or "false", those of documents and feeds are off unless they are exactly "true"
 * (couch_param_true()).
 */
#ifndef FROND_DOOR_COUCH_WIRE_PARAMS_H
#define FROND_DOOR_COUCH_WIRE_PARAMS_H

#include "door/couch/wire/request.h"

/*
 * Reads a decimal integer with an optional sign and any number of digits. One that does not fit
 * becomes the largest or smallest that does. Returns false, and leaves *ret alone, if `text` is no
 * integer.
 */
bool couch_integer_parse(struct str text, int64_t *ret);

/* Reads a number of rows: 400 query_parse_error for what is no integer, or a negative one. */
MUST_USE enum status couch_count_parse(struct couch_req *r, struct str text, uint64_t *ret);

/* Reads "true" or "false" in any case: 400 query_parse_error for anything else. */
MUST_USE enum status couch_flag_parse(struct couch_req *r, struct str text, bool *ret);

#endif

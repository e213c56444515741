/* Dates as ISO 8601 writes them, in UTC: "2012-12-24T12:15:30.501Z". Plain functions. */
#ifndef FROND_BSON_DATE_H
#define FROND_BSON_DATE_H

#include "bson/bson.h"

/* The years that relaxed Extended JSON writes in this form. */
#define BSON_DATE_LEAST_MS INT64_C(0)
#define BSON_DATE_MOST_MS  INT64_C(253402300799999)

/* From the one to the other of those: milliseconds only where they are not 0. */
void bson_date_write(struct buf *out, int64_t ms);

/*
 * Years of four digits; a fraction of up to nine digits, of which three count; "Z", "+01:00" or
 * "+0100". False for any other text.
 */
bool bson_date_read(struct str text, int64_t *ret_ms);

#endif

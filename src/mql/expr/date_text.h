/* Dates as texts: by the format of $dateToString and $dateFromString, or of ISO 8601. */
#ifndef FROND_MQL_DATE_TEXT_H
#define FROND_MQL_DATE_TEXT_H

#include "mql/expr/text.h"
#include "mql/expr/zone.h"

/* `code` for a character that is no specifier; another one for a '%' at the end: MongoDB's. */
MUST_USE enum status mql_date_check_format(struct mql *q, struct str format, bool reading);
MUST_USE enum status mql_date_print(struct mql *q, struct str format, const struct mql_zone *zone,
				    int64_t ms, struct bson_value *ret);

/*
 * Reads a text by a format, or if that is NULL as ISO 8601 or a date in English words. `zone` may
 * be NULL, and must be if the text has one. Fails with MQL_CONVERSION_FAILURE.
 */
MUST_USE enum status mql_date_parse(struct mql *q, struct str text, const struct str *format,
				    const struct mql_zone *zone, int64_t *ret);

#endif

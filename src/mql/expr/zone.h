/*
 * Time zones: offsets from UTC, or ICU's rules of a place. ICU's calendars are kept, a few for the
 * process, behind a mutex that is held for a look-up only.
 */
#ifndef FROND_MQL_ZONE_H
#define FROND_MQL_ZONE_H

#include "mql/mql.h"

enum {
	MQL_ZONE_NAME_BYTES = 64,
	MQL_ZONES_KEPT = 32,
};

struct mql_zone {
	char name[MQL_ZONE_NAME_BYTES]; /* of a place; "" for an offset */
	int64_t offset_ms;
};

#define MQL_ZONE_UTC ((struct mql_zone){ .offset_ms = 0 })

/* "UTC", "Europe/Paris", "+05:30", "-0800", "+03"; fails with MongoDB's 40485 for other texts. */
MUST_USE enum status mql_zone_of(struct mql *q, struct str text, struct mql_zone *ret);
/* What is added to UTC to have the local time, at an instant. */
MUST_USE enum status mql_zone_offset(struct mql *q, const struct mql_zone *zone, int64_t ms,
				     int64_t *ret);
/*
 * The instant of a local time: the first of two where clocks are put back, and as long behind the
 * leap as it says where they are put forward.
 */
MUST_USE enum status mql_zone_to_utc(struct mql *q, const struct mql_zone *zone, int64_t local_ms,
				     int64_t *ret);

#endif

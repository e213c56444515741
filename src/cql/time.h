/* Moments, days, times of day and durations, and their texts. UTC. Plain functions. */
#ifndef FROND_CQL_TIME_H
#define FROND_CQL_TIME_H

#include "cql/value.h"

#define CQL_DAY_MS INT64_C(86400000)
#define CQL_DAY_NS INT64_C(86400000000000)
/* What a date's value is for 1970-01-01. */
#define CQL_DAY_ZERO INT64_C(2147483648)

/* The forms that Cassandra reads: dates, with times, with zones; milliseconds since 1970. */
bool cql_timestamp_parse(struct str text, int64_t *ret_ms);
/* A date, or days from -2^31 as a number without sign; *ret is since 1970. */
bool cql_day_parse(struct str text, int64_t *ret_days);
/* hh:mm:ss[.fffffffff], or nanoseconds. */
bool cql_time_parse(struct str text, int64_t *ret_ns);

/* A moment as JSON and CAST, as cqlsh and as the files of its COPY have it. */
enum cql_moment_form {
	CQL_MOMENT_ISO,   /* 2011-02-03T04:05:00.000Z */
	CQL_MOMENT_JSON,  /* 2011-02-03 04:05:00.000Z */
	CQL_MOMENT_CQLSH, /* 2011-02-03 04:05:00.000000+0000 */
	CQL_MOMENT_COPY,  /* 2011-02-03 04:05:00.000+0000 */
};
void cql_timestamp_print(struct buf *out, int64_t ms, enum cql_moment_form form);
void cql_day_print(struct buf *out, int64_t days);
void cql_time_print(struct buf *out, int64_t ns);

/* 1y2mo3d4h…, and the forms of ISO 8601. Errors: CQL_E_BAD_DURATION and its neighbours. */
MUST_USE enum status cql_duration_parse(struct cql *q, struct str text, struct cql_duration *ret);
void cql_duration_print(struct buf *out, struct cql_duration d);

/* Milliseconds since 1970 of a timeuuid's and a date's bytes, and the date of a moment. */
int64_t cql_timeuuid_ms(struct str uuid);
int64_t cql_date_ms(struct str date);
MUST_USE enum status cql_date_put(struct cql *q, int64_t ms, struct str *ret);

/* A UUID of version 1: the time in units of 100 ns since 1970, and its last eight bytes. */
MUST_USE enum status cql_timeuuid_put(struct cql *q, int64_t ticks, uint64_t last, struct str *ret);

/* A moment and a duration more: months first, as Cassandra adds them. */
int64_t cql_moment_add(int64_t ms, struct cql_duration d, bool subtract);

#endif

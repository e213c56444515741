#include "door/couch/wire/meter.h"

#include <assert.h>

#include "base/clock.h"
#include "base/metric.h"
#include "door/couch/wire/slow.h"

static const char *const endpoints[] = { COUCH_ENDPOINTS(COUCH_ENDPOINT_NAME) };

enum meter_class {
	METER_CLASS_2XX,
	METER_CLASS_3XX,
	METER_CLASS_4XX,
	METER_CLASS_5XX,
	METER_CLASS_CUT,
	METER_CLASS_COUNT,
};

static const char *const classes[METER_CLASS_COUNT] = {
	[METER_CLASS_2XX] = "2xx", [METER_CLASS_3XX] = "3xx", [METER_CLASS_4XX] = "4xx",
	[METER_CLASS_5XX] = "5xx", [METER_CLASS_CUT] = "cut",
};

enum {
	METER_METHOD_HEAD = COUCH_METHOD_COUNT,
	METER_METHOD_OPTIONS,
	METER_METHOD_OTHER,
	METER_METHOD_COUNT,
};

static const char *const methods[METER_METHOD_COUNT] = {
	[COUCH_GET] = "GET",
	[COUCH_PUT] = "PUT",
	[COUCH_POST] = "POST",
	[COUCH_DELETE] = "DELETE",
	[COUCH_COPY] = "COPY",
	[COUCH_PATCH] = "PATCH",
	[METER_METHOD_HEAD] = "HEAD",
	[METER_METHOD_OPTIONS] = "OPTIONS",
	[METER_METHOD_OTHER] = "other",
};

static const char *const feeds_of[] = { "changes", "db_updates" };
static const char *const feeds[] = { "longpoll", "continuous", "eventsource" };

_Static_assert(METRIC_COUNT_OF(endpoints) == COUCH_ENDPOINT_COUNT, "each endpoint has a name");
_Static_assert(METRIC_COUNT_OF(feeds) == COUCH_METER_FEED_COUNT - 1, "each kind has a name");

METRIC_HISTOGRAMS(
	request_time, "frond_http_request_duration_seconds", METRIC_SECONDS,
	"Time from the end of a request's headers to the end of its handler, by endpoint; "
	"without feeds. An endpoint appears after its first request.",
	METRIC_TIME_LEAST, METRIC_TIME_BUCKETS, "endpoint", endpoints);
METRIC_COUNTERS2(responses, "frond_http_responses_total", METRIC_NUMBER,
		 "Answers by endpoint and class of their status; cut: the answer was broken off, "
		 "or the client had gone.",
		 "endpoint", endpoints, "class", classes);
METRIC_COUNTERS(requests_by_method, "frond_http_requests_total", METRIC_NUMBER,
		"Requests by their method, feeds included.", "method", methods);
METRIC_GAUGE(under_way, "frond_http_requests_in_progress", METRIC_NUMBER,
	     "Requests whose handlers have not returned, feeds included.");
METRIC_GAUGES2(feeds_open, "frond_http_feeds_open", METRIC_NUMBER,
	       "Feeds that are open now, by what they tell of and by their kind.", "of", feeds_of,
	       "feed", feeds);

void
couch_meter_begin(struct couch_req *r)
{
	r->began_ns = clock_mono_ns();
	metric_gauge_add(&under_way, 1);
}

/* The series of an open feed. A feed is counted as one of changes unless it is of databases. */
static size_t
meter_feed_series(const struct couch_req *r)
{
	size_t of = r->endpoint == COUCH_ENDPOINT_DB_UPDATES_FEED;

	return of * METRIC_COUNT_OF(feeds) + r->feed - 1;
}

void
couch_meter_feed(struct couch_req *r, enum couch_meter_feed kind)
{
	assert(kind != COUCH_METER_FEED_NONE && r->feed == COUCH_METER_FEED_NONE);
	r->feed = kind;
	if (r->endpoint == COUCH_ENDPOINT_CHANGES)
		r->endpoint = COUCH_ENDPOINT_CHANGES_FEED;
	else if (r->endpoint == COUCH_ENDPOINT_DB_UPDATES)
		r->endpoint = COUCH_ENDPOINT_DB_UPDATES_FEED;
	metric_gauge_add_at(&feeds_open, meter_feed_series(r), 1);
}

static size_t
meter_method(const struct couch_req *r)
{
	if (r->head)
		return METER_METHOD_HEAD;
	if (r->method < COUCH_METHOD_COUNT)
		return r->method;
	return str_eq(http_method(r->x), STR("OPTIONS")) ? METER_METHOD_OPTIONS
							 : METER_METHOD_OTHER;
}

static enum meter_class
meter_class(const struct couch_req *r)
{
	int status = http_status(r->x);

	if (http_is_cut(r->x))
		return METER_CLASS_CUT;
	if (!http_started(r->x) || status >= 500)
		return METER_CLASS_5XX;
	if (status >= 400)
		return METER_CLASS_4XX;
	return status >= 300 ? METER_CLASS_3XX : METER_CLASS_2XX;
}

void
couch_meter_end(struct couch_req *r)
{
	uint64_t took_ns = clock_mono_ns() - r->began_ns;

	metric_add_at(&requests_by_method, meter_method(r), 1);
	metric_add_at(&responses, r->endpoint * METER_CLASS_COUNT + meter_class(r), 1);
	if (r->feed)
		metric_gauge_add_at(&feeds_open, meter_feed_series(r), -1);
	else
		metric_observe_at(&request_time, r->endpoint, took_ns);
	couch_slow_check(r, took_ns);
	/* Last, so that a request that is no longer in progress has been counted. */
	metric_gauge_add(&under_way, -1);
}

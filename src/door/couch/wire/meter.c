#include "door/couch/wire/meter.h"

#include <assert.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/quote.h"
#include "base/words.h"
#include "http/escape.h"
#include "loop/step.h"

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

enum {
	SLOW_QUERY_BYTES = 256, /* of the query of a slow request, as it is logged */
};

static const char *const feeds_of[] = { "changes", "db_updates" };
static const char *const feeds[] = { "longpoll", "continuous", "eventsource" };

_Static_assert(METRIC_COUNT_OF(endpoints) == COUCH_ENDPOINT_COUNT, "each endpoint has a name");
_Static_assert(METRIC_COUNT_OF(feeds) == COUCH_METER_FEED_COUNT - 1, "each kind has a name");

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

static void
meter_end_request(struct ops_op *op)
{
	http_interrupt(((struct couch_req *)((char *)op - offsetof(struct couch_req, op)))->x);
}

OPS_DOOR(couch_requests, "http", endpoints, LOG_LEVEL_WARN, meter_end_request);

void
couch_meter_begin(struct couch_req *r)
{
	r->op.door = &couch_requests;
	r->op.name = http_method(r->x);
	r->op.on = http_path(r->x);
	r->op.peer = http_peer(r->x).ptr;
	r->op.began_ns = clock_mono_ns();
	r->admitted = ops_admit(&r->op, STR(""), &r->fail.err);
	ops_begin(&r->op);
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

/* Parameters whose values say what a request costs and are nobody's data. */
static bool
meter_may_show(struct str name)
{
	static const char *const shown[] = {
		"attachments",   "batch",      "conflicts", "count",     "deleted_conflicts",
		"descending",    "feed",       "filter",    "heartbeat", "include_docs",
		"inclusive_end", "latest",     "limit",     "local_seq", "meta",
		"new_edits",     "open_revs",  "rev",       "revs",      "revs_info",
		"seq_interval",  "since",      "skip",      "style",     "timeout",
		"update",        "update_seq", "view",      "w",         "att_encoding_info",
	};

	return WORDS_HAVE(shown, name);
}

/* Appends the query without the values that may be secrets: "?limit=5&startkey=". */
static void
meter_write_query(struct buf *out, struct str query)
{
	size_t begin = out->len;
	char before = '?';

	while (query.len && out->len - begin < SLOW_QUERY_BYTES) {
		struct str part = http_cut_param(&query);
		const char *equals = memchr(part.ptr, '=', part.len);
		struct str name = equals ? str_of(part.ptr, (size_t)(equals - part.ptr)) : part;
		size_t room = SLOW_QUERY_BYTES - (out->len - begin);

		buf_append_byte(out, (uint8_t)before);
		/* A name without a value might be one by mistake. */
		if (!equals || meter_may_show(name))
			quote_word(out, equals ? part : STR("..."), room);
		else
			quote_word(out, str_of(name.ptr, name.len + 1), room);
		before = '&';
	}
}

/* Has a request logged as slow whose handler has returned after `took_ns`. */
static void
meter_note_slow(const struct couch_req *r, uint64_t took_ns)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(OPS_LINE_BYTES);
	const struct step_meter *steps = step_current();
	struct str trace = couch_trace_id(r);
	size_t query;

	meter_write_query(&text, http_query(r->x));
	query = text.len;
	buf_printf(
		&text,
		"status=%d computed_ms=%llu steps=%llu bytes_in=%llu bytes_out=%llu "
		"request_id=%.*s%s%.*s%s",
		http_status(r->x), (unsigned long long)(ops_computed_ns(&r->op) / CLOCK_NS_PER_MS),
		(unsigned long long)(steps ? steps->used : 0),
		(unsigned long long)http_bytes_in(r->x), (unsigned long long)http_bytes_out(r->x),
		STR_ARG(http_answer_header(r->x, STR("X-Couch-Request-ID"))),
		trace.len ? " trace_id=" : "", STR_ARG(trace),
		http_is_cut(r->x) ? " cut=true" : "");
	ops_note_slow(&r->op, &(struct ops_slow){ .took_ns = took_ns,
						  .user = r->user.name,
						  .on_rest = str_of(text.ptr, query),
						  .more = str_skip(buf_str(&text), query),
						  .keep = OPS_SLOW_KEPT });
}

/*
 * A feed waits by design: it is slow only if it has computed for that long for one of its rows. The
 * line has nothing that could be a secret: of the query only the values of parameters that are
 * known to hold none, never a header, never a body.
 */
static void
meter_check_slow(const struct couch_req *r, uint64_t took_ns)
{
	const struct step_meter *steps = step_current();
	uint64_t slow_ns;

	/* A request that failed before it had settings has not done anything slow. */
	if (!r->settings)
		return;
	slow_ns = r->settings->slow_ms * CLOCK_NS_PER_MS;
	if (took_ns >= slow_ns && (!r->feed || (steps && steps->longest_ns >= slow_ns)) &&
	    ops_count_slow(&couch_requests))
		meter_note_slow(r, took_ns);
}

void
couch_meter_end(struct couch_req *r)
{
	uint64_t took_ns = clock_mono_ns() - r->op.began_ns;

	ops_moved(&r->op, http_bytes_in(r->x) + http_bytes_out(r->x));
	ops_leave(&r->op);
	metric_add_at(&requests_by_method, meter_method(r), 1);
	metric_add_at(&responses, r->endpoint * METER_CLASS_COUNT + meter_class(r), 1);
	if (r->feed)
		metric_gauge_add_at(&feeds_open, meter_feed_series(r), -1);
	else
		ops_count(&couch_requests, r->endpoint, took_ns);
	meter_check_slow(r, took_ns);
	/* Last, so that a request that is no longer in progress has been counted. */
	metric_gauge_add(&under_way, -1);
}

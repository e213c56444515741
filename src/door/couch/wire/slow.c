#include "door/couch/wire/slow.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "base/metric.h"
#include "base/quote.h"
#include "http/escape.h"
#include "loop/step.h"

METRIC_COUNTER(slow_requests, "frond_slow_requests_total", METRIC_NUMBER,
	       "Requests that took longer than the setting slow_request_ms, logged or left out.");

static struct log_rate slow_rate;

/* Parameters whose values say what a request costs and are nobody's data. */
static bool
slow_may_show(struct str name)
{
	static const char *const shown[] = {
		"attachments",   "batch",      "conflicts", "count",     "deleted_conflicts",
		"descending",    "feed",       "filter",    "heartbeat", "include_docs",
		"inclusive_end", "latest",     "limit",     "local_seq", "meta",
		"new_edits",     "open_revs",  "rev",       "revs",      "revs_info",
		"seq_interval",  "since",      "skip",      "style",     "timeout",
		"update",        "update_seq", "view",      "w",         "att_encoding_info",
	};

	for (size_t i = 0; i < METRIC_COUNT_OF(shown); i++)
		if (str_eq(name, str_from_cstr(shown[i])))
			return true;
	return false;
}

/* Appends the query without the values that may be secrets: "?limit=5&startkey=". */
static void
slow_write_query(struct buf *out, struct str query)
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
		if (!equals || slow_may_show(name))
			quote_word(out, equals ? part : STR("..."), room);
		else
			quote_word(out, str_of(name.ptr, name.len + 1), room);
		before = '&';
	}
}

void
couch_slow_log(struct couch_req *r, uint64_t took_ns)
{
	struct buf path AUTO(buf_release) = BUF_INIT(SLOW_PATH_BYTES + SLOW_QUERY_BYTES + 64);
	struct buf user AUTO(buf_release) = BUF_INIT(SLOW_PATH_BYTES);
	struct str id = http_answer_header(r->x, STR("X-Couch-Request-ID"));
	const struct step_meter *steps = step_current();
	uint64_t left_out;

	metric_add(&slow_requests, 1);
	if (!log_rate_allows(&slow_rate, SLOW_LINES_PER_S))
		return;
	left_out = log_rate_left_out(&slow_rate);
	quote_word(&path, http_path(r->x), SLOW_PATH_BYTES);
	slow_write_query(&path, http_query(r->x));
	quote_word(&user, r->user.name, SLOW_PATH_BYTES / 2);
	if (buf_status(&path) != STATUS_OK || buf_status(&user) != STATUS_OK)
		return;
	log_event(LOG_LEVEL_WARN, "slow_request",
		  "method=%.*s path=\"%.*s\" status=%d ms=%llu computed_ms=%llu steps=%llu "
		  "bytes_in=%llu "
		  "bytes_out=%llu user=\"%.*s\" request_id=%.*s%s left_out=%llu",
		  STR_ARG(http_method(r->x)), STR_ARG(buf_str(&path)), http_status(r->x),
		  (unsigned long long)(took_ns / CLOCK_NS_PER_MS),
		  (unsigned long long)(steps ? steps->computed_ns / CLOCK_NS_PER_MS : 0),
		  (unsigned long long)(steps ? steps->used : 0),
		  (unsigned long long)http_bytes_in(r->x), (unsigned long long)http_bytes_out(r->x),
		  STR_ARG(buf_str(&user)), STR_ARG(id), http_is_cut(r->x) ? " cut=true" : "",
		  (unsigned long long)left_out);
}

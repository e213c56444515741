/* The parameters of feeds: _changes and _db_updates. */
#include "base/base64.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/list/changes_args.h"
#include "door/couch/list/changes_filter.h"
#include "door/couch/list/feed.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/meter.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/request.h"
#include "http/settings.h"

/* CouchDB's number for "no limit". With seq_interval, it decides which rows have a seq. */
#define NO_LIMIT UINT64_C(1000000000000000)

enum {
	ERLANG_TERM = 131, /* the first byte of a term in Erlang's external format */
};

static enum status
changes_args_parse_feed(struct couch_req *r, struct str value, enum couch_feed *ret)
{
	static const struct {
		const char *name;
		enum couch_feed feed;
	} feeds[] = {
		{ "normal", COUCH_FEED_NORMAL },           { "longpoll", COUCH_FEED_LONGPOLL },
		{ "continuous", COUCH_FEED_CONTINUOUS },   { "live", COUCH_FEED_CONTINUOUS },
		{ "eventsource", COUCH_FEED_EVENTSOURCE },
	};

	for (size_t i = 0; i < sizeof(feeds) / sizeof(feeds[0]); i++) {
		if (str_eq(value, str_from_cstr(feeds[i].name))) {
			*ret = feeds[i].feed;
			return STATUS_OK;
		}
	}
	return couch_fail_set(
		&r->fail, COUCH_ERROR_BAD_REQUEST,
		"Supported `feed` types: normal, continuous, live, longpoll, eventsource");
}

/* True for a Sequence of CouchDB, "12-g1AAAA…": a number, and an Erlang term in base64 for URLs. */
static bool
changes_args_is_of_couchdb(struct str value)
{
	struct buf AUTO(buf_release) term = BUF_SHORT(SERVER_HEADER_BYTES);
	size_t digits = 0;

	while (digits < value.len && value.ptr[digits] >= '0' && value.ptr[digits] <= '9')
		digits++;
	if (digits == 0 || digits == value.len || value.ptr[digits] != '-')
		return false;
	return base64_decode(&term, str_skip(value, digits + 1), BASE64_URL) == STATUS_OK &&
	       term.len > 1 && (uint8_t)term.ptr[0] == ERLANG_TERM;
}

static enum status
changes_args_parse_since(struct couch_req *r, struct str value, struct couch_changes_args *ret)
{
	ret->since_now = str_eq(value, STR("now"));
	if (ret->since_now)
		return STATUS_OK;
	/* A client may send a Sequence as it read it, with its quotes. */
	if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
		value = str_of(value.ptr + 1, value.len - 2);
	/* A reader that has followed a CouchDB begins at 0: its Sequences are of another store. */
	if (value.len == 0 || changes_args_is_of_couchdb(value))
		value = STR("0");
	if (catalog_seq_parse(value, &ret->since, NULL) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Malformed sequence supplied in 'since' parameter.");
	return STATUS_OK;
}

static enum status
changes_args_parse_limit(struct couch_req *r, struct str value, const char *name, uint64_t *ret)
{
	int64_t n;

	if (!couch_integer_parse(value, &n))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The %s parameter should be a non-negative integer", name);
	if (n < 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The %s value should be a non-negative integer", name);
	*ret = (uint64_t)n;
	return STATUS_OK;
}

static enum status
changes_args_parse_heartbeat(struct couch_req *r, struct str value, uint64_t *ret)
{
	int64_t n;

	if (str_eq(value, STR("true"))) {
		*ret = UINT64_MAX;
		return STATUS_OK;
	}
	/* CouchDB knows "false" for this feed alone. */
	if (r->endpoint == COUCH_ENDPOINT_DB_UPDATES && str_eq(value, STR("false")))
		return STATUS_OK;
	if (!couch_integer_parse(value, &n))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid heartbeat value. Expecting a positive integer value "
				      "(in milliseconds).");
	if (n <= 0)
		return couch_fail_set(
			&r->fail, COUCH_ERROR_BAD_REQUEST,
			"The heartbeat value should be a positive integer (in milliseconds).");
	*ret = (uint64_t)n;
	return STATUS_OK;
}

static enum status
changes_args_parse_style(struct couch_req *r, struct str value, bool *ret_all)
{
	*ret_all = str_eq(value, STR("all_docs"));
	if (!*ret_all && !str_eq(value, STR("main_only")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`style` must be main_only or all_docs");
	return STATUS_OK;
}

static enum status
changes_args_parse_interval(struct couch_req *r, struct str value, uint64_t *ret)
{
	int64_t n;

	if (!couch_integer_parse(value, &n) || n <= 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "invalid_seq_interval");
	*ret = (uint64_t)n;
	return STATUS_OK;
}

/* The names of feeds' parameters count in any case, as in CouchDB. */
static enum status
changes_args_take_param(struct couch_req *r, const struct http_param *p,
			struct couch_changes_args *ret)
{
	bool on = str_eq(p->value, STR("true"));

	if (str_eq_nocase(p->name, STR("feed")))
		return changes_args_parse_feed(r, p->value, &ret->feed);
	if (str_eq_nocase(p->name, STR("since")) || str_eq_nocase(p->name, STR("last-event-id")))
		return changes_args_parse_since(r, p->value, ret);
	if (str_eq_nocase(p->name, STR("limit")))
		return changes_args_parse_limit(r, p->value, "limit", &ret->limit);
	if (str_eq_nocase(p->name, STR("timeout")))
		return changes_args_parse_limit(r, p->value, "timeout", &ret->timeout_ms);
	if (str_eq_nocase(p->name, STR("heartbeat")))
		return changes_args_parse_heartbeat(r, p->value, &ret->heartbeat_ms);
	if (str_eq_nocase(p->name, STR("style")))
		return changes_args_parse_style(r, p->value, &ret->all_heads);
	if (str_eq_nocase(p->name, STR("seq_interval")))
		return changes_args_parse_interval(r, p->value, &ret->seq_interval);
	if (str_eq_nocase(p->name, STR("filter")))
		ret->filter_name = p->value;
	else if (str_eq_nocase(p->name, STR("descending")))
		ret->descending = ret->descending || on;
	else if (str_eq_nocase(p->name, STR("include_docs")))
		ret->include_docs = ret->include_docs || on;
	else if (str_eq_nocase(p->name, STR("conflicts")))
		ret->conflicts = ret->conflicts || on;
	else if (str_eq_nocase(p->name, STR("attachments")))
		ret->doc_flags |= on ? COUCH_DOC_ATTS : 0;
	else if (str_eq_nocase(p->name, STR("att_encoding_info")))
		ret->doc_flags |= on ? COUCH_DOC_ATT_ENCODING : 0;
	return STATUS_OK;
}

static enum status
changes_args_read_body(struct couch_req *r, struct str *ret_text, struct json_member **ret,
		       size_t *ret_count)
{
	struct json_value body;
	struct str text;

	*ret_text = (struct str){ NULL, 0 };
	*ret = NULL;
	*ret_count = 0;
	if (r->method != COUCH_POST)
		return STATUS_OK;
	TRY(couch_db_require_json(r));
	TRY(couch_db_precheck(r));
	TRY(couch_read_body(r, r->settings->body_bytes, &text));
	*ret_text = text;
	if (str_trim(text).len == 0)
		return STATUS_OK;
	TRY(json_value_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	return json_value_members(&body, r->arena, ret, ret_count, &r->fail.err);
}

static enum couch_meter_feed
changes_args_meter_kind(enum couch_feed feed)
{
	switch (feed) {
	case COUCH_FEED_NORMAL:
		break;
	case COUCH_FEED_LONGPOLL:
		return COUCH_METER_FEED_LONGPOLL;
	case COUCH_FEED_CONTINUOUS:
		return COUCH_METER_FEED_CONTINUOUS;
	case COUCH_FEED_EVENTSOURCE:
		return COUCH_METER_FEED_EVENTSOURCE;
	}
	return COUCH_METER_FEED_NONE;
}

enum status
couch_feed_args_read(struct couch_req *r, struct couch_changes_args *ret)
{
	uint64_t most = r->settings->changes_timeout_ms;
	struct str last_event = http_request_header(r->x, STR("Last-Event-ID"));

	*ret = (struct couch_changes_args){ .limit = NO_LIMIT, .timeout_ms = UINT64_MAX };
	for (size_t i = 0; i < r->params_count; i++)
		TRY(changes_args_take_param(r, &r->params[i], ret));
	/* A browser that reconnects has read further than the URL says that it was given. */
	if (ret->feed == COUCH_FEED_EVENTSOURCE && last_event.ptr)
		TRY(changes_args_parse_since(r, last_event, ret));
	if (ret->heartbeat_ms > most)
		ret->heartbeat_ms = most;
	if (ret->timeout_ms > most)
		ret->timeout_ms = most;
	if (r->head) {
		ret->feed = COUCH_FEED_NORMAL;
		ret->limit = 0;
	}
	if (ret->feed != COUCH_FEED_NORMAL)
		couch_meter_feed(r, changes_args_meter_kind(ret->feed));
	return STATUS_OK;
}

enum status
couch_changes_args_read(struct couch_req *r, struct couch_changes_args *ret)
{
	struct json_member *members;
	struct str body;
	size_t count;

	TRY(changes_args_read_body(r, &body, &members, &count));
	TRY(couch_feed_args_read(r, ret));
	return couch_changes_filter_read(r, body, members, count, ret);
}

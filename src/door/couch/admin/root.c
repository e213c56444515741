/* Endpoints of the server as a whole: /, /_up, /_uuids, /_membership. */
#include "base/clock.h"
#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/uuid.h"
#include "kv/damage.h"
#include "kv/log.h"
#include "kv/state.h"

/* The CouchDB release whose behaviour clients may expect. */
#define COUCHDB_VERSION "3.5.0"

/* For somebody who has typed the address into a browser. Programs ask for JSON, or for anything. */
static const char welcome_page[] =
	"<!doctype html>\n"
	"<html lang=\"en\"><title>frond</title>\n"
	"<h1>frond " FROND_VERSION " is running</h1>\n"
	"<p>This is a server of documents that speaks CouchDB's protocol. Its pages for a browser "
	"are\n"
	"at <a href=\"/_utils/\">/_utils/</a>; programs find the same here as JSON:</p>\n"
	"<pre>curl http://HOST:PORT/</pre>\n"
	"<p>What it answers, and how that differs from CouchDB, is in docs/COUCHDB.md of frond's\n"
	"sources; README.md begins with a first document.</p></html>\n";

static enum status
root_welcome_browser(struct couch_req *r)
{
	http_set_header(r->x, STR("Content-Type"), STR("text/html; charset=utf-8"));
	http_set_header(r->x, STR("Cache-Control"), STR("must-revalidate"));
	http_set_status(r->x, 200);
	return http_send(r->x, str_from_cstr(welcome_page));
}

enum status
couch_root_welcome(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);

	http_add_header(r->x, STR("Vary"), STR("Accept"));
	if (couch_accepts(r, "text/html", false) && !couch_accepts(r, "application/json", false))
		return root_welcome_browser(r);
	buf_append_cstr(&out, "{\"couchdb\":\"Welcome\",\"version\":\"" COUCHDB_VERSION
			      "\",\"git_sha\":\"frond-" FROND_VERSION "\",\"uuid\":\"");
	buf_append(&out, r->couch->uuid, sizeof(r->couch->uuid));
	buf_append_cstr(
		&out,
		"\",\"features\":[\"partitioned\"],\"vendor\":{\"name\":\"frond\",\"version\":"
		"\"" FROND_VERSION "\"}}");
	return couch_reply(r, 200, &out);
}

static enum status
root_reach_store(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	uint64_t version;

	(void)r;
	(void)arg;
	return kv_get_read_version(tx, &version);
}

/*
 * 200 if this server can reach the store and the store takes writes; of a cluster with how long a
 * read version has taken, since a slow or full one makes its clients wait for that. 200 for a
 * standby, too, with how far it is behind. Files that are damaged are named: what is in others can
 * be used.
 */
enum status
couch_root_up(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	enum kv_store_state state;
	struct kv_damage damage;
	uint64_t asked_ns = clock_mono_ns();
	uint64_t answered_ns;
	size_t at = 0;

	TRY(couch_store_read(r, root_reach_store, NULL));
	answered_ns = clock_mono_ns();
	state = kv_store_stats(r->couch->config.store).state;
	if (state == KV_STORE_FULL)
		return err_set(&r->fail.err, STATUS_UNAVAILABLE,
			       "the store's disk is full: it is read, and takes writes again when "
			       "there is room");
	if (state != KV_STORE_OPEN && state != KV_STORE_STANDBY)
		return err_set(&r->fail.err, STATUS_UNAVAILABLE,
			       "the store is %s: it takes no writes (the log says why)",
			       kv_store_state_name(state));
	buf_append_cstr(&out, "{\"status\":\"ok\",\"seeds\":{}");
	for (; at < kv_damages(r->couch->config.store, at, &damage, 1); at++) {
		buf_append_cstr(&out, at ? "," : ",\"damaged_files\":[");
		json_write_str(&out, str_from_cstr(damage.file));
	}
	buf_append_cstr(&out, at ? "]" : "");
	if (kv_is_shared(r->couch->config.store) && state != KV_STORE_STANDBY)
		buf_printf(&out, ",\"cluster\":{\"answer_ms\":%.1f}",
			   (double)(answered_ns - asked_ns) / 1e6);
	if (state == KV_STORE_STANDBY) {
		const struct kv_log_behind behind = kv_log_behind(r->couch->config.store);

		buf_printf(&out, ",\"standby\":{\"behind\":%llu,\"seconds\":%.3f}",
			   (unsigned long long)behind.versions, (double)behind.ns / 1e9);
	}
	buf_append_cstr(&out, "}\n");
	return couch_reply(r, 200, &out);
}

enum status
couch_root_membership(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct str name = str_from_cstr(r->settings->node_name);

	TRY(couch_require_admin(r));
	buf_append_cstr(&out, "{\"all_nodes\":[");
	json_write_str(&out, name);
	buf_append_cstr(&out, "],\"cluster_nodes\":[");
	json_write_str(&out, name);
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}

enum status
couch_root_uuids(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct str first = STR("none");
	struct str value;
	int64_t count = 1;

	if (couch_param(r, "count", &value) && (!couch_integer_parse(value, &count) || count < 0))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "count must be a positive integer");
	if ((uint64_t)count > r->settings->uuids_most)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "count parameter too large: the limit is %llu",
				      (unsigned long long)r->settings->uuids_most);
	buf_append_cstr(&out, "{\"uuids\":[");
	for (int64_t i = 0; i < count; i++) {
		struct str uuid = couch_docid_new(r->settings, r->arena);

		if (!uuid.ptr)
			return STATUS_NOMEM;
		if (i)
			buf_append_byte(&out, ',');
		else
			first = uuid;
		json_write_str(&out, uuid);
	}
	buf_append_cstr(&out, "]}\n");
	TRY(buf_status(&out));
	couch_json_headers(r);
	couch_set_etag_of(r, first);
	http_set_header(r->x, STR("Cache-Control"), STR("no-cache"));
	http_set_header(r->x, STR("Pragma"), STR("no-cache"));
	http_set_header(r->x, STR("Expires"), STR("Mon, 01 Jan 1990 00:00:00 GMT"));
	return http_send(r->x, buf_str(&out));
}

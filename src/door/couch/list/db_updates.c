/*
 * GET /_db_updates: what happens to the databases of this server, for administrators.
 *
 * A feed keeps the list of databases (the catalog) for as long as the store's metadata version
 * stays the same. Each time it looks, it reads one key of each database. Then it sets a watch on
 * each of them and on the catalog, and waits. After a watch has fired it pauses for
 * COUCH_UPDATES_PAUSE_MS, so that many writes are read at once. With more than
 * COUCH_UPDATES_WATCHES databases it sets no watch on them, but looks every COUCH_UPDATES_POLL_MS.
 */
#include "catalog/events.h"
#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/list/changes_args.h"
#include "door/couch/list/endpoints.h"
#include "door/couch/list/feed.h"
#include "door/couch/list/feed_wait.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "loop/step.h"
#include "loop/wait.h"

enum {
	COUCH_UPDATES_WATCHES = 1000,
	COUCH_UPDATES_PAUSE_MS = 100,
	COUCH_UPDATES_POLL_MS = 1000,
};

struct updates {
	struct couch_req *r;
	struct couch_changes_args args;
	struct couch_stream stream;
	struct couch_feed_wait wait;
	struct kv_tx *tx;
	/* Marks of the request's arena: before the catalog was read, and right behind it. */
	struct arena_mark bare;
	struct arena_mark filled;
	bool has_catalog;
	struct catalog_view catalog;
	struct catalog_seq at; /* the last event that was sent, or where the feed began */
	bool since_checked;    /* `since` is known not to lie beyond every event */
	uint64_t left;         /* of the limit */
	bool any_row;
	struct kv_future *watches[COUCH_UPDATES_WATCHES + 1];
	size_t watches_count;
};

/* ---- Rows ---- */

static enum status
updates_write_row(struct updates *u, const struct catalog_event *e)
{
	static const char *const types[] = {
		[CATALOG_EVENT_CREATED] = "created",
		[CATALOG_EVENT_DELETED] = "deleted",
		[CATALOG_EVENT_UPDATED] = "updated",
	};
	struct buf *out = &u->stream.out;

	if (couch_feed_is_array(&u->args) && u->any_row)
		buf_append_cstr(out, ",\r\n");
	if (u->args.feed == COUCH_FEED_EVENTSOURCE)
		buf_append_cstr(out, "data: ");
	buf_append_cstr(out, "{\"db_name\":");
	json_write_str(out, e->name);
	buf_printf(out, ",\"type\":\"%s\",\"seq\":", types[e->kind]);
	couch_seq_write(&e->seq, out);
	buf_append_byte(out, '}');
	if (u->args.feed == COUCH_FEED_CONTINUOUS)
		buf_append_byte(out, '\n');
	if (u->args.feed == COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, "\nid: ");
		couch_seq_write(&e->seq, out);
		buf_append_cstr(out, "\n\n");
	}
	u->any_row = true;
	u->left--;
	u->at = e->seq;
	couch_feed_sent(&u->wait);
	couch_feed_stirred(&u->wait);
	return couch_stream_push(&u->stream, false);
}

static enum status
updates_write_end(struct updates *u)
{
	struct buf *out = &u->stream.out;

	if (u->args.feed != COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, couch_feed_is_array(&u->args) ? "\n],\n\"last_seq\":"
								   : "{\"last_seq\":");
		couch_seq_write(&u->at, out);
		buf_append_cstr(out, "}\n");
	}
	return couch_stream_end(&u->stream);
}

/* ---- Looking ---- */

static enum status
updates_read_catalog(struct updates *u)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];

	TRY(kv_get_metadata_version(u->tx, version));
	if (u->has_catalog && memcmp(version, u->catalog.version, sizeof(version)) == 0)
		return STATUS_OK;
	u->has_catalog = false;
	arena_reset(u->r->arena, u->bare);
	TRY(catalog_view_read(u->tx, CATALOG_SPACE_COUCH, u->r->arena, &u->catalog,
			      &u->r->fail.err));
	u->filled = arena_mark(u->r->arena);
	u->has_catalog = true;
	return STATUS_OK;
}

/* Refuses a Sequence beyond every event with 400. This is checked once, before anything is sent. */
static enum status
updates_check_since(struct updates *u)
{
	if (u->since_checked || u->args.since_now || couch_feed_is_from_beginning(&u->args))
		return STATUS_OK;
	TRY(catalog_seq_check_reached(u->tx, &u->args.since, &u->r->fail.err));
	u->since_checked = true;
	return STATUS_OK;
}

/* Reads the events in a transaction of its own, which stays open for the watches. */
static enum status
updates_read_events(struct updates *u, struct catalog_event **ret, size_t *ret_count)
{
	const struct catalog_seq beginning = { 0 };
	const struct catalog_seq *since = u->args.descending ? &beginning : &u->at;

	TRY(kv_begin(u->r->couch->config.store, KV_TX_READ_ONLY, &u->tx));
	for (unsigned failures = 0;; failures++) {
		enum status status = updates_read_catalog(u);

		if (status == STATUS_OK)
			status = updates_check_since(u);
		if (status == STATUS_OK)
			status = catalog_events_read(u->tx, &u->catalog, since, u->r->arena, ret,
						     ret_count);
		if (status == STATUS_OK || failures == KV_RETRY_LIMIT)
			return status;
		TRY(kv_on_error(u->tx, status));
	}
}

static enum status
updates_look(struct updates *u)
{
	struct catalog_event *events;
	size_t count;

	TRY(updates_read_events(u, &events, &count));
	if (u->args.since_now && !u->args.descending) {
		u->args.since_now = false;
		if (count)
			u->at = events[count - 1].seq;
		count = 0;
	}
	for (size_t i = 0; i < count && u->left; i++) {
		step_unit();
		TRY(step_count(1));
		TRY(updates_write_row(u, &events[u->args.descending ? count - 1 - i : i]));
	}
	arena_reset(u->r->arena, u->filled);
	return STATUS_OK;
}

/* ---- Waiting ---- */

static void
updates_free_watches(struct updates *u)
{
	while (u->watches_count)
		kv_future_free(u->watches[--u->watches_count]);
}

static enum status
updates_set_watches(struct updates *u)
{
	size_t dbs = u->catalog.dbs_count;

	TRY(catalog_watch(u->tx, &u->watches[u->watches_count]));
	u->watches_count++;
	for (size_t i = 0; i < dbs && dbs <= COUCH_UPDATES_WATCHES; i++) {
		TRY(catalog_watch_db(u->tx, &u->catalog.dbs[i], &u->watches[u->watches_count]));
		u->watches_count++;
	}
	return kv_future_wait(kv_commit(u->tx));
}

/*
 * Waits until something may have happened. Where a watch could not be set, the feed looks at
 * intervals.
 */
static enum status
updates_park(struct updates *u, enum couch_wake *ret)
{
	struct event *events[COUCH_UPDATES_WATCHES + 3];
	uint64_t at_most_ms = WAIT_FOREVER;
	size_t n = 0;

	if (u->catalog.dbs_count > COUCH_UPDATES_WATCHES)
		at_most_ms = COUCH_UPDATES_POLL_MS;
	for (size_t i = 0; i < u->watches_count; i++) {
		events[n] = kv_future_event(u->watches[i]);
		if (events[n])
			n++;
		else if (kv_future_wait(u->watches[i]) == STATUS_OK)
			return STATUS_OK;
		else
			at_most_ms = COUCH_UPDATES_POLL_MS;
	}
	return couch_feed_park(&u->wait, events, n, at_most_ms, ret);
}

static enum status
updates_wait_for_events(struct updates *u, enum couch_wake *ret)
{
	enum status status;

	*ret = COUCH_WAKE_CHANGED;
	status = updates_set_watches(u);
	kv_tx_free(u->tx);
	u->tx = NULL;
	if (status == STATUS_OK)
		status = couch_stream_push(&u->stream, true);
	couch_stream_rest(&u->stream);
	if (status == STATUS_OK)
		status = updates_park(u, ret);
	/* Without the watches the feed must not wait. It looks for what has happened since. */
	else if (status == STATUS_TX_TOO_OLD || status == STATUS_TX_CONFLICT)
		status = STATUS_OK;
	updates_free_watches(u);
	if (status == STATUS_OK && *ret == COUCH_WAKE_CHANGED)
		status = couch_feed_pause(&u->wait, COUCH_UPDATES_PAUSE_MS, ret);
	return status;
}

/* ---- The feed ---- */

static bool
updates_is_over(const struct updates *u)
{
	if (u->args.feed == COUCH_FEED_NORMAL || u->args.descending || u->left == 0)
		return true;
	return u->args.feed == COUCH_FEED_LONGPOLL && u->any_row;
}

static enum status
updates_serve(struct updates *u)
{
	u->at = u->args.since;
	if (couch_feed_is_array(&u->args))
		buf_append_cstr(&u->stream.out, "{\"results\":[\n");
	if (u->args.feed == COUCH_FEED_EVENTSOURCE) {
		u->stream.content_type = "text/event-stream";
		http_set_header(u->r->x, STR("Cache-Control"), STR("no-cache"));
	}
	u->bare = arena_mark(u->r->arena);
	TRY(updates_look(u));
	while (!updates_is_over(u)) {
		enum couch_wake wake;

		TRY(updates_wait_for_events(u, &wake));
		if (wake == COUCH_WAKE_OVER)
			break;
		TRY(updates_look(u));
	}
	return updates_write_end(u);
}

enum status
couch_db_updates(struct couch_req *r)
{
	struct updates u = { .r = r };
	enum status status;

	TRY(couch_require_admin(r));
	TRY(couch_feed_args_read(r, &u.args));
	if (!budget_admit_lasting(http_memory(r->x)))
		return STATUS_LIMIT;
	u.left = u.args.limit;
	couch_stream_init(&u.stream, r);
	couch_feed_wait_init(&u.wait, &u.stream, &u.args);
	status = updates_serve(&u);
	kv_tx_free(u.tx);
	couch_stream_release(&u.stream);
	return status;
}

/*
 * GET /_db_updates: what happens to the databases of this server, for administrators.
 *
 * A feed knows which databases there are (the catalog) as long as the store's metadata version
 * stands still. Each time it looks it reads one key of each; then it watches them all and the
 * catalog, and waits. What happens within COUCH_UPDATES_PAUSE_MS is gathered, so that many writes
 * are one look. Beyond COUCH_UPDATES_WATCHES databases it does not watch each, but looks every
 * COUCH_UPDATES_POLL_MS.
 */
#include "base/clock.h"
#include "base/wait.h"
#include "door/couch/changes_int.h"

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
	/* Of the request's arena: without the catalog in it, and with it but nothing else. */
	struct arena_mark bare;
	struct arena_mark filled;
	bool has_catalog;
	struct rev_catalog catalog;
	struct rev_seq at; /* the last event told, or where the feed began */
	uint64_t left;     /* of the limit */
	bool any_row;
	struct kv_future *watches[COUCH_UPDATES_WATCHES + 1];
	size_t watches_count;
};

/* ---- Rows ---- */

static enum status
write_row(struct updates *u, const struct rev_event *e)
{
	static const char *const types[] = {
		[REV_EVENT_CREATED] = "created",
		[REV_EVENT_DELETED] = "deleted",
		[REV_EVENT_UPDATED] = "updated",
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
write_end(struct updates *u)
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
read_catalog(struct updates *u)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];

	TRY(kv_get_metadata_version(u->tx, version));
	if (u->has_catalog && memcmp(version, u->catalog.version, sizeof(version)) == 0)
		return STATUS_OK;
	u->has_catalog = false;
	arena_reset(u->r->arena, u->bare);
	TRY(rev_catalog_read(u->tx, u->r->arena, &u->catalog));
	u->filled = arena_mark(u->r->arena);
	u->has_catalog = true;
	return STATUS_OK;
}

/* Reads the events in a transaction of its own, which stays open for the watches. */
static enum status
read_events(struct updates *u, struct rev_event **ret, size_t *ret_count)
{
	const struct rev_seq beginning = { 0 };
	const struct rev_seq *since = u->args.descending ? &beginning : &u->at;

	TRY(kv_begin(u->r->couch->config.store, KV_TX_READ_ONLY, &u->tx));
	for (unsigned failures = 0;; failures++) {
		enum status status = read_catalog(u);

		if (status == STATUS_OK)
			status = rev_events_read(u->tx, &u->catalog, since, u->r->arena, ret,
						 ret_count);
		if (status == STATUS_OK || failures == KV_RETRY_LIMIT)
			return status;
		TRY(kv_on_error(u->tx, status));
	}
}

static enum status
look(struct updates *u)
{
	struct rev_event *events;
	size_t count;

	TRY(read_events(u, &events, &count));
	if (u->args.since_now && !u->args.descending) {
		u->args.since_now = false;
		if (count)
			u->at = events[count - 1].seq;
		count = 0;
	}
	for (size_t i = 0; i < count && u->left; i++)
		TRY(write_row(u, &events[u->args.descending ? count - 1 - i : i]));
	arena_reset(u->r->arena, u->filled);
	return STATUS_OK;
}

/* ---- Waiting ---- */

static void
free_watches(struct updates *u)
{
	while (u->watches_count)
		kv_future_free(u->watches[--u->watches_count]);
}

static enum status
set_watches(struct updates *u)
{
	size_t dbs = u->catalog.dbs_count;

	TRY(rev_catalog_watch(u->tx, &u->watches[u->watches_count]));
	u->watches_count++;
	for (size_t i = 0; i < dbs && dbs <= COUCH_UPDATES_WATCHES; i++) {
		TRY(rev_catalog_watch_db(u->tx, &u->catalog.dbs[i], &u->watches[u->watches_count]));
		u->watches_count++;
	}
	return kv_future_wait(kv_commit(u->tx));
}

/* Waits until something may have happened. A watch that cannot be had is made up for by looking. */
static enum status
park(struct updates *u, enum couch_wake *ret)
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
wait_for_events(struct updates *u, enum couch_wake *ret)
{
	enum status status;

	*ret = COUCH_WAKE_CHANGED;
	status = set_watches(u);
	kv_tx_free(u->tx);
	u->tx = NULL;
	if (status == STATUS_OK)
		status = couch_stream_push(&u->stream, true);
	if (status == STATUS_OK)
		status = park(u, ret);
	/* No watches, no wait: what has happened since is looked for first. */
	else if (status == STATUS_TX_TOO_OLD || status == STATUS_TX_CONFLICT)
		status = STATUS_OK;
	free_watches(u);
	if (status == STATUS_OK && *ret == COUCH_WAKE_CHANGED)
		status = couch_feed_pause(&u->wait, COUCH_UPDATES_PAUSE_MS, ret);
	return status;
}

/* ---- The feed ---- */

static bool
is_over(const struct updates *u)
{
	if (u->args.feed == COUCH_FEED_NORMAL || u->args.descending || u->left == 0)
		return true;
	return u->args.feed == COUCH_FEED_LONGPOLL && u->any_row;
}

static enum status
run(struct updates *u)
{
	u->at = u->args.since;
	if (couch_feed_is_array(&u->args))
		buf_append_cstr(&u->stream.out, "{\"results\":[\n");
	if (u->args.feed == COUCH_FEED_EVENTSOURCE) {
		u->stream.content_type = "text/event-stream";
		http_set_header(u->r->x, STR("Cache-Control"), STR("no-cache"));
	}
	u->bare = arena_mark(u->r->arena);
	TRY(look(u));
	while (!is_over(u)) {
		enum couch_wake wake;

		TRY(wait_for_events(u, &wake));
		if (wake == COUCH_WAKE_OVER)
			break;
		TRY(look(u));
	}
	return write_end(u);
}

enum status
couch_db_updates(struct couch_req *r)
{
	struct updates u = { .r = r };
	enum status status;

	TRY(couch_require_admin(r));
	TRY(couch_feed_args_read(r, &u.args));
	u.left = u.args.limit;
	couch_stream_init(&u.stream, r);
	couch_feed_wait_init(&u.wait, &u.stream, &u.args);
	status = run(&u);
	kv_tx_free(u.tx);
	couch_stream_release(&u.stream);
	return status;
}

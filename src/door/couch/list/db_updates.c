/*
 * GET /_db_updates: what happens to the databases of this server, for administrators.
 *
 * Each time a feed looks, it reads one key of each database, a page of databases at a time, and
 * keeps the events that come next (catalog/events.h). Then it sets a watch on each database and on
 * the catalog, and waits. After a watch has fired it pauses for COUCH_UPDATES_PAUSE_MS, so that
 * many writes are read at once. With more than CATALOG_EVENTS_WATCHED databases it sets no
 * watches, but looks every COUCH_UPDATES_POLL_MS, or after COUCH_UPDATES_REST times as long as
 * looking takes.
 *
 * When the client does not take what is sent, updates_let_go() ends the transaction and frees the
 * events that were found. Once the client reads on, the feed searches again behind the last event
 * that was sent.
 */
#include <assert.h>

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
	COUCH_UPDATES_PAUSE_MS = 100,
	COUCH_UPDATES_POLL_MS = 1000,
	COUCH_UPDATES_REST = 4,
};

struct updates {
	struct couch_req *r;
	struct couch_changes_args args;
	struct couch_stream stream;
	struct couch_feed_wait wait;
	struct kv_tx *tx;
	struct catalog_seq at;     /* the last event that was sent, or where the feed began */
	struct catalog_seq before; /* of a descending feed: the last event that was sent */
	/*
	 * The results of the last look: databases, the version of the store, how long the look
	 * took.
	 */
	struct catalog_watched *watched;
	size_t dbs_count;
	uint64_t version;
	uint64_t look_ms;
	bool polls;         /* there are too many databases for watches */
	bool since_checked; /* `since` is known not to lie beyond every event */
	uint64_t left;      /* of the limit */
	bool any_row;
	struct kv_future *watches[CATALOG_EVENTS_WATCHED + 1];
	size_t watches_count;
	struct catalog_events *found; /* what is being sent; NULL: nothing, or updates_let_go() */
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

/* The client does not read: the feed keeps the place to go on from, and nothing else. */
static void
updates_let_go(void *arg)
{
	struct updates *u = arg;

	kv_tx_free(u->tx);
	u->tx = NULL;
	if (!u->found)
		return;
	catalog_events_release(u->found);
	u->found = NULL;
	u->version = 0; /* the rest has not been sent, so the next search must look */
}

/* ---- Looking ---- */

/* Refuses a Sequence beyond every event with 400. This is checked once, before anything is sent. */
static enum status
updates_check_since(struct updates *u, struct kv_tx *tx)
{
	if (u->since_checked || u->args.since_now || couch_feed_is_from_beginning(&u->args))
		return STATUS_OK;
	TRY(catalog_seq_check_reached(tx, &u->args.since, &u->r->fail.err));
	u->since_checked = true;
	return STATUS_OK;
}

/*
 * True if nothing in the store has changed since the last look, so the feed only has to wait again.
 */
static bool
updates_is_unchanged(const struct updates *u, struct kv_tx *tx)
{
	uint64_t version;

	return u->polls && kv_get_read_version(tx, &version) == STATUS_OK && version == u->version;
}

/* One attempt to read the first page of a search. It reads none if nothing has changed. */
static enum status
updates_begin_search(struct updates *u, struct kv_tx *tx, struct catalog_events *s)
{
	if (updates_is_unchanged(u, tx)) {
		s->done = true;
		return STATUS_OK;
	}
	TRY(updates_check_since(u, tx));
	return catalog_events_page(tx, s, &u->r->fail.err);
}

/* Reads a page of a search. The transaction of the first stays open, for the watches. */
static enum status
updates_read_page(struct updates *u, struct catalog_events *s, bool first)
{
	struct kv_tx *tx;
	enum status status;

	TRY(kv_begin(u->r->couch->config.store, KV_TX_READ_ONLY, &tx));
	kv_tx_set_memory(tx, http_memory(u->r->x), 0);
	for (unsigned failures = 0;; failures++) {
		status = first ? updates_begin_search(u, tx, s)
			       : catalog_events_page(tx, s, &u->r->fail.err);
		if (status == STATUS_OK || failures == KV_RETRY_LIMIT)
			break;
		status = kv_on_error(tx, status);
		if (status != STATUS_OK)
			break;
	}
	if (first)
		u->tx = tx;
	else
		kv_tx_free(tx);
	return status;
}

static enum status
updates_search(struct updates *u, struct catalog_events *s)
{
	kv_tx_free(u->tx);
	u->tx = NULL;
	TRY(updates_read_page(u, s, true));
	while (!s->done) {
		TRY(updates_read_page(u, s, false));
		TRY(couch_feed_beat(&u->wait));
	}
	catalog_events_sort(s);
	if (s->version) {
		/* If the search left events out, the next one follows at once. */
		u->version = s->left_out ? 0 : s->version;
		u->dbs_count = s->dbs_count;
		u->polls = s->dbs_count > CATALOG_EVENTS_WATCHED;
	}
	return STATUS_OK;
}

static size_t
updates_most(const struct updates *u)
{
	if (u->left == 0)
		return 1;
	return u->left < CATALOG_EVENTS_MOST ? (size_t)u->left : CATALOG_EVENTS_MOST;
}

/*
 * Sends the events of a search until all are sent, or the search is gone: updates_let_go().
 * `*ret_more`: there is more, behind what was sent.
 */
static enum status
updates_send_found(struct updates *u, struct catalog_events *s, bool *ret_more)
{
	enum status status = STATUS_OK;

	*ret_more = s->left_out;
	u->found = s;
	for (size_t i = 0; status == STATUS_OK && u->found && i < s->count && u->left; i++) {
		struct catalog_event event = catalog_events_at(s, i);

		step_unit();
		status = step_count(1);
		if (status == STATUS_OK)
			status = updates_write_row(u, &event);
		u->before = u->args.descending ? event.seq : u->before;
		/* A long backlog ends, too, when its reader is no administrator any more. */
		if (status == STATUS_OK)
			status = couch_feed_beat(&u->wait);
	}
	/*
	 * Nobody knows any more whether there is something behind the last row that was sent, and
	 * the transaction that would set the watches is gone, too.
	 */
	if (!u->found)
		*ret_more = true;
	*ret_more = *ret_more && u->left;
	u->found = NULL;
	return status;
}

/* Writes what one search finds. `*ret_more`: there is more, behind what was written. */
static enum status
updates_search_and_write(struct updates *u, bool *ret_more)
{
	struct catalog_events_wanted wanted = {
		.space = CATALOG_SPACE_COUCH,
		.after = u->at,
		.before = u->before,
		.newest_first = u->args.descending,
		.most = updates_most(u),
	};
	struct catalog_events s;
	enum status status;
	bool now = u->args.since_now && !u->args.descending;

	if (now) {
		wanted.newest_first = true;
		wanted.most = 1;
	}
	if (u->args.descending)
		wanted.after = (struct catalog_seq){ { 0 } };
	catalog_events_init(&s, &wanted, u->r->arena, http_memory(u->r->x));
	s.watched = u->watched;
	status = updates_search(u, &s);
	*ret_more = false;
	if (status == STATUS_OK && now) {
		u->args.since_now = false;
		if (s.count)
			u->at = catalog_events_at(&s, 0).seq;
	} else if (status == STATUS_OK) {
		status = updates_send_found(u, &s, ret_more);
	}
	catalog_events_release(&s);
	return status;
}

static enum status
updates_look(struct updates *u)
{
	uint64_t begin_ns = clock_mono_ns();
	bool more = true;

	while (more)
		TRY(updates_search_and_write(u, &more));
	u->look_ms = (clock_mono_ns() - begin_ns) / CLOCK_NS_PER_MS;
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
	if (u->polls)
		return STATUS_OK;
	TRY(catalog_watch(u->tx, &u->watches[u->watches_count]));
	u->watches_count++;
	/* Counted one by one: after a failure those that there are, are freed. */
	assert(u->dbs_count <= CATALOG_EVENTS_WATCHED);
	for (size_t i = 0; i < u->dbs_count; i++) {
		TRY(catalog_watch_db(u->tx, &u->watched[i], &u->watches[u->watches_count]));
		u->watches_count++;
	}
	return kv_future_wait(kv_commit(u->tx));
}

/*
 * The pause between two looks at many databases, long enough that the feed is idle most of the
 * time.
 */
static uint64_t
updates_pause_ms(const struct updates *u)
{
	uint64_t pause_ms = u->look_ms * COUCH_UPDATES_REST;

	return pause_ms > COUCH_UPDATES_POLL_MS ? pause_ms : COUCH_UPDATES_POLL_MS;
}

/*
 * Waits until something may have happened. Where a watch could not be set, the feed looks at
 * intervals.
 */
static enum status
updates_park(struct updates *u, enum couch_wake *ret)
{
	struct event *events[CATALOG_EVENTS_WATCHED + COUCH_FEED_EVENTS];
	uint64_t at_most_ms = WAIT_FOREVER;
	size_t n = 0;

	if (u->polls)
		at_most_ms = updates_pause_ms(u);
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
	if (status == STATUS_OK && *ret == COUCH_WAKE_CHANGED && !u->polls)
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
	memset(&u->before, 0xff, sizeof(u->before));
	u->watched = arena_alloc(u->r->arena, CATALOG_EVENTS_WATCHED * sizeof(*u->watched));
	if (!u->watched)
		return STATUS_LIMIT;
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
	TRY(http_ask_to_last(r->x, 0));
	u.left = u.args.limit;
	couch_stream_init(&u.stream, r);
	couch_feed_wait_init(&u.wait, &u.stream, &u.args);
	(void)http_on_wait(r->x, (struct net_wait_hook){ updates_let_go, &u });
	status = updates_serve(&u);
	(void)http_on_wait(r->x, (struct net_wait_hook){ 0 });
	kv_tx_free(u.tx);
	couch_stream_release(&u.stream);
	return status;
}

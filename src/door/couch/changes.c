/*
 * /{db}/_changes: once, until something happens, or for as long as the client listens.
 *
 * A feed reads page after page of a snapshot to its end. The transaction that read the last page
 * also sets the watch, so that no change can fall between reading and watching; then the snapshot
 * is let go and the fiber parks until the watch fires, the client goes or the server stops.
 */
#include "base/clock.h"
#include "base/wait.h"
#include "door/couch/changes_int.h"

struct feed {
	struct couch_req *r;
	struct couch_changes_args args;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	struct rev_seq at; /* the last change looked at, or where the feed began */
	bool moved;        /* descending: `at` is a change */
	uint64_t left;     /* of the limit */
	uint64_t looked;   /* changes since the feed began */
	bool renewed;      /* they were not all of one snapshot */
	bool any_row;
	uint64_t db;    /* the number of the database that it began with */
	unsigned flags; /* of documents: their attachments */
};

enum {
	LOST_PAUSE_MS = 50, /* before a feed whose watch was lost looks again */
};

enum wake {
	WAKE_CHANGED,
	WAKE_OVER, /* nothing came in time, or the server stops */
};

static bool
is_array(const struct feed *f)
{
	return f->args.feed == COUCH_FEED_NORMAL || f->args.feed == COUCH_FEED_LONGPOLL;
}

/* ---- Rows ---- */

static void
write_seq(const struct rev_seq *seq, struct buf *out)
{
	buf_append_byte(out, '"');
	rev_seq_write(seq, out);
	buf_append_byte(out, '"');
}

static enum status
write_leaves(struct feed *f, const struct rev_change *c, struct rev_tree *tree, struct buf *out)
{
	struct couch_req *r = f->r;

	buf_append_cstr(out, ",\"changes\":[{\"rev\":");
	couch_rev_write(c->rev, out);
	buf_append_byte(out, '}');
	/* Nearly every document has one branch, and then there is nothing to look up. */
	if (f->args.all_leaves && c->branch_count > 1) {
		TRY(rev_tree_read(f->snapshot.tx, r->db, c->id, r->arena, tree));
		for (size_t i = 1; i < tree->count; i++) {
			buf_append_cstr(out, ",{\"rev\":");
			couch_rev_write(tree->branches[i].rev, out);
			buf_append_byte(out, '}');
		}
	}
	buf_append_byte(out, ']');
	return STATUS_OK;
}

static enum status
write_doc(struct feed *f, const struct rev_change *c, struct rev_tree *tree, struct buf *out)
{
	struct couch_req *r = f->r;
	const struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted, .winner = true };
	struct couch_doc_opts opts = { .flags = f->flags, .holes = &f->stream.holes };

	buf_append_cstr(out, ",\"doc\":");
	if (!f->args.conflicts || c->branch_count <= 1)
		return couch_leaf_write(r, f->snapshot.tx, c->id, NULL, &winner, &opts, out);
	if (tree->count == 0)
		TRY(rev_tree_read(f->snapshot.tx, r->db, c->id, r->arena, tree));
	opts.flags |= COUCH_DOC_CONFLICTS;
	return couch_leaf_write(r, f->snapshot.tx, c->id, tree, &tree->branches[0], &opts, out);
}

static enum status
write_row(struct feed *f, const struct rev_change *c)
{
	struct buf *out = &f->stream.out;
	struct rev_tree tree = { 0 };
	bool with_seq = !f->args.seq_interval || f->left % f->args.seq_interval == 0;

	if (is_array(f) && f->any_row)
		buf_append_cstr(out, ",\r\n");
	if (f->args.feed == COUCH_FEED_EVENTSOURCE)
		buf_append_cstr(out, "data: ");
	buf_append_cstr(out, "{\"seq\":");
	if (with_seq)
		write_seq(&c->seq, out);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"id\":");
	json_write_str(out, c->id);
	TRY(write_leaves(f, c, &tree, out));
	if (c->deleted)
		buf_append_cstr(out, ",\"deleted\":true");
	if (f->args.include_docs)
		TRY(write_doc(f, c, &tree, out));
	buf_append_byte(out, '}');
	if (f->args.feed == COUCH_FEED_CONTINUOUS)
		buf_append_byte(out, '\n');
	if (f->args.feed == COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, "\nid: ");
		write_seq(&c->seq, out);
		buf_append_cstr(out, "\n\n");
	}
	return buf_status(out);
}

/* ---- Reading to the end ---- */

static enum status
send_change(struct feed *f, const struct rev_change *c)
{
	size_t out = f->stream.out.len;
	struct arena_mark mark = arena_mark(f->r->arena);
	enum status status;

	if (couch_changes_wanted(&f->args, c->id)) {
		status = write_row(f, c);
		arena_reset(f->r->arena, mark);
		if (status != STATUS_OK) {
			couch_stream_cut(&f->stream, out);
			return status;
		}
		f->any_row = true;
		f->left--;
	}
	f->at = c->seq;
	f->moved = true;
	f->looked++;
	f->snapshot.failures = 0;
	return couch_stream_push(&f->stream, false);
}

static struct rev_change_range
next_range(const struct feed *f)
{
	struct rev_change_range range = { .limit = COUCH_PAGE_ROWS };

	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	range.descending = f->args.descending;
	if (!f->args.descending) {
		range.since = f->at;
	} else if (f->moved) {
		range.until = f->at;
		range.exclusive_until = true;
	}
	if (f->args.filter == COUCH_FILTER_NONE && f->left < COUCH_PAGE_ROWS)
		range.limit = (size_t)f->left;
	return range;
}

static enum status
send_page(struct feed *f, bool *ret_more)
{
	struct rev_change_range range = next_range(f);
	struct rev_change_page page;

	TRY(rev_changes_page(f->snapshot.tx, f->r->db, &range, f->r->arena, &page));
	for (size_t i = 0; i < page.count && f->left; i++)
		TRY(send_change(f, &page.changes[i]));
	*ret_more = page.more;
	return STATUS_OK;
}

/* Sends everything there is, up to the limit. */
static enum status
send_all(struct feed *f)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	bool more = true;

	while (more && f->left) {
		enum status status = send_page(f, &more);

		arena_reset(f->r->arena, mark);
		/* A filter may pass over many pages without sending anything. */
		wait_yield();
		if (status != STATUS_OK) {
			TRY(couch_snapshot_renew(&f->snapshot, status));
			f->renewed = true;
			more = true;
		}
	}
	return STATUS_OK;
}

/* ---- How many are left ---- */

/*
 * A client that pages through a large database asks for this with every page. Counting reads all
 * that is left, so that the count of the last page is remembered: while nothing has changed it is
 * only less by what was read since.
 */
static const struct couch_pending *
find_pending(const struct feed *f, const struct rev_seq *newest)
{
	const struct couch_loop *loop = f->r->loop;

	for (size_t i = 0; i < COUCH_PENDING_KEPT; i++) {
		const struct couch_pending *p = &loop->pending[i];

		if (p->db == f->db && rev_seq_cmp(&p->newest, newest) == 0 &&
		    rev_seq_cmp(&p->after, &f->args.since) == 0)
			return p;
	}
	return NULL;
}

static void
keep_pending(const struct feed *f, const struct rev_seq *newest, uint64_t count)
{
	struct couch_loop *loop = f->r->loop;
	struct couch_pending *p = &loop->pending[loop->pending_next++ % COUCH_PENDING_KEPT];

	*p = (struct couch_pending){ f->db, *newest, f->at, count };
}

static enum status
count_pending(struct feed *f, uint64_t *ret)
{
	struct rev_change_range range = next_range(f);
	const struct couch_pending *known;
	struct rev_db_info info;

	if (f->args.descending)
		return rev_changes_count(f->snapshot.tx, f->r->db, &range, ret);
	TRY(rev_db_info(f->snapshot.tx, f->r->db, &info));
	known = f->renewed ? NULL : find_pending(f, &info.update_seq);
	if (known && known->count >= f->looked)
		*ret = known->count - f->looked;
	else
		TRY(rev_changes_count(f->snapshot.tx, f->r->db, &range, ret));
	keep_pending(f, &info.update_seq, *ret);
	return STATUS_OK;
}

static enum status
send_end(struct feed *f, bool complete)
{
	struct buf *out = &f->stream.out;
	uint64_t pending = 0;

	while (!complete) {
		enum status status = count_pending(f, &pending);

		if (status == STATUS_OK)
			break;
		TRY(couch_snapshot_renew(&f->snapshot, status));
		f->renewed = true;
	}
	if (f->args.feed != COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, is_array(f) ? "\n],\n\"last_seq\":" : "{\"last_seq\":");
		write_seq(&f->at, out);
		buf_append_cstr(out, ",\"pending\":");
		buf_append_u64(out, pending);
		buf_append_cstr(out, "}\n");
	}
	return couch_stream_end(&f->stream);
}

/* ---- Waiting ---- */

static enum status
send_heartbeat(struct feed *f)
{
	buf_append_cstr(&f->stream.out, f->args.feed == COUCH_FEED_EVENTSOURCE
						? "event: heartbeat\ndata: \n\n"
						: "\n");
	return couch_stream_push(&f->stream, true);
}

static enum status
park(struct feed *f, struct event *changed, enum wake *ret)
{
	struct http_exchange *x = f->r->x;
	struct event *const events[] = { changed, http_closed_event(x), http_stopping_event(x) };
	uint64_t wait_ms = f->args.heartbeat_ms ? f->args.heartbeat_ms : f->args.timeout_ms;

	for (;;) {
		switch (event_wait_any(events, 3, clock_after_ms(wait_ms))) {
		case 0:
			*ret = WAKE_CHANGED;
			return STATUS_OK;
		case 1:
			return STATUS_CANCELLED;
		case 2:
			*ret = WAKE_OVER;
			return STATUS_OK;
		default:
			if (!f->args.heartbeat_ms) {
				*ret = WAKE_OVER;
				return STATUS_OK;
			}
			TRY(send_heartbeat(f));
		}
	}
}

/*
 * How the watch ended. One that the store has lost tells nothing, so that the feed looks whether
 * there is anything and watches again, but not without a pause.
 */
static enum status
finish_watch(struct feed *f, struct kv_future *watch, enum wake *ret)
{
	struct event *const events[] = { http_closed_event(f->r->x), http_stopping_event(f->r->x) };
	enum status status = kv_future_wait(watch);

	if (status != STATUS_UNAVAILABLE)
		return status;
	switch (event_wait_any(events, 2, clock_after_ms(LOST_PAUSE_MS))) {
	case 0:
		return STATUS_CANCELLED;
	case 1:
		*ret = WAKE_OVER;
		break;
	default:
		break;
	}
	return STATUS_OK;
}

/* Ends the snapshot with a watch on everything after it. */
static enum status
set_watch(struct feed *f, struct kv_future **ret)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	struct kv_future *commit;
	struct kv_future *watch;
	struct str key;
	enum status status;

	TRY(rev_db_watch_key(f->r->db, f->r->arena, &key));
	watch = kv_watch(f->snapshot.tx, key);
	arena_reset(f->r->arena, mark);
	commit = kv_commit(f->snapshot.tx);
	status = kv_future_wait(commit);
	kv_future_free(commit);
	if (status != STATUS_OK) {
		kv_future_free(watch);
		return status;
	}
	couch_snapshot_end(&f->snapshot);
	*ret = watch;
	return STATUS_OK;
}

static enum status
begin(struct feed *f)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	enum status status = couch_snapshot_begin(&f->snapshot, f->r);

	/* What checking the user's rights takes must not add up over the days of a feed. */
	arena_reset(f->r->arena, mark);
	if (status != STATUS_OK)
		return status;
	if (f->db && f->r->db->number != f->db)
		return couch_fail_set(&f->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Database does not exist.");
	f->db = f->r->db->number;
	return STATUS_OK;
}

/* Waits for a change, or an end. The snapshot is a new one afterwards, or gone. */
static enum status
wait_for_change(struct feed *f, enum wake *ret)
{
	struct kv_future *watch;
	struct event *changed;
	enum status status;

	status = set_watch(f, &watch);
	if (status != STATUS_OK) {
		/* No watch, no wait: what has happened since is read first. */
		*ret = WAKE_CHANGED;
		f->renewed = true;
		return couch_snapshot_renew(&f->snapshot, status);
	}
	*ret = WAKE_CHANGED;
	status = couch_stream_push(&f->stream, true);
	changed = status == STATUS_OK ? kv_future_event(watch) : NULL;
	if (changed)
		status = park(f, changed, ret);
	if (status == STATUS_OK && *ret == WAKE_CHANGED)
		status = finish_watch(f, watch, ret);
	kv_future_free(watch);
	if (status != STATUS_OK || *ret == WAKE_OVER)
		return status;
	f->renewed = true;
	return begin(f);
}

/* ---- The feed ---- */

static enum status
resolve_now(struct feed *f)
{
	struct rev_db_info info;

	if (!f->args.since_now || f->args.descending)
		return STATUS_OK;
	for (;;) {
		enum status status = rev_db_info(f->snapshot.tx, f->r->db, &info);

		if (status == STATUS_OK)
			break;
		TRY(couch_snapshot_renew(&f->snapshot, status));
	}
	f->args.since = info.update_seq;
	return STATUS_OK;
}

/* True if there is a reason not to wait: the feed is to end here. */
static bool
is_over(const struct feed *f)
{
	if (f->args.feed == COUCH_FEED_NORMAL || f->args.descending || f->left == 0)
		return true;
	return f->args.feed == COUCH_FEED_LONGPOLL && f->any_row;
}

static enum status
run(struct feed *f)
{
	TRY(begin(f));
	TRY(resolve_now(f));
	f->at = f->args.since;
	if (is_array(f))
		buf_append_cstr(&f->stream.out, "{\"results\":[\n");
	if (f->args.feed == COUCH_FEED_EVENTSOURCE) {
		f->stream.content_type = "text/event-stream";
		http_set_header(f->r->x, STR("Cache-Control"), STR("no-cache"));
	}
	for (;;) {
		enum wake wake;

		TRY(send_all(f));
		if (is_over(f))
			return send_end(f, f->left > 0);
		TRY(wait_for_change(f, &wake));
		if (wake == WAKE_OVER)
			return send_end(f, true);
	}
}

enum status
couch_changes(struct couch_req *r)
{
	struct feed f = { .r = r };
	enum status status;

	TRY(couch_changes_args_read(r, &f.args));
	f.left = f.args.limit;
	f.flags = couch_doc_flags(r) & (COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING);
	couch_stream_init(&f.stream, r);
	f.stream.snapshot = &f.snapshot;
	status = run(&f);
	couch_snapshot_end(&f.snapshot);
	couch_stream_release(&f.stream);
	return status;
}

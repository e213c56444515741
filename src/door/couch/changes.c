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
	struct couch_feed_wait wait;
	struct rev_seq at; /* the last change looked at, or where the feed began */
	bool moved;        /* descending: `at` is a change */
	uint64_t left;     /* of the limit */
	bool any_row;
	struct rev_cursor changes; /* from `at` on, while they are read page by page */
	struct rev_ahead ahead;
	uint64_t db;    /* the number of the database that it began with */
	unsigned flags; /* of documents: their attachments */
};

enum {
	LOST_PAUSE_MS = 50, /* before a feed whose watch was lost looks again */
};

/* ---- Rows ---- */

static void
write_leaves(const struct couch_change_leaves *leaves, struct buf *out)
{
	buf_append_cstr(out, ",\"changes\":[");
	for (size_t i = 0; i < leaves->count; i++) {
		buf_append_cstr(out, i ? ",{\"rev\":" : "{\"rev\":");
		couch_rev_write(leaves->revs[i], out);
		buf_append_byte(out, '}');
	}
	buf_append_byte(out, ']');
}

/*
 * Each change that is read page by page is a row with its document. Sending attachments may end the
 * snapshot.
 */
static bool
reads_ahead(const struct feed *f)
{
	return f->args.include_docs && f->args.filter == COUCH_FILTER_NONE && !f->args.fields &&
	       !f->args.conflicts && !(f->flags & COUCH_DOC_ATTS);
}

/* The document that is read with those of other rows. */
static enum status
write_ahead(struct feed *f, const struct rev_change *c, const struct rev_branch *winner,
	    const struct couch_doc_opts *opts, struct buf *out)
{
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, NULL, winner, opts };

	TRY(couch_leaf_is(rev_ahead_take(&f->ahead, f->r->arena, &doc), winner, &doc));
	return couch_doc_write(&d, out);
}

static enum status
write_doc(struct feed *f, const struct rev_change *c, struct rev_tree *tree, struct buf *out)
{
	struct couch_req *r = f->r;
	const struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted, .winner = true };
	struct couch_doc_opts opts = { .flags = f->flags, .holes = &f->stream.holes };

	buf_append_cstr(out, ",\"doc\":");
	if (reads_ahead(f))
		return write_ahead(f, c, &winner, &opts, out);
	if (f->args.fields)
		return couch_change_fields(r, f->snapshot.tx, &f->args, c, out);
	if (!f->args.conflicts || c->branch_count <= 1)
		return couch_leaf_write(r, f->snapshot.tx, c->id, NULL, &winner, &opts, out);
	if (tree->count == 0)
		TRY(rev_tree_read(f->snapshot.tx, r->db, c->id, r->arena, tree));
	opts.flags |= COUCH_DOC_CONFLICTS;
	return couch_leaf_write(r, f->snapshot.tx, c->id, tree, &tree->branches[0], &opts, out);
}

static enum status
write_row(struct feed *f, const struct rev_change *c, struct couch_change_leaves *leaves)
{
	struct buf *out = &f->stream.out;
	bool with_seq = !f->args.seq_interval || f->left % f->args.seq_interval == 0;

	if (couch_feed_is_array(&f->args) && f->any_row)
		buf_append_cstr(out, ",\r\n");
	if (f->args.feed == COUCH_FEED_EVENTSOURCE)
		buf_append_cstr(out, "data: ");
	buf_append_cstr(out, "{\"seq\":");
	if (with_seq)
		couch_seq_write(&c->seq, out);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"id\":");
	json_write_str(out, c->id);
	write_leaves(leaves, out);
	if (c->deleted)
		buf_append_cstr(out, ",\"deleted\":true");
	if (f->args.include_docs)
		TRY(write_doc(f, c, &leaves->tree, out));
	buf_append_byte(out, '}');
	if (f->args.feed == COUCH_FEED_CONTINUOUS)
		buf_append_byte(out, '\n');
	if (f->args.feed == COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, "\nid: ");
		couch_seq_write(&c->seq, out);
		buf_append_cstr(out, "\n\n");
	}
	return buf_status(out);
}

/* ---- Reading to the end ---- */

/* Writes the row, if there is to be one. */
static enum status
add_row(struct feed *f, const struct rev_change *c)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	size_t out = f->stream.out.len;
	struct couch_change_leaves leaves;
	enum status status;

	status = couch_change_leaves(f->r, f->snapshot.tx, &f->args, c, &leaves);
	if (status == STATUS_OK && leaves.count) {
		status = write_row(f, c, &leaves);
		if (status == STATUS_OK) {
			f->any_row = true;
			f->left--;
		} else {
			couch_stream_cut(&f->stream, out);
		}
	}
	arena_reset(f->r->arena, mark);
	return status;
}

static enum status
send_change(struct feed *f, const struct rev_change *c)
{
	TRY(add_row(f, c));
	f->at = c->seq;
	f->moved = true;
	f->snapshot.failures = 0;
	return couch_stream_push(&f->stream, false);
}

/* What is still to be read. */
static struct rev_change_range
next_range(const struct feed *f)
{
	struct rev_change_range range = { 0 };

	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	range.descending = f->args.descending;
	if (!f->args.descending) {
		range.since = f->at;
	} else if (f->moved) {
		range.until = f->at;
		range.exclusive_until = true;
	}
	if (f->args.filter == COUCH_FILTER_NONE && f->left < SIZE_MAX)
		range.limit = (size_t)f->left;
	return range;
}

/* Lets the documents of the page be read together. */
static enum status
begin_docs(struct feed *f, const struct rev_change_page *page)
{
	struct rev_want *wants = arena_alloc(f->r->arena, page->count * sizeof(*wants));
	bool more = page->more && f->left > page->count;

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page->count; i++) {
		const struct rev_change *c = &page->changes[i];

		wants[i] = (struct rev_want){ c->id, c->rev, c->deleted };
	}
	return rev_ahead_begin(&f->ahead, f->snapshot.tx, f->r->db, http_memory(f->r->x), wants,
			       page->count, more);
}

static enum status
send_rows(struct feed *f, const struct rev_change_page *page)
{
	if (page->count && reads_ahead(f))
		TRY(begin_docs(f, page));
	for (size_t i = 0; i < page->count && f->left; i++)
		TRY(send_change(f, &page->changes[i]));
	return STATUS_OK;
}

static enum status
read_page(struct feed *f, struct rev_change_page *ret)
{
	struct rev_change_range range = next_range(f);
	bool keep = f->flags & COUCH_DOC_ATTS;

	if (!f->changes.open)
		TRY(rev_changes_begin(&f->changes, f->snapshot.tx, f->r->db, &range));
	TRY(rev_changes_next(&f->changes, COUCH_PAGE_ROWS, keep, f->r->arena, ret));
	/* Sending attachments may end the snapshot. */
	if (keep)
		rev_cursor_end(&f->changes);
	return STATUS_OK;
}

static enum status
send_page(struct feed *f, bool *ret_more)
{
	struct rev_change_page page;
	uint64_t left = f->left;
	enum status status;

	TRY(read_page(f, &page));
	status = send_rows(f, &page);
	if (f->left != left)
		couch_feed_sent(&f->wait);
	*ret_more = page.more;
	return status;
}

static void
end_reads(struct feed *f)
{
	rev_cursor_end(&f->changes);
	rev_ahead_release(&f->ahead);
}

static enum status
send_pages(struct feed *f)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	bool more = true;

	while (more && f->left) {
		enum status status = send_page(f, &more);

		arena_reset(f->r->arena, mark);
		/*
		 * A filter may pass over many pages without sending anything. Behind the last one
		 * comes a wait, and a switch more is felt where thousands of feeds wake at once.
		 */
		if (more)
			wait_yield();
		TRY(couch_feed_beat(&f->wait));
		if (status != STATUS_OK) {
			end_reads(f);
			TRY(couch_snapshot_renew(&f->snapshot, status));
			more = true;
		}
	}
	return STATUS_OK;
}

/* Sends everything there is, up to the limit. */
static enum status
send_all(struct feed *f)
{
	enum status status = send_pages(f);

	end_reads(f);
	return status;
}

/* ---- A few documents ---- */

static enum status
send_ids_once(struct feed *f)
{
	struct rev_change_range range = next_range(f);
	struct rev_change_page page;
	struct rev_db_info info;

	TRY(rev_db_info(f->snapshot.tx, f->r->db, &info));
	TRY(rev_changes_of(f->snapshot.tx, f->r->db, &range, f->args.ids, f->args.ids_count,
			   f->r->arena, &page));
	for (size_t i = 0; i < page.count && f->left; i++)
		TRY(send_change(f, &page.changes[i]));
	couch_feed_sent(&f->wait);
	/* Everything else has been passed over. */
	if (f->left && !f->args.descending && rev_seq_cmp(&info.update_seq, &f->at) > 0)
		f->at = info.update_seq;
	return STATUS_OK;
}

/* What a feed begins with, looked up document by document instead of read from all changes. */
static enum status
send_ids(struct feed *f)
{
	struct arena_mark mark = arena_mark(f->r->arena);

	for (;;) {
		enum status status = send_ids_once(f);

		arena_reset(f->r->arena, mark);
		if (status == STATUS_OK)
			return STATUS_OK;
		TRY(couch_snapshot_renew(&f->snapshot, status));
	}
}

static enum status
send_first(struct feed *f)
{
	if (f->args.filter == COUCH_FILTER_DOC_IDS && f->args.ids_count <= COUCH_DIRECT_IDS)
		return send_ids(f);
	return send_all(f);
}

/* ---- The end ---- */

static enum status
send_end(struct feed *f, bool complete)
{
	struct buf *out = &f->stream.out;
	uint64_t pending = 0;

	while (!complete) {
		struct rev_change_range range = next_range(f);
		enum status status = rev_changes_count(f->snapshot.tx, f->r->db, &range, &pending);

		if (status == STATUS_OK)
			break;
		TRY(couch_snapshot_renew(&f->snapshot, status));
	}
	if (f->args.feed != COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, couch_feed_is_array(&f->args) ? "\n],\n\"last_seq\":"
								   : "{\"last_seq\":");
		couch_seq_write(&f->at, out);
		buf_append_cstr(out, ",\"pending\":");
		buf_append_u64(out, pending);
		buf_append_cstr(out, "}\n");
	}
	return couch_stream_end(&f->stream);
}

/* ---- Waiting ---- */

/*
 * How the watch ended. One that the store has lost tells nothing, so that the feed looks whether
 * there is anything and watches again, but not without a pause.
 */
static enum status
finish_watch(struct feed *f, struct kv_future *watch, enum couch_wake *ret)
{
	enum status status = kv_future_wait(watch);

	return status == STATUS_UNAVAILABLE ? couch_feed_pause(&f->wait, LOST_PAUSE_MS, ret)
					    : status;
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
wait_for_change(struct feed *f, enum couch_wake *ret)
{
	struct kv_future *watch;
	struct event *events[3];
	enum status status;

	status = set_watch(f, &watch);
	if (status != STATUS_OK) {
		/* No watch, no wait: what has happened since is read first. */
		*ret = COUCH_WAKE_CHANGED;
		return couch_snapshot_renew(&f->snapshot, status);
	}
	*ret = COUCH_WAKE_CHANGED;
	status = couch_stream_push(&f->stream, true);
	events[0] = status == STATUS_OK ? kv_future_event(watch) : NULL;
	couch_feed_stirred(&f->wait);
	if (events[0])
		status = couch_feed_park(&f->wait, events, 1, WAIT_FOREVER, ret);
	if (status == STATUS_OK && *ret == COUCH_WAKE_CHANGED)
		status = finish_watch(f, watch, ret);
	kv_future_free(watch);
	if (status != STATUS_OK || *ret == COUCH_WAKE_OVER)
		return status;
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
	if (couch_feed_is_array(&f->args))
		buf_append_cstr(&f->stream.out, "{\"results\":[\n");
	if (f->args.feed == COUCH_FEED_EVENTSOURCE) {
		f->stream.content_type = "text/event-stream";
		http_set_header(f->r->x, STR("Cache-Control"), STR("no-cache"));
	}
	TRY(send_first(f));
	while (!is_over(f)) {
		enum couch_wake wake;

		TRY(wait_for_change(f, &wake));
		if (wake == COUCH_WAKE_OVER)
			return send_end(f, true);
		TRY(send_all(f));
	}
	return send_end(f, f->left > 0);
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
	couch_feed_wait_init(&f.wait, &f.stream, &f.args);
	status = run(&f);
	couch_snapshot_end(&f.snapshot);
	couch_stream_release(&f.stream);
	return status;
}

/*
 * /{db}/_changes: all changes at once, the next ones, or all of them for as long as the client
 * listens.
 *
 * A feed reads page after page of a snapshot to its end. The transaction that read the last page
 * also sets the watch, so no change can fall between reading and watching. Then the snapshot ends,
 * and the fiber parks until the watch fires, the client goes or the server stops.
 *
 * When the client does not take what is sent, changes_let_go() ends the snapshot and all that was
 * read from it. Once the client reads on, the feed begins a new snapshot behind the last change
 * that was sent.
 */
#include "doc/json.h"
#include "door/couch/admin/snapshot.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/list/changes_args.h"
#include "door/couch/list/changes_filter.h"
#include "door/couch/list/endpoints.h"
#include "door/couch/list/feed.h"
#include "door/couch/list/feed_wait.h"
#include "door/couch/list/filter_function.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "model/revisioned/revision.h"
#include "loop/wait.h"

struct feed {
	struct couch_req *r;
	struct couch_changes_args args;
	struct couch_snapshot snapshot;
	struct couch_stream stream;
	struct couch_feed_wait wait;
	struct catalog_seq at; /* the last change that was read, or where the feed began */
	bool moved;            /* with `descending`: `at` is a change that was read */
	uint64_t left;         /* of the limit */
	uint64_t pending;      /* changes behind the last one that was sent, once the feed ends */
	bool any_row;
	struct rev_cursor changes; /* from `at` on, while they are read page by page */
	struct rev_ahead ahead;
	struct arena_mark page_mark; /* of the request's arena, before the page that is read */
	uint64_t db;                 /* the number of the database that it began with */
	unsigned flags;              /* of documents: their attachments */
};

enum {
	LOST_PAUSE_MS = 50, /* before a feed whose watch was lost reads again */
};

/* ---- Rows ---- */

static void
changes_write_heads(const struct couch_change_heads *heads, struct buf *out)
{
	buf_append_cstr(out, ",\"changes\":[");
	for (size_t i = 0; i < heads->count; i++) {
		buf_append_cstr(out, i ? ",{\"rev\":" : "{\"rev\":");
		couch_rev_write(heads->revs[i], out);
		buf_append_byte(out, '}');
	}
	buf_append_byte(out, ']');
}

/*
 * True if each change of a page becomes a row with its document, so that the documents can be read
 * together. Not with attachments, since sending those may end the snapshot.
 */
static bool
changes_reads_ahead(const struct feed *f)
{
	return f->args.include_docs && f->args.filter == COUCH_FILTER_NONE && !f->args.fields &&
	       !f->args.conflicts && !(f->flags & COUCH_DOC_ATTS);
}

/* Writes a document that was read together with those of the page's other rows. */
static enum status
changes_write_ahead(struct feed *f, const struct rev_change *c, const struct rev_branch *winner,
		    const struct couch_doc_opts *opts, struct buf *out)
{
	struct rev_doc doc;
	struct couch_doc_out d = { c->id, &doc, NULL, winner, opts };

	TRY(couch_head_finish_read(rev_ahead_take(&f->ahead, f->r->arena, &doc), winner, &doc));
	return couch_doc_write(&d, out);
}

static enum status
changes_write_doc(struct feed *f, const struct rev_change *c, struct rev_tree *tree,
		  struct buf *out)
{
	struct couch_req *r = f->r;
	const struct rev_branch winner = { .rev = c->rev, .deleted = c->deleted, .winner = true };
	struct couch_doc_opts opts = {
		.flags = f->flags,
		.holes = &f->stream.holes,
		.check_tx = f->snapshot.tx,
		.check_req = r,
	};

	buf_append_cstr(out, ",\"doc\":");
	if (changes_reads_ahead(f))
		return changes_write_ahead(f, c, &winner, &opts, out);
	if (f->args.fields)
		return couch_change_fields(r, f->snapshot.tx, &f->args, c, out);
	if (!f->args.conflicts || c->branch_count <= 1)
		return couch_head_write(r, f->snapshot.tx, c->id, NULL, &winner, &opts, out);
	if (tree->count == 0)
		TRY(rev_tree_read(f->snapshot.tx, r->db, c->id, REV_TREE_HEADS, r->arena, tree));
	opts.flags |= COUCH_DOC_CONFLICTS;
	return couch_head_write(r, f->snapshot.tx, c->id, tree, &tree->branches[0], &opts, out);
}

static enum status
changes_write_row(struct feed *f, const struct rev_change *c, struct couch_change_heads *heads)
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
	changes_write_heads(heads, out);
	if (c->deleted)
		buf_append_cstr(out, ",\"deleted\":true");
	if (f->args.include_docs)
		TRY(changes_write_doc(f, c, &heads->tree, out));
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

/*
 * Writes the change's row, if the filter lets it pass; `known` are the heads that it has let pass,
 * or NULL. What the row alone has read is freed: a feed
 * may have more rows than a transaction has memory for reads. Documents that are read ahead belong
 * to later rows, too, and free their own reads.
 *
 * Not inlined: thousands of feeds may wait for their clients, and would hold the kilobytes of stack
 * meanwhile that the calls below here need.
 */
__attribute__((noinline)) static enum status
changes_add_row(struct feed *f, const struct rev_change *c, const struct couch_change_heads *known)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	uint64_t reads = kv_reads_mark(f->snapshot.tx);
	size_t out = f->stream.out.len;
	struct couch_change_heads heads;
	enum status status;

	if (known) {
		heads = *known;
		status = STATUS_OK;
	} else {
		status = couch_change_heads(f->r, f->snapshot.tx, &f->args, c, &heads);
	}
	if (status == STATUS_OK && heads.count) {
		status = changes_write_row(f, c, &heads);
		if (status == STATUS_OK) {
			f->any_row = true;
			f->left--;
		} else {
			couch_stream_cut(&f->stream, out);
		}
	}
	if (!changes_reads_ahead(f))
		kv_reads_forget(f->snapshot.tx, reads);
	arena_reset(f->r->arena, mark);
	return status;
}

static void
changes_end_reads(struct feed *f)
{
	rev_cursor_end(&f->changes);
	rev_ahead_release(&f->ahead);
}

/* The client does not read: the page that is being sent ends with the change that was sent last. */
static void
changes_let_go(void *arg)
{
	struct feed *f = arg;

	changes_end_reads(f);
	arena_reset(f->r->arena, f->page_mark);
	couch_snapshot_rest(&f->snapshot);
}

static enum status
changes_send_change(struct feed *f, const struct rev_change *c,
		    const struct couch_change_heads *known)
{
	TRY(changes_add_row(f, c, known));
	f->at = c->seq;
	f->moved = true;
	f->snapshot.failures = 0;
	return couch_stream_push(&f->stream, false);
}

/* Sends changes of a page until all are sent, or the page is gone: changes_let_go(). */
static enum status
changes_send_changes(struct feed *f, const struct rev_change_page *page)
{
	for (size_t i = 0; i < page->count && f->left && !f->snapshot.resting; i++)
		TRY(changes_send_change(f, &page->changes[i], NULL));
	return STATUS_OK;
}

/* The same where a function filters them, many at a time. */
static enum status
changes_send_filtered(struct feed *f, const struct rev_change_page *page)
{
	struct couch_change_heads *heads = arena_alloc(f->r->arena,
						       COUCH_FILTER_BATCH * sizeof(*heads));
	struct arena_mark mark = arena_mark(f->r->arena);
	size_t i = 0;

	if (!heads)
		return STATUS_LIMIT;
	while (i < page->count && f->left && !f->snapshot.resting) {
		const struct rev_change *batch = &page->changes[i];
		size_t n = page->count - i;

		n = n < COUCH_FILTER_BATCH ? n : COUCH_FILTER_BATCH;
		arena_reset(f->r->arena, mark);
		TRY(couch_filter_function_heads(f->r, f->snapshot.tx, &f->args, batch, n, heads));
		for (size_t k = 0; k < n && f->left && !f->snapshot.resting; k++)
			TRY(changes_send_change(f, &batch[k], &heads[k]));
		i += n;
	}
	return STATUS_OK;
}

/* The range of changes that are still to be read. */
static struct rev_change_range
changes_next_range(const struct feed *f)
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

/* Begins reading the documents of the page together. */
static enum status
changes_begin_docs(struct feed *f, const struct rev_change_page *page)
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
changes_send_rows(struct feed *f, const struct rev_change_page *page)
{
	if (page->count && changes_reads_ahead(f))
		TRY(changes_begin_docs(f, page));
	if (f->args.function)
		return changes_send_filtered(f, page);
	return changes_send_changes(f, page);
}

static enum status
changes_read_page(struct feed *f, struct rev_change_page *ret)
{
	struct rev_change_range range = changes_next_range(f);
	bool keep = (f->flags & COUCH_DOC_ATTS) || f->args.function;

	if (!f->changes.open)
		TRY(rev_changes_begin(&f->changes, f->snapshot.tx, f->r->db, &range));
	TRY(rev_changes_next(&f->changes, COUCH_PAGE_ROWS, keep, f->r->arena, ret));
	/* Sending attachments may end the snapshot, and the cursor does not outlive it. */
	if (keep)
		rev_cursor_end(&f->changes);
	return STATUS_OK;
}

static enum status
changes_send_page(struct feed *f, bool *ret_more)
{
	struct rev_change_page page;
	uint64_t left = f->left;
	enum status status;

	TRY(changes_read_page(f, &page));
	status = changes_send_rows(f, &page);
	if (f->left != left)
		couch_feed_sent(&f->wait);
	*ret_more = page.more;
	return status;
}

/*
 * Lets another request have its turn to read, if one waits for it. What has been written goes out
 * first, or it would be held while this feed waits for its next turn.
 */
static enum status
changes_give_way(struct feed *f)
{
	if (!couch_snapshot_is_wanted(&f->snapshot))
		return STATUS_OK;
	TRY(couch_stream_push(&f->stream, true));
	changes_let_go(f);
	return STATUS_OK;
}

static enum status
changes_send_pages(struct feed *f)
{
	bool more = true;

	f->page_mark = arena_mark(f->r->arena);
	while (more && f->left) {
		enum status status;

		TRY(couch_snapshot_resume(&f->snapshot));
		status = changes_send_page(f, &more);
		/* What a filter has failed with lies in the arena, and ends the feed. */
		if (status != STATUS_OK && f->r->fail.reason.ptr)
			return status;
		arena_reset(f->r->arena, f->page_mark);
		/*
		 * A filter may pass over many pages without sending anything, and the loop's other
		 * fibers must have their turn. After the last page the feed waits anyway; where
		 * thousands of feeds wake at once, one more switch of fibers each would cost too
		 * much.
		 */
		if (more) {
			if (status == STATUS_OK)
				status = changes_give_way(f);
			wait_yield();
		}
		TRY(couch_feed_beat(&f->wait));
		if (status != STATUS_OK) {
			changes_end_reads(f);
			TRY(couch_snapshot_renew(&f->snapshot, status));
			more = true;
		}
		/*
		 * Without the snapshot nobody knows whether the page was the last: the rest of it
		 * has not been sent, or there may be changes behind it that a watch would not see.
		 */
		if (f->snapshot.resting)
			more = true;
	}
	return STATUS_OK;
}

/* Sends all changes that there are, up to the limit. */
static enum status
changes_send_all(struct feed *f)
{
	enum status status = changes_send_pages(f);

	changes_end_reads(f);
	return status;
}

/* ---- A few documents ---- */

static enum status
changes_send_ids_once(struct feed *f)
{
	struct rev_change_range range = changes_next_range(f);
	struct rev_change_page page;
	struct rev_db_info info;

	TRY(rev_db_info(f->snapshot.tx, f->r->db, &info));
	TRY(rev_changes_of(f->snapshot.tx, f->r->db, &range, f->args.ids.ids, f->args.ids.count,
			   f->r->arena, &page));
	TRY(changes_send_changes(f, &page));
	couch_feed_sent(&f->wait);
	if (f->snapshot.resting)
		return STATUS_OK; /* The caller looks again at what may have changed meanwhile. */
	/* No other change is of interest, so the feed goes on behind the newest one. */
	if (f->left && !f->args.descending && catalog_seq_cmp(&info.update_seq, &f->at) > 0)
		f->at = info.update_seq;
	return STATUS_OK;
}

/* Sends the first rows of a feed about a few documents, whose changes are looked up one by one. */
static enum status
changes_send_ids(struct feed *f)
{
	f->page_mark = arena_mark(f->r->arena);
	for (;;) {
		enum status status;

		TRY(couch_snapshot_resume(&f->snapshot));
		status = changes_send_ids_once(f);
		arena_reset(f->r->arena, f->page_mark);
		if (status == STATUS_OK && !f->snapshot.resting)
			return STATUS_OK;
		if (status != STATUS_OK)
			TRY(couch_snapshot_renew(&f->snapshot, status));
	}
}

static enum status
changes_send_first(struct feed *f)
{
	if (f->args.filter == COUCH_FILTER_DOC_IDS && f->args.ids.count <= COUCH_DIRECT_IDS)
		return changes_send_ids(f);
	return changes_send_all(f);
}

/* ---- The end ---- */

/* How many changes lie behind the last one that was sent. */
static enum status
changes_count_pending(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct feed *f = arg;
	struct rev_change_range range = changes_next_range(f);

	return rev_changes_count(tx, r->db, &range, &f->pending);
}

static enum status
changes_send_end(struct feed *f, bool complete)
{
	struct buf *out = &f->stream.out;

	if (!complete)
		TRY(couch_snapshot_run(&f->snapshot, changes_count_pending, f));
	if (f->args.feed != COUCH_FEED_EVENTSOURCE) {
		buf_append_cstr(out, couch_feed_is_array(&f->args) ? "\n],\n\"last_seq\":"
								   : "{\"last_seq\":");
		couch_seq_write(&f->at, out);
		buf_append_cstr(out, ",\"pending\":");
		buf_append_u64(out, f->pending);
		buf_append_cstr(out, "}\n");
	}
	return couch_stream_end(&f->stream);
}

/* ---- Waiting ---- */

/*
 * Reads how the watch ended. A watch that the store has lost says nothing about changes: the feed
 * reads again and sets another one, but pauses first so as not to spin.
 */
static enum status
changes_finish_watch(struct feed *f, struct kv_future *watch, enum couch_wake *ret)
{
	enum status status = kv_future_wait(watch);

	return status == STATUS_UNAVAILABLE ? couch_feed_pause(&f->wait, LOST_PAUSE_MS, ret)
					    : status;
}

/* Sets a watch on all changes after the snapshot, and ends the snapshot. */
static enum status
changes_set_watch(struct feed *f, struct kv_future **ret)
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
changes_begin_view(struct feed *f)
{
	struct arena_mark mark = arena_mark(f->r->arena);
	enum status status = couch_snapshot_begin_list(&f->snapshot, f->r);

	/*
	 * The memory that checking the user's rights takes must not add up over the days of a feed.
	 */
	arena_reset(f->r->arena, mark);
	if (status != STATUS_OK)
		return status;
	if (f->db && f->r->db->number != f->db)
		return couch_fail_set(&f->r->fail, COUCH_ERROR_NOT_FOUND,
				      "Database does not exist.");
	f->db = f->r->db->number;
	return STATUS_OK;
}

/* Waits for a change or for the feed's end. Afterwards there is a new snapshot, or none. */
static enum status
changes_wait_for_change(struct feed *f, enum couch_wake *ret)
{
	struct kv_future *watch;
	struct event *events[1 + COUCH_FEED_EVENTS];
	enum status status;

	status = changes_set_watch(f, &watch);
	if (status != STATUS_OK) {
		/* Without a watch the feed must not wait. It reads what has happened since. */
		*ret = COUCH_WAKE_CHANGED;
		return couch_snapshot_renew(&f->snapshot, status);
	}
	*ret = COUCH_WAKE_CHANGED;
	status = couch_stream_push(&f->stream, true);
	couch_stream_rest(&f->stream);
	events[0] = status == STATUS_OK ? kv_future_event(watch) : NULL;
	couch_feed_stirred(&f->wait);
	if (events[0])
		status = couch_feed_park(&f->wait, events, 1, WAIT_FOREVER, ret);
	if (status == STATUS_OK && *ret == COUCH_WAKE_CHANGED)
		status = changes_finish_watch(f, watch, ret);
	kv_future_free(watch);
	if (status != STATUS_OK || *ret == COUCH_WAKE_OVER)
		return status;
	return changes_begin_view(f);
}

/* ---- The feed ---- */

/* Refuses a Sequence beyond every change with 400, since no change would ever follow it. */
static enum status
changes_check_since(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct feed *f = arg;

	return rev_seq_check_reached(tx, r->db, &f->args.since, &r->fail.err);
}

/* Finds what "now" means: the newest change of the view. */
static enum status
changes_read_now(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct feed *f = arg;
	struct rev_db_info info;

	TRY(rev_db_info(tx, r->db, &info));
	f->args.since = info.update_seq;
	return STATUS_OK;
}

/* True if the feed ends here instead of waiting. */
static bool
changes_is_over(const struct feed *f)
{
	if (f->args.feed == COUCH_FEED_NORMAL || f->args.descending || f->left == 0)
		return true;
	return f->args.feed == COUCH_FEED_LONGPOLL && f->any_row;
}

static enum status
changes_serve(struct feed *f)
{
	TRY(changes_begin_view(f));
	if (f->args.since_now && !f->args.descending)
		TRY(couch_snapshot_run(&f->snapshot, changes_read_now, f));
	else if (!couch_feed_is_from_beginning(&f->args))
		TRY(couch_snapshot_run(&f->snapshot, changes_check_since, f));
	f->at = f->args.since;
	if (couch_feed_is_array(&f->args))
		buf_append_cstr(&f->stream.out, "{\"results\":[\n");
	if (f->args.feed == COUCH_FEED_EVENTSOURCE) {
		f->stream.content_type = "text/event-stream";
		http_set_header(f->r->x, STR("Cache-Control"), STR("no-cache"));
	}
	TRY(changes_send_first(f));
	while (!changes_is_over(f)) {
		enum couch_wake wake;

		TRY(changes_wait_for_change(f, &wake));
		if (wake == COUCH_WAKE_OVER)
			return changes_send_end(f, true);
		TRY(changes_send_all(f));
	}
	return changes_send_end(f, f->left > 0);
}

enum status
couch_changes(struct couch_req *r)
{
	struct feed f = { .r = r };
	enum status status;

	TRY(couch_changes_args_read(r, &f.args));
	f.left = f.args.limit;
	f.flags = f.args.doc_flags;
	couch_stream_init(&f.stream, r);
	f.stream.fill = couch_att_fill;
	f.stream.fill_arg = &f.snapshot;
	couch_feed_wait_init(&f.wait, &f.stream, &f.args);
	f.page_mark = arena_mark(r->arena);
	(void)http_on_wait(r->x, (struct net_wait_hook){ changes_let_go, &f });
	status = changes_serve(&f);
	(void)http_on_wait(r->x, (struct net_wait_hook){ 0 });
	couch_snapshot_end(&f.snapshot);
	couch_stream_release(&f.stream);
	return status;
}

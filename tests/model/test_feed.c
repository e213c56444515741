/* Changes, documents by id, Sequences and the key that feeds watch. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kv/tuple.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revision.h"

enum {
	ENTRIES = 100500, /* more than a page skips */
	ENTRIES_PART = 20000,
};

static void
changes(struct fixture *f, const struct rev_change_range *range, struct rev_change_page *ret)
{
	struct kv_tx *tx = fixture_begin(f);

	assert_int_equal(rev_changes_page(tx, f->db, range, f->arena, ret), STATUS_OK);
	kv_tx_free(tx);
}

/* `n` documents "d000"… in transactions of `batch`. */
static void
put_many(struct fixture *f, size_t n, size_t batch)
{
	struct rev_edit *edits = arena_zalloc(f->arena, batch * sizeof(*edits));
	struct rev_result *results = arena_zalloc(f->arena, batch * sizeof(*results));

	assert_non_null(edits);
	assert_non_null(results);
	for (size_t i = 0; i < n; i += batch) {
		for (size_t j = 0; j < batch; j++)
			edits[j] = fixture_edit(f, arena_printf(f->arena, "d%03zu", i + j).ptr,
						NULL, "{}");
		fixture_write(f, edits, batch, results);
		for (size_t j = 0; j < batch; j++)
			assert_int_equal(results[j].status, STATUS_OK);
	}
}

static void
sequences_ascend_within_and_across_transactions(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;

	put_many(f, 60, 20);
	changes(f, &range, &page);
	assert_int_equal(page.count, 60);
	assert_false(page.more);
	for (size_t i = 0; i < 60; i++) {
		struct str want = arena_printf(f->arena, "d%03zu", i);

		assert_true(str_eq(page.changes[i].id, want));
		assert_int_equal(page.changes[i].seq.bytes[12], i % 20);
		assert_int_equal(page.changes[i].branch_count, 1);
		if (i)
			assert_true(catalog_seq_cmp(&page.changes[i - 1].seq,
						    &page.changes[i].seq) < 0);
	}
	fixture_check(f);
}

static enum status
raise_incarnation(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_incarnation_raise(tx, CATALOG_SPACE_COUCH, STR("db"), NULL);
}

static enum status
check_reached(struct fixture *f, struct kv_tx *tx, const struct catalog_seq *seq)
{
	struct err err = { 0 };
	enum status status = rev_seq_check_reached(tx, f->db, seq, &err);

	if (status == STATUS_INVALID)
		assert_string_equal(err.text, "The sequence in 'since' lies beyond every change of "
					      "this database.");
	return status;
}

static void
a_sequence_beyond_any_that_exists_is_told(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;
	struct kv_tx *old = fixture_begin(f);
	struct catalog_seq seq = { { 0 } };
	uint64_t version;
	struct kv_tx *tx;

	assert_int_equal(kv_get_read_version(old, &version), STATUS_OK);
	assert_int_equal(check_reached(f, old, &seq), STATUS_OK);
	put_many(f, 3, 1);
	changes(f, &range, &page);
	seq = page.changes[2].seq;
	tx = fixture_begin(f);
	assert_int_equal(check_reached(f, tx, &seq), STATUS_OK);
	/* A transaction that is older than the change asks for a newer version. */
	assert_int_equal(check_reached(f, old, &seq), STATUS_OK);
	seq.bytes[1] = 0x7f;
	assert_int_equal(check_reached(f, tx, &seq), STATUS_INVALID);
	seq = page.changes[2].seq;
	seq.bytes[0]++;
	assert_int_equal(check_reached(f, tx, &seq), STATUS_INVALID);
	kv_tx_free(tx);
	kv_tx_free(old);
}

/* The readers of a database that has moved go on with what they had. */
static void
a_sequence_of_an_earlier_incarnation_is_never_beyond(void **state)
{
	struct fixture *f = *state;
	struct catalog_seq seq = { { 0, 0x7f } };
	struct kv_tx *tx;

	assert_int_equal(kv_run(f->store, raise_incarnation, NULL, NULL, NULL), STATUS_OK);
	tx = fixture_begin(f);
	/* The description that the reader has may be older than the move. */
	assert_int_equal(check_reached(f, tx, &seq), STATUS_OK);
	seq.bytes[0] = 1;
	seq.bytes[1] = 0;
	assert_int_equal(check_reached(f, tx, &seq), STATUS_OK);
	fixture_reopen(f);
	seq.bytes[0] = 0;
	seq.bytes[1] = 0x7f;
	assert_int_equal(check_reached(f, tx, &seq), STATUS_OK);
	kv_tx_free(tx);
}

static void
a_feed_goes_on_after_a_sequence_in_both_directions(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page all, page;
	size_t seen = 0;

	put_many(f, 50, 25);
	changes(f, &range, &all);
	range.limit = 7;
	do {
		changes(f, &range, &page);
		for (size_t i = 0; i < page.count; i++, seen++)
			assert_int_equal(
				catalog_seq_cmp(&page.changes[i].seq, &all.changes[seen].seq), 0);
		range.since = page.changes[page.count - 1].seq;
		assert_int_equal(page.more, seen < 50);
	} while (page.more);
	assert_int_equal(seen, 50);

	range = fixture_all_changes();
	range.descending = true;
	range.limit = 10;
	do {
		changes(f, &range, &page);
		for (size_t i = 0; i < page.count; i++)
			assert_int_equal(
				catalog_seq_cmp(&page.changes[i].seq, &all.changes[--seen].seq), 0);
		range.until = page.changes[page.count - 1].seq;
		range.exclusive_until = true;
		assert_int_equal(page.more, seen > 0);
	} while (page.more);
	assert_int_equal(seen, 0);
}

static void
the_bounds_of_a_feed_are_since_exclusive_until_inclusive(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page all, page;
	struct kv_tx *tx;
	uint64_t n, reads;

	put_many(f, 10, 10);
	changes(f, &range, &all);
	range.since = all.changes[2].seq;
	range.until = all.changes[6].seq;
	changes(f, &range, &page);
	assert_int_equal(page.count, 4);
	tx = fixture_begin(f);
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, 4);
	range.exclusive_until = true;
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, 3);
	range.since = range.until;
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, 0);
	/* Where nothing can lie no counters are read. */
	range.exclusive_until = false;
	reads = kv_tx_stats(tx).reads;
	assert_int_equal(rev_changes_count(tx, f->db, &range, &n), STATUS_OK);
	assert_int_equal(n, 0);
	assert_int_equal(kv_tx_stats(tx).reads, reads);
	range.limit = 0;
	range.since = all.changes[8].seq;
	range.until = all.changes[9].seq;
	range.exclusive_until = false;
	kv_tx_free(tx);
	changes(f, &range, &page);
	assert_int_equal(page.count, 0);
	assert_true(page.more);
}

static void
the_newest_sequence_is_the_databases(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;
	struct rev_db_info info;
	struct catalog_seq beginning = { { 0 } };
	struct kv_tx *tx = fixture_begin(f);

	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(catalog_seq_cmp(&info.update_seq, &beginning), 0);
	assert_int_equal(info.doc_count, 0);
	put_many(f, 3, 3);
	tx = fixture_begin(f);
	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	changes(f, &range, &page);
	assert_int_equal(catalog_seq_cmp(&info.update_seq, &page.changes[2].seq), 0);
	assert_int_equal(info.doc_count, 3);
	assert_int_equal(info.doc_del_count, 0);
}

static void
a_page_is_bounded_by_bytes_and_goes_on(void **state)
{
	enum {
		DOCS = 60,
	};
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct name_range names = { .limit = SIZE_MAX };
	struct rev_change_page page;
	struct rev_entry_page entries;
	size_t seen = 0, pages = 0;
	struct kv_tx *tx;

	/* Ids of 6,900 bytes: 60 of them are more than a page may read. */
	for (size_t i = 0; i < DOCS; i++)
		fixture_put(f, arena_printf(f->arena, "%06900zu", i).ptr, NULL, "{}");
	do {
		changes(f, &range, &page);
		seen += page.count;
		pages++;
		assert_int_equal(page.more, seen < DOCS);
		range.since = page.changes[page.count - 1].seq;
	} while (page.more);
	assert_int_equal(seen, DOCS);
	assert_true(pages > 1);

	seen = pages = 0;
	do {
		tx = fixture_begin(f);
		assert_int_equal(rev_all_docs_page(tx, f->db, &names, f->arena, &entries),
				 STATUS_OK);
		kv_tx_free(tx);
		seen += entries.count;
		pages++;
		assert_int_equal(entries.more, seen < DOCS);
		assert_true(str_eq(entries.last, entries.entries[entries.count - 1].id));
		names.begin = entries.last;
		names.has_begin = names.exclusive_begin = true;
	} while (entries.more);
	assert_int_equal(seen, DOCS);
	assert_true(pages > 1);
}

static void
assert_docs(struct fixture *f, struct name_range range, const char *want, bool more,
	    uint64_t offset)
{
	struct kv_tx *tx = fixture_begin(f);
	struct buf b = BUF_INIT(10000);
	struct rev_entry_page page;
	uint64_t n;

	assert_int_equal(rev_all_docs_page(tx, f->db, &range, f->arena, &page), STATUS_OK);
	assert_int_equal(rev_all_docs_offset(tx, f->db, &range, &n), STATUS_OK);
	kv_tx_free(tx);
	for (size_t i = 0; i < page.count; i++) {
		buf_append_cstr(&b, i ? " " : "");
		buf_append_str(&b, page.entries[i].id);
	}
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, want);
	assert_int_equal(page.more, more);
	assert_int_equal(n, offset);
	buf_release(&b);
}

static void
documents_are_listed_by_id(void **state)
{
	struct fixture *f = *state;
	struct name_range beyond = { .limit = 9, .has_begin = true };
	char *lengthy = arena_zalloc(f->arena, 20000);

	fixture_put(f, "c", NULL, "{}");
	fixture_put(f, "a", NULL, "{}");
	fixture_put(f, "b", NULL, "{}");
	fixture_put(f, "B", NULL, "{}");
	fixture_put(f, "\xc3\xa9", NULL, "{}");
	fixture_put(f, "bb", NULL, "{}");
	fixture_delete(f, "b", "1-967a00dff5e02add41819138abb3284d");
	assert_docs(f, (struct name_range){ .limit = 9 }, "B a bb c \xc3\xa9", false, 0);
	assert_docs(f, (struct name_range){ .limit = 2, .skip = 2 }, "bb c", true, 0);
	assert_docs(f, (struct name_range){ .limit = 2, .skip = 4 }, "\xc3\xa9", false, 0);
	assert_docs(f, (struct name_range){ .limit = 2, .skip = 9 }, "", false, 0);
	assert_docs(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("a"),
					 .has_end = true,
					 .end = STR("c") },
		    "a bb c", false, 1);
	assert_docs(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("a"),
					 .has_end = true,
					 .end = STR("c"),
					 .exclusive_end = true,
					 .exclusive_begin = true },
		    "bb", false, 2);
	assert_docs(f, (struct name_range){ .limit = 3, .descending = true }, "\xc3\xa9 c bb", true,
		    0);
	assert_docs(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("c"),
					 .has_end = true,
					 .end = STR("a"),
					 .descending = true },
		    "c bb a", false, 1);
	assert_docs(f,
		    (struct name_range){ .limit = 9,
					 .has_begin = true,
					 .begin = STR("c"),
					 .exclusive_begin = true,
					 .has_end = true,
					 .end = STR("a"),
					 .exclusive_end = true,
					 .descending = true },
		    "bb", false, 2);
	/* Bounds that are longer than any id, or any key. */
	assert_non_null(lengthy);
	memset(lengthy, 'b', 20000);
	beyond.begin = str_of(lengthy, 20000);
	assert_docs(f, beyond, "c \xc3\xa9", false, 3);
	beyond.descending = true;
	assert_docs(f, beyond, "bb a B", false, 2);
}

/* Entries without the documents behind them: as many as one transaction has room for. */
struct entries_part {
	struct fixture *f;
	size_t begin;
	size_t end;
};

static enum status
fill_entries(struct kv_tx *tx, void *arg)
{
	const struct entries_part *part = arg;
	struct buf key = BUF_INIT(100), value = BUF_INIT(100);
	enum status status = STATUS_OK;

	tuple_put_u64(&value, 1);
	tuple_put_u64(&value, 1);
	tuple_put_bytes(&value, STR("x"));
	for (size_t i = part->begin; i < part->end && status == STATUS_OK; i++) {
		char id[24];

		snprintf(id, sizeof(id), "%06zu", i);
		buf_clear(&key);
		buf_append_str(&key, part->f->db->prefix);
		tuple_put_u64(&key, REV_SUBSPACE_ALL_DOCS);
		tuple_put_str(&key, str_from_cstr(id));
		/* With a conflict range for each they would not fit into one transaction. */
		status = kv_set_no_conflict(tx, buf_str(&key), buf_str(&value));
	}
	buf_release(&key);
	buf_release(&value);
	return status;
}

struct skipping {
	struct fixture *f;
	struct rev_entry_page page;
};

/* A body, since a busy cluster may need longer for so many pairs than a read version lives. */
static enum status
skip_entries(struct kv_tx *tx, void *arg)
{
	struct skipping *s = arg;
	struct name_range range = { .limit = 3, .skip = ENTRIES - 4 };

	TRY(rev_all_docs_page(tx, s->f->db, &range, s->f->arena, &s->page));
	assert_int_equal(s->page.count, 0);
	assert_true(s->page.more);
	assert_true(s->page.skipped > 0 && s->page.skipped < range.skip);

	range.skip -= s->page.skipped;
	range.begin = s->page.last;
	range.has_begin = range.exclusive_begin = true;
	TRY(rev_all_docs_page(tx, s->f->db, &range, s->f->arena, &s->page));
	assert_int_equal(s->page.skipped, range.skip);
	return STATUS_OK;
}

static void
a_page_can_end_while_skipping(void **state)
{
	struct skipping s = { .f = *state };
	struct fixture *f = s.f;

	for (size_t at = 0; at < ENTRIES; at += ENTRIES_PART) {
		struct entries_part part = { f, at, at + ENTRIES_PART };

		if (part.end > ENTRIES)
			part.end = ENTRIES;
		assert_int_equal(kv_run(f->store, fill_entries, &part, NULL, NULL), STATUS_OK);
	}
	assert_int_equal(kv_run_read(f->calm, skip_entries, &s, NULL), STATUS_OK);
	assert_int_equal(s.page.count, 3);
	assert_true(s.page.more);
	assert_true(str_eq(s.page.entries[0].id, arena_printf(f->arena, "%06d", (int)ENTRIES - 4)));
}

static void
a_winner_and_a_body_cost_what_they_return(void **state)
{
	struct fixture *f = *state;
	struct kv_tx *tx;
	struct rev_id rev;
	struct rev_doc doc;

	fixture_put(f, "a", NULL, "{\"x\":1,\"y\":[2,3]}");
	fixture_replicate(f, "a", "1-00000000000000000000000000000000", false, "{\"z\":1}");
	tx = fixture_begin(f);
	assert_int_equal(rev_winner_read(tx, f->db, STR("a"), f->arena, &rev), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).keys_read, 1);
	kv_tx_reset(tx);
	assert_int_equal(rev_doc_read(tx, f->db, STR("a"), f->arena, &doc), STATUS_OK);
	if (kv_is_shared(f->store)) {
		/* The end of the document comes with the entry. */
		assert_int_equal(kv_tx_stats(tx).round_trips, 1);
	} else {
		/* The entry, and the root alone or with leaves. */
		assert_int_equal(kv_tx_stats(tx).keys_read,
				 test_scheme_is_packed() ? 1 + 1 : 1 + 1 + 3);
		assert_int_equal(kv_tx_stats(tx).round_trips, 2);
	}
	assert_int_equal(rev_body_explode(&doc, f->arena), STATUS_OK);
	assert_int_equal(doc.count, 3);
	kv_tx_reset(tx);
	assert_int_equal(rev_doc_read(tx, f->db, STR("b"), f->arena, &doc), STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

static void
a_winner_tells_deleted_from_missing(void **state)
{
	struct fixture *f = *state;
	const char *tombstone = fixture_delete(f, "a", fixture_put(f, "a", NULL, "{}"));
	struct rev_id rev;
	struct kv_tx *tx = fixture_begin(f);
	struct rev_doc doc;

	assert_int_equal(rev_winner_read(tx, f->db, STR("a"), f->arena, &rev), STATUS_DELETED);
	assert_true(rev_id_eq(rev, fixture_rev(f, tombstone)));
	assert_int_equal(rev_doc_read(tx, f->db, STR("a"), f->arena, &doc), STATUS_DELETED);
	assert_true(doc.deleted && rev_id_eq(doc.rev, rev));
	assert_int_equal(doc.count, 0);
	assert_int_equal(rev_winner_read(tx, f->db, STR("b"), f->arena, &rev), STATUS_NOT_FOUND);
	kv_tx_free(tx);
}

static void
a_path_is_read_below_the_prefix_of_a_revision(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a", NULL, "{\"x\":{\"y\":[7,8]}}");
	struct buf out = BUF_INIT(100);
	struct doc_pointer pointer;
	struct doc_place place;
	struct kv_tx *tx = fixture_begin(f);

	assert_int_equal(
		rev_doc_place(f->db, STR("a"), fixture_rev(f, rev), false, f->arena, &place),
		STATUS_OK);
	assert_true(place.key.len <= rev_doc_prefix_bytes(f->db, STR("a")));
	assert_int_equal(doc_pointer_parse(STR("/x/y/1"), f->arena, &pointer, NULL), STATUS_OK);
	assert_int_equal(doc_read_pointer(tx, place, &pointer, KV_READ, f->arena, &out, NULL),
			 STATUS_OK);
	assert_true(str_eq(buf_str(&out), STR("8")));
	buf_release(&out);
	kv_tx_free(tx);
}

/* ---- Watching ---- */

static struct kv_future *
watch(struct fixture *f)
{
	struct kv_tx *tx = fixture_begin(f);
	struct kv_future *w;
	struct str key;

	assert_int_equal(rev_db_watch_key(f->db, f->arena, &key), STATUS_OK);
	w = kv_watch(tx, key);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	return w;
}

static void
assert_fires(struct kv_future *w)
{
	struct event *e = kv_future_event(w);

	if (e)
		assert_int_equal(event_wait_any(&e, 1, clock_after_ms(10000)), 0);
	assert_int_equal(kv_future_wait(w), STATUS_OK);
	kv_future_free(w);
}

static void
every_change_fires_a_watch(void **state)
{
	struct fixture *f = *state;
	struct kv_future *w = watch(f);
	const char *rev = fixture_put(f, "a", NULL, "{}");

	assert_fires(w);
	w = watch(f);
	fixture_delete(f, "a", rev);
	assert_fires(w);
	w = watch(f);
	fixture_replicate(f, "a", "1-x", false, "{}");
	assert_fires(w);
	/* What changes nothing does not. */
	w = watch(f);
	fixture_replicate(f, "a", "1-x", false, "{}");
	assert_int_equal(fixture_try(f, "a", NULL, "{}"), STATUS_DOC_CONFLICT);
	assert_false(kv_future_ready(w));
	kv_future_free(w);
}

/* ---- Pages, and the bodies of lists ---- */

enum {
	LISTED = 700,
	LARGE_BYTES = 300 * 1024, /* more than what is read together may take */
};

/* A document of `size` bytes or so, in members of at most a kilobyte. */
static const char *
listed_json(struct fixture *f, size_t i, size_t size)
{
	struct buf json = BUF_INIT(2 * LARGE_BYTES);
	struct str copy;

	buf_printf(&json, "{\"n\":%zu", i);
	for (size_t m = 0; json.len < size; m++)
		buf_printf(&json, ",\"m%zu\":\"%0*zu\"", m, size > 1000 ? 1000 : (int)size, i);
	buf_append_byte(&json, '}');
	copy = arena_dup(f->arena, buf_str(&json));
	buf_release(&json);
	assert_non_null(copy.ptr);
	return copy.ptr;
}

/* Small and large ones, branches beside winners, tombstones with a body and without. */
static void
put_listed(struct fixture *f)
{
	for (size_t i = 0; i < LISTED; i++) {
		/* One of seven has an id that goes on from its neighbour's. */
		const char *id = i % 7 == 1 ? arena_printf(f->arena, "d%03zu-", i - 1).ptr
					    : arena_printf(f->arena, "d%03zu", i).ptr;
		size_t size = i == 333 ? LARGE_BYTES : i % 50 == 9 ? 30000 : i % 5 * 300;
		const char *rev;

		if (i % 90 == 11) {
			fixture_replicate(f, id, "1-a", i % 4 == 1, listed_json(f, i, size));
			fixture_replicate(f, id, "1-b", false, listed_json(f, i + 1, size));
			continue;
		}
		rev = fixture_put(f, id, NULL, listed_json(f, i, size));
		if (i % 40 == 3)
			fixture_delete(f, id, rev);
	}
}

static const char *
body_text(struct fixture *f, enum status status, const struct rev_doc *doc)
{
	struct buf text = BUF_INIT(4 * LARGE_BYTES);
	struct str copy;

	if (status != STATUS_OK)
		return status_name(status);
	buf_append_byte(&text, '{');
	assert_int_equal(rev_body_write(doc, false, &text), STATUS_OK);
	copy = arena_dup(f->arena, buf_str(&text));
	buf_release(&text);
	return copy.ptr;
}

/* Takes all bodies, `page` at a time; each has to be what it is when it is read alone. */
static void
check_bodies(struct fixture *f, const struct rev_want *wants, size_t count, size_t page)
{
	struct rev_ahead ahead = { 0 };
	struct kv_tx *tx = fixture_begin(f);

	for (size_t i = 0; i < count; i += page) {
		size_t n = count - i < page ? count - i : page;

		assert_int_equal(
			rev_ahead_begin(&ahead, tx, f->db, NULL, wants + i, n, i + n < count),
			STATUS_OK);
		for (size_t j = i; j < i + n; j++) {
			struct arena_mark mark = arena_mark(f->arena);
			const struct rev_want *w = &wants[j];
			struct rev_doc alone;
			struct rev_doc listed;
			enum status expected = rev_doc_read_head(tx, f->db, w->id, w->rev,
								 w->deleted, f->arena, &alone);
			enum status status = rev_ahead_take(&ahead, f->arena, &listed);

			assert_int_equal(status, expected);
			assert_string_equal(body_text(f, status, &listed),
					    body_text(f, expected, &alone));
			if (status == STATUS_OK)
				assert_true(rev_id_eq(listed.rev, w->rev) &&
					    listed.deleted == w->deleted);
			arena_reset(f->arena, mark);
		}
	}
	rev_ahead_release(&ahead);
	rev_ahead_release(&ahead);
	kv_tx_free(tx);
}

static int
compare_wants(const void *a, const void *b)
{
	return str_cmp(((const struct rev_want *)a)->id, ((const struct rev_want *)b)->id);
}

static void
bodies_of_a_list_are_those_of_its_leaves_in_any_order(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;
	struct rev_want *wants;
	struct rev_want *some;
	size_t few = 0;

	put_listed(f);
	changes(f, &range, &page);
	assert_int_equal(page.count, LISTED);
	wants = arena_zalloc(f->arena, LISTED * sizeof(*wants));
	some = arena_zalloc(f->arena, LISTED * sizeof(*some));
	assert_true(wants && some);
	for (size_t i = 0; i < LISTED; i++)
		wants[i] = (struct rev_want){ page.changes[i].id, page.changes[i].rev,
					      page.changes[i].deleted };
	check_bodies(f, wants, LISTED, 100); /* as they were written */
	qsort(wants, LISTED, sizeof(*wants), compare_wants);
	check_bodies(f, wants, LISTED, LISTED);
	check_bodies(f, wants, LISTED, 7);
	for (size_t i = 0; i < LISTED; i += 60) /* far apart */
		some[few++] = wants[i];
	check_bodies(f, some, few, few);
	for (size_t i = 0; i < LISTED; i++)
		some[i] = wants[LISTED - 1 - i];
	check_bodies(f, some, LISTED, 250);
	for (size_t i = 0; i < LISTED; i++) /* in no order, some again, some that are not there */
		some[i] = wants[i * 389 % LISTED / (i % 9 == 0 ? 2 : 1)];
	for (size_t i = 5; i < LISTED; i += 20)
		some[i].deleted = !some[i].deleted;
	check_bodies(f, some, LISTED, 300);
	for (size_t i = 0; i < LISTED; i++) /* runs that lie beside each other */
		some[i] = wants[(i / 35 * 7 % 20) * 35 + i % 35];
	check_bodies(f, some, LISTED, 500);
}

static void
pages_of_a_cursor_are_the_list(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page all, page;
	struct rev_cursor c = { 0 };
	struct kv_tx *tx;

	put_many(f, 300, 50);
	for (int way = 0; way < 4; way++) {
		size_t limit = way & 1 ? 123 : 0;
		size_t seen = 0;

		range.descending = way & 2;
		range.limit = limit ? limit : SIZE_MAX - 1;
		changes(f, &range, &all);
		range.limit = limit;
		tx = fixture_begin(f);
		assert_int_equal(rev_changes_begin(&c, tx, f->db, &range), STATUS_OK);
		do {
			assert_int_equal(rev_changes_next(&c, 17, way == 3, f->arena, &page),
					 STATUS_OK);
			assert_in_range(page.count, 0, 17);
			for (size_t i = 0; i < page.count; i++, seen++) {
				assert_true(str_eq(page.changes[i].id, all.changes[seen].id));
				assert_true(rev_id_eq(page.changes[i].rev, all.changes[seen].rev));
			}
		} while (page.more && page.count);
		assert_int_equal(seen, limit ? limit : 300);
		rev_cursor_end(&c);
		rev_cursor_end(&c);
		kv_tx_free(tx);
	}
}

static void
cursor_skips_entries_and_goes_on(void **state)
{
	struct fixture *f = *state;
	const struct name_range ranges[] = {
		{ .limit = 300 },
		{ .limit = 10, .skip = 100 },
		{ .limit = SIZE_MAX, .skip = 250 },
		{ .limit = SIZE_MAX, .skip = 300 },
		{ .limit = SIZE_MAX, .skip = UINT64_MAX },
		{ .limit = 40, .skip = 5, .descending = true },
	};
	static const struct {
		size_t first, count;
	} expected[] = { { 0, 300 }, { 100, 10 }, { 250, 50 }, { 0, 0 }, { 0, 0 }, { 294, 40 } };

	put_many(f, 300, 50);
	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
		struct kv_tx *tx = fixture_begin(f);
		struct rev_entry_page page;
		struct rev_cursor c = { 0 };
		size_t n = 0;

		assert_int_equal(rev_all_docs_begin(&c, tx, f->db, &ranges[r]), STATUS_OK);
		do {
			assert_int_equal(rev_all_docs_next(&c, 30, false, f->arena, &page),
					 STATUS_OK);
			assert_true(!page.skipped || !page.count);
			for (size_t i = 0; i < page.count; i++, n++) {
				size_t at = ranges[r].descending ? expected[r].first - n
								 : expected[r].first + n;
				struct str want = arena_printf(f->arena, "d%03zu", at);

				assert_true(str_eq(page.entries[i].id, want));
			}
			if (page.count)
				assert_true(str_eq(page.last, page.entries[page.count - 1].id));
		} while (page.more && (page.count || page.skipped));
		assert_int_equal(n, expected[r].count);
		rev_cursor_end(&c);
		kv_tx_free(tx);
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(sequences_ascend_within_and_across_transactions),
		TEST(a_sequence_beyond_any_that_exists_is_told),
		TEST(a_sequence_of_an_earlier_incarnation_is_never_beyond),
		TEST(a_feed_goes_on_after_a_sequence_in_both_directions),
		TEST(the_bounds_of_a_feed_are_since_exclusive_until_inclusive),
		TEST(the_newest_sequence_is_the_databases),
		TEST(a_page_is_bounded_by_bytes_and_goes_on),
		TEST(documents_are_listed_by_id),
		TEST(a_page_can_end_while_skipping),
		TEST(a_winner_and_a_body_cost_what_they_return),
		TEST(a_winner_tells_deleted_from_missing),
		TEST(a_path_is_read_below_the_prefix_of_a_revision),
		TEST(every_change_fires_a_watch),
		TEST(bodies_of_a_list_are_those_of_its_leaves_in_any_order),
		TEST(pages_of_a_cursor_are_the_list),
		TEST(cursor_skips_entries_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What reads many documents, and databases as a whole, answers when a call of the store fails, when
 * its memory ends and when what it reads is damaged; and by what it conflicts (probe.h).
 */
#include "between.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/kind.h"
#include "index/view/documents.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/salvage.h"
#include "model/revisioned/viewed_docs.h"
#include "probe.h"

enum {
	TWO = 2,            /* entries of a page */
	WANTS = 7,          /* bodies of a list */
	LONG_BYTES = 70000, /* of a body in several values */
	ENOUGH = 1 << 20,
};

static const struct catalog_db *
begin(struct probe *p)
{
	const struct fixture *f = p->world;

	probe_begin(p);
	return f->db;
}

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

static void
say_number(struct probe *p, uint64_t n)
{
	buf_printf(&p->said, "%llu|", (unsigned long long)n);
}

static void
say_rev(struct probe *p, struct rev_id rev)
{
	rev_id_write(rev, &p->said);
	buf_append_byte(&p->said, '|');
}

static void
say_seq(struct probe *p, const struct catalog_seq *seq)
{
	say(p, str_of(seq->bytes, sizeof(seq->bytes)));
}

/* ---- Lists ---- */

static enum status
list_changes(struct probe *p, bool descending, bool keep)
{
	struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page = { .more = true };
	struct rev_cursor c = { 0 };
	enum status status;

	range.descending = descending;
	range.limit = 5;
	status = rev_changes_begin(&c, p->tx, begin(p), &range);
	while (status == STATUS_OK && page.more) {
		status = rev_changes_next(&c, TWO, keep, p->arena, &page);
		for (size_t i = 0; status == STATUS_OK && i < page.count; i++) {
			say(p, page.changes[i].id);
			say_rev(p, page.changes[i].rev);
		}
	}
	rev_cursor_end(&c);
	return status;
}

static enum status
changes_in_pages(struct probe *p)
{
	return list_changes(p, false, false);
}

static enum status
changes_backwards(struct probe *p)
{
	return list_changes(p, true, true);
}

static void
say_entries(struct probe *p, const struct rev_entry_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		say(p, page->entries[i].id);
		say_rev(p, page->entries[i].rev);
	}
	say_number(p, page->skipped);
	say(p, page->last);
}

static enum status
list_docs(struct probe *p, const struct name_range *range, bool keep)
{
	struct rev_entry_page page = { .more = true };
	struct rev_cursor c = { 0 };
	enum status status = rev_all_docs_begin(&c, p->tx, begin(p), range);

	while (status == STATUS_OK && page.more) {
		status = rev_all_docs_next(&c, TWO, keep, p->arena, &page);
		if (status == STATUS_OK)
			say_entries(p, &page);
	}
	rev_cursor_end(&c);
	return status;
}

static enum status
docs_behind_a_skip(struct probe *p)
{
	return list_docs(p, &(struct name_range){ .skip = 1, .limit = 3 }, true);
}

static enum status
docs_of_a_range(struct probe *p)
{
	return list_docs(p,
			 &(struct name_range){ .begin = STR("b"),
					       .has_begin = true,
					       .end = STR("c"),
					       .has_end = true,
					       .limit = 9 },
			 false);
}

static enum status
docs_backwards(struct probe *p)
{
	const struct name_range range = { .descending = true, .skip = 2, .limit = 2 };
	struct rev_entry_page page;

	TRY(rev_all_docs_page(p->tx, begin(p), &range, p->arena, &page));
	say_entries(p, &page);
	say_number(p, page.more);
	return STATUS_OK;
}

static enum status
docs_estimate(struct probe *p)
{
	const struct name_range range = { .begin = STR("b"), .has_begin = true };
	uint64_t n;

	TRY(rev_all_docs_estimate(p->tx, begin(p), &range, &n));
	say_number(p, n);
	return STATUS_OK;
}

/* ---- Branches and bodies of several documents ---- */

static enum status
tree_of(struct probe *p, const char *id, enum rev_tree_part part)
{
	struct rev_tree tree;

	TRY(rev_tree_read(p->tx, begin(p), str_from_cstr(id), part, p->arena, &tree));
	for (size_t i = 0; i < tree.count; i++) {
		say_rev(p, tree.branches[i].rev);
		say_number(p, tree.branches[i].deleted);
		for (size_t k = 0; k < tree.branches[i].ancestors_count; k++)
			say(p, tree.branches[i].ancestors[k]);
	}
	say_seq(p, &tree.seq);
	return STATUS_OK;
}

static enum status
tree_of_heads(struct probe *p)
{
	return tree_of(p, "a", REV_TREE_HEADS);
}

static enum status
tree_of_the_winner(struct probe *p)
{
	return tree_of(p, "a", REV_TREE_WINNER);
}

static enum status
tree_of_nothing(struct probe *p)
{
	return tree_of(p, "nowhere", REV_TREE_ALL);
}

static enum status
winner_of(struct probe *p, const char *id)
{
	struct rev_id rev;

	TRY(rev_winner_read(p->tx, begin(p), str_from_cstr(id), p->arena, &rev));
	say_rev(p, rev);
	return STATUS_OK;
}

static enum status
winner_alive(struct probe *p)
{
	return winner_of(p, "a");
}

static enum status
winner_deleted(struct probe *p)
{
	return winner_of(p, "d");
}

static enum status
winner_missing(struct probe *p)
{
	return winner_of(p, "nowhere");
}

static void
wants_make(struct fixture *f, bool ascending, struct rev_want *ret)
{
	static const struct {
		const char *id, *rev;
		bool deleted;
	} all[WANTS] = {
		{ "a", "2-w", false },  { "a", "2-x", false }, { "b", "1-b", false },
		{ "c", "1-c", false },  { "d", "1-d", true },  { "long", "1-l", false },
		{ "zz", "1-z", false },
	};

	for (size_t i = 0; i < WANTS; i++) {
		size_t from = ascending ? i : WANTS - 1 - i;

		ret[i] = (struct rev_want){ str_from_cstr(all[from].id),
					    fixture_rev(f, all[from].rev), all[from].deleted };
	}
}

static enum status
branches_alive(struct probe *p)
{
	struct rev_branch found[WANTS];
	struct rev_want wants[WANTS];

	wants_make(p->world, true, wants);
	TRY(rev_branches_read_live(p->tx, begin(p), wants, WANTS, p->arena, found));
	for (size_t i = 0; i < WANTS; i++) {
		say_number(p, found[i].rev.pos);
		for (size_t k = 0; k < found[i].ancestors_count; k++)
			say(p, found[i].ancestors[k]);
	}
	return STATUS_OK;
}

static enum status
take_bodies(struct probe *p, struct rev_ahead *a, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rev_doc doc;
		enum status status = rev_ahead_take(a, p->arena, &doc);

		if (status == STATUS_OK)
			status = rev_body_write(&doc, false, &p->said);
		if (status != STATUS_NOT_FOUND)
			TRY(status);
	}
	return STATUS_OK;
}

static enum status
bodies(struct probe *p, bool ascending, bool sparse)
{
	struct rev_want wants[WANTS];
	struct rev_ahead a = { 0 };
	enum status status;

	wants_make(p->world, ascending, wants);
	status = rev_ahead_begin(&a, p->tx, begin(p), NULL, wants, 3, true);
	if (sparse)
		rev_ahead_is_sparse(&a);
	if (status == STATUS_OK)
		status = take_bodies(p, &a, 3);
	if (status == STATUS_OK)
		status = rev_ahead_begin(&a, p->tx, begin(p), NULL, wants + 3, WANTS - 3, false);
	if (status == STATUS_OK)
		status = take_bodies(p, &a, WANTS - 3);
	rev_ahead_release(&a);
	return status;
}

static enum status
bodies_in_order(struct probe *p)
{
	return bodies(p, true, false);
}

static enum status
bodies_in_no_order(struct probe *p)
{
	return bodies(p, false, false);
}

static enum status
bodies_apart(struct probe *p)
{
	return bodies(p, true, true);
}

static enum status
body_exploded(struct probe *p)
{
	struct rev_doc doc;

	TRY(rev_doc_read(p->tx, begin(p), STR("b"), p->arena, &doc));
	TRY(rev_body_explode(&doc, p->arena));
	for (size_t i = 0; i < doc.count; i++) {
		say(p, doc.leaves[i].key);
		say(p, doc.leaves[i].value);
	}
	return STATUS_OK;
}

static enum status
heads_themselves(struct probe *p)
{
	struct fixture *f = p->world;
	const struct rev_id revs[] = { fixture_rev(f, "1-a"), fixture_rev(f, "2-w"),
				       fixture_rev(f, "9-q") };
	struct rev_descent d;

	TRY(rev_descent_read(p->tx, begin(p), STR("a"), revs, 3, REV_DESCENT_ITSELF, p->arena, &d));
	for (size_t i = 0; i < 3; i++)
		for (uint32_t n = rev_descent_first(&d, revs[i]); n; n = d.links[n - 1].next)
			say_rev(p, d.heads[d.links[n - 1].head].rev);
	return STATUS_OK;
}

static enum status
differences(struct probe *p)
{
	struct fixture *f = p->world;
	struct rev_id of_a[] = { fixture_rev(f, "3-x"), fixture_rev(f, "1-a") };
	struct rev_id of_b[] = { fixture_rev(f, "1-b") };
	struct rev_id of_none[] = { fixture_rev(f, "1-n") };
	const struct rev_diff_query queries[] = {
		{ STR("a"), of_a, 2 },
		{ STR("b"), of_b, 1 },
		{ STR("nowhere"), of_none, 1 },
	};
	struct rev_diff found[3];

	TRY(rev_diff(p->tx, begin(p), queries, 3, p->arena, found));
	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < found[i].missing_count; k++)
			say_rev(p, found[i].missing[k]);
		for (size_t k = 0; k < found[i].possible_ancestors_count; k++)
			say_rev(p, found[i].possible_ancestors[k]);
	}
	return STATUS_OK;
}

static const struct probe_op lists[] = {
	{ "changes in pages", changes_in_pages, "ok, conflicts 0 0+0; 1-5: C/CNC~C~C~COC" },
	{ "changes backwards", changes_backwards, "ok, conflicts 0 0+0; 1-5: C/CNC~C~C~COC" },
	{ "documents behind a skip", docs_behind_a_skip,
	  "ok, conflicts 0 0+0; 1: O/O 2-4: C/CNC~C~C" },
	{ "documents of a range", docs_of_a_range, "ok, conflicts 0 0+0; 1-2: C/CNC~C~C" },
	{ "documents backwards", docs_backwards,
	  "ok, conflicts 0 0+0; 1-2: O/O 3-4: C/CNC~C~C 5: O/O" },
	{ "an estimate of documents", docs_estimate,
	  "ok, conflicts 0 0+0; 1-2: C/O 3-4: O/O 5-6: C/O 7-12: O/O" },
	{ "a tree of heads", tree_of_heads,
	  "ok, conflicts 1 0+0; 1: CO/CNC 2: CO/CNCOC 3: CO/CNC~COCOC" },
	{ "a tree of the winner", tree_of_the_winner,
	  "ok, conflicts 1 0+0; 1: CO/CNC 2: CO/CNCOC 3: CO/CNC~COC~C" },
	{ "a tree of nothing", tree_of_nothing, "not_found, conflicts 1 0+0" },
	{ "a winner alive", winner_alive, "ok, conflicts 1 0+0; 1: C/CNC~C~C" },
	{ "a winner deleted", winner_deleted, "deleted, conflicts 2 0+0; 1: CO/CNCOCOC" },
	{ "a winner missing", winner_missing, "not_found, conflicts 2 0+0" },
	{ "branches alive", branches_alive,
	  "ok, conflicts 7 0+0; 1: CO/CNC~C 2: CO/CNCOCOC~C 3-4: CO/CNCOCOC 5: C/CNCOCOC" },
	{ "bodies in order", bodies_in_order,
	  "ok, conflicts 0 0+0; 1-5: C/CNC~C 6: O/O 7: C/CN 8: C/C" },
	{ "bodies in no order", bodies_in_no_order,
	  "ok, conflicts 0 0+0; 1: C/CNC~C 2: O/O 3: C/CN 4: C/C" },
	{ "bodies apart", bodies_apart, "ok, conflicts 0 0+0; 1-3: C/CNC~C" },
	{ "a body exploded", body_exploded, "ok, conflicts 2 0+0; 1-2: C/CNC" },
	{ "heads themselves", heads_themselves,
	  "ok, conflicts 1 0+0; 1: CO/CNC 2: CO/CNCOC 3: CO/CNCOCOCOC" },
	{ "differences", differences,
	  "ok, conflicts 0 0+0; 1: CO/CNC 2: CO/CNCOC 3: CO/CNCOCOCOC 4: CO/CNCOCOC" },
};

/* ---- What builds of indexes and views are lent ---- */

static enum status
say_source(void *arg, const struct index_source *source)
{
	struct probe *p = arg;

	say(p, source->id);
	say(p, source->body);
	say_number(p, source->count);
	return STATUS_OK;
}

static enum status
visit(struct probe *p, const struct index_stretch *stretch)
{
	const struct fixture *f = p->world;
	struct index_passed passed;

	(void)begin(p);
	TRY(rev_indexed_documents.visit(p->tx, f->db, &index_set_of(f->db)->defs[0], stretch,
					p->arena, say_source, p, &passed));
	say(p, passed.last);
	say_number(p, passed.count);
	say_number(p, passed.more);
	return STATUS_OK;
}

static enum status
visit_all(struct probe *p)
{
	return visit(p, &(struct index_stretch){ .limit = 100 });
}

static enum status
visit_some(struct probe *p)
{
	return visit(p, &(struct index_stretch){ .after = STR("a"), .limit = 2 });
}

static enum status
visit_exactly(struct probe *p)
{
	return visit(p, &(struct index_stretch){ .end = STR("c"), .limit = 100, .exact = true });
}

static enum status
cut(struct probe *p)
{
	const struct str *ids;
	uint64_t documents;
	size_t count;

	TRY(rev_indexed_documents.cut(p->tx, begin(p), 4, p->arena, &ids, &count, &documents));
	say_number(p, count);
	say_number(p, documents);
	return STATUS_OK;
}

static enum status
viewed(struct probe *p, const struct view_docs_want *want)
{
	struct view_docs docs;

	TRY(rev_viewed_documents.changes(p->tx, begin(p), want, p->arena, &docs, &p->err));
	for (size_t i = 0; i < docs.count; i++) {
		say(p, docs.docs[i].id);
		say_seq(p, &docs.docs[i].seq);
		say_number(p, docs.docs[i].gone);
		say(p, docs.docs[i].json);
	}
	say_seq(p, &docs.last);
	say_number(p, docs.more);
	return STATUS_OK;
}

static enum status
viewed_all(struct probe *p)
{
	return viewed(p, &(struct view_docs_want){ .most = 100,
						   .most_bytes = ENOUGH,
						   .include_design = true,
						   .local_seq = true });
}

static enum status
viewed_some(struct probe *p)
{
	return viewed(p, &(struct view_docs_want){ .most = 3, .most_bytes = ENOUGH });
}

static enum status
viewed_bytes(struct probe *p)
{
	return viewed(p, &(struct view_docs_want){ .most = 100, .most_bytes = 30 });
}

static enum status
viewed_count(struct probe *p)
{
	const struct catalog_seq beginning = { { 0 } };
	uint64_t docs, changes;

	TRY(rev_viewed_documents.count(p->tx, begin(p), &beginning, &docs, &changes));
	say_number(p, docs);
	say_number(p, changes);
	return STATUS_OK;
}

static enum status
viewed_purges(struct probe *p)
{
	const struct catalog_seq beginning = { { 0 } };
	struct view_docs docs;

	TRY(rev_viewed_documents.purges(p->tx, begin(p), &beginning, 10, p->arena, &docs, &p->err));
	for (size_t i = 0; i < docs.count; i++)
		say(p, docs.docs[i].id);
	say_seq(p, &docs.last);
	return STATUS_OK;
}

static const struct probe_op lent[] = {
	{ "visit all", visit_all,
	  "ok, conflicts 0 1+0; 1: CO/CNCOCOC 2: CO/CNC 3: CO/CNCOC 4: CO/CNC~OCOCOC 5-6: "
	  "CO/CNC~OCOC 7: CO/CNCOCOC 8: CO/CNC~OCOC 9: C/CNC~OCOC 10-12: C/CNC~C" },
	{ "visit some", visit_some, "ok, conflicts 0 1+0; 1-2: CO/CNC~OCOC 3-4: C/CNC~C" },
	{ "visit exactly", visit_exactly,
	  "ok, conflicts 0 3+0; despite allocation 12=ok; 1: CO/CNCOCOC 2: CO/CNC 3: CO/CNCOC 4: "
	  "CO/CNC~OCOCOC 5-6: CO/CNC~OCOC 7-9: C/CNC~C" },
	{ "cut", cut, "ok, conflicts 0 0+0; 1-3: C/O 4: O/O 5: C/~ 6: C/O" },
	{ "map all", viewed_all,
	  "ok, conflicts 1 0+0; 1-4: C/CNCOC 5: C/CNC~COCOCOC 6-7: C/CNCOC 8: C/CNC~C 9: O/O "
	  "10-12: C/CNC~C" },
	{ "map some", viewed_some,
	  "ok, conflicts 1 0+0; 1: C/CNC~COCOCOC 2-3: C/CNCOC 4: O/O 5-6: C/CNC~C 7: CO/CNC 8: "
	  "CO/CNCOC 9: CO/CNCOCOCOC" },
	{ "map some bytes", viewed_bytes,
	  "ok, conflicts 1 0+0; despite 3=ok; 1: C/CNC~COCOCOC 2: C/CNCOC 3-7: C/CNCOCOCOCOC 8: "
	  "C/CNC~C 9-12: O/O" },
	{ "count for maps", viewed_count,
	  "ok, conflicts 0 0+0; 1: C/~ 2-3: C/O 4: O/O 5-7: C/O 8-12: O/O" },
	{ "purges for maps", viewed_purges, "ok, conflicts 3 0+0; 1-2: C/CNCOC~COCOC" },
};

/* ---- Purges, databases, dumps ---- */

static enum status
reader_add(struct probe *p)
{
	struct catalog_seq seq;

	TRY(rev_purge_reader_add(p->tx, begin(p), STR("new"), &seq, &p->err));
	say_seq(p, &seq);
	return STATUS_OK;
}

static enum status
reader_get(struct probe *p)
{
	struct catalog_seq seq;

	TRY(rev_purge_reader_get(p->tx, begin(p), STR("r"), &seq, &p->err));
	say_seq(p, &seq);
	return STATUS_OK;
}

static enum status
reader_advance(struct probe *p)
{
	const struct catalog_seq seq = { { 0xff } };

	return rev_purge_reader_advance(p->tx, begin(p), STR("r"), &seq, &p->err);
}

/* One that has not been added. */
static enum status
reader_advance_nobody(struct probe *p)
{
	const struct catalog_seq seq = { { 0xff } };

	return rev_purge_reader_advance(p->tx, begin(p), STR("nobody"), &seq, &p->err);
}

static enum status
reader_remove(struct probe *p)
{
	return rev_purge_reader_remove(p->tx, begin(p), STR("r"), &p->err);
}

static enum status
limit_get(struct probe *p)
{
	uint64_t limit;

	TRY(rev_purges_limit_get(p->tx, begin(p), p->arena, &limit));
	say_number(p, limit);
	return STATUS_OK;
}

static enum status
limit_set(struct probe *p)
{
	return rev_purges_limit_set(p->tx, begin(p), 7, &p->err);
}

static enum status
over(struct probe *p)
{
	bool is_over;

	TRY(rev_purges_over(p->tx, begin(p), p->arena, &is_over));
	say_number(p, is_over);
	return STATUS_OK;
}

static enum status
trim(struct probe *p)
{
	bool more;

	TRY(rev_purges_trim(p->tx, begin(p), p->arena, &more, &p->err));
	say_number(p, more);
	return STATUS_OK;
}

static enum status
purges_of_one(struct probe *p)
{
	const struct catalog_seq beginning = { { 0 } };
	struct rev_purge_page page;

	TRY(rev_purges_page(p->tx, begin(p), &beginning, 1, p->arena, &page, &p->err));
	for (size_t i = 0; i < page.count; i++) {
		say(p, page.purges[i].doc_id);
		for (size_t k = 0; k < page.purges[i].count; k++)
			say_rev(p, page.purges[i].revs[k]);
	}
	return STATUS_OK;
}

static enum status
open_one(struct probe *p, bool bare)
{
	const struct fixture *f = p->world;
	struct catalog_db *db;

	(void)begin(p);
	TRY((bare ? rev_db_open_bare : rev_db_open)(p->tx, NULL, f->db->name, &db, &p->err));
	say_number(p, db->number);
	say_number(p, db->bare);
	if (!bare)
		say_number(p, index_set_of(db) ? index_set_of(db)->count : 0);
	catalog_db_unref(db);
	return STATUS_OK;
}

static enum status
open_whole(struct probe *p)
{
	return open_one(p, false);
}

static enum status
open_bare(struct probe *p)
{
	return open_one(p, true);
}

static enum status
open_nothing(struct probe *p)
{
	struct catalog_db *db;

	(void)begin(p);
	return rev_db_open(p->tx, NULL, STR("nowhere"), &db, &p->err);
}

static enum status
create(struct probe *p)
{
	(void)begin(p);
	return rev_db_create(p->tx, STR("new"), REV_SCHEME_PACKED, &p->err);
}

static enum status
create_again(struct probe *p)
{
	const struct fixture *f = p->world;

	(void)begin(p);
	return rev_db_create_partitioned(p->tx, f->db->name, REV_SCHEME_PACKED, &p->err);
}

static enum status
newest_for_views(struct probe *p)
{
	struct catalog_seq seq;

	TRY(rev_viewed_documents.newest(p->tx, begin(p), &seq));
	say_seq(p, &seq);
	return STATUS_OK;
}

static const struct probe_op around[] = {
	{ "add a reader", reader_add, "ok, conflicts 1 0+0; 1: C/~" },
	{ "get a reader", reader_get, "ok, conflicts 1 0+0; 1: C/CNC~" },
	{ "advance a reader", reader_advance, "ok, conflicts 1 0+0; 1: C/CNCO" },
	{ "advance nobody", reader_advance_nobody, "not_found, conflicts 1 0+0" },
	{ "remove a reader", reader_remove, "ok, conflicts 0 0+0" },
	{ "get the limit", limit_get, "ok, conflicts 1 0+0; 1: C/C" },
	{ "set the limit", limit_set, "ok, conflicts 0 0+0" },
	{ "over the limit", over, "ok, conflicts 1 0+0; 1: C/O 2: C/C" },
	{ "trim", trim, "ok, conflicts 3 0+0; 1: C/O 2: C/C 3-4: O/O 5: C/CNCO" },
	{ "a page of purges", purges_of_one, "ok, conflicts 1 0+0; 1: C/CNCOC~C~C~C 2: O/O" },
	{ "open", open_whole, "ok, conflicts 2 0+0; 1: C/CNC~COCOCO 2-6: O/O 7: C/CNCOCOCOCOC" },
	{ "open bare", open_bare, "ok, conflicts 1 0+0; 1: C/CNC~COCOCO" },
	{ "open nothing", open_nothing, "not_found, conflicts 1 0+0" },
	{ "create", create, "ok, conflicts 4 0+0; despite 9=ok 10=ok; 1: O/" },
	{ "create again", create_again, "exists, conflicts 1 0+0; 1: C/CNCOCOCOCO" },
	{ "the newest", newest_for_views, "ok, conflicts 0 0+0; 1: C/~ 2: O/O" },
};

static enum status
line_ready(void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	return STATUS_OK;
}

static enum status
line_end(void *arg, struct err *err)
{
	struct probe *p = arg;

	(void)err;
	buf_append_byte(&p->said, '\n');
	return STATUS_OK;
}

static void
line_warn(void *arg, const char *text)
{
	struct probe *p = arg;

	buf_append_cstr(&p->said, text);
}

static void
line_broken(void *arg, struct str entry, const char *why)
{
	struct probe *p = arg;

	say(p, entry);
	buf_append_cstr(&p->said, why);
}

static enum status
dump(struct probe *p, bool revs, bool salvages)
{
	const struct fixture *f = p->world;
	const struct catalog_dump dump = {
		.tx = p->tx,
		.db = f->db,
		.revs = revs,
		.out = &p->said,
		.ready = line_ready,
		.end_line = line_end,
		.warn = line_warn,
		.arg = p,
		.err = &p->err,
	};
	const struct catalog_broken broken = { line_broken, p };

	(void)begin(p);
	return salvages ? rev_salvage.dump(&dump, &broken) : f->db->kind->dump(&dump);
}

static enum status
dump_winners(struct probe *p)
{
	return dump(p, false, false);
}

static enum status
dump_revisions(struct probe *p)
{
	return dump(p, true, false);
}

static enum status
dump_what_is_left(struct probe *p)
{
	return dump(p, true, true);
}

static enum status
show_prefix(void *arg, struct str prefix)
{
	say(arg, prefix);
	return STATUS_OK;
}

static enum status
inspect(struct probe *p)
{
	const struct fixture *f = p->world;

	(void)begin(p);
	return f->db->kind->inspect(p->tx, f->db, STR("a"), p->arena, show_prefix, p);
}

static const struct probe_op dumps[] = {
	{ "dump winners", dump_winners,
	  "ok, conflicts 7 0+0; 1-6: C/CNC0C0C 7-10: C/CNC~C 11: C/CNC 12-13: C/CN 14: C/C" },
	{ "dump revisions", dump_revisions,
	  "ok, conflicts 17 0+0; 1-7: C/CNC0COCOCOC 8: CO/CNCOCOC 9: C/CNC~C 10: CO/CNC 11: "
	  "CO/CNC~C 12: CO/CNCOCOC~C 13-14: C/CNC~C 15: CO/CNCOCOC 16: C/CNC~C 17: CO/CNCOCOC 18: "
	  "C/CNC~C 19: CO/CNCOCOC 20: C/CNC~C 21: CO/CNCOCOC 22: C/CNC 23: C/CNCOCOC 24-25: C/CN "
	  "26: C/C" },
	{ "dump what is left", dump_what_is_left,
	  "ok, conflicts 10 0+0; despite allocation 17=ok; 1: ~O/~O~O~ 2-3: ~O/~ 4-8: ~O/~O~O~ 9: "
	  "~/~O~O~ 10-19: ~/~ 20-36: O/O" },
	{ "inspect", inspect,
	  "ok, conflicts 5 0+0; 1: CO/CNC 2: CO/CNCOC 3: CO/CNC~COCOC 4: CO/CNC 5: CO/CNCOC 6: "
	  "CO/CNCOCOCOC 7-8: C/CNCOC" },
};

/* ---- The world ---- */

static enum status
around_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct rev_id p_rev = fixture_rev(f, "1-p"), q_rev = fixture_rev(f, "1-q");
	const struct rev_purge_query queries[] = { { STR("p"), &p_rev, 1 },
						   { STR("q"), &q_rev, 1 } };
	struct rev_purge_result results[2];

	return rev_purge(tx, f->db, queries, 2, f->arena, results, NULL);
}

static enum status
reader_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_seq seq;

	TRY(rev_purges_limit_set(tx, f->db, 1, NULL));
	return rev_purge_reader_add(tx, f->db, STR("r"), &seq, NULL);
}

static enum status
building_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	uint64_t number;

	return between_index(tx, f->db, INDEX_SPARSE, INDEX_BUILDING, &number);
}

static void
put_long(struct fixture *f)
{
	char *json = malloc(LONG_BYTES + 20);

	assert_non_null(json);
	memcpy(json, "{\"s\":\"", 6);
	memset(json + 6, 'x', LONG_BYTES);
	memcpy(json + 6 + LONG_BYTES, "\"}", 3);
	(void)fixture_replicate(f, "long", "1-l", false, json);
	free(json);
}

static int
setup(void **state)
{
	struct fixture *f;

	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	assert_int_equal(fixture_setup(state), 0);
	f = *state;
	(void)fixture_replicate(f, "_design/x", "1-x", false, "{\"n\":0}");
	(void)fixture_replicate(f, "a", "2-x a", false, "{\"n\":1}");
	(void)fixture_replicate(f, "a", "2-w a", false, "{\"w\":12}");
	(void)fixture_replicate(f, "a", "1-0", true, "{}");
	(void)fixture_replicate(f, "b", "1-b", false, "{\"n\":[1,{\"m\":\"t\"}],\"o\":null}");
	(void)fixture_replicate(f, "c", "1-c", false, "{\"n\":2}");
	(void)fixture_replicate(f, "d", "1-d", true, "{\"left\":1}");
	(void)fixture_replicate(f, "e", "1-e", false, "{}");
	(void)fixture_replicate(f, "p", "1-p", false, "{}");
	(void)fixture_replicate(f, "q", "1-q", false, "{}");
	put_long(f);
	assert_int_equal(kv_run(f->store, around_body, f, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, reader_body, f, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, building_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
lists_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, lists, COUNT(lists));
}

static void
what_is_lent_hands_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, lent, COUNT(lent));
}

static void
databases_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, around, COUNT(around));
}

static void
dumps_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each_throughout(f->store, f, dumps, COUNT(dumps));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_hand_failures_on, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(what_is_lent_hands_failures_on, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(databases_hand_failures_on, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(dumps_hand_failures_on, setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

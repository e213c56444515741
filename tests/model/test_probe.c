/*
 * What operations on documents with revisions answer when a call of the store fails, when their
 * memory ends and when what they read is damaged; and by what they conflict (probe.h).
 */
#include "between.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/verify.h"
#include "kv/faulty/faulty.h"
#include "probe.h"

enum {
	LONG_BYTES = 120000, /* of a text that lies in several values */
	LEAVES = 110000,
	EDITS = 4,
};

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

static void
say_rev(struct probe *p, struct rev_id rev)
{
	rev_id_write(rev, &p->said);
	buf_append_byte(&p->said, '|');
}

static enum status
say_doc(struct probe *p, const struct rev_doc *doc)
{
	say_rev(p, doc->rev);
	for (size_t i = 0; i < doc->atts_count; i++) {
		say(p, doc->atts[i].name);
		say(p, doc->atts[i].type);
	}
	return rev_body_write(doc, false, &p->said);
}

static const struct catalog_db *
begin(struct probe *p)
{
	const struct fixture *f = p->world;

	probe_begin(p);
	return f->db;
}

/* ---- Writing ---- */

static enum status
write_edits(struct probe *p, const struct rev_edit *edits, size_t count)
{
	struct rev_result results[EDITS];

	TRY(rev_write(p->tx, begin(p), edits, count, 0, p->arena, results, &p->err));
	for (size_t i = 0; i < count; i++) {
		/* There is no memory for that edit. */
		if (results[i].status == STATUS_NOMEM)
			return STATUS_NOMEM;
		buf_printf(&p->said, "%s ", status_name(results[i].status));
		if (results[i].status == STATUS_OK)
			say_rev(p, results[i].rev);
	}
	return STATUS_OK;
}

static enum status
edit(struct probe *p, const char *id, const char *parent, const char *json)
{
	const struct rev_edit one = fixture_edit(p->world, id, parent, json);

	return write_edits(p, &one, 1);
}

static enum status
edit_winner(struct probe *p)
{
	return edit(p, "a", "2-x", "{\"n\":7}");
}

static enum status
edit_conflict(struct probe *p)
{
	return edit(p, "a", "2-w", "{\"n\":7}");
}

static enum status
edit_new(struct probe *p)
{
	return edit(p, "new", NULL, "{\"n\":7,\"s\":[1,2]}");
}

static enum status
edit_deleted(struct probe *p)
{
	return edit(p, "d", NULL, "{\"n\":7}");
}

static enum status
delete_winner(struct probe *p)
{
	return edit(p, "a", "2-x", NULL);
}

static enum status
edit_nothing(struct probe *p)
{
	return edit(p, "a", "2-q", "{}");
}

static enum status
copy_of(struct probe *p, const char *id, const char *history, bool deleted)
{
	const struct rev_edit one = fixture_copy(p->world, id, history, deleted, "{\"n\":8}");

	return write_edits(p, &one, 1);
}

static enum status
copy_extends(struct probe *p)
{
	return copy_of(p, "a", "4-z y x a", false);
}

static enum status
copy_branches(struct probe *p)
{
	return copy_of(p, "a", "2-v a", false);
}

static enum status
copy_deletes(struct probe *p)
{
	return copy_of(p, "a", "3-e x a", true);
}

static enum status
copy_known(struct probe *p)
{
	return copy_of(p, "a", "2-x a", false);
}

static enum status
copies_merge(struct probe *p)
{
	struct rev_edit both[2];

	both[0] = fixture_copy(p->world, "a", "3-e w a", false, "{\"n\":8}");
	both[1] = fixture_copy(p->world, "a", "2-v a", false, "{\"n\":9}");
	return write_edits(p, both, 2);
}

static enum status
attach(struct probe *p)
{
	struct rev_edit one = fixture_edit(p->world, "t", "1-t", "{\"n\":7}");
	const struct rev_att_edit atts[] = {
		{ .source = REV_ATT_STUB, .att = { .name = STR("kept") } },
		between_att("new", "data"),
	};

	one.atts = atts;
	one.atts_count = 2;
	return write_edits(p, &one, 1);
}

static enum status
detach(struct probe *p)
{
	return edit(p, "t", "1-t", "{\"n\":7}");
}

static enum status
edit_long(struct probe *p)
{
	return edit(p, "long", "1-l", "{\"n\":7}");
}

static enum status
purge(struct probe *p, const char *id, const char *first, const char *second)
{
	struct rev_id revs[2] = { fixture_rev(p->world, first) };
	struct rev_purge_query query = { str_from_cstr(id), revs, 1 };
	struct rev_purge_result result;

	if (second)
		revs[query.count++] = fixture_rev(p->world, second);
	TRY(rev_purge(p->tx, begin(p), &query, 1, p->arena, &result, &p->err));
	for (size_t i = 0; i < result.count; i++)
		say_rev(p, result.revs[i]);
	return STATUS_OK;
}

static enum status
purge_winner(struct probe *p)
{
	return purge(p, "a", "2-x", NULL);
}

static enum status
purge_all(struct probe *p)
{
	return purge(p, "a", "2-x", "2-w");
}

static enum status
purge_attached(struct probe *p)
{
	return purge(p, "t", "1-t", NULL);
}

static const struct probe_op writing[] = {
	{ "edit the winner", edit_winner, "ok, conflicts 1 0+0; 1: CO/CNCOCOCOC" },
	{ "edit a conflict", edit_conflict, "ok, conflicts 3 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "a new document", edit_new, "ok, conflicts 1 0+0" },
	{ "begin a deleted one again", edit_deleted, "ok, conflicts 1 0+0; 1: CO/CNCOCOC" },
	{ "delete the winner", delete_winner, "ok, conflicts 2 0+0; 1: CO/CNCOCOCOC 2: CO/CNCOC" },
	{ "edit what is no head", edit_nothing, "ok, conflicts 1 0+0" },
	{ "copy what extends", copy_extends, "ok, conflicts 1 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "copy a branch", copy_branches, "ok, conflicts 1 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "copy a deletion", copy_deletes, "ok, conflicts 1 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "copy what is known", copy_known, "ok, conflicts 1 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "copy two", copies_merge, "ok, conflicts 1 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
	{ "attach", attach,
	  "ok, conflicts 3 0+0; 1: C/CNCOC~COCOC~C 2: CO/CNCOCOC 3: C/CNCOCOCOCOC" },
	{ "detach", detach, "ok, conflicts 3 0+0; 1: CO/CNCOCOC 2: C/CNCOCOCOCOC 3: C/OC" },
	{ "edit a long one", edit_long, "ok, conflicts 1 0+0; 1: C/CNCOCOC" },
	{ "purge the winner", purge_winner, "ok, conflicts 1 0+0; 1: CO/CNCOCOCOC 2: CO/CNCOC" },
	{ "purge all", purge_all, "ok, conflicts 1 0+0; 1: CO/CNCOCOCOC 2: CO/CNCOC" },
	{ "purge what has attachments", purge_attached,
	  "ok, conflicts 3 0+0; 1: CO/CNCOCOC 2: C/CNCOCOCOCOC 3: C/OC" },
};

/* ---- Reading ---- */

static enum status
read_tree(struct probe *p)
{
	struct rev_tree tree;

	TRY(rev_tree_read(p->tx, begin(p), STR("a"), REV_TREE_ALL, p->arena, &tree));
	for (size_t i = 0; i < tree.count; i++) {
		const struct rev_branch *b = &tree.branches[i];

		say_rev(p, b->rev);
		buf_printf(&p->said, "%d%d", b->deleted, b->winner);
		for (size_t k = 0; k < b->ancestors_count; k++)
			say(p, b->ancestors[k]);
	}
	return STATUS_OK;
}

static enum status
read_branch(struct probe *p)
{
	struct rev_branch b;

	TRY(rev_branch_read(p->tx, begin(p), STR("a"), fixture_rev(p->world, "2-w"), p->arena, &b));
	say_rev(p, b.rev);
	for (size_t k = 0; k < b.ancestors_count; k++)
		say(p, b.ancestors[k]);
	return STATUS_OK;
}

static enum status
read_descent(struct probe *p)
{
	const struct rev_id revs[] = { fixture_rev(p->world, "1-a"), fixture_rev(p->world, "2-w") };
	struct rev_descent d;

	TRY(rev_descent_read(p->tx, begin(p), STR("a"), revs, 2, REV_DESCENT_WHOLE, p->arena, &d));
	for (size_t i = 0; i < 2; i++)
		for (uint32_t n = rev_descent_first(&d, revs[i]); n; n = d.links[n - 1].next)
			say_rev(p, d.heads[d.links[n - 1].head].rev);
	return STATUS_OK;
}

static enum status
read_winners(struct probe *p)
{
	const struct str ids[] = { STR("a"), STR("d"), STR("nowhere") };
	struct rev_id revs[3];

	TRY(rev_winners_read(p->tx, begin(p), ids, 3, p->arena, revs));
	for (size_t i = 0; i < 3; i++)
		say_rev(p, revs[i]);
	return STATUS_OK;
}

static enum status
read_doc(struct probe *p, const char *id)
{
	struct rev_doc doc;

	TRY(rev_doc_read(p->tx, begin(p), str_from_cstr(id), p->arena, &doc));
	return say_doc(p, &doc);
}

static enum status
read_packed(struct probe *p)
{
	return read_doc(p, "b");
}

static enum status
read_leaves(struct probe *p)
{
	return read_doc(p, "c");
}

static enum status
read_attached(struct probe *p)
{
	return read_doc(p, "t");
}

static enum status
read_long(struct probe *p)
{
	return read_doc(p, "long");
}

static enum status
read_deleted(struct probe *p)
{
	return read_doc(p, "d");
}

static enum status
read_together(struct probe *p)
{
	struct rev_doc doc;

	TRY(rev_doc_read_together(p->tx, begin(p), STR("t"), p->arena, &doc));
	return say_doc(p, &doc);
}

/* It is longer than what is read together with its revision. */
static enum status
read_long_together(struct probe *p)
{
	struct rev_doc doc;

	TRY(rev_doc_read_together(p->tx, begin(p), STR("long"), p->arena, &doc));
	return say_doc(p, &doc);
}

static enum status
read_head(struct probe *p)
{
	struct rev_doc doc;

	TRY(rev_doc_read_head(p->tx, begin(p), STR("a"), fixture_rev(p->world, "2-w"), false,
			      p->arena, &doc));
	return say_doc(p, &doc);
}

static enum status
read_att(struct probe *p)
{
	struct rev_att att;

	TRY(rev_att_read(p->tx, begin(p), STR("t"), fixture_rev(p->world, "1-t"), false,
			 STR("kept"), p->arena, &att));
	say(p, att.type);
	buf_printf(&p->said, "%llu", (unsigned long long)att.length);
	return STATUS_OK;
}

static enum status
diff(struct probe *p)
{
	struct rev_id revs[] = { fixture_rev(p->world, "2-x"), fixture_rev(p->world, "5-q"),
				 fixture_rev(p->world, "1-a") };
	const struct rev_diff_query query = { STR("a"), revs, 3 };
	struct rev_diff found;

	TRY(rev_diff(p->tx, begin(p), &query, 1, p->arena, &found));
	for (size_t i = 0; i < found.missing_count; i++)
		say_rev(p, found.missing[i]);
	for (size_t i = 0; i < found.possible_ancestors_count; i++)
		say_rev(p, found.possible_ancestors[i]);
	return STATUS_OK;
}

static const struct probe_op reading[] = {
	{ "the tree", read_tree, "ok, conflicts 1 0+0; 1: CO/CNC~C 2: CO/CNCOCOC~C" },
	{ "a branch", read_branch, "ok, conflicts 2 0+0; despite 2=ok; 1: CO/CNC~C" },
	{ "descent", read_descent, "ok, conflicts 1 0+0; 1: CO/CNC~C 2: CO/CNCOCOC~C" },
	{ "winners", read_winners, "ok, conflicts 0 0+0; 1: C/CNC~C~C" },
	{ "a packed body", read_packed, "ok, conflicts 2 0+0; 1: C/CNC 2: C/CNC~C" },
	{ "a body in leaves", read_leaves, "ok, conflicts 2 0+0; 1: C/CNC 2: C/CNC~C" },
	{ "a body with attachments", read_attached,
	  "ok, conflicts 3 0+0; 1: C/CNC 2: C~/CNCOC 3: CO/CNC~C 4: C/CNCOC~COCOCOC" },
	{ "a long body", read_long, "ok, conflicts 3 0+0; 1: C/CNC 2-3: C/CN 4-5: C/C" },
	{ "a deleted one", read_deleted, "deleted, conflicts 3 0+0; 1: CO/CNCOCOC" },
	{ "a body together", read_together,
	  "ok, conflicts 2 0+0; 1: C/CNC 2: C/CNCOC~COCOCOC 3: CO/CNC~C" },
	{ "a long body together", read_long_together,
	  "ok, conflicts 3 0+0; 1: C/CNC 2-3: O/O 4: C/CN 5-6: C/C" },
	{ "a head", read_head, "ok, conflicts 1 0+0; 1: C/CNC~C" },
	{ "an attachment", read_att, "ok, conflicts 2 0+0; 1: O/O 2: C/CNCOC~C~COCOC" },
	{ "differences", diff, "ok, conflicts 0 0+0; 1: CO/CNCOC 2: CO/CNCOCOCOC" },
};

/* ---- Lists, local documents, the database ---- */

static enum status
say_changes(struct probe *p, const struct rev_change_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		say(p, page->changes[i].id);
		say_rev(p, page->changes[i].rev);
		buf_printf(&p->said, "%d%llu", page->changes[i].deleted,
			   (unsigned long long)page->changes[i].branch_count);
	}
	return STATUS_OK;
}

static enum status
changes(struct probe *p)
{
	const struct rev_change_range range = fixture_all_changes();
	struct rev_change_page page;

	TRY(rev_changes_page(p->tx, begin(p), &range, p->arena, &page));
	return say_changes(p, &page);
}

static enum status
changes_of(struct probe *p)
{
	const struct rev_change_range range = fixture_all_changes();
	const struct str ids[] = { STR("a"), STR("c"), STR("nowhere") };
	struct rev_change_page page;

	TRY(rev_changes_of(p->tx, begin(p), &range, ids, 3, p->arena, &page));
	return say_changes(p, &page);
}

static enum status
changes_count(struct probe *p)
{
	const struct rev_change_range range = fixture_all_changes();
	uint64_t n;

	TRY(rev_changes_count(p->tx, begin(p), &range, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return STATUS_OK;
}

static enum status
all_docs(struct probe *p)
{
	const struct name_range range = { .limit = 100 };
	struct rev_entry_page page;

	TRY(rev_all_docs_page(p->tx, begin(p), &range, p->arena, &page));
	for (size_t i = 0; i < page.count; i++) {
		say(p, page.entries[i].id);
		say_rev(p, page.entries[i].rev);
	}
	return STATUS_OK;
}

static enum status
all_docs_offset(struct probe *p)
{
	const struct name_range range = { .begin = STR("c"), .has_begin = true };
	uint64_t n;

	TRY(rev_all_docs_offset(p->tx, begin(p), &range, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return STATUS_OK;
}

static enum status
local_put(struct probe *p)
{
	const struct doc doc = fixture_doc(p->world, "{\"a\":{\"b\":1}}");
	uint64_t rev;

	return rev_local_put(p->tx, begin(p), STR("l"), 1, &doc, p->arena, &rev, &p->err);
}

static enum status
local_get(struct probe *p)
{
	struct rev_doc doc;
	uint64_t rev;

	TRY(rev_local_get(p->tx, begin(p), STR("l"), p->arena, &rev, &doc));
	buf_printf(&p->said, "%llu", (unsigned long long)rev);
	return rev_body_write(&doc, false, &p->said);
}

static enum status
local_delete(struct probe *p)
{
	return rev_local_delete(p->tx, begin(p), STR("l"), &p->err);
}

static enum status
local_page(struct probe *p)
{
	const struct name_range range = { .limit = 100 };
	struct rev_entry_page page;

	TRY(rev_local_page(p->tx, begin(p), &range, p->arena, &page));
	for (size_t i = 0; i < page.count; i++)
		say(p, page.entries[i].id);
	return STATUS_OK;
}

static enum status
config_get(struct probe *p)
{
	struct str text;

	TRY(rev_config_get(p->tx, begin(p), STR("note"), p->arena, &text));
	say(p, text);
	return STATUS_OK;
}

static enum status
config_set(struct probe *p)
{
	return rev_config_set(p->tx, begin(p), STR("note"), STR("other"), &p->err);
}

static enum status
limit_set(struct probe *p)
{
	return rev_limit_set(p->tx, begin(p), 5, &p->err);
}

static enum status
scheme_set(struct probe *p)
{
	return rev_scheme_set(p->tx, begin(p), REV_SCHEME_EXPLODED, &p->err);
}

static enum status
info(struct probe *p)
{
	struct rev_db_info got;

	return rev_db_info(p->tx, begin(p), &got);
}

static enum status
newest(struct probe *p)
{
	struct catalog_seq seq;

	TRY(rev_db_newest(p->tx, begin(p), &seq));
	say(p, str_of(seq.bytes, sizeof(seq.bytes)));
	return STATUS_OK;
}

static enum status
purges(struct probe *p)
{
	const struct catalog_seq beginning = { { 0 } };
	struct rev_purge_page page;

	TRY(rev_purges_page(p->tx, begin(p), &beginning, 0, p->arena, &page, &p->err));
	for (size_t i = 0; i < page.count; i++)
		say(p, page.purges[i].doc_id);
	return STATUS_OK;
}

static const struct probe_op around[] = {
	{ "changes", changes, "ok, conflicts 0 0+0; 1-6: C/CNC~C~C~C~C" },
	{ "changes of some", changes_of, "ok, conflicts 0 0+0; 1: CO/CNC~OC~COC 2: CO/CNCOC~C" },
	{ "count changes", changes_count, "ok, conflicts 0 0+0; 1-3: C/O 4-9: O/O" },
	{ "all documents", all_docs, "ok, conflicts 0 0+0; 1-5: C/CNC~C~C" },
	{ "an offset", all_docs_offset, "ok, conflicts 0 0+0; 1-2: C/O 3-4: O/O" },
	{ "put a local one", local_put, "ok, conflicts 0 0+0" },
	{ "get a local one", local_get, "ok, conflicts 1 0+0; 1: C/CNC~C~C" },
	{ "delete a local one", local_delete, "ok, conflicts 1 0+0; 1: O/O" },
	{ "a page of local ones", local_page, "ok, conflicts 0 0+0; 1: C/CNCOCOC" },
	{ "get a note", config_get, "ok, conflicts 1 0+0; 1: ~/~" },
	{ "set a note", config_set, "ok, conflicts 0 0+0" },
	{ "set the limit", limit_set, "ok, conflicts 1 0+0; 1: C/CNC0COCOCO" },
	{ "set the scheme", scheme_set, "ok, conflicts 1 0+0; 1: C/CNC0COCOCO" },
	{ "info", info, "ok, conflicts 0 0+0; 1-3: C/O 4: O/O" },
	{ "the newest", newest, "ok, conflicts 0 0+0; 1: C/~ 2: O/O" },
	{ "purges", purges, "ok, conflicts 1 0+0; 1: C/CNCOC~COCOC" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 1 0+0; 1: ~/~O 2: ~/~O~O~O 3: ~/~O 4: ~/O 5: ~/~O 6-16: "
	  "~O~/~O~O~O 17-18: ~O/~O~ 19-21: ~O/~ 22-36: ~/~ 37: ~/~O~O~O~ 38-42: ~/~ "
	  "43: ~/O 44: ~/~ 45-50: ~/~O~O~O~O~ 51: ~/O 52: ~/O~ 53: O/O 54: ~/~O~ 55: "
	  "O/~ 56-59: ~/~ 60: ~/~O~O~O~O~ 61: ~/~ 62-66: O/O 67-68: ~/O 69: O/O 70: "
	  "O/~ 71-77: O/O 78: O/~ 79-96: O/O" },
};

/* ---- The world ---- */

static enum status
around_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct doc doc = fixture_doc(f, "{\"a\":{\"b\":1,\"c\":2}}");
	struct rev_id gone[1] = { fixture_rev(f, "1-p") };
	struct rev_purge_query query = { STR("p"), gone, 1 };
	struct rev_purge_result result;
	uint64_t rev;

	TRY(rev_purge(tx, f->db, &query, 1, f->arena, &result, NULL));
	TRY(rev_local_put(tx, f->db, STR("l"), 0, &doc, f->arena, &rev, NULL));
	return rev_config_set(tx, f->db, STR("note"), STR("text"), NULL);
}

static void
put_attached(struct fixture *f)
{
	const struct rev_att_edit att = between_att("kept", "k");
	struct rev_edit one = fixture_copy(f, "t", "1-t", false, "{\"n\":1}");
	struct rev_result result;

	one.atts = &att;
	one.atts_count = 1;
	fixture_write(f, &one, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
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
	(void)fixture_replicate(f, "a", "2-x a", false, "{\"n\":1}");
	(void)fixture_replicate(f, "a", "2-w a", false, "{\"w\":12}");
	(void)fixture_replicate(f, "b", "1-b", false, "{\"n\":[1,{\"m\":\"t\"}],\"o\":null}");
	(void)fixture_replicate(f, "c", "1-c", false,
				"{\"n\":[1,{\"m\":\"t\"}],\"o\":true,\"p\":1}");
	(void)fixture_replicate(f, "d", "1-d", true, "{}");
	(void)fixture_replicate(f, "p", "1-p", false, "{}");
	put_attached(f);
	put_long(f);
	assert_int_equal(kv_run(f->store, around_body, f, NULL, NULL), STATUS_OK);
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
writers_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, writing, COUNT(writing));
}

static void
readers_hand_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, reading, COUNT(reading));
}

static void
what_is_around_hands_failures_on(void **state)
{
	struct fixture *f = *state;

	probe_each(f->store, f, around, COUNT(around));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct fixture *f = *state;

	probe_each_throughout(f->store, f, checks, COUNT(checks));
}

static void
note_kind(const struct catalog_finding *finding, void *arg)
{
	print_error("%s\n", finding->kind);
	++*(unsigned *)arg;
}

/* Of so many leaves that their text lies in chunks. */
static void
put_chunked(struct fixture *f)
{
	AUTO(buf_release) struct buf json = BUF_INIT(2 * LEAVES + 100);

	buf_append_cstr(&json, "{\"a\":[0");
	for (unsigned i = 1; i < LEAVES; i++)
		buf_append_cstr(&json, ",1");
	buf_append_cstr(&json, "]}");
	buf_append_byte(&json, 0);
	assert_int_equal(buf_status(&json), STATUS_OK);
	(void)fixture_put(f, "chunked", NULL, json.ptr);
}

/* Whichever read fails because its transaction is too old, if nobody writes. */
static void
checks_of_what_stands_still_read_again(void **state)
{
	struct fixture *f = *state;
	struct kv_faulty_tap tap = { .cut = SIZE_MAX, .flip = SIZE_MAX };
	unsigned found = 0;
	const struct catalog_verify_options options = { .found = note_kind,
							.arg = &found,
							.still = true };
	uint32_t nth = 0;

	put_chunked(f);
	do {
		struct catalog_verify_sum sum;
		struct err err = { 0 };
		enum status status;
		struct kv_tx *tx;

		assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
		tap.fail_call = nth++;
		tap.fail_with = STATUS_TX_TOO_OLD;
		tap.calls = 0;
		kv_faulty_tap(f->store, &tap);
		status = catalog_verify_store(tx, &options, &sum, &err);
		kv_faulty_tap(f->store, NULL);
		kv_tx_free(tx);
		if (status != STATUS_OK)
			fail_msg("call %u: %s %s", tap.fail_call, status_name(status), err.text);
		assert_int_equal(found, 0);
	} while (nth <= tap.calls);
	assert_true(nth > 50);
}

/* Whichever call fails, with and without somebody who is told. */
static void
a_check_that_fails_says_why(void **state)
{
	struct fixture *f = *state;
	struct kv_faulty_tap tap = { .cut = SIZE_MAX, .flip = SIZE_MAX, .fail_with = STATUS_IO };
	const struct str nowhere = STR("nowhere");
	unsigned found = 0;
	const struct catalog_verify_options options = { .found = note_kind, .arg = &found };
	struct catalog_verify_sum sum;
	struct err err = { 0 };
	struct kv_tx *tx;

	do {
		assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
		tap.fail_call++;
		tap.calls = 0;
		err = (struct err){ 0 };
		kv_faulty_tap(f->store, &tap);
		if (tap.fail_call % 2) {
			enum status status = catalog_verify_store(tx, &options, &sum, &err);

			if (tap.fail_call <= tap.calls) {
				assert_int_equal(status, STATUS_IO);
				assert_memory_equal(err.text, "cannot read the store: io", 25);
			}
		} else {
			(void)!catalog_verify_store(tx, &options, &sum, NULL);
		}
		kv_faulty_tap(f->store, NULL);
		kv_tx_free(tx);
		assert_int_equal(found, 0);
	} while (tap.fail_call <= tap.calls);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	err = (struct err){ 0 };
	assert_int_equal(catalog_verify_db(tx, CATALOG_SPACE_COUCH, nowhere, &options, &sum, &err),
			 STATUS_NOT_FOUND);
	assert_string_equal(err.text, "Database does not exist.");
	kv_tx_free(tx);
}

/* Of a pair that is lost some are missed: what nothing refers to, and what may be there or not. */
static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct fixture *f = *state;

	probe_pairs(f->store, f, &checks[0],
		    "1: O 2-3: ~ 4-16: O 17-40: ~ 41-42: O 43: ~ 44: O 45-46: ~ 47: O 48-52: ~ "
		    "53-54: O 55: ~",
		    "1-55: ~");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writers_hand_failures_on, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(readers_hand_failures_on, setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(what_is_around_hands_failures_on, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(checks_of_what_stands_still_read_again, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_check_that_fails_says_why, setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "doc/packed.h"
#include "kv/faulty/faulty.h"
#include "model/revisioned/shape.h"
#include "store.h"

enum {
	ARENA_BYTES = 512 * 1024 * 1024,
	TEXT_BYTES = 16 * 1024 * 1024,
	RECENT_BYTES = 32 * 1024, /* so few pairs in front of RocksDB that some are pushed out */
};

enum rev_scheme
fixture_scheme(void)
{
	return test_scheme_is_packed() ? REV_SCHEME_PACKED : REV_SCHEME_EXPLODED;
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return rev_db_create(tx, STR("db"), fixture_scheme(), NULL);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return rev_db_open(tx, NULL, STR("db"), &f->db, NULL);
}

static enum status
create_partitioned_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return rev_db_create_partitioned(tx, STR("parts"), fixture_scheme(), NULL);
}

static enum status
open_partitioned_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return rev_db_open(tx, NULL, STR("parts"), &f->db, NULL);
}

void
fixture_make_partitioned(struct fixture *f)
{
	catalog_db_unref(f->db);
	f->db = NULL;
	assert_int_equal(kv_run(f->store, create_partitioned_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, open_partitioned_body, f, NULL), STATUS_OK);
}

/* ---- Indexes ---- */

struct index_create {
	struct fixture *f;
	const struct index_def *terms;
};

static enum status
index_create_body(struct kv_tx *tx, void *arg)
{
	const struct index_create *create = arg;
	uint64_t number;

	return index_create(tx, create->f->db, create->terms, &number, NULL);
}

void
fixture_index(struct fixture *f, const struct index_def *terms)
{
	struct index_create index = { f, terms };

	assert_int_equal(kv_run(f->store, index_create_body, &index, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
}

/* One of each kind, over what most workloads of these tests write. */
static void
create_all_indexes(struct fixture *f)
{
	struct str n[] = { STR("n") }, x[] = { STR("x") }, xy[] = { STR("x"), STR("y") },
		   id[] = { STR("_id") }, rev[] = { STR("_rev") };
	const struct index_column by_n[] = { { n, 1, false } };
	const struct index_column compound[] = { { n, 1, true }, { xy, 2, false }, { x, 1, true } };
	const struct index_column many[] = { { x, 1, false } };
	const struct index_column specials[] = { { rev, 1, true }, { id, 1, false } };
	const struct index_def defs[] = {
		{ .flags = INDEX_SPARSE | INDEX_COVERING, .columns = by_n, .column_count = 1 },
		{ .flags = INDEX_COVERING, .columns = compound, .column_count = 3 },
		{ .flags = INDEX_MULTIKEY, .columns = many, .column_count = 1 },
		{ .columns = specials, .column_count = 2, .filter = STR("{\"n\":{\"$gt\":3}}") },
		{ .flags = INDEX_PARTITIONED, .columns = by_n, .column_count = 1 },
	};

	for (size_t i = 0; i < sizeof(defs) / sizeof(defs[0]); i++) {
		struct index_def terms = defs[i];

		terms.order = DOC_KEY_COUCH;
		terms.state = INDEX_READY;
		terms.name = STR("index");
		fixture_index(f, &terms);
	}
}

int
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct kv_options options = { .create = true,
				      .no_sync = true,
				      .shape = &rev_store_shape,
				      .recent_bytes = RECENT_BYTES,
				      .search_ns = 1 };
	char path[128];
	char url[256];
	struct err err = { 0 };

	test_show_failures();
	assert_non_null(f);
	rev_register();
	test_make_dir("model", f->dir, sizeof(f->dir));
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	if (kv_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("kv_open: %s", err.text);
	f->calm = kv_faulty_inner(f->store);
	f->arena = arena_new(ARENA_BYTES);
	assert_non_null(f->arena);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &err), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, open_body, f, &err), STATUS_OK);
	if (getenv("FROND_TEST_INDEXES"))
		create_all_indexes(f);
	*state = f;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	catalog_db_unref(f->db);
	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

void
fixture_reopen(struct fixture *f)
{
	catalog_db_unref(f->db);
	f->db = NULL;
	assert_int_equal(kv_run_read(f->store, open_body, f, NULL), STATUS_OK);
}

struct rev_id
fixture_rev(struct fixture *f, const char *text)
{
	struct rev_id rev = { 0 };

	assert_int_equal(rev_id_parse(str_from_cstr(text), f->arena, &rev, NULL), STATUS_OK);
	return rev;
}

/* The buffer's text in the arena; the buffer is released. */
static const char *
keep(struct fixture *f, struct buf *b)
{
	struct str s;

	assert_int_equal(buf_status(b), STATUS_OK);
	s = arena_dup(f->arena, buf_str(b));
	assert_non_null(s.ptr);
	buf_release(b);
	return s.ptr;
}

const char *
fixture_text(struct fixture *f, struct rev_id rev)
{
	struct buf b = BUF_INIT(TEXT_BYTES);

	rev_id_write(rev, &b);
	return keep(f, &b);
}

struct doc
fixture_doc(struct fixture *f, const char *json)
{
	struct doc_limits limits = {
		.doc_bytes = DOC_LIMIT_MAX_BYTES,
		.leaves_bytes = DOC_LEAVES_BYTES,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = strlen(json) % 2 ? DOC_PACKED_BYTES : 0,
	};
	struct err err = { 0 };
	struct doc doc;

	if (doc_explode_text(str_from_cstr(json), f->arena, &limits, 64, &doc, &err) != STATUS_OK)
		fail_msg("%s: %s", json, err.text);
	return doc;
}

struct rev_edit
fixture_edit(struct fixture *f, const char *id, const char *parent, const char *json)
{
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE, .id = str_from_cstr(id) };

	edit.deleted = !json;
	edit.doc = fixture_doc(f, json ? json : "{}");
	if (parent)
		edit.parent = fixture_rev(f, parent);
	return edit;
}

struct rev_edit
fixture_copy(struct fixture *f, const char *id, const char *history, bool deleted, const char *json)
{
	struct rev_edit edit = { .kind = REV_EDIT_REPLICATED, .id = str_from_cstr(id) };
	const char *at = strchr(history, '-') + 1;
	char *words;

	edit.deleted = deleted;
	edit.doc = fixture_doc(f, json);
	edit.start = strtoull(history, NULL, 10);
	edit.history = arena_zalloc(f->arena, (strlen(at) + 1) * sizeof(*edit.history));
	assert_non_null(edit.history);
	words = (char *)(uintptr_t)arena_dup(f->arena, str_from_cstr(at)).ptr;
	for (char *save = NULL, *w = strtok_r(words, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		/* Through the parser, so that hexadecimal hashes become bytes. */
		struct str text = arena_printf(f->arena, "1-%s", w);

		edit.history[edit.history_count++] = fixture_rev(f, text.ptr).hash;
	}
	return edit;
}

struct write_arg {
	struct fixture *f;
	const struct rev_edit *edits;
	size_t count;
	struct rev_result *results;
};

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	struct write_arg *a = arg;
	struct kv_tx_stats before = kv_tx_stats(tx); /* what kv_run() itself has asked */
	struct kv_tx_stats *cost = &a->f->cost;
	enum status status;

	status = rev_write(tx, a->f->db, a->edits, a->count, 0, a->f->arena, a->results, NULL);
	*cost = kv_tx_stats(tx);
	cost->reads -= before.reads;
	cost->keys_read -= before.keys_read;
	cost->bytes_read -= before.bytes_read;
	cost->round_trips -= before.round_trips;
	return status;
}

void
fixture_write(struct fixture *f, const struct rev_edit *edits, size_t count,
	      struct rev_result *ret_results)
{
	struct write_arg arg = { f, edits, count, ret_results };
	struct err err = { 0 };
	enum status status = kv_run(f->store, write_body, &arg, NULL, &err);

	if (status != STATUS_OK)
		fail_msg("rev_write: %s %s", status_name(status), err.text);
}

static const char *
must(struct fixture *f, struct rev_edit edit)
{
	struct rev_result result;

	fixture_write(f, &edit, 1, &result);
	if (result.status != STATUS_OK)
		fail_msg("edit of %s: %s", edit.id.ptr, status_name(result.status));
	return fixture_text(f, result.rev);
}

const char *
fixture_put(struct fixture *f, const char *id, const char *parent, const char *json)
{
	return must(f, fixture_edit(f, id, parent, json));
}

const char *
fixture_delete(struct fixture *f, const char *id, const char *parent)
{
	return must(f, fixture_edit(f, id, parent, NULL));
}

const char *
fixture_replicate(struct fixture *f, const char *id, const char *history, bool deleted,
		  const char *json)
{
	return must(f, fixture_copy(f, id, history, deleted, json));
}

enum status
fixture_try(struct fixture *f, const char *id, const char *parent, const char *json)
{
	struct rev_edit edit = fixture_edit(f, id, parent, json);
	struct rev_result result;

	fixture_write(f, &edit, 1, &result);
	return result.status;
}

/* ---- Reading ---- */

struct read_arg {
	struct fixture *f;
	struct str id;
	struct rev_id rev;
	bool deleted;
	struct rev_tree tree;
	struct rev_doc doc;
	struct rev_change_page page;
};

static enum status
tree_body(struct kv_tx *tx, void *arg)
{
	struct read_arg *a = arg;

	return rev_tree_read(tx, a->f->db, a->id, REV_TREE_ALL, a->f->arena, &a->tree);
}

static enum status
doc_body(struct kv_tx *tx, void *arg)
{
	struct read_arg *a = arg;

	return rev_doc_read(tx, a->f->db, a->id, a->f->arena, &a->doc);
}

static enum status
together_body(struct kv_tx *tx, void *arg)
{
	struct read_arg *a = arg;

	return rev_doc_read_together(tx, a->f->db, a->id, a->f->arena, &a->doc);
}

static enum status
leaf_body(struct kv_tx *tx, void *arg)
{
	struct read_arg *a = arg;

	return rev_doc_read_head(tx, a->f->db, a->id, a->rev, a->deleted, a->f->arena, &a->doc);
}

static enum status
changes_body(struct kv_tx *tx, void *arg)
{
	struct rev_change_range range = { .limit = 100000 };
	struct read_arg *a = arg;

	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	return rev_changes_page(tx, a->f->db, &range, a->f->arena, &a->page);
}

const char *
fixture_tree(struct fixture *f, const char *id, bool full)
{
	struct read_arg arg = { .f = f, .id = str_from_cstr(id) };
	enum status status = kv_run_read(f->store, tree_body, &arg, NULL);
	struct buf b = BUF_INIT(TEXT_BYTES);

	if (status == STATUS_NOT_FOUND)
		return "";
	assert_int_equal(status, STATUS_OK);
	for (size_t i = 0; i < arg.tree.count; i++) {
		const struct rev_branch *branch = &arg.tree.branches[i];

		assert_int_equal(branch->winner, i == 0);
		buf_append_cstr(&b, i ? " " : "");
		rev_id_write(branch->rev, &b);
		for (size_t j = 0; full && j < branch->ancestors_count; j++) {
			buf_append_cstr(&b, j ? " " : "(");
			rev_id_write(
				(struct rev_id){ branch->rev.pos - 1 - j, branch->ancestors[j] },
				&b);
		}
		if (full && branch->ancestors_count)
			buf_append_cstr(&b, ")");
		buf_append_cstr(&b, branch->winner ? "!" : "");
		buf_append_cstr(&b, branch->deleted ? "#" : "");
	}
	return keep(f, &b);
}

static const char *
assemble(struct fixture *f, const struct rev_doc *doc)
{
	struct buf b = BUF_INIT(TEXT_BYTES);

	buf_append_cstr(&b, "{");
	assert_int_equal(rev_body_write(doc, false, &b), STATUS_OK);
	return keep(f, &b);
}

const char *
fixture_body(struct fixture *f, const char *id)
{
	struct read_arg arg = { .f = f, .id = str_from_cstr(id) };
	struct read_arg other = arg;
	enum status status = kv_run_read(f->store, doc_body, &arg, NULL);
	const char *text;

	/* The way of clusters gives the same. */
	assert_int_equal(kv_run_read(f->store, together_body, &other, NULL), status);
	if (status == STATUS_NOT_FOUND)
		return "missing";
	assert_true(rev_id_eq(arg.doc.rev, other.doc.rev));
	assert_int_equal(arg.doc.atts_count, other.doc.atts_count);
	if (status == STATUS_DELETED)
		return "deleted";
	assert_int_equal(status, STATUS_OK);
	text = assemble(f, &arg.doc);
	assert_string_equal(assemble(f, &other.doc), text);
	return text;
}

const char *
fixture_leaf(struct fixture *f, const char *id, const char *rev, bool deleted)
{
	struct read_arg arg = { .f = f, .id = str_from_cstr(id), .deleted = deleted };
	enum status status;

	arg.rev = fixture_rev(f, rev);
	status = kv_run_read(f->store, leaf_body, &arg, NULL);
	if (status == STATUS_NOT_FOUND)
		return "missing";
	assert_int_equal(status, STATUS_OK);
	return assemble(f, &arg.doc);
}

const char *
fixture_changes(struct fixture *f)
{
	struct read_arg arg = { .f = f };
	struct buf b = BUF_INIT(TEXT_BYTES);

	assert_int_equal(kv_run_read(f->store, changes_body, &arg, NULL), STATUS_OK);
	assert_false(arg.page.more);
	for (size_t i = 0; i < arg.page.count; i++) {
		const struct rev_change *change = &arg.page.changes[i];

		buf_append_cstr(&b, i ? ", " : "");
		buf_append_str(&b, change->id);
		buf_append_cstr(&b, " ");
		rev_id_write(change->rev, &b);
		buf_append_cstr(&b, change->deleted ? "#" : "");
	}
	return keep(f, &b);
}

struct kv_tx *
fixture_begin(struct fixture *f)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	return tx;
}

struct rev_change_range
fixture_all_changes(void)
{
	struct rev_change_range range = { .limit = SIZE_MAX };

	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	return range;
}

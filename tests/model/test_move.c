/*
 * Moving a database: everything comes over, feeds go on, and wherever it is interrupted — by a
 * failure, or by the end of the process — it can be finished or undone.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "fixture.h"
#include "kv/faulty/faulty.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "catalog/move.h"
#include "model/revisioned/shape.h"
#include "verified.h"

enum {
	DUMP_BYTES = 64 * 1024 * 1024,
	LARGE_BYTES = 400 * 1000, /* several pages, in a handful of documents */
	LARGE_DOCS = 8,
	STEPS_MAX = 200,
};

/* The fixture's store is the source. */
struct place {
	struct fixture *f;
	struct fixture target; /* with its own store; the database's description once it is there */
	char target_url[256];
	struct catalog_move_options options;
	struct catalog_move_sum sum;
	struct err err;
	unsigned calls; /* of progress */
	unsigned stop_at;
	bool die;
};

static enum status
progress(const struct catalog_move_progress *now, void *arg)
{
	struct place *p = arg;

	(void)now;
	if (++p->calls != p->stop_at)
		return STATUS_OK;
	if (p->die)
		(void)raise(SIGKILL);
	return STATUS_CANCELLED;
}

/* All but the stores, and the place that progress() gets. */
static struct catalog_move_options
move_options(void)
{
	return (struct catalog_move_options){
		.space = CATALOG_SPACE_COUCH,
		.from_url = "source",
		.to_url = "target",
		.name = STR("db"),
		.progress = progress,
	};
}

static void
open_target(struct place *p, const char *url)
{
	struct kv_options options = { .create = true, .no_sync = true, .shape = &rev_store_shape };
	struct err err = { 0 };

	if (kv_open(url, &options, &p->target.store, &err) != STATUS_OK)
		fail_msg("%s: %s", url, err.text);
	p->target.calm = kv_faulty_inner(p->target.store);
	p->options.to = p->target.store;
}

static int
setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	void *fixture;
	char path[128];

	assert_non_null(p);
	assert_int_equal(fixture_setup(&fixture), 0);
	p->f = fixture;
	p->target.arena = p->f->arena;
	snprintf(path, sizeof(path), "%s/target", p->f->dir);
	if (test_store_is_cluster())
		snprintf(p->target_url, sizeof(p->target_url), "embedded:%s", path);
	else
		test_store_url(path, p->target_url, sizeof(p->target_url));
	p->options = move_options();
	p->options.from = p->f->store;
	p->options.arg = p;
	open_target(p, p->target_url);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct place *p = *state;
	void *fixture = p->f;

	catalog_db_unref(p->target.db);
	kv_close(p->target.store);
	assert_int_equal(fixture_teardown(&fixture), 0);
	free(p);
	return 0;
}

/* ---- What is in a store ---- */

struct open_arg {
	struct str name;
	struct catalog_db *db;
};

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct open_arg *a = arg;
	enum status status = rev_db_open(tx, NULL, a->name, &a->db, NULL);

	if (status == STATUS_NOT_FOUND)
		a->db = NULL;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* NULL if there is no such database. */
static struct catalog_db *
open_db(struct kv_store *store, const char *name)
{
	struct open_arg arg = { .name = str_from_cstr(name) };

	assert_int_equal(kv_run_read(store, open_body, &arg, NULL), STATUS_OK);
	return arg.db;
}

/* Every pair of the database, without its number, as one text; for comparing. */
static struct buf
dump(struct fixture *f, uint64_t number)
{
	struct kv_store *store = kv_faulty_inner(f->store);
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64), out = BUF_INIT(DUMP_BYTES);
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	struct kv_tx *tx;

	tuple_put_u64(&lo, number);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_begin(store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		buf_printf(&out, "%zu,%zu:", pair.key.len - lo.len, pair.value.len);
		buf_append_str(&out, str_skip(pair.key, lo.len));
		buf_append_str(&out, pair.value);
	}
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(&lo);
	buf_release(&hi);
	assert_int_equal(buf_status(&out), STATUS_OK);
	return out;
}

static size_t
records(struct kv_store *store, struct arena *arena)
{
	struct catalog_move *moves;
	struct kv_tx *tx;
	size_t count;

	assert_int_equal(kv_begin(kv_faulty_inner(store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_moves_read(tx, arena, &moves, &count, NULL), STATUS_OK);
	kv_tx_free(tx);
	return count;
}

/* The whole store, what is under way included. */
static void
verify_store(struct kv_store *store)
{
	verified_none(kv_faulty_inner(store));
}

/* ---- What is moved ---- */

struct local_arg {
	struct fixture *f;
	struct doc doc;
	struct err err;
};

static enum status
local_body(struct kv_tx *tx, void *arg)
{
	struct local_arg *a = arg;
	uint64_t rev;

	return rev_local_put(tx, a->f->db, STR("checkpoint"), 0, &a->doc, a->f->arena, &rev,
			     &a->err);
}

static enum status
settings_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	TRY(rev_config_set(tx, f->db, STR("security"), STR("{\"admins\":{}}"), NULL));
	return rev_limit_set(tx, f->db, 20, NULL);
}

struct purge_arg {
	struct fixture *f;
	struct rev_purge_query query;
	struct err err;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_arg *a = arg;
	struct rev_purge_result result;

	return rev_purge(tx, a->f->db, &a->query, 1, a->f->arena, &result, &a->err);
}

static enum status
purge(struct fixture *f, const char *id, const char *rev, struct err *err)
{
	struct rev_id ids[] = { fixture_rev(f, rev) };
	struct purge_arg arg = { .f = f, .query = { str_from_cstr(id), ids, 1 } };
	enum status status = kv_run(f->store, purge_body, &arg, NULL, NULL);

	if (err)
		*err = arg.err;
	return status;
}

static void
put_attachment(struct fixture *f, const char *id)
{
	struct rev_upload_options options = { .store = f->store,
					      .db = f->db,
					      .memory_bytes = 1000 };
	struct rev_att_edit att = { .att = { .name = STR("photo"), .type = STR("image/png") } };
	struct rev_edit edit = fixture_edit(f, id, NULL, "{}");
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_result result;
	struct rev_upload *u;
	char *bytes = calloc(1, LARGE_BYTES);

	assert_non_null(bytes);
	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	assert_int_equal(rev_upload_write(u, str_of(bytes, LARGE_BYTES), NULL), STATUS_OK);
	assert_int_equal(rev_upload_finish(u, &att, md5, NULL), STATUS_OK);
	edit.atts = &att;
	edit.atts_count = 1;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	rev_upload_free(u, true);
	free(bytes);
}

/* Some of everything, and more of it than one page of the copy. */
static void
fill(struct fixture *f)
{
	struct local_arg local = { .f = f };
	char *large = malloc(LARGE_BYTES + 32);
	const char *rev;
	char id[16];

	assert_non_null(large);
	rev = fixture_put(f, "a", NULL, "{\"x\":1}");
	fixture_put(f, "a", rev, "{\"x\":2}");
	fixture_replicate(f, "a", "2-zz aa", false, "{\"conflict\":true}");
	fixture_replicate(f, "a", "3-yy zz aa", true, "{\"why\":\"gone\"}");
	fixture_delete(f, "b", fixture_put(f, "b", NULL, "{}"));
	rev = fixture_put(f, "c", NULL, "{\"nul\":\"\\u0000\",\"e\":{},\"n\":1.50}");
	assert_int_equal(purge(f, "c", rev, NULL), STATUS_OK);
	fixture_put(f, "\xff\x01odd", NULL, "{}");
	put_attachment(f, "with");
	local.doc = fixture_doc(f, "{\"seq\":\"12\"}");
	assert_int_equal(kv_run(f->store, local_body, &local, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, settings_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	memset(large, 'x', LARGE_BYTES + 32);
	memcpy(large, "{\"x\":\"", 6);
	memcpy(large + LARGE_BYTES, "\"}", 3);
	for (int i = 0; i < LARGE_DOCS; i++) {
		snprintf(id, sizeof(id), "large%d", i);
		fixture_put(f, id, NULL, large);
	}
	free(large);
}

static enum status
move(struct place *p)
{
	enum status status;

	p->calls = 0;
	p->err = (struct err){ 0 };
	status = catalog_move(&p->options, &p->sum, &p->err);
	return status;
}

static void
move_all(struct place *p)
{
	p->stop_at = 0;
	if (move(p) != STATUS_OK)
		fail_msg("%s", p->err.text);
}

/* The database is at the target, whole, and nothing is left of the move. */
static void
assert_moved(struct place *p, const struct buf *content)
{
	struct catalog_db *left = open_db(p->f->store, "db");
	struct buf got;

	assert_null(left);
	catalog_db_unref(p->target.db);
	p->target.db = open_db(p->target.store, "db");
	assert_non_null(p->target.db);
	got = dump(&p->target, p->target.db->number);
	assert_int_equal(got.len, content->len);
	assert_memory_equal(got.ptr, content->ptr, got.len);
	buf_release(&got);
	got = dump(p->f, p->f->db->number);
	assert_int_equal(got.len, 0);
	buf_release(&got);
	assert_int_equal(records(p->f->store, p->f->arena), 0);
	assert_int_equal(records(p->target.store, p->f->arena), 0);
	fixture_check(&p->target);
	verify_store(p->f->store);
	verify_store(p->target.store);
}

static struct catalog_seq
newest(struct fixture *f)
{
	struct rev_db_info info;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(kv_faulty_inner(f->store), KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	return info.update_seq;
}

/* ---- Tests ---- */

static void
everything_comes_over_as_it_is(void **state)
{
	struct place *p = *state;
	struct buf content;
	const char *tree, *changes;

	fill(p->f);
	content = dump(p->f, p->f->db->number);
	tree = fixture_tree(p->f, "a", true);
	changes = fixture_changes(p->f);
	move_all(p);
	assert_moved(p, &content);
	assert_string_equal(fixture_tree(&p->target, "a", true), tree);
	assert_string_equal(fixture_changes(&p->target), changes);
	assert_memory_equal(p->target.db->uuid, p->f->db->uuid, sizeof(p->f->db->uuid));
	assert_int_equal(p->target.db->created_ms, p->f->db->created_ms);
	assert_int_equal(rev_db_revs_limit(p->target.db), 20);
	assert_int_equal(p->sum.documents, 4 + LARGE_DOCS);
	buf_release(&content);
}

struct since_arg {
	struct fixture *f;
	struct rev_change_range range;
	struct rev_change_page page;
};

static enum status
since_body(struct kv_tx *tx, void *arg)
{
	struct since_arg *a = arg;

	return rev_changes_page(tx, a->f->db, &a->range, a->f->arena, &a->page);
}

static struct rev_change_page
changes_since(struct fixture *f, const struct catalog_seq *since)
{
	struct since_arg arg = { .f = f, .range = { .since = *since, .limit = 100 } };

	memset(arg.range.until.bytes, 0xff, sizeof(arg.range.until.bytes));
	assert_int_equal(kv_run_read(f->store, since_body, &arg, NULL), STATUS_OK);
	return arg.page;
}

/* To a store whose versions are lower, and back. */
static void
reader_goes_on_with_the_since_that_it_has(void **state)
{
	struct place *p = *state;
	struct rev_change_page page;
	struct catalog_seq since;

	for (int i = 0; i < 50; i++) {
		char id[16];

		snprintf(id, sizeof(id), "d%d", i);
		fixture_put(p->f, id, NULL, "{}");
	}
	since = newest(p->f);
	move_all(p);
	p->target.db = open_db(p->target.store, "db");
	assert_int_equal(changes_since(&p->target, &since).count, 0);
	fixture_put(&p->target, "new", NULL, "{}");
	page = changes_since(&p->target, &since);
	assert_int_equal(page.count, 1);
	assert_true(str_eq(page.changes[0].id, STR("new")));
	since = page.changes[0].seq;

	p->options.from = p->target.store;
	p->options.to = p->f->store;
	move_all(p);
	fixture_reopen(p->f);
	assert_int_equal(changes_since(p->f, &since).count, 0);
	fixture_put(p->f, "newer", NULL, "{}");
	page = changes_since(p->f, &since);
	assert_int_equal(page.count, 1);
	assert_true(str_eq(page.changes[0].id, STR("newer")));
	fixture_check(p->f);
}

/* Who can be read, and written, between two steps; `*ret_undo`: it can still be undone. */
static void
check_between(struct place *p, const struct buf *content, bool *ret_undo)
{
	struct catalog_db *source = open_db(p->f->store, "db");
	struct catalog_db *target = open_db(p->target.store, "db");
	bool source_writes = source && catalog_db_check_writable(source, NULL) == STATUS_OK;
	bool target_writes = target && catalog_db_check_writable(target, NULL) == STATUS_OK;
	struct fixture *where = target ? &p->target : p->f;
	struct buf got;

	assert_true(source || target);
	assert_false(source_writes && target_writes);
	got = dump(where, (target ? target : source)->number);
	assert_int_equal(got.len, content->len);
	assert_memory_equal(got.ptr, content->ptr, got.len);
	buf_release(&got);
	verify_store(p->f->store);
	verify_store(p->target.store);
	*ret_undo = source && !target;
	catalog_db_unref(source);
	catalog_db_unref(target);
}

static void
interrupted_anywhere_it_goes_on(void **state)
{
	struct place *p = *state;
	struct buf content;
	unsigned at;
	bool undo;

	fill(p->f);
	content = dump(p->f, p->f->db->number);
	/* What is compared and checked is not written down: each run lasts longer than the last. */
	for (at = 1; at < STEPS_MAX; at++) {
		p->stop_at = at;
		if (move(p) == STATUS_OK)
			break;
		assert_int_equal(p->err.status, STATUS_CANCELLED);
		check_between(p, &content, &undo);
	}
	assert_in_range(at, 6, STEPS_MAX - 1);
	assert_moved(p, &content);
	buf_release(&content);
}

static void
interrupted_anywhere_it_can_be_undone_until_it_is_handed_over(void **state)
{
	struct place *p = *state;
	unsigned undone = 0;
	struct buf content;

	fill(p->f);
	content = dump(p->f, p->f->db->number);
	for (unsigned at = 1;; at++) {
		struct buf got;
		bool undo;

		p->stop_at = at;
		if (move(p) == STATUS_OK)
			break;
		check_between(p, &content, &undo);
		p->stop_at = 0;
		p->err = (struct err){ 0 };
		if (catalog_move_rollback(&p->options, &p->err) != STATUS_OK) {
			assert_int_equal(p->err.status, STATUS_FORBIDDEN);
			move_all(p);
			break;
		}
		assert_true(undo);
		undone++;
		fixture_reopen(p->f);
		assert_int_equal(p->f->db->fence, CATALOG_FENCE_NONE);
		got = dump(p->f, p->f->db->number);
		assert_int_equal(got.len, content.len);
		buf_release(&got);
		assert_null(open_db(p->target.store, "db"));
		assert_int_equal(records(p->f->store, p->f->arena), 0);
		assert_int_equal(records(p->target.store, p->f->arena), 0);
		verify_store(p->target.store);
	}
	assert_in_range(undone, 5, STEPS_MAX);
	assert_moved(p, &content);
	buf_release(&content);
}

static void
rollback_is_itself_gone_on_with(void **state)
{
	struct place *p = *state;
	struct buf content;

	fill(p->f);
	content = dump(p->f, p->f->db->number);
	p->stop_at = 4;
	assert_int_equal(move(p), STATUS_CANCELLED);
	p->calls = 0;
	p->stop_at = 1; /* the source can be written, the target has its copy */
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_CANCELLED);
	assert_int_equal(move(p), STATUS_LOCKED);
	p->options.from_url = "another";
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_LOCKED);
	p->options.from_url = "source";
	p->stop_at = 0;
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_OK);
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_NOT_FOUND);
	move_all(p);
	assert_moved(p, &content);
	buf_release(&content);
}

struct create_arg {
	struct str name;
	bool remove;
	struct err err;
};

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct create_arg *a = arg;

	return a->remove ? catalog_delete(tx, CATALOG_SPACE_COUCH, a->name, &a->err)
			 : rev_db_create(tx, a->name, REV_SCHEME_DEFAULT, &a->err);
}

static enum status
create(struct kv_store *store, const char *name, bool remove)
{
	struct create_arg arg = { .name = str_from_cstr(name), .remove = remove };

	return kv_run(store, create_body, &arg, NULL, NULL);
}

struct cached_arg {
	struct catalog_cache *cache;
	struct err err;
};

static enum status
cached_body(struct kv_tx *tx, void *arg)
{
	struct cached_arg *a = arg;
	struct catalog_db *db;
	enum status status;

	TRY(rev_db_open(tx, a->cache, STR("db"), &db, NULL));
	status = catalog_db_check_writable(db, &a->err);
	catalog_db_unref(db);
	return status;
}

static enum status
limit_body(struct kv_tx *tx, void *arg)
{
	return rev_limit_set(tx, ((struct fixture *)arg)->db, 30, NULL);
}

static enum status
config_body(struct kv_tx *tx, void *arg)
{
	return rev_config_set(tx, ((struct fixture *)arg)->db, STR("x"), STR("y"), NULL);
}

static enum status
edit_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct rev_edit edit = fixture_edit(f, "one more", NULL, "{}");
	struct rev_result result;

	return rev_write(tx, f->db, &edit, 1, 0, f->arena, &result, NULL);
}

/* All kinds of writes. */
static void
assert_writes_are(struct fixture *f, enum status expected)
{
	struct local_arg local = { .f = f, .doc = fixture_doc(f, "{}") };
	struct rev_upload_options options = { .store = f->store, .db = f->db, .memory_bytes = 1 };
	struct rev_att_edit att = { 0 };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *u;

	assert_int_equal(kv_run(f->store, edit_body, f, NULL, NULL), expected);
	assert_int_equal(kv_run(f->store, local_body, &local, NULL, NULL), expected);
	assert_int_equal(kv_run(f->store, limit_body, f, NULL, NULL), expected);
	assert_int_equal(kv_run(f->store, config_body, f, NULL, NULL), expected);
	assert_int_equal(purge(f, "a", "1-aa", NULL), expected);
	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	assert_int_equal(rev_upload_write(u, STR("more than one byte"), NULL), STATUS_OK);
	assert_int_equal(rev_upload_finish(u, &att, md5, NULL), expected);
	rev_upload_free(u, false);
}

static void
while_it_is_moved_it_is_read_and_not_written(void **state)
{
	struct place *p = *state;
	struct cached_arg cached = { .cache = catalog_cache_new() };

	fill(p->f);
	assert_non_null(cached.cache);
	/* It knows the database from before. */
	assert_int_equal(kv_run_read(p->f->store, cached_body, &cached, NULL), STATUS_OK);
	p->stop_at = 3;
	assert_int_equal(move(p), STATUS_CANCELLED);
	assert_int_equal(kv_run_read(p->f->store, cached_body, &cached, NULL), STATUS_UNAVAILABLE);
	assert_non_null(strstr(cached.err.text, "is being moved"));
	catalog_cache_free(cached.cache);

	fixture_reopen(p->f);
	assert_int_equal(p->f->db->fence, CATALOG_FENCE_MOVING);
	assert_writes_are(p->f, STATUS_UNAVAILABLE);
	assert_int_equal(create(p->f->store, "db", true), STATUS_UNAVAILABLE);
	assert_int_equal(create(p->f->store, "db", false), STATUS_EXISTS);
	assert_int_equal(create(p->target.store, "db", false), STATUS_UNAVAILABLE);
	assert_int_equal(create(p->target.store, "other", false), STATUS_OK);
	assert_string_equal(fixture_body(p->f, "a"), "{\"x\":2}");
	move_all(p);
	p->target.db = open_db(p->target.store, "db");
	assert_string_equal(fixture_body(&p->target, "a"), "{\"x\":2}");
	fixture_put(&p->target, "one more", NULL, "{}");
}

static void
kept_source_is_read_and_deleted_but_not_written(void **state)
{
	struct place *p = *state;
	struct buf content, got;

	fill(p->f);
	content = dump(p->f, p->f->db->number);
	p->options.keep = true;
	p->stop_at = 4;
	assert_int_equal(move(p), STATUS_CANCELLED);
	p->options.keep = false; /* it was said once */
	move_all(p);
	fixture_reopen(p->f);
	assert_int_equal(p->f->db->fence, CATALOG_FENCE_KEPT);
	got = dump(p->f, p->f->db->number);
	assert_int_equal(got.len, content.len);
	assert_memory_equal(got.ptr, content.ptr, got.len);
	assert_writes_are(p->f, STATUS_FORBIDDEN);
	assert_int_equal(move(p), STATUS_FORBIDDEN);
	assert_int_equal(create(p->f->store, "db", true), STATUS_OK);
	assert_int_equal(create(p->f->store, "db", false), STATUS_OK);
	verify_store(p->f->store);
	buf_release(&content);
	buf_release(&got);
}

static void
what_cannot_be_moved_stays_as_it_is(void **state)
{
	struct place *p = *state;

	p->options.name = STR("none");
	assert_int_equal(move(p), STATUS_NOT_FOUND);
	p->options.name = STR("db");
	assert_int_equal(create(p->target.store, "db", false), STATUS_OK);
	assert_int_equal(move(p), STATUS_EXISTS);
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_NOT_FOUND);
	fixture_reopen(p->f);
	assert_int_equal(p->f->db->fence, CATALOG_FENCE_NONE);
	fixture_put(p->f, "a", NULL, "{}");
	assert_int_equal(records(p->target.store, p->f->arena), 0);
}

/* Two stores that want to give the other's name away: each by its own record. */
static void
other_moves_of_the_name_are_refused(void **state)
{
	struct place *p = *state;
	struct place other = { .f = p->f, .target.arena = p->f->arena, .options = p->options };
	char url[256];

	fill(p->f);
	snprintf(url, sizeof(url), "embedded:%s/other", p->f->dir);
	open_target(&other, url);
	p->stop_at = 4;
	assert_int_equal(move(p), STATUS_CANCELLED);
	/* To somewhere else. */
	assert_int_equal(move(&other), STATUS_LOCKED);
	assert_non_null(strstr(other.err.text, "to target"));
	/* From somewhere else. */
	assert_int_equal(create(other.target.store, "db", false), STATUS_OK);
	other.options.from = other.target.store;
	other.options.to = p->target.store;
	assert_int_equal(move(&other), STATUS_LOCKED);
	/* Back from where it is going. */
	other.options.from = p->target.store;
	other.options.to = other.target.store;
	assert_int_equal(move(&other), STATUS_LOCKED);
	move_all(p);
	kv_close(other.target.store);
}

static void
uploads_under_way_are_given_up(void **state)
{
	struct place *p = *state;
	struct rev_upload_options options = { .store = p->f->store,
					      .db = p->f->db,
					      .memory_bytes = 1 };
	struct rev_upload *u;
	size_t n = (size_t)REV_ATT_CHUNK_BYTES * (REV_ATT_BATCH_CHUNKS + 1);
	char *bytes = calloc(1, n);
	struct buf content;

	assert_non_null(bytes);
	fixture_put(p->f, "a", NULL, "{}");
	content = dump(p->f, p->f->db->number);
	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	assert_int_equal(rev_upload_write(u, str_of(bytes, n), NULL), STATUS_OK);
	move_all(p);
	assert_moved(p, &content);
	assert_int_equal(rev_upload_write(u, str_of(bytes, n), NULL), STATUS_NOT_FOUND);
	rev_upload_free(u, false);
	buf_release(&content);
	free(bytes);
}

/* Events of all databases are in one order, so that nobody's Incarnation is above the store's. */
static void
other_databases_of_the_target_come_along(void **state)
{
	struct place *p = *state;
	struct catalog_db *other;

	assert_int_equal(catalog_incarnations_raise(p->f->store, NULL, NULL), STATUS_OK);
	assert_int_equal(catalog_incarnations_raise(p->f->store, NULL, NULL), STATUS_OK);
	assert_int_equal(create(p->target.store, "before", false), STATUS_OK);
	move_all(p);
	p->target.db = open_db(p->target.store, "db");
	assert_int_equal(p->target.db->incarnation, 3);
	assert_int_equal(create(p->target.store, "after", false), STATUS_OK);
	other = open_db(p->target.store, "before");
	assert_int_equal(other->incarnation, 3);
	catalog_db_unref(other);
	other = open_db(p->target.store, "after");
	assert_int_equal(other->incarnation, 3);
	catalog_db_unref(other);
}

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct buf key = BUF_INIT(64);
	enum status status;

	tuple_put_u64(&key, f->db->number);
	tuple_put_u64(&key, REV_SUBSPACE_ALL_DOCS);
	tuple_put_str(&key, STR("a"));
	status = kv_clear(tx, buf_str(&key));
	buf_release(&key);
	return status;
}

static void
damage_is_not_moved(void **state)
{
	struct place *p = *state;

	fixture_put(p->f, "a", NULL, "{}");
	assert_int_equal(kv_run(p->f->store, damage_body, p->f, NULL, NULL), STATUS_OK);
	assert_int_equal(move(p), STATUS_CORRUPT);
	assert_int_equal(move(p), STATUS_CORRUPT);
	assert_int_equal(catalog_move_rollback(&p->options, &p->err), STATUS_OK);
	fixture_reopen(p->f);
	fixture_put(p->f, "b", NULL, "{}");
}

/* ---- The end of the process, on the embedded engine alone ---- */

static void
close_stores(struct place *p)
{
	catalog_db_unref(p->f->db);
	p->f->db = NULL;
	kv_close(p->f->store);
	kv_close(p->target.store);
	p->f->store = p->target.store = NULL;
}

static void
open_stores(struct place *p)
{
	struct kv_options options = { .create = true, .shape = &rev_store_shape };
	char url[256];

	snprintf(url, sizeof(url), "embedded:%s/store", p->f->dir);
	assert_int_equal(kv_open(url, &options, &p->f->store, NULL), STATUS_OK);
	snprintf(url, sizeof(url), "embedded:%s/target", p->f->dir);
	assert_int_equal(kv_open(url, &options, &p->target.store, NULL), STATUS_OK);
	p->f->calm = p->options.from = p->f->store;
	p->target.calm = p->options.to = p->target.store;
}

/*
 * This program as another process: it moves the database of `dir`'s stores and kills itself at the
 * step number `at`. It is a new program, not a fork of this one alone: RocksDB's threads do not
 * come along with a fork, and what they held locked at that moment would stay locked.
 */
static int
move_and_be_killed(const char *dir, const char *at)
{
	struct fixture f = { 0 };
	struct place p = {
		.f = &f,
		.options = move_options(),
		.die = true,
		.stop_at = (unsigned)atoi(at),
	};
	enum status status;

	p.options.arg = &p;
	rev_register();
	snprintf(f.dir, sizeof(f.dir), "%s", dir);
	open_stores(&p);
	status = move(&p);
	close_stores(&p);
	return status == STATUS_OK ? 0 : 1;
}

/* Runs until the step number `at`, where the process is killed; false if it was done before. */
static bool
run_and_be_killed(struct place *p, unsigned at)
{
	char at_text[16];
	pid_t child;
	int how;

	snprintf(at_text, sizeof(at_text), "%u", at);
	child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "test_move", p->f->dir, at_text, (char *)NULL);
		_exit(1);
	}
	assert_int_not_equal(child, -1);
	assert_int_equal(waitpid(child, &how, 0), child);
	if (WIFEXITED(how))
		assert_int_equal(WEXITSTATUS(how), 0);
	return WIFSIGNALED(how);
}

static void
killed_anywhere_it_goes_on(void **state)
{
	struct place *p = *state;
	uint64_t number = p->f->db->number;
	unsigned kills = 0;
	struct buf content;

	fill(p->f);
	content = dump(p->f, number);
	close_stores(p);
	while (run_and_be_killed(p, kills + 1)) {
		bool undo;

		kills++;
		open_stores(p);
		check_between(p, &content, &undo);
		close_stores(p);
		assert_in_range(kills, 1, STEPS_MAX);
	}
	assert_in_range(kills, 5, STEPS_MAX);
	open_stores(p);
	p->f->db = open_db(p->target.store, "db");
	p->f->db->number = number; /* of what has gone, for the comparison */
	assert_moved(p, &content);
	buf_release(&content);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_comes_over_as_it_is),
		TEST(reader_goes_on_with_the_since_that_it_has),
		TEST(interrupted_anywhere_it_goes_on),
		TEST(interrupted_anywhere_it_can_be_undone_until_it_is_handed_over),
		TEST(rollback_is_itself_gone_on_with),
		TEST(while_it_is_moved_it_is_read_and_not_written),
		TEST(kept_source_is_read_and_deleted_but_not_written),
		TEST(what_cannot_be_moved_stays_as_it_is),
		TEST(other_moves_of_the_name_are_refused),
		TEST(uploads_under_way_are_given_up),
		TEST(other_databases_of_the_target_come_along),
		TEST(damage_is_not_moved),
		TEST(killed_anywhere_it_goes_on), /* last: embedded alone */
	};
	size_t count = sizeof(tests) / sizeof(tests[0]);

	if (argc == 3)
		return move_and_be_killed(argv[1], argv[2]);
	return _cmocka_run_group_tests("tests", tests, test_store_cases(tests, count, 1), NULL,
				       NULL);
}

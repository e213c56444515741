#define OPENSSL_SUPPRESS_DEPRECATED
#include "between.h"

#include <stdio.h>
#include <openssl/md5.h>

#include "base/rand.h"
#include "index/engine/build.h"
#include "kv/faulty/faulty.h"

enum {
	EDITS = 32,       /* of a world's documents */
	BUILD_STEPS = 20, /* of its index, of whose documents one step has all */
};

/* ---- One transaction ---- */

static enum status
call_body(struct kv_tx *tx, void *arg)
{
	struct between_call *c = arg;
	struct catalog_db *db = NULL;
	enum status status;

	buf_clear(c->said);
	status = rev_db_open(tx, NULL, str_from_cstr(c->w->name), &db, NULL);
	if (status == STATUS_OK)
		status = c->body(c, tx, db);
	catalog_db_unref(db);
	return status;
}

void
between_call(struct between_world *w, const struct between_op *op, struct buf *said,
	     between_body *body)
{
	struct between_call c = { w, op, said, body };
	enum status status = kv_run(w->f->store, call_body, &c, NULL, NULL);

	buf_printf(said, " %s", status_name(status));
}

/* ---- Indexes ---- */

static const struct str path_n[] = { { "n", 1 } };
static const struct index_column column_n = { .path = path_n, .path_count = 1 };

enum status
between_index(struct kv_tx *tx, const struct catalog_db *db, uint32_t flags, enum index_state state,
	      uint64_t *ret_number)
{
	const struct index_def terms = {
		.state = state,
		.flags = flags,
		.order = DOC_KEY_COUCH,
		.name = STR("by-n"),
		.columns = &column_n,
		.column_count = 1,
	};

	return index_create(tx, db, &terms, ret_number, NULL);
}

enum index_state
between_build(struct between_world *w, uint64_t number, unsigned steps)
{
	struct index_build_key key = { .space = CATALOG_SPACE_COUCH,
				       .db_name = str_from_cstr(w->name),
				       .db_number = w->f->db->number,
				       .number = number };
	enum index_state state;
	struct err err = { 0 };

	if (index_build_run(w->f->store, &key, 0, steps, &state, &err) != STATUS_OK)
		fail_msg("index_build_run: %s", err.text);
	return state;
}

/* ---- The world ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;

	return rev_db_create(tx, str_from_cstr(w->name), fixture_scheme(), NULL);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;

	return rev_db_open(tx, NULL, str_from_cstr(w->name), &w->f->db, NULL);
}

void
between_reopen(struct between_world *w)
{
	catalog_db_unref(w->f->db);
	w->f->db = NULL;
	assert_int_equal(kv_run_read(w->f->store, open_body, w, NULL), STATUS_OK);
}

/* Indexes of a database that has no documents yet. */
static enum status
first_indexes_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;
	uint64_t number;

	TRY(between_index(tx, w->f->db, INDEX_SPARSE, INDEX_READY, &w->ready));
	return between_index(tx, w->f->db, INDEX_SPARSE | INDEX_UNIQUE, INDEX_READY, &number);
}

struct rev_att_edit
between_att(const char *name, const char *data)
{
	struct rev_att_edit edit = {
		.source = REV_ATT_DATA,
		.att = { .name = str_from_cstr(name), .type = STR("text/plain") },
		.data = str_from_cstr(data),
	};

	edit.att.length = edit.att.encoded_length = edit.data.len;
	rand_bytes(edit.att.id, sizeof(edit.att.id));
	MD5((const unsigned char *)data, edit.data.len, edit.att.digest);
	return edit;
}

/* "a" has two live branches, the winner with an attachment; "d" is deleted. */
static void
put_documents(struct between_world *w)
{
	struct fixture *f = w->f;
	struct rev_att_edit kept = between_att("kept", "k"), shared;
	struct rev_edit edits[EDITS];
	struct rev_result results[EDITS];
	size_t n = 0;

	edits[n] = fixture_copy(f, "a", "2-x a", false, "{\"n\":1}");
	edits[n].atts = &kept;
	edits[n++].atts_count = 1;
	edits[n++] = fixture_copy(f, "d", "1-d", true, "{}");
	for (int i = 0; i < BETWEEN_FILLERS; i++)
		edits[n++] = fixture_copy(f, arena_printf(f->arena, "f%d", i).ptr, "1-f", false,
					  arena_printf(f->arena, "{\"n\":%d}", 100 + i).ptr);
	/* Another document has the same attachment. */
	edits[n] = fixture_copy(f, "s", "1-s", false, "{}");
	shared = kept;
	shared.source = REV_ATT_SHARED;
	edits[n].atts = &shared;
	edits[n++].atts_count = 1;
	fixture_write(f, edits, n, results);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(results[i].status, STATUS_OK);
	fixture_replicate(f, "a", "2-w a", false, "{\"w\":1}");
}

void
between_run(struct between_world *w, enum status (*body)(struct kv_tx *tx, void *arg))
{
	assert_int_equal(kv_run(w->f->store, body, w, NULL, NULL), STATUS_OK);
}

static void
world_begin(struct between_world *w, struct fixture *f)
{
	unsigned worlds = w->worlds + 1;

	*w = (struct between_world){ .f = f, .worlds = worlds };
	(void)snprintf(w->name, sizeof(w->name), "db%u", worlds);
	for (size_t i = 0; i < 2; i++)
		buf_init(&w->said[i], BETWEEN_SAID_BYTES);
	between_run(w, create_body);
	between_reopen(w);
	between_run(w, first_indexes_body);
	between_reopen(w);
	put_documents(w);
}

static enum status
delete_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;

	return catalog_delete(tx, CATALOG_SPACE_COUCH, str_from_cstr(w->name), NULL);
}

static void
world_end(struct between_world *w)
{
	rev_upload_free(w->upload, true);
	catalog_db_unref(w->known);
	between_run(w, delete_body);
	for (size_t i = 0; i < 2; i++)
		buf_release(&w->said[i]);
}

/* ---- What is there in the end ---- */

/* Of readers of purges, how many of those that are recorded each has not read. */
static void
draw_readers(struct between_world *w, struct kv_tx *tx, const struct rev_purge_page *purges,
	     struct buf *b)
{
	static const char *const names[] = { "r", "s" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct catalog_seq seq;
		size_t unread = 0;

		if (rev_purge_reader_get(tx, w->f->db, str_from_cstr(names[i]), &seq, NULL) !=
		    STATUS_OK)
			continue;
		for (size_t k = 0; k < purges->count; k++)
			unread += catalog_seq_cmp(&purges->purges[k].seq, &seq) > 0;
		buf_printf(b, "\nreader %s: %zu", names[i], unread);
	}
}

/* Everything that clients can see. */
static const char *
draw(struct between_world *w)
{
	static const char *const ids[] = { "a", "d", "n", "m", "u", "s" };
	const struct catalog_seq beginning = { { 0 } };
	struct fixture *f = w->f;
	struct rev_purge_page purges;
	const struct index_set *indexes = index_set_of(f->db);
	struct buf b = BUF_INIT(BETWEEN_SAID_BYTES);
	struct rev_doc local;
	struct kv_tx *tx;
	const char *text;
	struct str note;
	uint64_t rev;

	buf_printf(&b, "first:%.*s, second:%.*s\n", STR_ARG(buf_str(&w->said[0])),
		   STR_ARG(buf_str(&w->said[1])));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		buf_printf(&b, "%s: %s %s\n", ids[i], fixture_tree(f, ids[i], true),
			   fixture_body(f, ids[i]));
	buf_printf(&b, "%s\npurged:", fixture_changes(f));
	tx = fixture_begin(f);
	assert_int_equal(rev_purges_page(tx, f->db, &beginning, 0, f->arena, &purges, NULL),
			 STATUS_OK);
	for (size_t i = 0; i < purges.count; i++)
		buf_printf(&b, " %.*s", STR_ARG(purges.purges[i].doc_id));
	draw_readers(w, tx, &purges, &b);
	for (size_t i = 0; indexes && i < indexes->count; i++)
		buf_printf(&b, "\nindex %llu: %d", (unsigned long long)indexes->defs[i].number,
			   indexes->defs[i].state);
	if (rev_config_get(tx, f->db, STR("note"), f->arena, &note) == STATUS_OK)
		buf_printf(&b, "\nnoted: %.*s", STR_ARG(note));
	if (rev_local_get(tx, f->db, STR("l"), f->arena, &rev, &local) == STATUS_OK) {
		buf_printf(&b, "\nlocal: 0-%llu ", (unsigned long long)rev);
		assert_int_equal(rev_body_write(&local, false, &b), STATUS_OK);
	}
	kv_tx_free(tx);
	buf_append_byte(&b, '\0');
	assert_int_equal(buf_status(&b), STATUS_OK);
	text = arena_dup(f->arena, buf_str(&b)).ptr;
	buf_release(&b);
	return text;
}

static void
finish_build(struct between_world *w)
{
	enum index_state state = INDEX_BUILDING;

	for (int i = 0; w->building && state == INDEX_BUILDING; i++) {
		assert_true(i < BUILD_STEPS);
		state = between_build(w, w->building, 1);
	}
}

/* ---- Pairs ---- */

struct pair {
	struct between_world *w;
	const struct between_op *first; /* the one that interrupts */
	const struct between_op *second;
	bool ran; /* the first */
};

static void
check_now(void *arg)
{
	struct pair *p = arg;

	fixture_check(p->w->f);
}

static void
run_first(void *arg)
{
	struct pair *p = arg;

	p->ran = true;
	p->first->run(p->w, p->first, &p->w->said[0]);
	if (p->w->checked)
		(void)kv_faulty_interrupt(p->w->f->store, 1, check_now, p);
}

/*
 * With `nth` 0 one after the other; otherwise the first comes before the nth commit of the second.
 * NULL if the second has fewer commits.
 */
static const char *
outcome_of(struct fixture *f, struct between_world *w, void (*prepare)(struct between_world *w),
	   const struct between_op *first, const struct between_op *second, uint32_t nth)
{
	struct pair p = { w, first, second, false };
	const char *text = NULL;

	world_begin(w, f);
	if (prepare)
		prepare(w);
	if (nth)
		(void)kv_faulty_interrupt(f->store, nth, run_first, &p);
	else
		run_first(&p);
	second->run(w, second, &w->said[1]);
	(void)kv_faulty_interrupt(f->store, 0, NULL, NULL);
	if (p.ran) {
		between_reopen(w);
		finish_build(w);
		between_reopen(w);
		if (nth)
			fixture_check(f);
		text = draw(w);
	}
	world_end(w);
	return text;
}

void
between_cross(struct fixture *f, void (*prepare)(struct between_world *w),
	      const struct between_op *firsts, size_t firsts_count,
	      const struct between_op *seconds, size_t seconds_count)
{
	struct between_world w = { 0 };

	for (size_t i = 0; i < firsts_count; i++)
		for (size_t k = 0; k < seconds_count; k++) {
			struct arena_mark mark = arena_mark(f->arena);
			const char *wanted, *got;

			wanted = outcome_of(f, &w, prepare, &firsts[i], &seconds[k], 0);
			for (uint32_t nth = 1;; nth++) {
				got = outcome_of(f, &w, prepare, &firsts[i], &seconds[k], nth);
				if (!got)
					break;
				if (strcmp(got, wanted) != 0)
					fail_msg("%s, interrupted before commit %u by %s:\n%s\n"
						 "is not\n%s",
						 seconds[k].name, nth, firsts[i].name, got, wanted);
			}
			arena_reset(f->arena, mark);
		}
}

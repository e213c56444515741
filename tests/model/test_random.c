/*
 * A seeded random workload of interactive and replicated edits, beside a model of CouchDB's
 * revision tree that is as simple as can be: a document is a set of revisions that know their
 * parents; its leaves are those that are nobody's parent.
 *
 * The world holds every revision that exists on any replica; the store and the model start with
 * none of them. FROND_TEST_SEED repeats a run.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "index/json/source.h"

enum {
	DOCS = 30,
	NODES_MAX = 400, /* revisions of one document */
	STEPS = 1000,
	BATCH_MAX = 4,
	BURST_MAX = 8,
	ASKED_MAX = 8, /* revisions that are asked about together */
	CHECK_EVERY = 25,
	COMMON_BODY = 1,
	NONE = -1,
};

struct node {
	struct rev_id rev;
	int parent; /* in the world */
	bool deleted;
	int body;     /* a number in its only member */
	bool present; /* in the store */
	bool linked;  /* the store knows its parent */
	bool shared;  /* an edit that clients make here, too: nothing is made of it elsewhere */
};

struct tree {
	struct str id;
	struct node nodes[NODES_MAX];
	int count;
};

struct world {
	struct fixture *f;
	struct rand_seq rand;
	struct tree trees[DOCS];
	int bodies;
	int told[DOCS];    /* the winners' bodies, as the last report has them; NONE: none lives */
	int telling[DOCS]; /* by the transaction that is running */
	size_t reports;
	size_t conflicts, unchanged, written, restarted, twins; /* what the run has reached */
};

static uint64_t
below(struct world *w, uint64_t n)
{
	return rand_seq_below(&w->rand, n);
}

/* ---- The model ---- */

static bool
is_leaf(const struct tree *t, int at)
{
	if (!t->nodes[at].present)
		return false;
	for (int i = 0; i < t->count; i++)
		if (t->nodes[i].present && t->nodes[i].linked && t->nodes[i].parent == at)
			return false;
	return true;
}

static int
node_cmp(const struct node *a, const struct node *b)
{
	return rev_id_cmp(!a->deleted, a->rev, !b->deleted, b->rev);
}

static int
winner_of(const struct tree *t)
{
	int winner = NONE;

	for (int i = 0; i < t->count; i++)
		if (is_leaf(t, i) &&
		    (winner == NONE || node_cmp(&t->nodes[i], &t->nodes[winner]) > 0))
			winner = i;
	return winner;
}

static int
find_rev(const struct tree *t, struct rev_id rev)
{
	for (int i = 0; i < t->count; i++)
		if (rev_id_eq(t->nodes[i].rev, rev))
			return i;
	return NONE;
}

static int
node_add(struct tree *t, struct rev_id rev, int parent, bool deleted, int body)
{
	assert_true(t->count < NODES_MAX);
	t->nodes[t->count] = (struct node){
		.rev = rev, .parent = parent, .deleted = deleted, .body = body
	};
	return t->count++;
}

static struct doc
body_doc(struct world *w, int body)
{
	return fixture_doc(w->f, arena_printf(w->f->arena, "{\"n\":%d}", body).ptr);
}

/* The revision that an edit makes, as CouchDB has it. */
static struct rev_id
revision_of(struct world *w, const struct tree *t, int parent, bool deleted, int body)
{
	struct rev_id from = { 0 };
	uint8_t *hash = (uint8_t *)arena_bytes(w->f->arena, REV_HASH_BYTES);

	assert_non_null(hash);
	if (parent != NONE)
		from = t->nodes[parent].rev;
	rev_hash(deleted, from, body_doc(w, body).term, hash);
	return (struct rev_id){ from.pos + 1, str_of(hash, REV_HASH_BYTES) };
}

/* The edit that many clients make. */
static int
node_share(struct world *w, struct tree *t, int parent, bool deleted)
{
	struct rev_id rev = revision_of(w, t, parent, deleted, COMMON_BODY);
	int at = find_rev(t, rev);

	if (at == NONE)
		at = node_add(t, rev, parent, deleted, COMMON_BODY);
	t->nodes[at].shared = true;
	return at;
}

/* A revision made on another replica: below any that exists anywhere, or a new root. */
static int
node_grow(struct world *w, struct tree *t)
{
	int parent = t->count && below(w, 8) ? (int)below(w, (uint64_t)t->count) : NONE;
	bool deleted = below(w, 4) == 0;
	size_t len = below(w, 4) ? REV_HASH_BYTES : 1 + below(w, 40);
	char *hash = arena_bytes(w->f->arena, len);
	struct rev_id rev = { 1, str_of(hash, len) };

	assert_non_null(hash);
	if (parent != NONE && t->nodes[parent].shared)
		parent = NONE;
	if (parent != NONE && below(w, 4) == 0)
		return node_share(w, t, parent, deleted);
	/* Few different bytes, so that ties and NULs are common. */
	for (size_t i = 0; i < len; i++)
		hash[i] = (char)("\0\1\377a"[below(w, 4)]);
	if (parent != NONE)
		rev.pos = t->nodes[parent].rev.pos + 1;
	if (find_rev(t, rev) != NONE)
		return find_rev(t, rev);
	return node_add(t, rev, parent, deleted, w->bodies++);
}

/* ---- Edits, and what the model says of them ---- */

struct step {
	struct tree *tree;
	struct rev_edit edit;
	enum status want;
	bool want_unchanged;
	int node;   /* REPLICATED: what is brought */
	int length; /* and how much of its history */
	int parent; /* INTERACTIVE: what is extended */
	int body;
};

static void
step_replicate(struct world *w, struct step *s)
{
	struct tree *t = s->tree;
	int depth = 0;

	s->node = t->count && below(w, 3) == 0 ? (int)below(w, (uint64_t)t->count)
					       : node_grow(w, t);
	for (int at = s->node; at != NONE; at = t->nodes[at].parent)
		depth++;
	s->length = below(w, 4) ? depth : 1 + (int)below(w, (uint64_t)depth);
	s->edit.kind = REV_EDIT_REPLICATED;
	s->edit.deleted = t->nodes[s->node].deleted;
	s->edit.doc = body_doc(w, t->nodes[s->node].body);
	s->edit.start = t->nodes[s->node].rev.pos;
	s->edit.history = arena_zalloc(w->f->arena, (size_t)s->length * sizeof(struct str));
	assert_non_null(s->edit.history);
	for (int at = s->node, i = 0; i < s->length; at = t->nodes[at].parent, i++)
		s->edit.history[s->edit.history_count++] = t->nodes[at].rev.hash;
	s->want_unchanged = t->nodes[s->node].present;
}

static struct rev_id
step_revision(struct world *w, const struct step *s)
{
	return revision_of(w, s->tree, s->parent, s->edit.deleted, s->body);
}

static void
step_interactive(struct world *w, struct step *s)
{
	struct tree *t = s->tree;
	int winner = winner_of(t);
	bool is_deleted = winner != NONE && t->nodes[winner].deleted;
	int named = NONE;

	if (t->count && below(w, is_deleted ? 2 : 8))
		named = below(w, 2) && winner != NONE ? winner : (int)below(w, (uint64_t)t->count);
	if (named != NONE && t->nodes[named].shared)
		named = NONE;
	s->edit.kind = REV_EDIT_INTERACTIVE;
	s->edit.deleted = below(w, 3) == 0;
	/* Bodies repeat now and then, so that equal edits are made in several places. */
	s->body = below(w, 3) ? w->bodies++ : COMMON_BODY;
	s->edit.doc = body_doc(w, s->body);
	if (named == NONE) {
		s->parent = winner;
		s->want = winner == NONE || (is_deleted && !s->edit.deleted) ? STATUS_OK
									     : STATUS_DOC_CONFLICT;
		w->restarted += s->want == STATUS_OK && winner != NONE;
		return;
	}
	s->edit.parent = t->nodes[named].rev;
	s->parent = named;
	s->want = is_leaf(t, named) && !t->nodes[named].deleted ? STATUS_OK : STATUS_DOC_CONFLICT;
	/* The same edit came in as a branch of its own. */
	if (s->want == STATUS_OK) {
		int twin = find_rev(t, step_revision(w, s));

		if (twin != NONE && t->nodes[twin].present) {
			s->want = STATUS_DOC_CONFLICT;
			w->twins++;
		}
	}
}

static void
model_apply(struct world *w, const struct step *s)
{
	struct tree *t = s->tree;

	if (s->want != STATUS_OK) {
		w->conflicts++;
		return;
	}
	if (s->edit.kind == REV_EDIT_REPLICATED) {
		if (s->want_unchanged) {
			w->unchanged++;
			return;
		}
		for (int at = s->node, i = 0; i < s->length; at = t->nodes[at].parent, i++) {
			t->nodes[at].present = true;
			t->nodes[at].linked |= i + 1 < s->length;
		}
	} else {
		struct rev_id rev = step_revision(w, s);
		int at = find_rev(t, rev);

		if (at == NONE)
			at = node_add(t, rev, s->parent, s->edit.deleted, s->body);
		t->nodes[at].present = true;
		t->nodes[at].linked = s->parent != NONE;
	}
	w->written++;
}

/* ---- Reports of winners ---- */

/* The callback has no argument of the test's. */
static struct world *followed;

static int
tree_number(const struct world *w, struct str id)
{
	for (int i = 0; i < DOCS; i++)
		if (str_eq(w->trees[i].id, id))
			return i;
	return NONE;
}

static bool
is_followed(const struct catalog_db *db, struct str id)
{
	int at = followed ? tree_number(followed, id) : NONE;

	(void)db;
	return at != NONE && at % 2 == 0;
}

static int
body_told(const struct index_source *source, struct index_work *work)
{
	static struct str path[] = { { "n", 1 } };
	const struct index_column column = { path, 1, false };
	struct index_value value = { 0 };
	struct leaf_number number;

	if (!source)
		return NONE;
	assert_int_equal(index_json_find(source, &column, work, &value), STATUS_OK);
	assert_true(value.found);
	if (value.text.ptr)
		return (int)strtol(value.text.ptr, NULL, 10);
	assert_int_equal(leaf_number(&value.leaf, &number), STATUS_OK);
	return (int)number.magnitude;
}

/* What was the winner before is what was told last. */
static enum status
winner_changed(struct kv_tx *tx, const struct catalog_db *db,
	       const struct rev_design_change *change, struct arena *arena)
{
	struct index_work work = { .arena = arena };
	int at = tree_number(followed, change->id);

	(void)tx;
	(void)db;
	assert_true(at != NONE && at % 2 == 0);
	assert_int_equal(body_told(change->before, &work), followed->told[at]);
	followed->telling[at] = body_told(change->after, &work);
	return STATUS_OK;
}

/* Writes, and takes over what the attempt that was committed has told. */
static void
write_and_follow(struct world *w, const struct rev_edit *edits, size_t count,
		 struct rev_result *results)
{
	memcpy(w->telling, w->told, sizeof(w->told));
	followed = w;
	fixture_write(w->f, edits, count, results);
	followed = NULL;
	for (int i = 0; i < DOCS; i++)
		w->reports += w->telling[i] != w->told[i];
	memcpy(w->told, w->telling, sizeof(w->told));
}

static void
compare_told(const struct world *w, const struct tree *t)
{
	int at = (int)(t - w->trees), winner = winner_of(t);
	bool lives = winner != NONE && !t->nodes[winner].deleted;

	if (at % 2 == 0)
		assert_int_equal(w->told[at], lives ? t->nodes[winner].body : NONE);
}

/* ---- What else is read of a document ---- */

/* True if the branch's head is the revision, or descends from it. */
static bool
descends(const struct rev_branch *branch, struct rev_id from)
{
	uint64_t behind = branch->rev.pos - from.pos;

	if (from.pos >= branch->rev.pos)
		return rev_id_eq(branch->rev, from);
	return behind <= branch->ancestors_count &&
	       str_eq(branch->ancestors[behind - 1], from.hash);
}

/* Some revisions, one of which nobody has, in any order; several times the same, too. */
static size_t
some_revisions(struct world *w, const struct tree *t, struct rev_id *ret, int *ret_nodes)
{
	size_t count = 1 + below(w, ASKED_MAX);

	for (size_t i = 0; i < count; i++) {
		ret_nodes[i] = below(w, 8) ? (int)below(w, (uint64_t)t->count) : NONE;
		ret[i] = ret_nodes[i] == NONE
				 ? (struct rev_id){ 1 + below(w, 9), STR("nobody has it") }
				 : t->nodes[ret_nodes[i]].rev;
	}
	return count;
}

/* The heads of each revision, the best first. */
static void
compare_descent(struct world *w, const struct tree *t, const struct rev_tree *tree,
		struct kv_tx *tx, unsigned flags)
{
	struct rev_id revs[ASKED_MAX];
	int nodes[ASKED_MAX];
	size_t count = some_revisions(w, t, revs, nodes);
	struct rev_descent d;

	assert_int_equal(rev_descent_read(tx, w->f->db, t->id, revs, count, flags, w->f->arena, &d),
			 STATUS_OK);
	assert_false(d.too_many);
	for (size_t i = 0; i < count; i++) {
		uint32_t link = rev_descent_first(&d, revs[i]);

		for (size_t k = 0; k < tree->count; k++) {
			const struct rev_branch *branch = &tree->branches[k], *head;

			if (!descends(branch, revs[i]) ||
			    ((flags & REV_DESCENT_ITSELF) && !rev_id_eq(branch->rev, revs[i])))
				continue;
			assert_true(link != 0);
			head = &d.heads[d.links[link - 1].head];
			assert_true(rev_id_eq(head->rev, branch->rev));
			assert_int_equal(head->deleted, branch->deleted);
			assert_int_equal(head->winner, branch->winner);
			assert_int_equal(head->ancestors_count,
					 flags & REV_DESCENT_WHOLE ? branch->ancestors_count : 0);
			link = d.links[link - 1].next;
		}
		assert_int_equal(link, 0);
	}
}

/* What is missing of some revisions, and which heads may be ancestors of it, the best first. */
static void
compare_diff(struct world *w, const struct tree *t, const struct rev_tree *tree, struct kv_tx *tx)
{
	struct rev_id revs[ASKED_MAX];
	int nodes[ASKED_MAX];
	const struct rev_diff_query query = { t->id, revs, some_revisions(w, t, revs, nodes) };
	uint64_t highest = 0;
	struct rev_diff diff;
	size_t n = 0;

	assert_int_equal(rev_diff(tx, w->f->db, &query, 1, w->f->arena, &diff), STATUS_OK);
	for (size_t i = 0; i < query.count; i++) {
		if (nodes[i] != NONE && t->nodes[nodes[i]].present)
			continue;
		assert_true(n < diff.missing_count && rev_id_eq(diff.missing[n], revs[i]));
		n++;
		if (revs[i].pos > highest)
			highest = revs[i].pos;
	}
	assert_int_equal(diff.missing_count, n);
	n = 0;
	for (size_t k = 0; k < tree->count; k++) {
		if (tree->branches[k].rev.pos >= highest)
			continue;
		assert_true(n < diff.possible_ancestors_count &&
			    rev_id_eq(diff.possible_ancestors[n], tree->branches[k].rev));
		n++;
	}
	assert_int_equal(diff.possible_ancestors_count, n);
}

/* Heads by their revisions: with ancestors, alone, and alive only. */
static void
compare_branches(struct world *w, const struct tree *t, const struct rev_tree *tree,
		 struct kv_tx *tx)
{
	struct rev_branch alive[ASKED_MAX], one;
	struct rev_want wants[ASKED_MAX];
	struct rev_id revs[ASKED_MAX];
	int nodes[ASKED_MAX];
	size_t count = some_revisions(w, t, revs, nodes);

	for (size_t i = 0; i < count; i++)
		wants[i] = (struct rev_want){ .id = t->id, .rev = revs[i] };
	assert_int_equal(rev_branches_read_live(tx, w->f->db, wants, count, w->f->arena, alive),
			 STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		const struct rev_branch *branch = NULL;
		enum status status = rev_branch_read(tx, w->f->db, t->id, revs[i], w->f->arena,
						     &one);

		for (size_t k = 0; k < tree->count && !branch; k++)
			if (rev_id_eq(tree->branches[k].rev, revs[i]))
				branch = &tree->branches[k];
		assert_int_equal(status, branch ? STATUS_OK : STATUS_NOT_FOUND);
		assert_int_equal(alive[i].rev.pos,
				 branch && !branch->deleted ? branch->rev.pos : 0);
		if (!branch)
			continue;
		assert_true(rev_id_eq(one.rev, branch->rev));
		assert_int_equal(one.deleted, branch->deleted);
		assert_int_equal(one.ancestors_count, branch->ancestors_count);
		if (!branch->deleted)
			assert_int_equal(alive[i].ancestors_count, branch->ancestors_count);
	}
}

/* Without the ancestors that are not asked for; the winner in other ways. */
static void
compare_parts(struct world *w, const struct tree *t, const struct rev_tree *tree, struct kv_tx *tx)
{
	const struct rev_branch *winner = &tree->branches[0];
	struct rev_tree part;
	struct rev_doc doc;
	struct rev_id rev;

	assert_int_equal(rev_tree_read(tx, w->f->db, t->id, REV_TREE_HEADS, w->f->arena, &part),
			 STATUS_OK);
	assert_int_equal(part.count, tree->count);
	for (size_t i = 0; i < part.count; i++) {
		assert_true(rev_id_eq(part.branches[i].rev, tree->branches[i].rev));
		assert_int_equal(part.branches[i].ancestors_count, 0);
		assert_int_equal(part.branches[i].winner, i == 0);
	}
	assert_int_equal(rev_tree_read(tx, w->f->db, t->id, REV_TREE_WINNER, w->f->arena, &part),
			 STATUS_OK);
	assert_int_equal(part.count, tree->count);
	for (size_t i = 0; i < part.count; i++)
		assert_int_equal(part.branches[i].ancestors_count,
				 i == 0 ? winner->ancestors_count : 0);
	assert_memory_equal(&part.seq, &tree->seq, sizeof(part.seq));
	assert_int_equal(rev_winner_read(tx, w->f->db, t->id, w->f->arena, &rev),
			 winner->deleted ? STATUS_DELETED : STATUS_OK);
	if (!winner->deleted)
		assert_true(rev_id_eq(rev, winner->rev));
	assert_int_equal(rev_doc_read(tx, w->f->db, t->id, w->f->arena, &doc),
			 winner->deleted ? STATUS_DELETED : STATUS_OK);
	assert_true(rev_id_eq(doc.rev, winner->rev));
	assert_int_equal(rev_doc_read_together(tx, w->f->db, t->id, w->f->arena, &doc),
			 winner->deleted ? STATUS_DELETED : STATUS_OK);
	assert_true(rev_id_eq(doc.rev, winner->rev));
	assert_int_equal(rev_winners_read(tx, w->f->db, &t->id, 1, w->f->arena, &rev), STATUS_OK);
	assert_int_equal(rev.hash.ptr != NULL, !winner->deleted);
	if (!winner->deleted)
		assert_true(rev_id_eq(rev, winner->rev));
}

/* ---- Comparing ---- */

static void
compare(struct world *w, struct tree *t)
{
	struct fixture *f = w->f;
	struct arena_mark mark = arena_mark(f->arena);
	int winner = winner_of(t);
	struct rev_diff_query query = { .id = t->id };
	struct rev_diff diff;
	struct rev_tree tree;
	struct kv_tx *tx;
	size_t leaves = 0, missing = 0;

	compare_told(w, t);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	if (winner == NONE) {
		assert_int_equal(rev_tree_read(tx, f->db, t->id, REV_TREE_ALL, f->arena, &tree),
				 STATUS_NOT_FOUND);
		kv_tx_free(tx);
		return;
	}
	assert_int_equal(rev_tree_read(tx, f->db, t->id, REV_TREE_ALL, f->arena, &tree), STATUS_OK);
	assert_true(rev_id_eq(tree.branches[0].rev, t->nodes[winner].rev));
	for (int i = 0; i < t->count; i++)
		leaves += is_leaf(t, i);
	assert_int_equal(tree.count, leaves);
	for (size_t i = 0; i < tree.count; i++) {
		const struct rev_branch *branch = &tree.branches[i];
		int at = find_rev(t, branch->rev);
		struct buf want = BUF_INIT(64);
		struct buf body = BUF_INIT(64);
		struct rev_doc doc;

		assert_true(at != NONE && is_leaf(t, at));
		assert_int_equal(branch->deleted, t->nodes[at].deleted);
		assert_int_equal(rev_doc_read_head(tx, f->db, t->id, branch->rev, branch->deleted,
						   f->arena, &doc),
				 STATUS_OK);
		buf_printf(&want, "\"n\":%d}", t->nodes[at].body);
		assert_int_equal(rev_body_write(&doc, false, &body), STATUS_OK);
		assert_true(str_eq(buf_str(&body), buf_str(&want)));
		buf_release(&want);
		buf_release(&body);
		/* Every ancestor that the model has, and no other. */
		for (size_t j = 0; j < branch->ancestors_count; j++) {
			assert_true(t->nodes[at].linked);
			at = t->nodes[at].parent;
			assert_true(str_eq(branch->ancestors[j], t->nodes[at].rev.hash));
		}
	}
	query.revs = arena_alloc(f->arena, (size_t)t->count * sizeof(*query.revs));
	assert_non_null(query.revs);
	for (int i = 0; i < t->count; i++) {
		query.revs[query.count++] = t->nodes[i].rev;
		missing += !t->nodes[i].present;
	}
	assert_int_equal(rev_diff(tx, f->db, &query, 1, f->arena, &diff), STATUS_OK);
	assert_int_equal(diff.missing_count, missing);
	for (size_t i = 0; i < diff.missing_count; i++)
		assert_false(t->nodes[find_rev(t, diff.missing[i])].present);
	compare_descent(w, t, &tree, tx, 0);
	compare_descent(w, t, &tree, tx, REV_DESCENT_WHOLE);
	compare_descent(w, t, &tree, tx, REV_DESCENT_ITSELF);
	compare_diff(w, t, &tree, tx);
	compare_branches(w, t, &tree, tx);
	compare_parts(w, t, &tree, tx);
	kv_tx_free(tx);
	arena_reset(f->arena, mark);
}

/* A transaction of one to BATCH_MAX edits, of different documents. */
static void
transaction(struct world *w)
{
	size_t count = 1 + below(w, BATCH_MAX);
	size_t first = below(w, DOCS);
	struct step steps[BATCH_MAX];
	struct rev_edit edits[BATCH_MAX];
	struct rev_result results[BATCH_MAX];

	for (size_t i = 0; i < count; i++) {
		struct step *s = &steps[i];

		*s = (struct step){ .tree = &w->trees[(first + i) % DOCS] };
		s->edit.id = s->tree->id;
		/* A third of the documents is hardly ever replicated, and often deleted whole. */
		if (below(w, (first + i) % 3 ? 2 : 12) == 0)
			step_replicate(w, s);
		else
			step_interactive(w, s);
		edits[i] = s->edit;
	}
	write_and_follow(w, edits, count, results);
	for (size_t i = 0; i < count; i++) {
		const struct step *s = &steps[i];

		assert_int_equal(results[i].status, s->want);
		if (s->want == STATUS_OK && s->edit.kind == REV_EDIT_INTERACTIVE)
			assert_true(rev_id_eq(results[i].rev, step_revision(w, s)));
		if (s->want == STATUS_OK)
			assert_int_equal(results[i].unchanged, s->want_unchanged);
		model_apply(w, s);
	}
	for (size_t i = 0; i < count; i++)
		compare(w, steps[i].tree);
}

/* A transaction of some replicated edits of one document, which see each other. */
static void
burst(struct world *w)
{
	size_t count = 2 + below(w, BURST_MAX - 1);
	struct tree *t = &w->trees[below(w, DOCS)];
	struct step steps[BURST_MAX];
	struct rev_edit edits[BURST_MAX];
	struct rev_result results[BURST_MAX];

	for (size_t i = 0; i < count; i++) {
		steps[i] = (struct step){ .tree = t, .edit = { .id = t->id } };
		step_replicate(w, &steps[i]);
		model_apply(w, &steps[i]);
		edits[i] = steps[i].edit;
	}
	write_and_follow(w, edits, count, results);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(results[i].status, STATUS_OK);
		assert_int_equal(results[i].unchanged, steps[i].want_unchanged);
	}
	compare(w, t);
}

static void
run_workload(struct fixture *f, const char *ids)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t seed = test_seed();
	size_t steps = (size_t)test_rounds(STEPS);

	assert_non_null(w);
	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)seed);
	w->f = f;
	w->rand.state = seed;
	w->bodies = 2;
	for (int i = 0; i < DOCS; i++)
		w->trees[i].id = arena_printf(w->f->arena, "%s%d", ids, i);
	for (int i = 0; i < DOCS; i++)
		w->told[i] = NONE;
	rev_follow(is_followed, winner_changed);
	for (size_t i = 0; i < steps; i++) {
		if (below(w, 10))
			transaction(w);
		else
			burst(w);
		if (i % CHECK_EVERY == 0)
			fixture_check(w->f);
	}
	fixture_check(w->f);
	rev_follow(NULL, NULL);
	print_message("# written %zu, conflicts %zu, unchanged %zu, restarted %zu, twins %zu, "
		      "reports %zu\n",
		      w->written, w->conflicts, w->unchanged, w->restarted, w->twins, w->reports);
	/* The run went where it was meant to go. */
	assert_true(w->written > steps / 4);
	assert_true(w->conflicts > steps / 10);
	assert_true(w->unchanged > steps / 50);
	assert_true(w->restarted > steps / 200);
	assert_true(w->reports > steps / 10);
	free(w);
}

static void
random_edits_agree_with_a_simple_tree(void **state)
{
	run_workload(*state, "doc");
}

/* The counters of a partition agree with the branches at each check. */
static void
random_edits_of_a_partition_do(void **state)
{
	fixture_make_partitioned(*state);
	run_workload(*state, "doc:");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_edits_agree_with_a_simple_tree,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(random_edits_of_a_partition_do, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

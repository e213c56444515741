/*
 * What must hold between the subspaces of a database after any sequence of edits, read from the
 * keys themselves:
 *
 *     REVISIONS   a document's winner comes last, and only its value has a Sequence and the number
 *                 of branches, which is right; no leaf is an ancestor of another branch
 *     CHANGES     one entry a document, under its winner's Sequence, saying what the winner is
 *     ALL_DOCS    one entry for each document whose winner is not deleted
 *     DOCUMENTS   a root for every live leaf, none for what is no leaf, leaves only under roots
 *     ATTACHMENTS a branch says that it has some exactly if it does; a counter for each that some
 *                 revision has, which is their number; its data, complete and with its digest;
 *                 and nothing else but what belongs to an upload
 *                 the text of a body in chunks is counted like an attachment, and both the branch
 *                 and the root value name it
 *     STATS       the counters equal the counts
 *     PARTITIONS  in a partitioned database likewise, for each partition: of deleted documents, and
 *                 of the sizes that branches say their heads have
 *     ENTRIES     of each index that is READY: those that the documents whose winner is not deleted
 *                 have, and no others
 *     TALLIES     wherever no counted range goes across, the counters of the ranges in front are
 *                 together the number of keys there
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

#include "fixture.h"

#include <stdlib.h>

#include "index/engine/scan.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "catalog/verify.h"

enum {
	LEAVES_MAX = 20000,
	ATTS_MAX = 5000,
	RANGES_MAX = 5000,
	READ_ON_LEAVES = 100,
};

struct leaf {
	struct str id;
	struct rev_id rev;
	bool deleted;
	bool winner;
	bool has_body;
	bool has_atts;     /* says the branch */
	bool has_one_key;  /* likewise */
	bool has_more;     /* keys below the root */
	size_t atts_count; /* says its body */
	bool has_text;     /* the branch says that the body's text lies in chunks, named so: */
	uint8_t text_id[REV_ATT_ID_BYTES];
	bool text_seen; /* the root value says so, too */
	struct catalog_seq seq;
	uint64_t branch_count;
	struct str *ancestors;
	size_t ancestors_count;
	uint64_t sizes[2]; /* in a partitioned database: external, active */
};

struct held_att {
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t revisions; /* that have it */
	uint64_t refs;      /* as is counted */
	uint64_t bytes;     /* of data */
	bool staged;
	bool is_text;       /* of a body, in chunks */
	struct rev_att att; /* of one of them */
};

/* A counter of a range. */
struct counted {
	struct str lo;
	struct str hi;
	int64_t count;
};

struct check {
	struct fixture *f;
	struct held_att *atts;
	size_t atts_count;
	struct kv_tx *tx;
	struct leaf *leaves;
	size_t count;
	uint64_t live_docs;
	uint64_t deleted_docs;
	uint64_t counted[3]; /* in PARTITIONS, by counter */
	struct catalog_seq newest;
	struct counted *ranges; /* of one list */
	size_t ranges_count;
	struct str *keys; /* of that list */
	size_t keys_count;
	enum rev_subspace list;
};

static struct str
text_next(struct check *c, struct tuple_reader *r)
{
	struct buf plain = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct tuple_elem e;
	struct str s;

	assert_int_equal(tuple_next(r, &e), STATUS_OK);
	assert_true(e.kind == TUPLE_BYTES || e.kind == TUPLE_STRING);
	tuple_unescape(&e, &plain);
	s = arena_dup(c->f->arena, buf_str(&plain));
	assert_non_null(s.ptr);
	buf_release(&plain);
	return s;
}

static uint64_t
number_next(struct tuple_reader *r)
{
	uint64_t n;

	assert_int_equal(tuple_next_u64(r, &n), STATUS_OK);
	return n;
}

static bool
bool_next(struct tuple_reader *r)
{
	bool b;

	assert_int_equal(tuple_next_bool(r, &b), STATUS_OK);
	return b;
}

static void
seq_next(struct tuple_reader *r, struct catalog_seq *ret)
{
	const uint8_t *stamp;

	ret->bytes[0] = (uint8_t)number_next(r);
	assert_int_equal(tuple_next_versionstamp(r, &stamp), STATUS_OK);
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
}

/*
 * Goes on at another version where a cluster keeps one for seconds only. Nobody writes during a
 * check.
 */
static void
read_on(struct check *c)
{
	if (test_store_is_cluster())
		kv_tx_reset(c->tx);
}

/* From `at`, where it can go on when the version is too old: each pair comes once. */
static enum status
each_from(struct check *c, struct buf *at, struct str end, size_t prefix_len,
	  void (*fn)(struct check *c, struct tuple_reader *k, struct tuple_reader *v))
{
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	assert_int_equal(kv_scan_init(&scan, c->tx, buf_str(at), end, NULL), STATUS_OK);
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		struct tuple_reader k = tuple_reader(str_skip(pair.key, prefix_len));
		struct tuple_reader v = tuple_reader(pair.value);

		fn(c, &k, &v);
		buf_clear(at);
		buf_append_str(at, pair.key);
		buf_append_byte(at, 0);
	}
	kv_scan_release(&scan);
	return status;
}

static void
each(struct check *c, enum rev_subspace space,
     void (*fn)(struct check *c, struct tuple_reader *k, struct tuple_reader *v))
{
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64), at = BUF_INIT(SIZE_MAX);
	enum status status;

	buf_append_str(&lo, c->f->db->prefix);
	tuple_put_u64(&lo, space);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	buf_append_str(&at, buf_str(&lo));
	do {
		read_on(c);
		status = each_from(c, &at, buf_str(&hi), lo.len, fn);
	} while (status == STATUS_TX_TOO_OLD && test_store_is_cluster());
	assert_int_equal(status, STATUS_NOT_FOUND);
	buf_release(&lo);
	buf_release(&hi);
	buf_release(&at);
}

static void
uuid_next(struct tuple_reader *r, uint8_t ret[REV_ATT_ID_BYTES])
{
	struct tuple_elem e;

	assert_int_equal(tuple_next(r, &e), STATUS_OK);
	assert_int_equal(e.kind, TUPLE_UUID);
	memcpy(ret, e.raw.ptr, REV_ATT_ID_BYTES);
}

/* Whether a null comes next, which is then taken. */
static bool
null_next(struct tuple_reader *r)
{
	struct tuple_reader peek = *r;
	struct tuple_elem e;

	assert_int_equal(tuple_next(&peek, &e), STATUS_OK);
	if (e.kind == TUPLE_NULL)
		*r = peek;
	return e.kind == TUPLE_NULL;
}

static void
read_leaf(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct leaf *leaf = &c->leaves[c->count];
	struct tuple_reader ancestors;
	uint64_t format;
	struct tuple_elem e;

	assert_true(c->count < LEAVES_MAX);
	*leaf = (struct leaf){ .id = text_next(c, k) };
	leaf->deleted = !bool_next(k);
	leaf->rev.pos = number_next(k);
	leaf->rev.hash = text_next(c, k);
	assert_int_equal(k->rest.len, 0);
	format = number_next(v);
	assert_in_range(format, 1, 3);
	assert_int_equal(format == 3, rev_db_is_partitioned(c->f->db));
	assert_int_equal(tuple_next(v, &e), STATUS_OK);
	leaf->winner = e.kind == TUPLE_NESTED;
	if (leaf->winner) {
		struct tuple_reader seq = tuple_reader_nested(&e);

		seq_next(&seq, &leaf->seq);
		leaf->branch_count = number_next(v);
	} else {
		assert_int_equal(e.kind, TUPLE_NULL);
		assert_int_equal(tuple_next(v, &e), STATUS_OK);
		assert_int_equal(e.kind, TUPLE_NULL);
	}
	assert_int_equal(tuple_next_nested(v, &ancestors), STATUS_OK);
	leaf->ancestors = arena_alloc(c->f->arena, (ancestors.rest.len + 1) * sizeof(struct str));
	assert_non_null(leaf->ancestors);
	while (ancestors.rest.len)
		leaf->ancestors[leaf->ancestors_count++] = text_next(c, &ancestors);
	assert_true(leaf->ancestors_count < leaf->rev.pos);
	if (v->rest.len && !(format == 3 && null_next(v))) {
		leaf->has_atts = bool_next(v);
		leaf->has_one_key = !leaf->has_atts;
	}
	leaf->has_text = format == 2 || (format == 3 && !null_next(v));
	if (leaf->has_text)
		uuid_next(v, leaf->text_id);
	for (int i = 0; format == 3 && i < 2; i++)
		leaf->sizes[i] = number_next(v);
	assert_int_equal(v->rest.len, 0);
	c->count++;
}

static bool
descends(const struct leaf *leaf, struct rev_id rev)
{
	uint64_t up = leaf->rev.pos - rev.pos;

	return rev.pos < leaf->rev.pos && up <= leaf->ancestors_count &&
	       str_eq(leaf->ancestors[up - 1], rev.hash);
}

/* The leaves from `first` up to `last`, one document's. */
static void
check_document(struct check *c, size_t first, size_t last)
{
	const struct leaf *winner = &c->leaves[last];

	assert_int_equal(winner->branch_count, last - first + 1);
	for (size_t i = first; i <= last; i++) {
		const struct leaf *leaf = &c->leaves[i];

		assert_int_equal(leaf->winner, i == last);
		if (i < last)
			assert_true(rev_id_cmp(!leaf->deleted, leaf->rev, !c->leaves[i + 1].deleted,
					       c->leaves[i + 1].rev) < 0);
		for (size_t j = first; j <= last; j++)
			assert_false(descends(leaf, c->leaves[j].rev));
	}
	if (winner->deleted)
		c->deleted_docs++;
	else
		c->live_docs++;
	if (catalog_seq_cmp(&winner->seq, &c->newest) > 0)
		c->newest = winner->seq;
}

static struct leaf *
find_winner(struct check *c, struct str id)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->leaves[i].winner && str_eq(c->leaves[i].id, id))
			return &c->leaves[i];
	fail_msg("no document %.*s", STR_ARG(id));
	return NULL;
}

static size_t entries; /* that the function below has seen */

static void
check_change(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct catalog_seq seq;
	struct rev_id rev;
	struct leaf *winner;

	seq_next(k, &seq);
	assert_int_equal(number_next(v), 1);
	winner = find_winner(c, text_next(c, v));
	rev.pos = number_next(v);
	rev.hash = text_next(c, v);
	assert_int_equal(catalog_seq_cmp(&seq, &winner->seq), 0);
	assert_true(rev_id_eq(rev, winner->rev));
	assert_int_equal(number_next(v), winner->branch_count);
	assert_int_equal(bool_next(v), !winner->deleted);
	entries++;
}

static void
check_entry(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct leaf *winner = find_winner(c, text_next(c, k));

	assert_int_equal(number_next(v), 1);
	assert_int_equal(number_next(v), winner->rev.pos);
	assert_true(str_eq(text_next(c, v), winner->rev.hash));
	assert_false(winner->deleted);
	entries++;
}

/* ---- Attachments ---- */

static struct held_att *
att_of(struct check *c, const uint8_t *id)
{
	struct held_att *att;

	for (size_t i = 0; i < c->atts_count; i++)
		if (memcmp(c->atts[i].id, id, REV_ATT_ID_BYTES) == 0)
			return &c->atts[i];
	assert_true(c->atts_count < ATTS_MAX);
	att = &c->atts[c->atts_count++];
	*att = (struct held_att){ 0 };
	memcpy(att->id, id, REV_ATT_ID_BYTES);
	return att;
}

/* format, id, type, length, encoded length, encoding, digest, revpos, order */
static void
check_pointer(struct check *c, struct leaf *leaf, struct str path, struct tuple_reader *v)
{
	struct tuple_reader k = tuple_reader(path);
	struct rev_att att = { 0 };
	struct held_att *held;
	struct tuple_elem e;
	struct str digest;

	assert_int_equal(tuple_next(&k, &e), STATUS_OK);
	att.name = text_next(c, &k);
	assert_int_equal(k.rest.len, 0);
	assert_int_equal(number_next(v), 1);
	uuid_next(v, att.id);
	att.type = text_next(c, v);
	att.length = number_next(v);
	att.encoded_length = number_next(v);
	att.encoding = (enum rev_att_encoding)number_next(v);
	digest = text_next(c, v);
	assert_int_equal(digest.len, REV_ATT_DIGEST_BYTES);
	memcpy(att.digest, digest.ptr, digest.len);
	att.revpos = number_next(v);
	assert_true(number_next(v) < REV_ATTS_MAX);
	assert_int_equal(v->rest.len, 0);
	leaf->atts_count++;
	held = att_of(c, att.id);
	held->att = att;
	held->revisions++;
}

static void
check_data(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct str space = text_next(c, k);
	uint8_t id[REV_ATT_ID_BYTES];
	struct held_att *held;

	uuid_next(k, id);
	held = att_of(c, id);
	if (str_eq(space, STR("refs"))) {
		assert_int_equal(v->rest.len, 8);
		for (size_t i = 0; i < 8; i++)
			held->refs |= (uint64_t)(uint8_t)v->rest.ptr[i] << (8 * i);
		assert_true(held->refs > 0);
		return;
	}
	assert_true(str_eq(space, STR("data")));
	assert_int_equal(number_next(k) * REV_ATT_CHUNK_BYTES, held->bytes);
	assert_in_range(v->rest.len, 1, REV_ATT_CHUNK_BYTES);
	held->bytes += v->rest.len;
}

static void
check_digest(struct check *c, const struct held_att *held)
{
	struct rev_att_reader *reader;
	uint8_t digest[REV_ATT_DIGEST_BYTES];
	struct str piece;
	enum status status;
	MD5_CTX md5;

	MD5_Init(&md5);
	assert_int_equal(rev_att_reader_new(c->f->db, &held->att, false, 0,
					    held->att.encoded_length, &reader),
			 STATUS_OK);
	while ((status = rev_att_reader_next(reader, c->tx, &piece)) == STATUS_OK)
		MD5_Update(&md5, piece.ptr, piece.len);
	assert_int_equal(status, STATUS_NOT_FOUND);
	rev_att_reader_free(reader);
	MD5_Final(digest, &md5);
	assert_memory_equal(digest, held->att.digest, sizeof(digest));
}

static void
check_uploads(struct check *c)
{
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64);
	struct kv_scan scan = { 0 };
	struct kv_pair pair;

	tuple_put_u64(&lo, KV_ROOT);
	tuple_put_u64(&lo, KV_ROOT_UPLOADS);
	tuple_put_u64(&lo, c->f->db->number);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, c->tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		struct tuple_reader k = tuple_reader(str_skip(pair.key, lo.len));
		uint8_t id[REV_ATT_ID_BYTES];

		uuid_next(&k, id);
		att_of(c, id)->staged = true;
	}
	kv_scan_release(&scan);
	buf_release(&lo);
	buf_release(&hi);
}

static void
check_atts(struct check *c)
{
	each(c, REV_SUBSPACE_ATTACHMENTS, check_data);
	check_uploads(c);
	for (size_t i = 0; i < c->count; i++) {
		assert_int_equal(c->leaves[i].has_atts, c->leaves[i].atts_count > 0);
		assert_int_equal(c->leaves[i].has_one_key, !c->leaves[i].has_more);
		assert_int_equal(c->leaves[i].has_text, c->leaves[i].text_seen);
	}
	for (size_t i = 0; i < c->atts_count; i++) {
		const struct held_att *held = &c->atts[i];

		assert_int_equal(held->refs, held->revisions);
		assert_int_equal(held->staged, held->revisions == 0);
		if (held->staged)
			continue;
		assert_int_equal(held->bytes, held->att.encoded_length);
		if (!held->is_text)
			check_digest(c, held);
	}
}

/* (3, id, bytes) names a text in chunks, and so does the branch. */
static void
check_root(struct check *c, struct leaf *leaf, struct tuple_reader *v)
{
	uint8_t id[REV_ATT_ID_BYTES];
	struct held_att *held;

	if (number_next(v) != 3) {
		assert_false(leaf->has_text);
		return;
	}
	uuid_next(v, id);
	assert_true(leaf->has_text);
	assert_memory_equal(id, leaf->text_id, sizeof(id));
	held = att_of(c, id);
	held->att.encoded_length = number_next(v);
	held->is_text = true;
	held->revisions++;
	leaf->text_seen = true;
}

static void
check_body(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct str id = text_next(c, k);
	bool deleted = !bool_next(k);
	struct rev_id rev;

	(void)v;
	rev.pos = number_next(k);
	rev.hash = text_next(c, k);
	for (size_t i = 0; i < c->count; i++) {
		struct leaf *leaf = &c->leaves[i];

		if (leaf->deleted != deleted || !rev_id_eq(leaf->rev, rev) || !str_eq(leaf->id, id))
			continue;
		/* The root comes first. */
		if (k->rest.len)
			assert_true(leaf->has_body);
		leaf->has_body = true;
		leaf->has_more = leaf->has_more || k->rest.len;
		if (k->rest.len == 0)
			check_root(c, leaf, v);
		if (k->rest.len && k->rest.ptr[0] == '\0')
			check_pointer(c, leaf, k->rest, v);
		return;
	}
	fail_msg("%.*s: a body of what is no leaf", STR_ARG(id));
}

/* ---- Counters by range ---- */

static void
read_key(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	(void)v;
	assert_true(c->keys_count < LEAVES_MAX);
	c->keys[c->keys_count++] = arena_dup(c->f->arena, k->rest);
}

static void
read_range(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct counted *range = &c->ranges[c->ranges_count];

	if (number_next(k) != c->list)
		return;
	assert_true(c->ranges_count++ < RANGES_MAX);
	range->lo = text_next(c, k);
	range->hi = text_next(c, k);
	assert_int_equal(k->rest.len, 0);
	assert_int_equal(v->rest.len, sizeof(range->count));
	memcpy(&range->count, v->rest.ptr, sizeof(range->count));
}

/* At the end of a range. */
static void
check_place(struct check *c, struct str at)
{
	int64_t counted = 0, there = 0;

	for (size_t i = 0; i < c->ranges_count; i++) {
		const struct counted *range = &c->ranges[i];

		if (str_cmp(range->lo, at) < 0 && str_cmp(range->hi, at) > 0)
			return;
		if (str_cmp(range->hi, at) <= 0)
			counted += range->count;
	}
	for (size_t i = 0; i < c->keys_count; i++)
		there += str_cmp(c->keys[i], at) < 0;
	assert_int_equal(counted, there);
}

static void
check_ranges(struct check *c, enum rev_subspace list)
{
	c->list = list;
	c->keys_count = c->ranges_count = 0;
	c->keys = arena_alloc(c->f->arena, LEAVES_MAX * sizeof(*c->keys));
	c->ranges = arena_alloc(c->f->arena, RANGES_MAX * sizeof(*c->ranges));
	assert_non_null(c->keys);
	assert_non_null(c->ranges);
	each(c, list, read_key);
	each(c, REV_SUBSPACE_TALLIES, read_range);
	for (size_t i = 0; i < c->ranges_count; i++) {
		check_place(c, c->ranges[i].lo);
		check_place(c, c->ranges[i].hi);
	}
	if (c->ranges_count) /* otherwise nobody has counted yet */
		check_place(c, STR("\xff"));
}

/* ---- Entries of indexes ---- */

static int
compare_pairs(const void *a, const void *b)
{
	const struct kv_pair *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

/* Those of one document. */
static void
expect_entries(struct check *c, const struct index_def *def, const struct leaf *leaf,
	       struct kv_pair *ret, size_t *count)
{
	struct index_work w = { .arena = arena_new(512 << 20) };
	struct index_source source = { .id = leaf->id };
	struct buf rev = BUF_INIT(4096);
	struct index_pairs pairs;
	struct rev_doc doc;

	assert_non_null(w.arena);
	assert_int_equal(
		rev_doc_read_head(c->tx, c->f->db, leaf->id, leaf->rev, false, w.arena, &doc),
		STATUS_OK);
	/* In leaves: what writers took from packed bodies has to be the same. */
	assert_int_equal(rev_body_explode(&doc, w.arena), STATUS_OK);
	source.leaves = doc.leaves;
	source.count = doc.count;
	rev_id_write(leaf->rev, &rev);
	source.rev = buf_str(&rev);
	assert_int_equal(index_entries_make(c->f->db, def, &source, &w, &pairs), STATUS_OK);
	assert_true(*count + pairs.count <= LEAVES_MAX);
	for (size_t i = 0; i < pairs.count; i++) {
		ret[*count].key = arena_dup(c->f->arena, pairs.pairs[i].key);
		ret[*count].value = arena_dup(c->f->arena, pairs.pairs[i].value);
		++*count;
	}
	buf_release(&rev);
	arena_free(w.arena);
}

/* The entries that there have to be in one index, made of the winners' bodies. */
static size_t
expected_entries(struct check *c, const struct index_def *def, struct kv_pair *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct leaf *leaf = &c->leaves[i];

		if (leaf->winner && !leaf->deleted && !str_starts_with(leaf->id, STR("_design/")))
			expect_entries(c, def, leaf, ret, &count);
	}
	qsort(ret, count, sizeof(*ret), compare_pairs);
	return count;
}

static void
check_index(struct check *c, const struct index_def *def, uint64_t *entries_total)
{
	struct kv_pair *want = arena_alloc(c->f->arena, LEAVES_MAX * sizeof(*want));
	struct buf lo = BUF_INIT(64), hi = BUF_INIT(64);
	struct kv_scan scan = { 0 };
	struct kv_pair pair;
	size_t count, at = 0;

	assert_non_null(want);
	count = expected_entries(c, def, want);
	index_key_entries(&lo, c->f->db, def->number);
	buf_append_str(&hi, buf_str(&lo));
	buf_append_byte(&hi, 0xff);
	assert_int_equal(kv_scan_init(&scan, c->tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK) {
		assert_true(at < count);
		assert_true(str_eq(pair.key, want[at].key));
		assert_true(str_eq(pair.value, want[at].value));
		at++;
	}
	assert_int_equal(at, count);
	*entries_total += count;
	kv_scan_release(&scan);
	buf_release(&lo);
	buf_release(&hi);
}

static void
check_indexes(struct check *c)
{
	const struct index_set *set = index_set_of(c->f->db);
	uint64_t entries_total = 0, counted;
	bool all = true;

	for (size_t i = 0; set && i < set->count; i++) {
		if (set->defs[i].state == INDEX_READY)
			check_index(c, &set->defs[i], &entries_total);
		else
			all = false;
	}
	assert_int_equal(index_total_count(c->tx, c->f->db, &counted), STATUS_OK);
	if (all)
		assert_int_equal(counted, entries_total);
	check_ranges(c, REV_SUBSPACE_ENTRIES);
}

/* What the counter of a partition should be: 0 deleted documents, 1 external, 2 active bytes. */
static uint64_t
count_partition(const struct check *c, struct str prefix, uint64_t counter)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct leaf *leaf = &c->leaves[i];

		if (!str_starts_with(leaf->id, prefix))
			continue;
		n += counter == 0 ? leaf->winner && leaf->deleted : leaf->sizes[counter - 1];
	}
	return n;
}

static void
check_partition(struct check *c, struct tuple_reader *k, struct tuple_reader *v)
{
	struct str prefix = text_next(c, k);
	uint64_t counter = number_next(k), value;

	assert_int_equal(prefix.ptr[prefix.len - 1], ':');
	assert_in_range(counter, 0, 2);
	assert_int_equal(v->rest.len, sizeof(value));
	memcpy(&value, v->rest.ptr, sizeof(value));
	assert_int_not_equal(value, 0);
	assert_int_equal(value, count_partition(c, prefix, counter));
	c->counted[counter] += value;
}

/* Every counter is that of some documents. Design documents count for the database alone. */
static void
check_partitions(struct check *c)
{
	struct rev_sizes sizes;

	memset(c->counted, 0, sizeof(c->counted));
	each(c, REV_SUBSPACE_PARTITIONS, check_partition);
	if (!rev_db_is_partitioned(c->f->db))
		return;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(c->counted[i] + count_partition(c, STR("_design/"), i),
				 count_partition(c, STR(""), i));
	assert_int_equal(rev_partitions_sizes(c->tx, c->f->db, &sizes), STATUS_OK);
	assert_int_equal(sizes.external, count_partition(c, STR(""), 1));
	assert_int_equal(sizes.active, count_partition(c, STR(""), 2));
}

static void
fail_found(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	print_error("%s: %s\n", finding->kind, finding->text);
}

/* The product's own check, which has to agree. */
static void
verify(struct check *c)
{
	struct catalog_verify_options options = { .found = fail_found,
						  .still = test_store_is_cluster() };
	struct catalog_verify_sum sum;

	assert_int_equal(catalog_verify_store(c->tx, &options, &sum, NULL), STATUS_OK);
	assert_int_equal(sum.findings, 0);
	read_on(c);
}

void
fixture_check(struct fixture *f)
{
	struct arena_mark mark = arena_mark(f->arena);
	struct check c = { .f = f };
	struct rev_db_info info;
	size_t first = 0;

	c.leaves = arena_alloc(f->arena, LEAVES_MAX * sizeof(*c.leaves));
	assert_non_null(c.leaves);
	c.atts = arena_alloc(f->arena, ATTS_MAX * sizeof(*c.atts));
	assert_non_null(c.atts);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &c.tx), STATUS_OK);

	each(&c, REV_SUBSPACE_REVISIONS, read_leaf);
	for (size_t i = 0; i < c.count; i++) {
		if (i + 1 < c.count && str_eq(c.leaves[i].id, c.leaves[i + 1].id))
			continue;
		if (i % READ_ON_LEAVES == 0)
			read_on(&c);
		check_document(&c, first, i);
		first = i + 1;
	}
	entries = 0;
	each(&c, REV_SUBSPACE_CHANGES, check_change);
	assert_int_equal(entries, c.live_docs + c.deleted_docs);
	entries = 0;
	each(&c, REV_SUBSPACE_ALL_DOCS, check_entry);
	assert_int_equal(entries, c.live_docs);
	each(&c, REV_SUBSPACE_DOCUMENTS, check_body);
	for (size_t i = 0; i < c.count; i++)
		assert_true(c.leaves[i].has_body || c.leaves[i].deleted);
	check_atts(&c);
	check_partitions(&c);
	check_ranges(&c, REV_SUBSPACE_ALL_DOCS);
	check_ranges(&c, REV_SUBSPACE_CHANGES);
	check_indexes(&c);

	assert_int_equal(rev_db_info(c.tx, f->db, &info), STATUS_OK);
	assert_int_equal(info.doc_count, c.live_docs);
	assert_int_equal(info.doc_del_count, c.deleted_docs);
	if (catalog_seq_cmp(&info.purge_seq, &c.newest) > 0)
		c.newest = info.purge_seq;
	assert_int_equal(catalog_seq_cmp(&info.update_seq, &c.newest), 0);
	verify(&c);
	kv_tx_free(c.tx);
	arena_reset(f->arena, mark);
}

/* Checks a database of items: headers, bodies, that their counts are right. */
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "model/timed/check.h"
#include "model/timed/items/blocks_check.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/json_int.h"
#include "model/timed/items/pack.h"

#define FINDING_HEADER "item_header" /* one that cannot be where it is, or whose body lacks */
#define FINDING_BODY   "item_body"   /* something in a body that cannot be there */
#define FINDING_COUNT  "item_count"  /* a count that does not equal what is there */

enum {
	BODY_FOUND_BYTES = 200, /* of what is told of a body */
};

/*
 * What has been seen of one group of consumers. What is pending is found by its id and by its
 * consumer: the sums are of hashes of both.
 */
struct group_seen {
	uint8_t id[TIMED_ID_BYTES];
	bool there;
	bool owned; /* else it was removed, and is to be cleared */
	bool named; /* the same was noted */
	uint64_t consumers, pending;
	uint64_t sum, sum_of;
	uint64_t consumers_counted, pending_counted, counted_of;
};

/* What has been seen of one body. */
struct body_seen {
	struct buf key; /* what its keys begin with; empty: none yet */
	uint64_t members;
	uint64_t ordered;
	uint64_t blocks[TIMED_HEIGHT_MOST + 1];
	unsigned levels;
	bool has_count;
	uint64_t count;
	uint64_t expiring;   /* members that expire by themselves */
	uint64_t due;        /* entries of such */
	uint64_t dues;       /* that are counted */
	uint64_t long_bytes; /* that leaves have in pieces */
	uint64_t pieces_bytes;
	uint64_t groups; /* of consumers of a stream; the sums are of hashes of their ids */
	uint64_t groups_sum;
	uint64_t groups_counted;
	uint64_t owned_sum;
	struct group_seen group; /* the one that is gone through */
	bool has_tree;           /* it has a document in leaves, or a part of one */
	struct json_check *json; /* of all bodies, one after the other */
	struct blocks_check blocks_check;
	bool asked;         /* `gone` is known */
	bool gone;          /* deleted: the sweep clears it, in slices */
	enum status failed; /* of the look at whether it is gone */
};

/*
 * Which bodies there are, and which are named: by a header, or by an entry that says that the body
 * is gone or staged. There may be many, so only their number and the sum of their hashes is kept;
 * they are the same if each body is named once.
 */
struct bodies_sum {
	uint64_t count;
	uint64_t sum;
};

struct bodies {
	struct bodies_sum all;
	struct bodies_sum trees; /* those with a document in leaves */
};

/* `id`: as it is in keys. */
static void
bodies_add(struct bodies_sum *b, struct str id)
{
	static const uint8_t seed[HASH_SEED_BYTES];

	b->count++;
	b->sum += hash_seeded(seed, id);
}

static bool
bodies_are_equal(const struct bodies_sum *a, const struct bodies_sum *b)
{
	return a->count == b->count && a->sum == b->sum;
}

static bool
number_parse(struct str value, uint64_t *ret)
{
	if (value.len != sizeof(*ret))
		return false;
	memcpy(ret, value.ptr, sizeof(*ret));
	*ret = le64toh(*ret);
	return true;
}

/* ---- Bodies ---- */

/* True in `*ret` if an entry of GONE names the body. Goes through all of them. */
static enum status
body_is_gone(struct catalog_verify *v, const struct body_seen *b, bool *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	size_t space = v->db->prefix.len + TIMED_SPACE_BYTES;
	bool more = true;

	*ret = false;
	timed_key_space(&begin, v->db, TIMED_SPACE_GONE);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	while (more && !*ret) {
		struct kv_future *f;
		struct kv_range range;

		TRY(catalog_key_status(&begin));
		TRY(catalog_verify_get_range(v, buf_str(&begin), buf_str(&end), NULL, &f));
		range = kv_future_range(f);
		more = range.more;
		for (size_t i = 0; i < range.count && !*ret; i++) {
			struct tuple_reader r = tuple_reader(str_skip(range.pairs[i].key, space));
			uint64_t bucket;

			*ret = tuple_next_u64(&r, &bucket) == STATUS_OK &&
			       str_eq(r.rest, str_skip(buf_str(&b->key), space));
		}
		if (range.count) {
			buf_clear(&begin);
			buf_append_str(&begin, range.pairs[range.count - 1].key);
			buf_append_byte(&begin, CATALOG_KEY_NEXT);
		}
		kv_future_free(f);
	}
	return STATUS_OK;
}

/*
 * Tells what is wrong with a body, unless it is gone: then what is there may be what the sweep has
 * not cleared yet.
 */
__attribute__((format(printf, 5, 6))) static void
body_found(struct catalog_verify *v, struct body_seen *b, const char *kind, struct str key,
	   const char *fmt, ...)
{
	char text[BODY_FOUND_BYTES];
	va_list ap;

	if (!b->asked)
		b->failed = body_is_gone(v, b, &b->gone);
	b->asked = true;
	if (b->gone)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	catalog_verify_found(v, kind, key, "%s", text);
}

static void
group_finish(struct catalog_verify *v, struct body_seen *b)
{
	const struct group_seen *g = &b->group;

	if (!g->there || !g->owned)
		return;
	if (g->consumers != g->consumers_counted)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "a group has %llu consumers and counts %llu",
			   (unsigned long long)g->consumers,
			   (unsigned long long)g->consumers_counted);
	if (g->pending != g->pending_counted || g->pending != g->counted_of)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "of a group %llu entries are pending; it counts %llu, and its "
			   "consumers %llu",
			   (unsigned long long)g->pending, (unsigned long long)g->pending_counted,
			   (unsigned long long)g->counted_of);
	if (g->sum != g->sum_of)
		body_found(v, b, FINDING_BODY, buf_str(&b->key),
			   "what is pending in a group is not what is pending for its "
			   "consumers");
}

/* A level's blocks were gone through. */
static enum status
body_finish_level(struct catalog_verify *v, struct body_seen *b)
{
	struct blocks_check *c = &b->blocks_check;
	unsigned level = c->level;

	if (!level)
		return STATUS_OK;
	TRY(blocks_check_end(v, c));
	if (c->wrong)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "a block of level %u counts %llu entries and has %llu", level,
			   (unsigned long long)c->wrong_counts, (unsigned long long)c->wrong_has);
	return STATUS_OK;
}

/* The key behind the part; the number was looked at before. */
static enum status
body_take_block(struct catalog_verify *v, struct body_seen *b, struct tuple_reader r,
		struct str value)
{
	uint64_t level, counts;

	if (tuple_next_u64(&r, &level) != STATUS_OK || !number_parse(value, &counts))
		return STATUS_OK;
	if (b->blocks_check.level != level)
		TRY(body_finish_level(v, b));
	b->blocks_check.is_list = !b->members;
	return blocks_check_take(v, &b->blocks_check, buf_str(&b->key), (unsigned)level, r.rest,
				 counts);
}

static enum status
body_finish(struct catalog_verify *v, struct body_seen *b)
{
	uint64_t entries = b->ordered ? b->ordered : b->members;

	if (!b->key.len)
		return STATUS_OK;
	TRY(body_finish_level(v, b));
	group_finish(v, b);
	if (b->groups != b->groups_counted || b->groups_sum != b->owned_sum)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "a stream has %llu groups and counts %llu, or others have "
			   "something",
			   (unsigned long long)b->groups, (unsigned long long)b->groups_counted);
	if (b->has_count && b->count != entries)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "the body counts %llu entries and has %llu",
			   (unsigned long long)b->count, (unsigned long long)entries);
	if (b->ordered && b->members && b->ordered != b->members)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "a sorted set has %llu members and %llu in its order",
			   (unsigned long long)b->members, (unsigned long long)b->ordered);
	if (b->due != b->expiring || b->dues != b->expiring)
		body_found(v, b, FINDING_COUNT, buf_str(&b->key),
			   "of %llu members that expire %llu have entries, and %llu are "
			   "counted",
			   (unsigned long long)b->expiring, (unsigned long long)b->due,
			   (unsigned long long)b->dues);
	/* There may be more: what a leaf of the past has, and what was not cleared yet. */
	if (b->pieces_bytes < b->long_bytes)
		body_found(v, b, FINDING_BODY, buf_str(&b->key),
			   "members say that %llu bytes are in pieces, and %llu are",
			   (unsigned long long)b->long_bytes, (unsigned long long)b->pieces_bytes);
	for (unsigned l = 1; l <= b->levels; l++)
		if (b->blocks[l] != b->ordered)
			body_found(v, b, FINDING_COUNT, buf_str(&b->key),
				   "the blocks of level %u count %llu entries of %llu", l,
				   (unsigned long long)b->blocks[l],
				   (unsigned long long)b->ordered);
	return b->failed;
}

static enum status
body_finish_tree(struct catalog_verify *v, struct body_seen *b)
{
	if (b->key.len && !json_check_end(b->json))
		body_found(v, b, FINDING_BODY, buf_str(&b->key),
			   "the leaves of a document do not fit together");
	return b->failed;
}

static void
body_add_leaf(struct body_seen *b, const struct timed_leaf_record *leaf)
{
	b->expiring += leaf->expires_ms != 0;
	if (leaf->pieces.there)
		b->long_bytes += leaf->whole_len + leaf->value_len;
}

/* An element of a list, or an entry of a stream; false: it is none. */
static bool
body_take_leaf(struct body_seen *b, struct str value)
{
	struct timed_leaf_record leaf;
	struct err ignored = { 0 };

	if (timed_leaf_parse(value, &leaf, &ignored) != STATUS_OK)
		return false;
	body_add_leaf(b, &leaf);
	return true;
}

static bool
body_take_run(struct body_seen *b, struct str value)
{
	struct timed_run run;

	if (timed_run_parse(value, &run) != STATUS_OK)
		return false;
	b->ordered += run.count;
	return true;
}

static uint64_t
hash_twice(struct str a, struct str b)
{
	static const uint8_t seed[HASH_SEED_BYTES];

	return hash_seeded(seed, a) * 31 + hash_seeded(seed, b);
}

/* A group of consumers; false: it is none. */
static bool
body_take_group(struct body_seen *b, struct tuple_reader r, struct str value)
{
	struct timed_group group;
	struct err ignored = { 0 };

	if (tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT) != r.rest.len ||
	    timed_group_record_parse(value, &group, &ignored) != STATUS_OK)
		return false;
	b->groups++;
	b->groups_sum += hash_twice(str_of(group.id, sizeof(group.id)), STR(""));
	return true;
}

/* The part of a group behind its id; false: nothing can be at this place. */
static bool
group_take(struct body_seen *b, struct tuple_reader r, struct str value)
{
	struct group_seen *g = &b->group;
	struct timed_consumer consumer;
	struct timed_pending pending;
	struct err ignored = { 0 };
	uint64_t part, n;
	size_t name;

	if (tuple_next_u64(&r, &part) != STATUS_OK)
		return false;
	switch (part) {
	case TIMED_GROUP_OWNER:
		g->owned = true;
		b->owned_sum += hash_twice(str_of(g->id, sizeof(g->id)), STR(""));
		return !r.rest.len;
	case TIMED_GROUP_PENDINGS:
		return !r.rest.len && number_parse(value, &g->pending_counted);
	case TIMED_GROUP_CONSUMERS:
		return !r.rest.len && number_parse(value, &g->consumers_counted);
	case TIMED_GROUP_CONSUMER:
		g->consumers++;
		return timed_consumer_record_parse(value, &consumer, &ignored) == STATUS_OK;
	case TIMED_GROUP_COUNT:
		if (!number_parse(value, &n))
			return false;
		g->counted_of += n;
		return true;
	case TIMED_GROUP_PENDING:
		if (timed_pending_record_parse(value, &pending, &ignored) != STATUS_OK)
			return false;
		g->pending++;
		g->sum += hash_twice(pending.consumer, r.rest);
		return true;
	case TIMED_GROUP_OF: {
		char bytes[TIMED_CUT_BYTES];
		struct buf cut = { .ptr = bytes, .cap = sizeof(bytes), .max_bytes = sizeof(bytes) };
		struct str whole = { NULL, 0 };

		name = tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT);
		if (!name || tuple_next_bytes(&r, &cut, &whole) != STATUS_OK)
			return false;
		g->sum_of += hash_twice(whole, r.rest);
		return !value.len;
	}
	default:
		return false;
	}
}

/* The same with the id. `tail` is the key from the body's id on, which begins what is cleared. */
static bool
body_take_of_group(struct catalog_verify *v, struct body_seen *b, struct str tail,
		   struct tuple_reader r, struct str value, struct bodies *there)
{
	uint8_t id[TIMED_ID_BYTES];
	struct buf bytes = { .ptr = (char *)id, .cap = sizeof(id), .max_bytes = sizeof(id) };
	struct tuple_elem e;

	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return false;
	tuple_unescape(&e, &bytes);
	if (bytes.failed != STATUS_OK || bytes.len != sizeof(id))
		return false;
	if (!b->group.there || memcmp(b->group.id, id, sizeof(id)) != 0) {
		group_finish(v, b);
		b->group = (struct group_seen){ .there = true };
		memcpy(b->group.id, id, sizeof(id));
	}
	if (!group_take(b, r, value))
		return false;
	/* The owner is the first pair of a group; what has none is cleared by an entry. */
	if (!b->group.owned && !b->group.named) {
		b->group.named = true;
		bodies_add(&there->all, str_of(tail.ptr, tail.len - r.rest.len));
	}
	return true;
}

/* True for a part that is one pair: nothing is behind its number. */
static bool
part_is_single(uint64_t part)
{
	return part == TIMED_PART_COUNT || part == TIMED_PART_STAMP || part == TIMED_PART_OWNER ||
	       part == TIMED_PART_DUES || part == TIMED_PART_SHAPE || part == TIMED_PART_STREAM ||
	       part == TIMED_PART_GROUPS;
}

/* True for the rest of a key of TIMED_PART_PIECES: (id, n). */
static bool
piece_is_placed(struct tuple_reader r)
{
	struct tuple_elem id;
	uint64_t n;

	return tuple_next(&r, &id) == STATUS_OK && id.kind == TUPLE_BYTES &&
	       tuple_next_u64(&r, &n) == STATUS_OK && !r.rest.len;
}

/* A pair of a part with a number; false: nothing can be at this place. */
static bool
body_take_part(struct body_seen *b, struct tuple_reader r, struct str value)
{
	uint64_t part, level, n;

	if (tuple_next_u64(&r, &part) != STATUS_OK || (part_is_single(part) && r.rest.len))
		return false;
	switch (part) {
	case TIMED_PART_ORDER:
		if (!b->members && timed_is_run(value))
			return body_take_run(b, value);
		b->ordered++;
		return b->members ? value.len >= TIMED_SCORE_BYTES : body_take_leaf(b, value);
	case TIMED_PART_BLOCKS:
		if (tuple_next_u64(&r, &level) != STATUS_OK || !level ||
		    level > TIMED_HEIGHT_MOST || !number_parse(value, &n))
			return false;
		b->blocks[level] += n;
		b->levels = level > b->levels ? (unsigned)level : b->levels;
		return true;
	case TIMED_PART_CHUNKS:
		return tuple_next_u64(&r, &n) == STATUS_OK && !r.rest.len &&
		       value.len <= TIMED_CHUNK_BYTES;
	case TIMED_PART_COUNT:
		b->has_count = true;
		return number_parse(value, &b->count);
	case TIMED_PART_STAMP:
		return value.len == KV_VERSIONSTAMP_BYTES;
	case TIMED_PART_OWNER:
		return value.len > 0;
	case TIMED_PART_DUE:
		b->due++;
		return tuple_next_u64(&r, &n) == STATUS_OK && n && !value.len;
	case TIMED_PART_DUES:
		return number_parse(value, &b->dues);
	case TIMED_PART_SHAPE:
		return number_parse(value, &n);
	case TIMED_PART_STREAM:
		return value.len == TIMED_STREAM_BYTES;
	case TIMED_PART_GROUP:
		return body_take_group(b, r, value);
	case TIMED_PART_GROUPS:
		return number_parse(value, &b->groups_counted);
	case TIMED_PART_PIECES:
		b->pieces_bytes += value.len;
		return value.len && value.len <= TIMED_CHUNK_BYTES && piece_is_placed(r);
	default:
		return false;
	}
}

static enum status
body_take(struct catalog_verify *v, struct body_seen *b, const struct kv_pair *pair,
	  struct str tail, struct bodies *there)
{
	size_t id = tuple_skip(tail, 0, TUPLE_SKIP_TEXT);
	struct str rest = str_skip(tail, id);
	struct str prefix = str_of(pair->key.ptr, pair->key.len - rest.len);
	struct timed_leaf_record leaf;
	struct err err = { 0 };
	enum status status;

	if (!id) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "no body can be here");
		return STATUS_OK;
	}
	if (!str_eq(prefix, buf_str(&b->key))) {
		struct buf key = b->key;

		TRY(body_finish_tree(v, b));
		TRY(body_finish(v, b));
		buf_clear(&key);
		buf_append_str(&key, prefix);
		json_check_begin(b->json);
		*b = (struct body_seen){ .key = key, .json = b->json };
		TRY(buf_status(&key));
		bodies_add(&there->all, str_of(tail.ptr, id));
	}
	v->sum.leaves++;
	if (!rest.len || rest.ptr[0] != TUPLE_CODE_BYTES) {
		struct tuple_reader r = tuple_reader(rest);
		uint64_t part;
		bool fine;

		if (tuple_next_u64(&r, &part) != STATUS_OK)
			part = 0;
		if (part == TIMED_PART_OF_GROUP) {
			fine = body_take_of_group(v, b, tail, r, pair->value, there);
		} else if (part == TIMED_PART_TREE) {
			if (!b->has_tree)
				bodies_add(&there->trees, str_of(tail.ptr, id));
			b->has_tree = true;
			TRY(json_check_take(b->json, r.rest, pair->value));
			fine = true;
		} else {
			fine = body_take_part(b, tuple_reader(rest), pair->value);
			if (fine && part == TIMED_PART_BLOCKS)
				TRY(body_take_block(v, b, r, pair->value));
		}
		if (!fine)
			body_found(v, b, FINDING_BODY, pair->key, "this cannot be in a body");
		return STATUS_OK;
	}
	b->members++;
	status = timed_leaf_parse(pair->value, &leaf, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key, "not a member of an item");
	else
		body_add_leaf(b, &leaf);
	return STATUS_OK;
}

/* A body is checked, and there is one of them after the other. */
struct bodies_check {
	struct body_seen seen;
	struct bodies *there;
};

static size_t
body_unit(const struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	(void)v;
	return tuple_skip(c->tail, 0, TUPLE_SKIP_TEXT);
}

static enum status
body_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct bodies_check *check = arg;

	return body_take(v, &check->seen, &c->pair, c->tail, check->there);
}

/* `range`: NULL for all of them. */
static enum status
verify_bodies(struct catalog_verify *v, struct catalog_verify_range *range, struct bodies *there)
{
	struct json_check json = JSON_CHECK_INIT;
	struct bodies_check check = { { .key = CATALOG_KEY_INIT, .json = &json }, there };
	const struct catalog_verify_walk walk = { TIMED_SPACE_BODY, "the body", body_unit,
						  body_pair, &check };
	enum status status = catalog_verify_walk(v, &walk, range);

	if (status == STATUS_OK)
		status = body_finish_tree(v, &check.seen);
	if (status == STATUS_OK)
		status = body_finish(v, &check.seen);
	buf_release(&check.seen.key);
	blocks_check_release(&check.seen.blocks_check);
	json_check_release(&json);
	return status;
}

static enum status
bodies_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct bodies ignored = { 0 };

	return verify_bodies(v, range, &ignored);
}

/* ---- Headers ---- */

/* A document, or members, that are in their header. */
static enum status
verify_packed(struct catalog_verify *v, const struct kv_pair *pair, const struct timed_header *h)
{
	struct timed_pack pack;
	bool fine = true;

	if (h->packed) {
		if (timed_pack_parse(h->type, h->value, &pack) != STATUS_OK ||
		    pack.count != h->length || !timed_pack_is_sound(&pack))
			catalog_verify_found(v, FINDING_HEADER, pair->key,
					     "not the members of an item");
		else
			v->sum.packed++;
		return STATUS_OK;
	}
	if (h->type == TIMED_JSON)
		TRY(json_check_text(h->value, v->scratch, &fine));
	if (!fine)
		catalog_verify_found(v, FINDING_HEADER, pair->key, "not the text of a document");
	return STATUS_OK;
}

/* A document whose text is in chunks has all of it. */
static enum status
verify_last_chunk(struct catalog_verify *v, const struct kv_pair *pair,
		  const struct timed_header *h, struct timed_item *item)
{
	uint64_t last = (h->length - 1) / TIMED_CHUNK_BYTES;
	struct kv_future *f;
	struct str key, chunk;

	TRY(timed_chunk_key(item, last, &key));
	TRY(catalog_verify_get(v, key, &f));
	if (!kv_future_value(f, &chunk) || chunk.len != h->length - last * TIMED_CHUNK_BYTES)
		catalog_verify_found(v, FINDING_HEADER, pair->key,
				     "the text of a document is not as long as it says");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
verify_body_of(struct catalog_verify *v, const struct kv_pair *pair, const struct timed_header *h,
	       struct bodies *named)
{
	struct timed_item item = { .arena = v->scratch };
	bool is_value = timed_has_text(h->type);
	struct kv_future *f;
	struct str key, ignored;

	if (!h->has_body)
		return verify_packed(v, pair, h);
	TRY(timed_body_prefix(v->db, v->scratch, h->id, &item.body));
	timed_key_space(&v->key, v->db, TIMED_SPACE_BODY);
	bodies_add(&named->all, str_skip(item.body, v->key.len));
	if (h->type == TIMED_JSON && !h->length)
		bodies_add(&named->trees, str_skip(item.body, v->key.len));
	else if (h->type == TIMED_JSON)
		TRY(verify_last_chunk(v, pair, h, &item));
	TRY(timed_part_key(&item, is_value ? TIMED_PART_STAMP : TIMED_PART_COUNT, &key));
	TRY(catalog_verify_get(v, key, &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, FINDING_HEADER, pair->key, "its body has no %s",
				     is_value ? "stamp" : "count");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
verify_header(struct catalog_verify *v, const struct kv_pair *pair, struct str tail,
	      struct bodies *named)
{
	struct timed_place place;
	struct timed_header h;
	struct err err = { 0 };
	enum status status;

	arena_clear(v->scratch);
	v->sum.documents++;
	status = timed_place_parse(timed_schema_of(v->db), tail, v->scratch, &place);
	if (!catalog_verify_parsed(v, status) || place.path.count) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not the key of an item");
		return STATUS_OK;
	}
	status = timed_header_parse(pair->value, &h, &err);
	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, pair->key, "not a header of an item");
		return STATUS_OK;
	}
	TRY(verify_body_of(v, pair, &h, named));
	return timed_verify_entry(v, FINDING_HEADER, pair->key, h.expires_ms);
}

struct headers_check {
	uint64_t count;
	struct bodies named;
};

static enum status
header_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct headers_check *check = arg;

	check->count++;
	return verify_header(v, &c->pair, c->tail, &check->named);
}

/* `range`: NULL for all of them. */
static enum status
verify_headers(struct catalog_verify *v, struct catalog_verify_range *range,
	       struct headers_check *check)
{
	const struct catalog_verify_walk walk = { TIMED_SPACE_ROWS, "the item", NULL, header_pair,
						  check };

	return catalog_verify_walk(v, &walk, range);
}

static enum status
headers_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct headers_check ignored = { 0 };

	return verify_headers(v, range, &ignored);
}

/* `headers`: NULL if it is not known how many there are. */
static enum status
verify_count(struct catalog_verify *v, const uint64_t *headers)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	uint64_t sum = 0, n;

	TRY(catalog_verify_cursor_open(v, &c, TIMED_SPACE_COUNT));
	while (!c.done) {
		if (number_parse(c.pair.value, &n))
			sum += n;
		else
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key, "not a count");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	if (!headers || sum == *headers)
		return STATUS_OK;
	timed_key_space(&v->key, v->db, TIMED_SPACE_COUNT);
	TRY(catalog_key_status(&v->key));
	catalog_verify_found(v, FINDING_COUNT, buf_str(&v->key), "%llu items, and %llu are counted",
			     (unsigned long long)*headers, (unsigned long long)sum);
	return STATUS_OK;
}

/* ---- Entries ---- */

/* A body that is gone is cleared in parts, and its entry goes when nothing is found any more. */
static enum status
verify_is_there(struct catalog_verify *v, struct str id, bool *ret)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	timed_key_space(&begin, v->db, TIMED_SPACE_BODY);
	buf_append_str(&begin, id);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(catalog_verify_get_range(v, buf_str(&begin), buf_str(&end), &options, &f));
	*ret = kv_future_range(f).count > 0;
	kv_future_free(f);
	return STATUS_OK;
}

/*
 * True for an entry that names a whole body, or all pairs of a removed group. The other entries
 * name a piece of a body, whose id stands in another entry or in a header.
 */
static bool
verify_is_named(struct str id)
{
	size_t body = tuple_skip(id, 0, TUPLE_SKIP_TEXT);
	struct tuple_reader r = tuple_reader(str_skip(id, body));
	uint64_t part;

	return body == id.len ||
	       (tuple_next_u64(&r, &part) == STATUS_OK && part == TIMED_PART_OF_GROUP);
}

/* A body that is gone may have a document in leaves, of which no header tells. */
static enum status
verify_gone_tree(struct catalog_verify *v, struct str id, struct bodies *named)
{
	AUTO(buf_release) struct buf tree = CATALOG_KEY_INIT;
	bool there;

	buf_append_str(&tree, id);
	tuple_put_u64(&tree, TIMED_PART_TREE);
	TRY(catalog_key_status(&tree));
	TRY(verify_is_there(v, buf_str(&tree), &there));
	if (there)
		bodies_add(&named->trees, id);
	return STATUS_OK;
}

static enum status
gone_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *named)
{
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t bucket;
	bool there = false;

	if (tuple_next_u64(&r, &bucket) == STATUS_OK)
		TRY(verify_is_there(v, r.rest, &there));
	else
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "no body that is gone can be here");
	if (!there || !verify_is_named(r.rest))
		return STATUS_OK;
	bodies_add(&((struct bodies *)named)->all, r.rest);
	return verify_gone_tree(v, r.rest, named);
}

/* Most entries are of what expires, and say only where to look. */
static enum status
expiry_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *named)
{
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t shard, ms;
	struct tuple_elem e;
	size_t id;

	if (tuple_next_u64(&r, &shard) != STATUS_OK || tuple_next_u64(&r, &ms) != STATUS_OK ||
	    tuple_next(&r, &e) != STATUS_OK) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "nothing that expires can be here");
	} else if (e.kind == TUPLE_NULL) {
		id = tuple_skip(r.rest, 0, TUPLE_SKIP_TEXT);
		if (id && id == r.rest.len)
			bodies_add(&((struct bodies *)named)->all, r.rest);
	}
	return STATUS_OK;
}

static struct catalog_verify_walk
gone_walk(struct bodies *named)
{
	return (struct catalog_verify_walk){ TIMED_SPACE_GONE, "the entry", NULL, gone_pair,
					     named };
}

static struct catalog_verify_walk
expiry_walk(struct bodies *named)
{
	return (struct catalog_verify_walk){ TIMED_SPACE_EXPIRY, "the entry", NULL, expiry_pair,
					     named };
}

/* ---- Whole, and in ranges ---- */

static void
compare_bodies(struct catalog_verify *v, const struct bodies *named, const struct bodies *there)
{
	if (!bodies_are_equal(&named->trees, &there->trees))
		catalog_verify_found(v, FINDING_BODY, buf_str(&v->key),
				     "%llu documents lie in leaves; headers and entries name %llu, "
				     "or others",
				     (unsigned long long)there->trees.count,
				     (unsigned long long)named->trees.count);
	if (!bodies_are_equal(&named->all, &there->all))
		catalog_verify_found(v, FINDING_BODY, buf_str(&v->key),
				     "%llu bodies are there; headers and entries name %llu, or "
				     "others",
				     (unsigned long long)there->all.count,
				     (unsigned long long)named->all.count);
}

enum status
timed_items_verify(struct catalog_verify *v)
{
	struct headers_check headers = { 0 };
	struct catalog_verify_walk gone = gone_walk(&headers.named);
	struct catalog_verify_walk expiry = expiry_walk(&headers.named);
	struct bodies there = { 0 };

	TRY(verify_headers(v, NULL, &headers));
	TRY(verify_count(v, &headers.count));
	TRY(verify_bodies(v, NULL, &there));
	TRY(catalog_verify_walk(v, &gone, NULL));
	TRY(catalog_verify_walk(v, &expiry, NULL));
	TRY(timed_verify_single(v, TIMED_SPACE_RETIME, NULL)); /* rows alone have a default */
	timed_key_space(&v->key, v->db, TIMED_SPACE_BODY);
	TRY(catalog_key_status(&v->key));
	compare_bodies(v, &headers.named, &there);
	return STATUS_OK;
}

static enum status
verify_singles(struct catalog_verify *v)
{
	TRY(verify_count(v, NULL));
	return timed_verify_single(v, TIMED_SPACE_RETIME, NULL);
}

/*
 * How many items there are, and that nothing is left of a body which nobody names, takes all of
 * them at one version, and is not told.
 */
enum status
timed_items_verify_in_ranges(struct catalog_verify *v)
{
	struct bodies ignored = { 0 };
	struct catalog_verify_walk gone = gone_walk(&ignored), expiry = expiry_walk(&ignored);

	TRY(timed_verify_ranges(v, headers_range, NULL));
	TRY(timed_verify_ranges(v, bodies_range, NULL));
	TRY(timed_verify_pairs(v, &gone));
	TRY(timed_verify_pairs(v, &expiry));
	return timed_verify_once(v, verify_singles, "the counters of items");
}

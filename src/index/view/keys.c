#include "index/view/keys.h"

#include "base/hash.h"
#include "doc/json.h"
#include "doc/key.h"
#include "index/json/component.h"
#include "index/view/read.h"
#include "kv/tuple.h"

void
view_key_kind(struct buf *key, const struct catalog_db *db, uint64_t kind)
{
	buf_set(key, db->prefix);
	tuple_put_u64(key, VIEW_SPACE);
	tuple_put_u64(key, kind);
}

void
view_key_number(struct buf *key, const struct catalog_db *db)
{
	view_key_kind(key, db, VIEW_KEYS_NUMBER);
}

void
view_key_name(struct buf *key, const struct catalog_db *db,
	      const uint8_t signature[VIEW_SIGNATURE_BYTES], struct str collator)
{
	view_key_kind(key, db, VIEW_KEYS_NAMES);
	tuple_put_bytes(key, str_of((const char *)signature, VIEW_SIGNATURE_BYTES));
	tuple_put_str(key, collator);
}

void
view_key_group(struct buf *key, const struct catalog_db *db, uint64_t kind, uint64_t group)
{
	view_key_kind(key, db, kind);
	tuple_put_u64(key, group);
}

void
view_key_level(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
	       unsigned level)
{
	view_key_group(key, db, VIEW_KEYS_ROWS, group);
	tuple_put_u64(key, map);
	tuple_put_u64(key, level);
}

void
view_key_doc(struct buf *key, const struct catalog_db *db, uint64_t group, struct str id)
{
	view_key_group(key, db, VIEW_KEYS_DOCS, group);
	tuple_put_str(key, id);
}

void
view_key_lack(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
	      struct str id)
{
	view_key_group(key, db, VIEW_KEYS_LACKS, group);
	tuple_put_u64(key, map);
	tuple_put_str(key, id);
}

void
view_key_text(struct buf *key, const struct catalog_db *db, uint64_t group, size_t map,
	      struct str place, uint64_t n)
{
	view_key_group(key, db, VIEW_KEYS_TEXTS, group);
	tuple_put_u64(key, map);
	buf_append_str(key, place);
	tuple_put_u64(key, n);
}

enum status
view_prefix_end(struct str prefix, struct buf *end)
{
	TRY(tuple_prefix_end(prefix, end));
	return catalog_key_status(end);
}

enum status
view_key_places(const struct catalog_db *db, uint64_t group, size_t map, unsigned level,
		struct str begin, struct str end, struct buf *lo, struct buf *hi,
		size_t *ret_prefix_len)
{
	view_key_level(lo, db, group, map, level);
	TRY(catalog_key_status(lo));
	*ret_prefix_len = lo->len;
	if (end.len) {
		buf_append_buf(hi, lo);
		buf_append_str(hi, end);
		TRY(buf_status(hi));
	} else {
		TRY(view_prefix_end(buf_str(lo), hi));
	}
	buf_append_str(lo, begin);
	return buf_status(lo);
}

bool
view_text_is_json(struct str text)
{
	struct json_reader r;
	enum json_token token;
	struct str value;
	bool ok;

	json_reader_init(&r, text, NULL);
	ok = json_next(&r, &token) == STATUS_OK && json_skip(&r, token, &value) == STATUS_OK &&
	     json_next(&r, &token) == STATUS_OK && token == JSON_END;
	json_reader_release(&r);
	return ok;
}

/* ---- Places ---- */

enum status
view_component(struct buf *raw, enum view_collation collation, struct str key_text,
	       struct index_work *w)
{
	return index_json_component_of_text(
		raw, collation == VIEW_COLLATION_RAW ? DOC_KEY_RAW : DOC_KEY_COUCH, key_text,
		VIEW_KEY_BYTES, w);
}

struct str
view_partition_of(struct str id)
{
	const char *colon = memchr(id.ptr, ':', id.len);

	return str_of(id.ptr, colon ? (size_t)(colon - id.ptr) : 0);
}

void
view_place_put(struct buf *place, struct str partition, struct str component, struct str id,
	       uint64_t ordinal)
{
	if (partition.ptr)
		tuple_put_str(place, partition);
	tuple_put_bytes(place, component);
	tuple_put_str(place, id);
	tuple_put_u64(place, ordinal);
}

enum status
view_place_parse(struct str place, bool partitioned, struct arena *arena, struct view_place *ret)
{
	struct tuple_reader r = tuple_reader(place);
	struct tuple_elem e;

	*ret = (struct view_place){ 0 };
	if (partitioned) {
		TRY(tuple_next_elem(&r, &e));
		if (e.kind != TUPLE_STRING)
			return STATUS_CORRUPT;
		ret->component_at = e.encoding.len;
	}
	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return STATUS_CORRUPT;
	ret->component = e.encoding;
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, false, &ret->id));
	TRY(tuple_next_u64(&r, &ret->ordinal));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

unsigned
view_place_level(const uint8_t seed[16], struct str place)
{
	uint64_t hash = hash_seeded(seed, place) | UINT64_C(1) << (VIEW_FANOUT_BITS * VIEW_LEVELS);

	return (unsigned)__builtin_ctzll(hash) / VIEW_FANOUT_BITS;
}

/* The length, in an element of bytes, of `plain` bytes of content: NULs are escaped there. */
static size_t
escaped_len(const char *content, size_t plain)
{
	size_t at = 0;

	while (plain--)
		at += content[at] ? 1 : 2;
	return at;
}

/* The length of the bytes with which an array begins in that order; 0: this is not an array. */
static size_t
array_begin_len(struct str raw, enum doc_key_order order)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(64);

	doc_key_begin(&begin, order, DOC_ARRAY);
	return str_starts_with(raw, buf_str(&begin)) ? begin.len : 0;
}

static enum status
array_group(struct str raw, unsigned level, size_t *ret_plain)
{
	AUTO(buf_release) struct buf empty = BUF_INIT(64);
	size_t len, at = array_begin_len(raw, DOC_KEY_COUCH);

	if (!at)
		at = array_begin_len(raw, DOC_KEY_RAW); /* the two orders share no type bytes */
	*ret_plain = raw.len;
	if (!at)
		return STATUS_OK;
	doc_key_end(&empty);
	TRY(buf_status(&empty));
	for (unsigned i = 0; i < level; i++) {
		if (str_eq(str_skip(raw, at), buf_str(&empty)))
			return STATUS_OK; /* the array has no more elements */
		TRY(doc_key_skip(str_skip(raw, at), false, &len));
		at += len;
	}
	*ret_plain = at;
	return STATUS_OK;
}

enum status
view_place_group(const struct view_place *place, struct str bytes, unsigned level, size_t *ret_len)
{
	AUTO(buf_release) struct buf raw = BUF_INIT(2 * VIEW_KEY_BYTES);
	struct tuple_reader r = tuple_reader(place->component);
	struct tuple_elem e;
	size_t plain;

	*ret_len = 0;
	if (level == VIEW_LEVEL_ALL)
		return STATUS_OK;
	*ret_len = place->component_at + place->component.len;
	if (level >= VIEW_LEVEL_EXACT)
		return *ret_len <= bytes.len ? STATUS_OK : STATUS_CORRUPT;
	TRY(tuple_next_elem(&r, &e));
	tuple_unescape(&e, &raw);
	TRY(buf_status(&raw));
	TRY(array_group(buf_str(&raw), level, &plain));
	if (plain < raw.len)
		*ret_len = place->component_at + 1 + escaped_len(place->component.ptr + 1, plain);
	return STATUS_OK;
}

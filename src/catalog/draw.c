#include "catalog/draw.h"

#include "base/utf8.h"
#include "catalog/catalog.h"
#include "catalog/keys.h"
#include "catalog/tally.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	/* A value as text: no byte takes more than "versionstamp:" does for twelve of them. */
	DRAWN_BYTES = 16 * KV_LIMIT_VALUE_BYTES,
};

static const struct catalog_draw_manner plain;

static const char *
root_name(uint64_t number)
{
	switch (number) {
	case KV_ROOT_FORMAT:
		return "format";
	case KV_ROOT_DATABASES:
		return "databases";
	case KV_ROOT_NEXT_PREFIX:
		return "next_prefix";
	case KV_ROOT_DROPPED:
		return "dropped";
	case KV_ROOT_EVENTS:
		return "events";
	case KV_ROOT_INCARNATION:
		return "incarnation";
	case KV_ROOT_SETTINGS:
		return "settings";
	case KV_ROOT_UPLOADS:
		return "uploads";
	case KV_ROOT_MOVES:
		return "moves";
	case KV_ROOT_REPLICATOR:
		return "replicator";
	case KV_ROOT_INDEX_WORK:
		return "index_work";
	case KV_ROOT_VIEW_WORK:
		return "view_work";
	case KV_ROOT_PEOPLE:
		return "people";
	case KV_ROOT_MESSAGES:
		return "messages";
	case KV_ROOT_SESSIONS:
		return "sessions";
	case KV_ROOT_NOTICES:
		return "notices";
	case KV_ROOT_KEPT:
		return "kept";
	case KV_ROOT_CLOCKS:
		return "clocks";
	case KV_ROOT_DOORS:
		return "doors";
	case KV_ROOT_TRACKERS:
		return "trackers";
	case KV_ROOT_KEYSPACES:
		return "keyspaces";
	case KV_ROOT_TXIDS:
		return "txids";
	default:
		return NULL;
	}
}

static const char *
space_name(const struct catalog_kind *kind, uint64_t number)
{
	return kind && kind->space_name ? kind->space_name(number) : NULL;
}

bool
catalog_place_of(struct str key, struct catalog_place *ret)
{
	struct tuple_reader r = tuple_reader(key);

	return tuple_next_u64(&r, &ret->database) == STATUS_OK &&
	       tuple_next_u64(&r, &ret->subspace) == STATUS_OK;
}

void
catalog_draw_space(const struct catalog_kind *kind, struct catalog_place place, struct buf *ret)
{
	const char *name = place.database ? space_name(kind, place.subspace) : "root";

	if (name)
		buf_append_cstr(ret, name);
	else
		buf_printf(ret, "subspace %llu", (unsigned long long)place.subspace);
}

struct arena *
catalog_draw_arena(size_t limit_bytes, const struct buf *ret)
{
	struct arena *arena = arena_new(limit_bytes);

	if (arena)
		arena_set_part(arena, ret->part);
	return arena;
}

/* ---- Elements ---- */

/* tuple_draw() of one element, without the parentheses. */
static void
draw_single(struct str encoding, struct buf *ret)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT_OF(DRAWN_BYTES, ret->part);

	tuple_draw(encoding, &drawn);
	if (buf_status(&drawn) != STATUS_OK || drawn.len < 2)
		ret->failed = ret->failed == STATUS_OK ? STATUS_NOMEM : ret->failed;
	else
		buf_append(ret, drawn.ptr + 1, drawn.len - 2);
}

void
catalog_draw_string(const struct tuple_elem *e, struct buf *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT_OF(e->raw.len + 1, ret->part);
	AUTO(buf_release) struct buf cut = BUF_SHORT(2 * CATALOG_DRAW_TEXT_BYTES + 2);

	if (e->raw.len <= CATALOG_DRAW_TEXT_BYTES) {
		draw_single(e->encoding, ret);
		return;
	}
	tuple_unescape(e, &text);
	if (buf_status(&text) != STATUS_OK) {
		ret->failed = text.failed;
		return;
	}
	if (text.len <= CATALOG_DRAW_TEXT_BYTES) {
		draw_single(e->encoding, ret);
		return;
	}
	tuple_put_str(&cut, str_of(text.ptr,
				   utf8_valid_prefix(str_of(text.ptr, CATALOG_DRAW_TEXT_BYTES))));
	draw_single(buf_str(&cut), ret);
	buf_printf(ret, "...(%zu bytes)", text.len);
}

/* An Incarnation and the versionstamp behind it: a Sequence. */
static bool
draw_sequence(const struct tuple_elem *e, struct tuple_reader *r, struct buf *ret)
{
	struct tuple_reader ahead = *r;
	struct tuple_elem stamp;
	char incarnation;

	if (e->kind != TUPLE_INT || e->negative || e->magnitude > UINT8_MAX ||
	    tuple_next(&ahead, &stamp) != STATUS_OK || stamp.kind != TUPLE_VERSIONSTAMP)
		return false;
	incarnation = (char)(uint8_t)e->magnitude;
	buf_append_hex(ret, str_of(&incarnation, 1));
	buf_append_hex(ret, stamp.raw);
	*r = ahead;
	return true;
}

static enum status
draw_nested(const struct tuple_elem *e, const struct catalog_draw_manner *manner, struct buf *ret)
{
	struct tuple_reader r = tuple_reader_nested(e);
	struct tuple_elem first;
	size_t at = ret->len;

	if (tuple_next(&r, &first) == STATUS_OK && draw_sequence(&first, &r, ret))
		return STATUS_OK;
	if (manner->nested && manner->nested(e, ret))
		return STATUS_OK;
	TRY(catalog_draw_elements(tuple_reader_nested(e), manner, ret));
	if (manner->brackets && ret->failed == STATUS_OK) {
		ret->ptr[at] = '[';
		ret->ptr[ret->len - 1] = ']';
	}
	return STATUS_OK;
}

static enum status
draw_element(const struct tuple_elem *e, const struct catalog_draw_manner *manner, struct buf *ret)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT_OF(KV_LIMIT_VALUE_BYTES, ret->part);

	if (e->kind == TUPLE_NESTED)
		return draw_nested(e, manner, ret);
	if (e->kind == TUPLE_NULL) {
		buf_append_cstr(ret, "null");
	} else if (e->kind == TUPLE_STRING) {
		catalog_draw_string(e, ret);
	} else if (e->kind == TUPLE_BYTES) {
		tuple_unescape(e, &bytes);
		if (buf_status(&bytes) != STATUS_OK) {
			ret->failed = bytes.failed;
		} else if (bytes.len == CATALOG_DRAW_HASH_BYTES) {
			buf_append_cstr(ret, "\\x");
			buf_append_hex(ret, buf_str(&bytes));
		} else {
			draw_single(e->encoding, ret);
		}
	} else {
		draw_single(e->encoding, ret);
	}
	return STATUS_OK;
}

enum status
catalog_draw_elements(struct tuple_reader r, const struct catalog_draw_manner *manner,
		      struct buf *ret)
{
	struct tuple_elem e;
	enum status status;
	bool first = true;

	buf_append_byte(ret, '(');
	while ((status = tuple_next(&r, &e)) == STATUS_OK) {
		if (!first)
			buf_append_cstr(ret, ", ");
		first = false;
		if (!draw_sequence(&e, &r, ret))
			TRY(draw_element(&e, manner, ret));
	}
	buf_append_byte(ret, ')');
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Pairs ---- */

static void
draw_bytes(struct str s, struct buf *ret)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '\\')
			buf_append_cstr(ret, "\\\\");
		else if (c >= ' ' && c <= '~')
			buf_append_byte(ret, (uint8_t)c);
		else
			buf_printf(ret, "\\x%02x", (unsigned)(uint8_t)c);
	}
}

/* Whether a subspace has the counters of ranges of some list. */
static bool
is_counters(const struct catalog_kind *kind, uint64_t space)
{
	for (size_t i = 0; kind && i < kind->lists_count; i++)
		if (kind->lists[i].counters == space)
			return true;
	return false;
}

/* The list that a counter of a range is about: a subspace. NULL, and nothing taken, for others. */
static const char *
take_list(const struct catalog_kind *kind, struct tuple_reader *r)
{
	struct tuple_reader at = *r;
	const char *name;
	uint64_t number;

	if (tuple_next_u64(&at, &number) != STATUS_OK)
		return NULL;
	name = space_name(kind, number);
	if (name)
		*r = at;
	return name;
}

static enum status
draw_key(const struct catalog_kind *kind, struct str key, struct str value,
	 struct catalog_place place, struct buf *ret)
{
	AUTO(buf_release) struct buf rest = BUF_INIT_OF(DRAWN_BYTES, ret->part);
	const char *name = place.database ? NULL : root_name(place.subspace);
	const char *list = NULL;
	struct tuple_reader r = tuple_reader(key);
	uint64_t skipped;

	TRY(tuple_next_u64(&r, &skipped));
	TRY(tuple_next_u64(&r, &skipped));
	if (place.database && is_counters(kind, place.subspace))
		list = take_list(kind, &r);
	if (!place.database || !kind || !kind->draw_key ||
	    !kind->draw_key(place.subspace, r.rest, value, &rest))
		TRY(catalog_draw_elements(r, &plain, &rest));
	if (buf_status(&rest) != STATUS_OK) {
		/* A failure only of the drawing: the key may be well-formed. */
		ret->failed = rest.failed;
		return STATUS_OK;
	}
	buf_append_cstr(ret, "(\"");
	catalog_draw_space(kind, place, ret);
	buf_append_byte(ret, '"');
	if (name || list)
		buf_printf(ret, ", \"%s\"", name ? name : list);
	else if (!place.database)
		buf_printf(ret, ", %llu", (unsigned long long)place.subspace);
	if (rest.len > 2)
		buf_append_cstr(ret, ", ");
	buf_append(ret, rest.ptr + 1, rest.len - 1);
	return STATUS_OK;
}

bool
catalog_draw_counter(struct str value, struct buf *ret)
{
	uint64_t n = 0;

	if (value.len != CATALOG_COUNTER_BYTES)
		return false;
	for (size_t i = 0; i < CATALOG_COUNTER_BYTES; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	/* One of several counters of a range may be below zero. */
	buf_printf(ret, "%lld", (long long)n);
	return true;
}

bool
catalog_draw_stamp(struct str value, struct buf *ret)
{
	if (value.len != KV_VERSIONSTAMP_BYTES)
		return false;
	buf_append_cstr(ret, "versionstamp:");
	buf_append_hex(ret, value);
	return true;
}

void
catalog_draw_tuple(struct str value, const struct catalog_draw_manner *manner, struct buf *ret)
{
	size_t at = ret->len;

	if (catalog_draw_elements(tuple_reader(value), manner, ret) == STATUS_OK ||
	    ret->failed != STATUS_OK)
		return;
	ret->len = at;
	buf_append_byte(ret, '\'');
	draw_bytes(value, ret);
	buf_append_byte(ret, '\'');
}

static void
draw_value(const struct catalog_kind *kind, struct str key, struct str value,
	   struct catalog_place place, struct buf *ret)
{
	/*
	 * The keys (ROOT, EVENTS) and (ROOT, PEOPLE) themselves hold the versionstamps that are
	 * watched.
	 */
	if (!place.database &&
	    (place.subspace == KV_ROOT_EVENTS || place.subspace == KV_ROOT_PEOPLE) &&
	    catalog_draw_stamp(value, ret))
		return;
	if (place.database && is_counters(kind, place.subspace) && catalog_draw_counter(value, ret))
		return;
	if (place.database && kind && kind->draw_value &&
	    kind->draw_value(place.subspace, key, value, ret))
		return;
	catalog_draw_tuple(value, &plain, ret);
}

void
catalog_draw_raw(struct str key, struct str value, struct buf *ret)
{
	draw_bytes(key, ret);
	buf_append_cstr(ret, " = ");
	draw_bytes(value, ret);
}

void
catalog_draw_pair(const struct catalog_kind *kind, struct str key, struct str value,
		  struct buf *ret)
{
	struct catalog_place place;
	size_t at = ret->len;

	if (!catalog_place_of(key, &place)) {
		catalog_draw_raw(key, value, ret);
		return;
	}
	if (draw_key(kind, key, value, place, ret) != STATUS_OK) {
		if (ret->failed == STATUS_OK)
			ret->len = at;
		catalog_draw_raw(key, value, ret);
		return;
	}
	buf_append_cstr(ret, " = ");
	draw_value(kind, key, value, place, ret);
}

const struct catalog_kind *
catalog_draw_kind(const struct catalog_db *db)
{
	return db ? db->kind : catalog_kind_find(CATALOG_KIND_REVISIONED);
}

/* False if its kind has no notation for it. */
static bool
draw_own(const struct catalog_db *db, const struct kv_pair *pair, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(pair->key);
	uint64_t number, space;

	return db && db->kind->draw_pair && tuple_next_u64(&r, &number) == STATUS_OK &&
	       tuple_next_u64(&r, &space) == STATUS_OK &&
	       db->kind->draw_pair(db, space, r.rest, pair->value, ret);
}

void
catalog_draw_pair_of(const struct catalog_db *db, const struct kv_pair *pair, struct buf *ret)
{
	if (!draw_own(db, pair, ret))
		catalog_draw_pair(catalog_draw_kind(db), pair->key, pair->value, ret);
}

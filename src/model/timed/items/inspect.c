/* Items as `frond inspect` shows them. */
#include "catalog/draw.h"
#include "doc/json.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/json_int.h"
#include "model/timed/items/pack.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024,
};

static void
draw_type(enum timed_type type, struct buf *ret)
{
	static const char *const names[TIMED_TYPES] = {
		[TIMED_HASH] = "[Redis-Hash-Type]",      [TIMED_SET] = "[Redis-Set-Type]",
		[TIMED_ZSET] = "[Redis-SortedSet-Type]", [TIMED_LIST] = "[Redis-List-Type]",
		[TIMED_VALUE] = "[Redis-String-Type]",   [TIMED_STREAM] = "[Redis-Stream-Type]",
		[TIMED_JSON] = "[Redis-JSON-Type]",
	};

	buf_append_cstr(ret, names[type] ? names[type] : "[?]");
}

static void
draw_id(struct str id, struct buf *ret)
{
	buf_append_cstr(ret, "body ");
	buf_append_hex(ret, id);
}

static void
draw_expiry(uint64_t ms, struct buf *ret)
{
	if (!ms)
		return;
	buf_append_cstr(ret, "(expires ");
	timed_draw_time(ms * TIMED_US_PER_MS, ret);
	buf_append_cstr(ret, ") ");
}

/* Members that are in the header. */
static enum status
draw_packed(const struct timed_header *h, struct buf *ret)
{
	struct timed_pack pack;

	TRY(timed_pack_parse(h->type, h->value, &pack));
	draw_type(h->type, ret);
	buf_append_cstr(ret, " {");
	for (size_t i = 0; i < pack.count; i++) {
		const struct timed_pack_member *m = &pack.members[i];

		buf_append_cstr(ret, i ? ", " : "");
		timed_draw_text(m->name, ret);
		if (h->type == TIMED_SET)
			continue;
		buf_append_cstr(ret, ": ");
		if (h->type == TIMED_HASH)
			timed_draw_text(m->value, ret);
		else
			buf_printf(ret, "%.17g", m->score);
	}
	buf_append_byte(ret, '}');
	return STATUS_OK;
}

static enum status
draw_header(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	    struct buf *ret)
{
	struct timed_place place;
	struct timed_header h;

	TRY(timed_place_parse(timed_schema_of(db), tail, arena, &place));
	TRY(timed_header_parse(value, &h, NULL));
	buf_printf(ret, "(0x%04x, ", place.hash);
	timed_draw_text(h.whole.len ? h.whole : place.key[0].text, ret);
	buf_append_cstr(ret, "), ");
	timed_draw_time(h.write_us, ret);
	buf_append_cstr(ret, " -> ");
	draw_expiry(h.expires_ms, ret);
	if (h.packed)
		return draw_packed(&h, ret);
	if (!h.has_body) {
		timed_draw_text(h.value, ret);
		return STATUS_OK;
	}
	draw_type(h.type, ret);
	buf_append_byte(ret, ' ');
	draw_id(str_of(h.id, sizeof(h.id)), ret);
	return STATUS_OK;
}

/* A member, or an element of a list. */
static enum status
draw_leaf(struct str name, bool element, struct str value, struct buf *ret)
{
	struct timed_leaf_record leaf;

	TRY(timed_leaf_parse(value, &leaf, NULL));
	buf_append_cstr(ret, ", ");
	if (element)
		buf_append_hex(ret, name);
	else
		timed_draw_text(leaf.whole.len ? leaf.whole : name, ret);
	buf_append_cstr(ret, ", ");
	timed_draw_time(leaf.write_us, ret);
	buf_append_cstr(ret, " -> ");
	draw_expiry(leaf.expires_ms, ret);
	if (leaf.pieces.there) {
		buf_printf(ret, "%llu bytes in pieces ",
			   (unsigned long long)(leaf.whole_len + leaf.value_len));
		buf_append_hex(ret, str_of(leaf.pieces.id, TIMED_ID_BYTES));
		if (leaf.value_len)
			return STATUS_OK;
		buf_append_byte(ret, ' ');
	}
	timed_draw_text(leaf.value, ret);
	return STATUS_OK;
}

/* Elements of a list that are in one pair, from left to right. */
static enum status
draw_run(struct str place, struct str value, struct buf *ret)
{
	struct timed_run run;

	TRY(timed_run_parse(value, &run));
	buf_append_cstr(ret, ", ");
	buf_append_hex(ret, place);
	buf_append_cstr(ret, ", ");
	timed_draw_time(run.write_us, ret);
	buf_append_cstr(ret, " -> [");
	for (unsigned i = 0; i < run.count; i++) {
		buf_append_cstr(ret, i ? ", " : "");
		timed_draw_text(run.values[run.leftwards ? run.count - 1 - i : i], ret);
	}
	buf_append_byte(ret, ']');
	return STATUS_OK;
}

/* A group of consumers. */
static enum status
draw_group(struct str name, struct str value, struct buf *ret)
{
	struct timed_group group = { .name = name };

	TRY(timed_group_record_parse(value, &group, NULL));
	buf_append_cstr(ret, ", group ");
	timed_draw_text(group.name, ret);
	buf_printf(ret, " -> %llu-%llu, ", (unsigned long long)group.last.ms,
		   (unsigned long long)group.last.seq);
	if (group.read != TIMED_GROUP_UNREAD)
		buf_printf(ret, "%lld entries read, ", (long long)group.read);
	buf_append_hex(ret, str_of(group.id, sizeof(group.id)));
	return STATUS_OK;
}

/* A consumer of a group, or an entry that is pending in it. */
static enum status
draw_of_group(struct tuple_reader *r, struct buf *scratch, struct str value, struct buf *ret)
{
	struct timed_consumer consumer;
	struct timed_pending pending;
	struct str id, name;
	uint64_t part;

	TRY(tuple_next_bytes(r, scratch, &id));
	TRY(tuple_next_u64(r, &part));
	if (part != TIMED_GROUP_CONSUMER && part != TIMED_GROUP_PENDING)
		return STATUS_NOT_FOUND;
	buf_append_cstr(ret, ", group ");
	buf_append_hex(ret, id);
	TRY(tuple_next_bytes(r, scratch, &name));
	if (part == TIMED_GROUP_CONSUMER) {
		consumer.name = name;
		TRY(timed_consumer_record_parse(value, &consumer, NULL));
		buf_append_cstr(ret, ", consumer ");
		timed_draw_text(consumer.name, ret);
		buf_append_cstr(ret, " -> seen ");
		timed_draw_time(consumer.seen_ms * TIMED_US_PER_MS, ret);
		return STATUS_OK;
	}
	if (name.len != TIMED_ENTRY_BYTES)
		return STATUS_CORRUPT;
	TRY(timed_pending_record_parse(value, &pending, NULL));
	pending.id = timed_entry_get((const uint8_t *)name.ptr);
	buf_printf(ret, ", pending %llu-%llu -> ", (unsigned long long)pending.id.ms,
		   (unsigned long long)pending.id.seq);
	timed_draw_text(pending.consumer, ret);
	buf_printf(ret, ", %llu times, last ", (unsigned long long)pending.times);
	timed_draw_time(pending.delivered_ms * TIMED_US_PER_MS, ret);
	return STATUS_OK;
}

/* A name in a path: as it is, or in brackets and quotes. */
static void
draw_name(struct str name, struct buf *ret)
{
	bool plain = name.len > 0;

	for (size_t i = 0; i < name.len && plain; i++)
		plain = (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') ||
			(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') ||
			(name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '_';
	buf_append_cstr(ret, plain ? "." : "[");
	if (plain)
		buf_append_str(ret, name);
	else
		json_write_str(ret, name);
	buf_append_cstr(ret, plain ? "" : "]");
}

/* The way to a leaf of a document. An element has its place, which need not begin at 0. */
static enum status
draw_steps(struct tuple_reader *r, struct buf *scratch, bool *ret_piece, struct buf *ret)
{
	struct tuple_elem step;

	*ret_piece = false;
	buf_append_cstr(ret, ", $");
	while (r->rest.len) {
		TRY(tuple_next_elem(r, &step));
		if (json_is_pieces(&step)) {
			*ret_piece = true;
			return STATUS_OK;
		}
		if (step.kind == TUPLE_INT) {
			buf_printf(ret, "[%s%llu]", step.negative ? "-" : "",
				   (unsigned long long)step.magnitude);
			continue;
		}
		if (step.kind != TUPLE_STRING)
			return STATUS_CORRUPT;
		buf_clear(scratch);
		tuple_unescape(&step, scratch);
		TRY(buf_status(scratch));
		draw_name(buf_str(scratch), ret);
	}
	return STATUS_OK;
}

static enum status
draw_json(struct tuple_reader *r, struct str value, struct arena *arena, struct buf *ret)
{
	struct buf scratch = timed_arena_buf(arena, r->rest.len + value.len + 1);
	struct timed_json_leaf leaf;
	bool piece;

	TRY(buf_status(&scratch));
	TRY(draw_steps(r, &scratch, &piece, ret));
	buf_append_cstr(ret, " -> ");
	if (piece) {
		timed_draw_text(value, ret);
		return STATUS_OK;
	}
	buf_clear(&scratch);
	TRY(timed_json_leaf_parse(value, &scratch, &leaf, NULL));
	switch (leaf.form) {
	case TIMED_JSON_SCALAR:
		return jtree_write(&leaf.scalar, &jtree_dense, 0, ret);
	case TIMED_JSON_LONG:
		buf_printf(ret, "a text of %llu bytes", (unsigned long long)leaf.count);
		break;
	case TIMED_JSON_OBJECT:
		buf_printf(ret, "{} of %llu members", (unsigned long long)leaf.count);
		break;
	case TIMED_JSON_ARRAY:
		buf_printf(ret, "[] of %llu elements from [%lld] on",
			   (unsigned long long)leaf.count, (long long)leaf.next);
		break;
	}
	return STATUS_OK;
}

/* Only these, members and elements are drawn; other parts are tuples and numbers as they are. */
static enum status
draw_body(struct str tail, struct str value, struct arena *arena, struct buf *ret)
{
	struct buf scratch = timed_arena_buf(arena, tail.len + 1);
	struct tuple_reader r = tuple_reader(tail);
	struct str id, name;
	uint64_t part;

	TRY(buf_status(&scratch));
	TRY(tuple_next_bytes(&r, &scratch, &id));
	draw_id(id, ret);
	if (r.rest.len && r.rest.ptr[0] == TUPLE_CODE_BYTES) {
		TRY(tuple_next_bytes(&r, &scratch, &name));
		if (name.len < TIMED_HASH_BYTES)
			return STATUS_CORRUPT;
		return draw_leaf(str_skip(name, TIMED_HASH_BYTES), false, value, ret);
	}
	TRY(tuple_next_u64(&r, &part));
	if (part == TIMED_PART_OF_GROUP)
		return draw_of_group(&r, &scratch, value, ret);
	if (part == TIMED_PART_TREE)
		return draw_json(&r, value, arena, ret);
	if (part != TIMED_PART_GROUP &&
	    (part != TIMED_PART_ORDER || value.len == TIMED_SCORE_BYTES))
		return STATUS_NOT_FOUND;
	TRY(tuple_next_bytes(&r, &scratch, &name));
	if (part == TIMED_PART_GROUP)
		return draw_group(name, value, ret);
	if (timed_is_run(value))
		return draw_run(name, value, ret);
	return draw_leaf(name, true, value, ret);
}

enum status
timed_items_draw_key(const struct catalog_db *db, uint64_t space, struct str tail,
		     struct arena *arena, struct buf *ret)
{
	struct buf scratch = timed_arena_buf(arena, tail.len + 1);
	struct tuple_reader r = tuple_reader(tail);
	struct timed_place place;
	struct str id, name;

	TRY(buf_status(&scratch));
	if (space == TIMED_SPACE_ROWS) {
		TRY(timed_place_parse(timed_schema_of(db), tail, arena, &place));
		buf_printf(ret, "(0x%04x, ", place.hash);
		timed_draw_text(place.key[0].text, ret);
		buf_append_byte(ret, ')');
		return STATUS_OK;
	}
	if (space != TIMED_SPACE_BODY)
		return STATUS_NOT_FOUND;
	TRY(tuple_next_bytes(&r, &scratch, &id));
	if (!r.rest.len || r.rest.ptr[0] != TUPLE_CODE_BYTES)
		return STATUS_NOT_FOUND;
	draw_id(id, ret);
	TRY(tuple_next_bytes(&r, &scratch, &name));
	buf_append_cstr(ret, ", ");
	timed_draw_text(str_skip(name, TIMED_HASH_BYTES), ret);
	return STATUS_OK;
}

bool
timed_items_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail,
		      struct str value, struct buf *ret)
{
	struct arena *arena;
	enum status status = STATUS_NOT_FOUND;
	size_t len = ret->len;

	if (space != TIMED_SPACE_ROWS && space != TIMED_SPACE_BODY)
		return timed_draw_pair(db, space, tail, value, ret);
	arena = db->extension ? catalog_draw_arena(DRAW_ARENA_BYTES, ret) : NULL;
	if (arena && space == TIMED_SPACE_ROWS)
		status = draw_header(db, tail, value, arena, ret);
	else if (arena)
		status = draw_body(tail, value, arena, ret);
	arena_free(arena);
	if (status != STATUS_OK)
		ret->len = len;
	return status == STATUS_OK;
}

enum status
timed_items_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str key,
		    struct arena *arena, catalog_draw_prefix *draw, void *arg)
{
	struct timed_header header;
	struct kv_future *asked;
	struct str row, value, body;
	enum status status;
	bool there;

	TRY(timed_item_row(db, arena, key, &row));
	asked = kv_get(tx, row, KV_READ);
	status = kv_future_wait(asked);
	there = status == STATUS_OK && kv_future_value(asked, &value);
	if (there)
		status = timed_header_parse(value, &header, NULL);
	kv_future_free(asked);
	if (!there)
		return status;
	TRY(draw(arg, row));
	/* The key of a damaged header still leads to it, and to nothing below. */
	if (status != STATUS_OK || !header.has_body)
		return STATUS_OK;
	TRY(timed_body_prefix(db, arena, header.id, &body));
	return draw(arg, body);
}

/*
 * Small hashes, sets and sorted sets whose members lie in the header (pack.h). A change writes the
 * header, and nothing else; so two transactions that change one such collection conflict.
 *
 * A collection is packed when it is made, if its members fit, and moves into a body with the change
 * by which they do not fit any more. It stays there, however few are left, until it is made anew. A
 * body is what it needs, too, when a member shall expire by itself; and with history, where each
 * change would leave all members in the past.
 */
#include "model/timed/items/item_int.h"
#include "model/timed/items/pack.h"

/* What a put has found of a member, which is told once all of them fit. */
struct packed_was {
	bool found;
	double score;
};

/* ---- The pack ---- */

static enum status
packed_parse(struct timed_item *item, struct str bytes, struct timed_pack *ret)
{
	if (timed_pack_parse(item->type, bytes, ret) == STATUS_OK && ret->count == item->count)
		return STATUS_OK;
	return timed_item_corrupt(item);
}

enum status
timed_packed_read(struct timed_item *item, struct timed_pack *ret)
{
	return packed_parse(item, item->value, ret);
}

enum status
timed_packed_keep(struct timed_item *item, struct timed_pack *ret)
{
	struct str bytes = arena_dup(item->arena, item->value);

	return bytes.ptr ? packed_parse(item, bytes, ret) : STATUS_LIMIT;
}

/*
 * Writes the header with these bytes of the pack. One transaction may change a collection many
 * times, so the arena's bytes that the last ones were in are used again: nothing else refers to
 * them.
 */
static enum status
packed_write(struct timed_item *item, const struct timed_pack *pack, struct str bytes)
{
	if (bytes.len > item->pack_cap) {
		item->pack_cap = 0;
		item->pack = arena_bytes(item->arena, 2 * bytes.len);
		if (!item->pack)
			return STATUS_LIMIT;
		item->pack_cap = 2 * bytes.len;
	}
	memcpy(item->pack, bytes.ptr, bytes.len);
	item->value = str_of(item->pack, bytes.len);
	item->count = pack->count;
	return timed_item_store(item);
}

/* Writes what is left after a change that takes members out, or removes the item. */
static enum status
packed_write_less(struct timed_item *item, const struct timed_pack *pack)
{
	char room[TIMED_PACK_BYTES];
	struct buf out = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (!pack->count)
		return timed_item_remove(item);
	TRY(timed_item_write_begin(item));
	timed_pack_put(pack, &out);
	TRY(buf_status(&out)); /* without some members it is shorter: no age is greater */
	return packed_write(item, pack, buf_str(&out));
}

enum status
timed_packed_unfold(struct timed_item *item)
{
	struct timed_pack pack;

	TRY(timed_packed_read(item, &pack));
	TRY(timed_item_write_begin(item));
	item->packed = false;
	item->value = STR("");
	item->height = 0;
	TRY(timed_body_make(item));
	TRY(timed_item_store(item));
	TRY(timed_item_touch(item));
	for (size_t i = 0; i < pack.count; i++) {
		const struct timed_pack_member *m = &pack.members[i];
		struct timed_leaf_record leaf = { .write_us = m->write_us, .value = m->value };
		uint8_t score[TIMED_SCORE_BYTES];
		struct str key;

		if (item->type == TIMED_ZSET) {
			timed_score_put(m->score, score);
			leaf.value = str_of(score, sizeof(score));
			TRY(timed_zset_insert(item, m->name, m->score));
		}
		TRY(timed_member_key(item, m->name, &key));
		TRY(timed_leaf_write(item, key, &leaf));
	}
	return timed_item_add(item, (int64_t)pack.count);
}

/* ---- Putting ---- */

static bool
scores_are_same(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* Puts a member into the pack. False: a pack cannot have it. */
static bool
pack_put_member(struct timed_pack *pack, const struct timed_member *member, uint64_t write_us,
		struct packed_was *was, bool *changed)
{
	struct timed_pack_member *old = timed_pack_find(pack, member->name);
	struct timed_pack_member new = { .name = member->name,
					 .value = STR(""),
					 .write_us = write_us };

	*was = (struct packed_was){ .found = old != NULL, .score = old ? old->score : 0 };
	if (member->expires_ms)
		return false;
	if (old && (pack->type == TIMED_SET ||
		    (pack->type == TIMED_ZSET && scores_are_same(old->score, member->score))))
		return true;
	*changed = true;
	if (pack->type == TIMED_HASH)
		new.value = member->value.len ? member->value : STR("");
	if (pack->type == TIMED_ZSET)
		new.score = member->score;
	if (old)
		timed_pack_remove(pack, old);
	return timed_pack_add(pack, &new);
}

/* Puts members into the pack and writes it. False: they do not fit. */
static bool
pack_put_all(struct timed_pack *pack, const struct timed_member *members, size_t count,
	     uint64_t write_us, struct packed_was *was, struct buf *out, bool *changed)
{
	if (count > TIMED_PACK_MEMBERS)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!pack_put_member(pack, &members[i], write_us, &was[i], changed))
			return false;
	timed_pack_put(pack, out);
	return buf_status(out) == STATUS_OK;
}

/* Makes an item that has no members yet. */
static enum status
packed_begin(struct timed_item *item, enum timed_type type)
{
	TRY(timed_item_renew(item, TIMED_VALUE));
	item->type = type;
	item->packed = true;
	return STATUS_OK;
}

enum status
timed_packed_put(struct timed_item *item, enum timed_type type, struct timed_member *members,
		 size_t count, bool *ret_done)
{
	char room[TIMED_PACK_BYTES];
	struct buf out = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	struct packed_was was[TIMED_PACK_MEMBERS];
	struct timed_pack pack = { .type = type, .count = 0 };
	bool changed = false, fits;

	*ret_done = false;
	if (item->type == TIMED_LEAF && item->t->has_history)
		return STATUS_OK;
	if (item->packed)
		TRY(timed_packed_read(item, &pack));
	fits = pack_put_all(&pack, members, count, timed_write_us(item->t), was, &out, &changed);
	if (!fits || (changed && item->t->has_history))
		return item->packed ? timed_packed_unfold(item) : STATUS_OK;
	*ret_done = true;
	for (size_t i = 0; i < count; i++) {
		members[i].found = was[i].found;
		members[i].old_score = was[i].score;
		members[i].pieces.there = false;
	}
	if (!changed)
		return STATUS_OK;
	if (!item->packed)
		TRY(packed_begin(item, type));
	TRY(timed_item_write_begin(item));
	return packed_write(item, &pack, buf_str(&out));
}

/* ---- By name ---- */

/* What is told of a member that was found. */
static void
packed_tell(const struct timed_item *item, const struct timed_pack_member *m,
	    struct timed_member *ret)
{
	ret->found = true;
	ret->expires_ms = 0;
	ret->write_us = m->write_us;
	ret->value_len = m->value.len;
	ret->pieces.there = false;
	if (item->type == TIMED_ZSET)
		ret->score = m->score;
}

enum status
timed_packed_get(struct timed_item *item, struct timed_member *members, size_t count)
{
	struct timed_pack pack;

	TRY(timed_packed_read(item, &pack));
	for (size_t i = 0; i < count; i++) {
		const struct timed_pack_member *m = timed_pack_find(&pack, members[i].name);

		members[i].expires_ms = 0;
		if (!m)
			continue;
		packed_tell(item, m, &members[i]);
		if (item->type == TIMED_HASH)
			TRY(arena_copy(item->arena, m->value, &members[i].value));
	}
	return STATUS_OK;
}

enum status
timed_packed_delete(struct timed_item *item, struct timed_member *members, size_t count,
		    bool *ret_done)
{
	struct timed_pack pack;
	size_t before;

	*ret_done = false;
	TRY(timed_packed_read(item, &pack));
	before = pack.count;
	for (size_t i = 0; i < count; i++) {
		struct timed_pack_member *m = timed_pack_find(&pack, members[i].name);

		if (!m)
			continue;
		if (item->t->has_history)
			return timed_packed_unfold(item);
		packed_tell(item, m, &members[i]);
		members[i].old_score = m->score;
		timed_pack_remove(&pack, m);
	}
	*ret_done = true;
	return pack.count < before ? packed_write_less(item, &pack) : STATUS_OK;
}

/* ---- In their order ---- */

static struct timed_member
member_of(const struct timed_item *item, const struct timed_pack_member *m)
{
	struct timed_member member = { .name = m->name, .value = m->value };

	packed_tell(item, m, &member);
	return member;
}

/* Sorted by the hash of names, as pairs of a body are. */
static void
pack_sort_by_hash(struct timed_pack *pack)
{
	for (size_t i = 0; i < pack->count; i++) {
		struct timed_pack_member m = pack->members[i];
		size_t at = i;

		m.hash = timed_hash16(m.name);
		for (; at; at--) {
			const struct timed_pack_member *before = &pack->members[at - 1];

			if (before->hash < m.hash ||
			    (before->hash == m.hash && str_cmp(before->name, m.name) < 0))
				break;
			pack->members[at] = *before;
		}
		pack->members[at] = m;
	}
}

enum status
timed_packed_between(struct timed_item *item, uint64_t from, uint64_t to, struct timed_members *ret)
{
	struct timed_pack pack;

	TRY(timed_packed_keep(item, &pack));
	if (item->type == TIMED_ZSET)
		pack_sort_by_hash(&pack);
	ret->members = arena_alloc(item->arena, (pack.count + 1) * sizeof(*ret->members));
	if (!ret->members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < pack.count; i++)
		if (pack.members[i].hash >= from && pack.members[i].hash < to)
			ret->members[ret->count++] = member_of(item, &pack.members[i]);
	return STATUS_OK;
}

enum status
timed_packed_ranks(struct timed_item *item, const struct timed_pack *pack, uint64_t from,
		   uint64_t to, bool reverse, struct timed_members *ret)
{
	size_t count;

	to = to < pack->count ? to : pack->count;
	from = from < to ? from : to;
	count = (size_t)(to - from);
	ret->members = arena_alloc(item->arena, (count + 1) * sizeof(*ret->members));
	if (!ret->members)
		return STATUS_LIMIT;
	for (ret->count = 0; ret->count < count; ret->count++)
		ret->members[ret->count] = member_of(
			item, &pack->members[reverse ? to - 1 - ret->count : from + ret->count]);
	return STATUS_OK;
}

enum status
timed_packed_pop(struct timed_item *item, bool greatest, uint64_t most, struct timed_members *ret,
		 bool *ret_done)
{
	struct timed_pack pack;
	uint64_t from = 0, to;

	*ret_done = !item->t->has_history;
	if (!*ret_done)
		return timed_packed_unfold(item);
	TRY(timed_packed_keep(item, &pack));
	to = most < pack.count ? most : pack.count;
	if (greatest) {
		from = pack.count - to;
		to = pack.count;
	}
	TRY(timed_packed_ranks(item, &pack, from, to, greatest, ret));
	pack.count -= ret->count;
	if (!greatest)
		memmove(pack.members, pack.members + ret->count,
			pack.count * sizeof(pack.members[0]));
	return packed_write_less(item, &pack);
}

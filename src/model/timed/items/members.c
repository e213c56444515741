/* Members of hashes, sets and sorted sets, by their names. */
#include "base/hash.h"
#include "model/timed/items/ends.h"
#include "model/timed/items/names_map.h"
#include "model/timed/items/pack.h"

enum {
	MEMBERS_WAVE = 256, /* point reads that go out together */
};

/* ---- One member ---- */

/*
 * The score of what is stored, and with `load` its value, and its name if that is not known. A
 * member that has expired is not there.
 */
static enum status
member_take(struct timed_item *item, struct str stored, bool load, struct timed_member *member)
{
	struct timed_leaf_record leaf;
	enum status status = timed_leaf_parse(stored, &leaf, item->t->err);

	if (status == STATUS_CORRUPT)
		return timed_item_corrupt(item);
	TRY(status);
	member->too_long = load && member->most && leaf.pieces.there &&
			   leaf.value_len > member->most;
	load &= !member->too_long;
	member->value_len = leaf.pieces.there && leaf.value_len ? leaf.value_len : leaf.value.len;
	if (load && (item->type == TIMED_HASH || !member->name.ptr))
		TRY(timed_leaf_load(item, &leaf));
	if ((item->type == TIMED_ZSET && leaf.value.len != TIMED_SCORE_BYTES) ||
	    (leaf.whole.len && member->name.ptr && !str_eq(leaf.whole, member->name)))
		return timed_item_corrupt(item);
	member->found = !leaf.expires_ms || leaf.expires_ms > item->t->now_us / TIMED_US_PER_MS;
	member->expires_ms = leaf.expires_ms;
	member->write_us = leaf.write_us;
	member->pieces = leaf.pieces;
	if (item->type == TIMED_ZSET)
		member->score = timed_score_get((const uint8_t *)leaf.value.ptr);
	if (!load)
		return STATUS_OK;
	/* What was in pieces is in the arena already. */
	if (item->type == TIMED_HASH)
		member->value = leaf.pieces.there && leaf.value_len
					? leaf.value
					: arena_dup(item->arena, leaf.value);
	if (leaf.whole.len && !member->name.ptr)
		member->name = leaf.pieces.there ? leaf.whole : arena_dup(item->arena, leaf.whole);
	return item->type == TIMED_HASH && !member->value.ptr ? STATUS_LIMIT : STATUS_OK;
}

static enum status
check_member(struct timed_item *item, const struct timed_member *member)
{
	return timed_leaf_check(item, member->name.len + member->value.len,
				"a member with its value");
}

/* ---- Several members ---- */

/* What is stored of members: found[i].ptr is NULL where there is none. Point reads, in waves. */
static enum status
members_read(struct timed_item *item, const struct timed_member *members, size_t count,
	     struct str *ret_keys, struct str *ret_found)
{
	struct timed_got asked[MEMBERS_WAVE];

	for (size_t from = 0; from < count; from += MEMBERS_WAVE) {
		size_t n = count - from < MEMBERS_WAVE ? count - from : MEMBERS_WAVE;

		for (size_t i = 0; i < n; i++) {
			TRY(timed_member_key(item, members[from + i].name, &ret_keys[from + i]));
			if (!members[from + i].known)
				TRY(timed_data_ask(item->t, ret_keys[from + i], KV_READ,
						   &asked[i]));
		}
		for (size_t i = 0; i < n; i++) {
			ret_found[from + i] = (struct str){ NULL, 0 };
			if (!members[from + i].known)
				TRY(timed_data_wait(item->t, &asked[i], item->arena,
						    &ret_found[from + i]));
		}
	}
	return STATUS_OK;
}

/* What members_read() needs. */
struct members_read {
	struct str *keys;
	struct str *found;
};

static enum status
members_read_all(struct timed_item *item, const struct timed_member *members, size_t count,
		 struct members_read *ret)
{
	ret->keys = arena_alloc(item->arena, (count + 1) * sizeof(*ret->keys));
	ret->found = arena_alloc(item->arena, (count + 1) * sizeof(*ret->found));
	if (!ret->keys || !ret->found)
		return STATUS_LIMIT;
	return members_read(item, members, count, ret->keys, ret->found);
}

/*
 * Commands of many clients on one member follow each other in a transaction. So the item remembers
 * the member that was looked up last, until the next change of the item.
 */
static bool
member_recall(const struct timed_item *item, struct timed_member *member)
{
	const struct timed_member *recent = item->recent;
	struct str name = member->name;

	if (!recent || !str_eq(recent->name, name))
		return false;
	*member = *recent;
	member->name = name;
	return true;
}

static enum status
member_remember(struct timed_item *item, const struct timed_member *member)
{
	struct timed_member *recent = item->recent;
	struct str name = arena_dup(item->arena, member->name);

	if (!recent)
		recent = arena_alloc(item->arena, sizeof(*recent));
	if (!recent || !name.ptr)
		return STATUS_LIMIT;
	*recent = *member;
	recent->name = name;
	item->recent = recent;
	return STATUS_OK;
}

enum status
timed_members_get(struct timed_item *item, struct timed_member *members, size_t count)
{
	struct members_read r;

	for (size_t i = 0; i < count; i++)
		members[i].found = members[i].known = members[i].too_long = false;
	if (item->type == TIMED_LEAF || !count)
		return STATUS_OK;
	if (item->packed)
		return timed_packed_get(item, members, count);
	if (count == 1 && member_recall(item, members))
		return STATUS_OK;
	TRY(members_read_all(item, members, count, &r));
	for (size_t i = 0; i < count; i++) {
		if (r.found[i].ptr)
			TRY(member_take(item, r.found[i], true, &members[i]));
		if (!members[i].found)
			members[i].expires_ms = 0;
	}
	return count == 1 && !members->too_long ? member_remember(item, members) : STATUS_OK;
}

/* For each member the one of the same name before it, or its own index. In the arena. */
static enum status
members_twins(struct timed_item *item, const struct timed_member *members, size_t count,
	      const size_t **ret)
{
	static const size_t alone[1] = { 0 };
	size_t slots = hash_slots(count);
	size_t *table, *twins;

	*ret = alone;
	if (count == 1)
		return STATUS_OK;
	table = arena_zalloc(item->arena, slots * sizeof(*table));
	twins = arena_alloc(item->arena, (count + 1) * sizeof(*twins));
	if (!table || !twins)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		size_t at = hash_keyed(0, members[i].name) & (slots - 1);

		while (table[at] && !str_eq(members[table[at] - 1].name, members[i].name))
			at = (at + 1) & (slots - 1);
		twins[i] = table[at] ? table[at] - 1 : i;
		table[at] = i + 1;
	}
	*ret = twins;
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
member_write(struct timed_item *item, struct str key, struct timed_member *member)
{
	uint8_t score[TIMED_SCORE_BYTES];
	struct timed_leaf_record leaf = {
		.write_us = timed_write_us(item->t),
		.expires_ms = member->expires_ms,
		.whole = member->name.len > TIMED_WHOLE_BYTES ? member->name : STR(""),
	};

	if (item->type == TIMED_HASH)
		leaf.value = member->value;
	if (item->type == TIMED_ZSET) {
		timed_score_put(member->score, score);
		leaf.value = str_of(score, sizeof(score));
	}
	TRY(timed_leaf_write(item, key, &leaf));
	member->pieces = leaf.pieces;
	return STATUS_OK;
}

/* A member of a sorted set; `old`: it was there, with old_score. */
static enum status
member_write_order(struct timed_item *item, const struct timed_member *member, bool old)
{
	uint8_t was[TIMED_SCORE_BYTES], is[TIMED_SCORE_BYTES];

	if (item->type != TIMED_ZSET)
		return STATUS_OK;
	timed_score_put(member->old_score, was);
	timed_score_put(member->score, is);
	if (old && memcmp(was, is, sizeof(is)) == 0)
		return STATUS_OK;
	if (old)
		TRY(timed_zset_erase(item, member->name, member->old_score, false));
	return timed_zset_insert(item, member->name, member->score);
}

/* True if a put changes nothing: a set has the member, a sorted set has it with that score. */
static bool
member_stays(const struct timed_item *item, const struct timed_member *member)
{
	uint8_t was[TIMED_SCORE_BYTES], is[TIMED_SCORE_BYTES];

	timed_score_put(member->old_score, was);
	timed_score_put(member->score, is);
	return item->type == TIMED_SET ||
	       (item->type == TIMED_ZSET && memcmp(was, is, sizeof(is)) == 0);
}

/* Writes one member. `twin`: the one that was given before it, under the same name; or NULL. */
static enum status
member_put(struct timed_item *item, struct timed_member *member, const struct timed_member *twin,
	   struct str key, struct str stored, int64_t *added)
{
	struct timed_member old = { .name = member->name };
	bool there = stored.ptr || twin || (member->known && member->found);

	if (twin)
		old = (struct timed_member){ .score = twin->score,
					     .expires_ms = twin->expires_ms,
					     .pieces = twin->pieces,
					     .found = true };
	else if (member->known)
		old = (struct timed_member){ .score = member->old_score,
					     .pieces = member->pieces,
					     .found = member->found };
	else if (stored.ptr)
		TRY(member_take(item, stored, false, &old));
	member->found = old.found;
	member->old_score = old.score;
	member->pieces = old.pieces;
	if (there && member_stays(item, member))
		return STATUS_OK;
	*added += !there;
	TRY(timed_item_touch(item));
	if (!there)
		TRY(timed_names_add(item, member->name));
	TRY(timed_leaf_drop(item, &old.pieces));
	TRY(member_write_order(item, member, there));
	TRY(member_write(item, key, member));
	return old.expires_ms || member->expires_ms
		       ? timed_due_change(item, key, old.expires_ms, member->expires_ms)
		       : STATUS_OK;
}

/* The header says of a hash that members expire by themselves. */
static enum status
members_note_dues(struct timed_item *item, const struct timed_member *members, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= members[i].expires_ms != 0;
	if (item->type != TIMED_HASH || !any || item->has_dues)
		return STATUS_OK;
	item->has_dues = true;
	return timed_item_store(item);
}

/* Makes an item that has no members yet; nothing of it has to be read then. */
static enum status
members_begin(struct timed_item *item, enum timed_type type, const struct timed_member *members,
	      size_t count, struct members_read *ret)
{
	if (item->type != TIMED_LEAF)
		return members_read_all(item, members, count, ret);
	TRY(timed_item_renew(item, type));
	TRY(timed_item_store(item));
	ret->keys = arena_alloc(item->arena, count * sizeof(*ret->keys));
	ret->found = arena_zalloc(item->arena, count * sizeof(*ret->found));
	if (!ret->keys || !ret->found)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(timed_member_key(item, members[i].name, &ret->keys[i]));
	return STATUS_OK;
}

enum status
timed_members_put(struct timed_item *item, enum timed_type type, struct timed_member *members,
		  size_t count)
{
	struct members_read r;
	int64_t added = 0;
	bool done = false;
	const size_t *twins;

	for (size_t i = 0; i < count; i++)
		TRY(check_member(item, &members[i]));
	if (!count)
		return STATUS_OK;
	if (item->packed || item->type == TIMED_LEAF)
		TRY(timed_packed_put(item, type, members, count, &done));
	if (done)
		return STATUS_OK;
	TRY(members_begin(item, type, members, count, &r));
	TRY(members_twins(item, members, count, &twins));
	if (item->type == TIMED_HASH)
		TRY(timed_item_touch(item));
	TRY(members_note_dues(item, members, count));
	for (size_t i = 0; i < count; i++)
		TRY(member_put(item, &members[i], twins[i] == i ? NULL : &members[twins[i]],
			       r.keys[i], r.found[i], &added));
	return timed_item_add(item, added);
}

enum status
timed_member_expire(struct timed_item *item, struct str name, uint64_t expires_ms)
{
	struct timed_member member = { .name = name };

	TRY(timed_members_get(item, &member, 1));
	if (item->type != TIMED_HASH || !member.found)
		return STATUS_NOT_FOUND;
	member.expires_ms = expires_ms;
	return timed_members_put(item, TIMED_HASH, &member, 1);
}

/*
 * What draws have read of a set, without a member that goes. NULL: there is nothing, or the member
 * is not the one that was drawn last.
 */
static struct timed_ends *
draws_without(const struct timed_item *item, struct str name)
{
	struct timed_ends *e = item->popping;

	if (item->type != TIMED_SET || !e)
		return NULL;
	if (!e->names)
		return e;
	if (e->drawn >= e->count || !str_eq(e->names[e->drawn], name))
		return NULL;
	e->names[e->drawn] = e->names[--e->count];
	return e->count ? e : NULL;
}

enum status
timed_members_delete(struct timed_item *item, struct timed_member *members, size_t count)
{
	struct timed_ends *popping = NULL;
	struct members_read r;
	int64_t gone = 0;
	bool done = false;
	const size_t *twins;

	for (size_t i = 0; i < count; i++)
		members[i].found = members[i].known = false;
	if (item->type == TIMED_LEAF || !count)
		return STATUS_OK;
	if (item->packed)
		TRY(timed_packed_delete(item, members, count, &done));
	if (done)
		return STATUS_OK;
	TRY(members_read_all(item, members, count, &r));
	TRY(members_twins(item, members, count, &twins));
	if (count == 1 && r.found[0].ptr)
		popping = draws_without(item, members->name);
	for (size_t i = 0; i < count; i++) {
		if (!r.found[i].ptr || twins[i] != i)
			continue;
		TRY(member_take(item, r.found[i], false, &members[i]));
		members[i].old_score = members[i].score;
		TRY(timed_item_touch(item));
		TRY(timed_leaf_drop(item, &members[i].pieces));
		TRY(timed_names_remove(item, members[i].name));
		if (item->type == TIMED_ZSET)
			TRY(timed_zset_erase(item, members[i].name, members[i].score, false));
		TRY(timed_item_clear(item, r.keys[i]));
		if (members[i].expires_ms)
			TRY(timed_due_change(item, r.keys[i], members[i].expires_ms, 0));
		gone++;
	}
	if (!gone)
		return STATUS_OK;
	TRY(timed_item_add(item, -gone));
	item->popping = popping;
	return timed_item_delete_empty(item);
}

/* ---- Pages ---- */

static enum status
members_page_take(struct timed_item *item, struct str name, struct str stored,
		  struct timed_members *page, size_t *cap, size_t *bytes)
{
	struct timed_member member = { .name = str_skip(name, TIMED_HASH_BYTES) };

	if (name.len < TIMED_HASH_BYTES)
		return timed_item_corrupt(item);
	if (timed_is_cut(member.name))
		member.name = (struct str){ NULL, 0 };
	TRY(member_take(item, stored, true, &member));
	if (!member.name.ptr)
		return timed_item_corrupt(item);
	if (!member.found)
		return STATUS_OK;
	page->members = arena_grow(item->arena, page->members, page->count, cap,
				   sizeof(*page->members));
	if (!page->members)
		return STATUS_LIMIT;
	page->members[page->count++] = member;
	*bytes += member.name.len + member.value.len;
	return STATUS_OK;
}

enum status
timed_members_page(struct timed_item *item, uint64_t from, size_t least, struct timed_members *ret)
{
	return timed_members_between(item, from, TIMED_HASHES, least, ret);
}

enum status
timed_members_between(struct timed_item *item, uint64_t from, uint64_t to, size_t least,
		      struct timed_members *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	uint64_t hash = 0, last = TIMED_HASHES;
	struct timed_members page = { 0 };
	struct str begin, end, name;
	struct kv_pair pair;
	enum status status;
	size_t cap = 0, bytes = 0;

	*ret = page;
	if (item->type == TIMED_LEAF || from >= to)
		return STATUS_OK;
	if (item->packed)
		return timed_packed_between(item, from, to, ret);
	TRY(timed_hash_key(item->arena, item->body, from, &begin));
	TRY(timed_hash_key(item->arena, item->body, to, &end));
	TRY(timed_cursor_open_few(&scan, item->t, begin, end,
				  &(struct kv_range_options){ .ahead = true },
				  timed_page_pairs(least)));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		TRY(timed_key_tail(item, pair.key, 0, &name));
		if (name.len < TIMED_HASH_BYTES)
			return timed_item_corrupt(item);
		hash = (uint64_t)((uint8_t)name.ptr[0] << 8 | (uint8_t)name.ptr[1]);
		if (page.count && (page.count >= least || bytes >= TIMED_PAGE_BYTES) &&
		    hash != last) {
			page.next = hash;
			break;
		}
		last = hash;
		TRY(members_page_take(item, name, pair.value, &page, &cap, &bytes));
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = page;
	return STATUS_OK;
}

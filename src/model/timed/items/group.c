/*
 * Groups of consumers of a stream. A group lies in the stream's body under its name, and what it
 * has under an id that no other group ever gets:
 *
 *     (body, GROUP, b"name")             → the group
 *     (body, GROUPS)                     → how many there are
 *     (body, OF_GROUP, b"id", part, …)   → what it has: enum timed_group_part
 *
 * Removing a group removes its pair, and TIMED_GROUP_OWNER below its id, which says that the id is
 * in use. The other pairs below the id are not read any more, and the sweep clears them as it
 * clears a removed body (gone.c).
 */

#include "base/rand.h"
#include "model/timed/items/item_int.h"

enum {
	GROUP_KEY_BYTES = 48, /* of the numbers in a key, and of what surrounds bytes in it */
	RECORD_BYTES = 80,    /* of a record beside a name */
	PENDING_WAVE = 256,   /* point reads that go out together */
	DROP_PAGE = 256,      /* pending entries of a consumer that are removed at a time */
};

#define NO_NAME ((struct str){ NULL, 0 })

/* ---- Keys ---- */

static enum status
group_check_name(struct timed_item *item, struct str name, const char *what)
{
	if (name.len <= TIMED_GROUP_NAME_BYTES)
		return STATUS_OK;
	return err_set(item->t->err, STATUS_KEY_TOO_LARGE,
		       "the name of a %s may have %d bytes (TIMED_GROUP_NAME_BYTES)", what,
		       TIMED_GROUP_NAME_BYTES);
}

/* (body, GROUP, b"name"); the name as keys have it. NULL bytes: what all of these begin with. */
static enum status
group_key(struct timed_item *item, struct str cut, struct str *ret)
{
	struct buf key = timed_arena_buf(item->arena,
					 item->body.len + GROUP_KEY_BYTES + 2 * cut.len);

	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_GROUP);
	if (cut.ptr)
		tuple_put_bytes(&key, cut);
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* What all keys of what the group has begin with. */
static enum status
group_prefix(struct timed_item *item, const uint8_t id[TIMED_ID_BYTES], struct str *ret)
{
	struct buf key = timed_arena_buf(item->arena,
					 item->body.len + GROUP_KEY_BYTES + 2 * TIMED_ID_BYTES);

	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_OF_GROUP);
	tuple_put_bytes(&key, str_of(id, TIMED_ID_BYTES));
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* A key of what the group has, with a name and an id; NULL, each: without it. */
static enum status
part_key(struct timed_item *item, const struct timed_group *group, enum timed_group_part part,
	 struct str cut, const struct timed_stream_id *id, struct str *ret)
{
	uint8_t entry[TIMED_ENTRY_BYTES];
	struct str prefix;
	struct buf key;

	TRY(group_prefix(item, group->id, &prefix));
	key = timed_arena_buf(item->arena,
			      prefix.len + GROUP_KEY_BYTES + 2 * cut.len + 2 * TIMED_ENTRY_BYTES);
	buf_append_str(&key, prefix);
	tuple_put_u64(&key, part);
	if (cut.ptr)
		tuple_put_bytes(&key, cut);
	if (id) {
		timed_entry_put(*id, entry);
		tuple_put_bytes(&key, str_of(entry, sizeof(entry)));
	}
	*ret = buf_str(&key);
	return buf_status(&key);
}

/* The bytes of the last element of a key, which follows `before`. */
static enum status
key_last(struct timed_item *item, struct str key, struct str before, struct str *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(key, before.len));
	struct buf scratch = timed_arena_buf(item->arena, r.rest.len + 1);
	struct str last;

	TRY(buf_status(&scratch));
	if (tuple_next_bytes(&r, &scratch, &last) != STATUS_OK || r.rest.len)
		return timed_item_corrupt(item);
	*ret = arena_dup(item->arena, last);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
record_status(struct timed_item *item, enum status status)
{
	return status == STATUS_CORRUPT ? timed_item_corrupt(item) : status;
}

/* A name that a record has is in memory of the store's. */
static enum status
name_keep(struct timed_item *item, struct str *name, struct str known)
{
	if (name->ptr == known.ptr)
		return STATUS_OK;
	return arena_copy(item->arena, *name, name);
}

/* Adds to a number of the group's. */
static enum status
part_add(struct timed_item *item, const struct timed_group *group, enum timed_group_part part,
	 struct str cut, int64_t change)
{
	struct str key;

	if (!change)
		return STATUS_OK;
	TRY(part_key(item, group, part, cut, NULL, &key));
	return timed_data_add(item->t, key, change);
}

static enum status
groups_add(struct timed_item *item, int64_t change)
{
	struct str key;

	TRY(timed_part_key(item, TIMED_PART_GROUPS, &key));
	return timed_data_add(item->t, key, change);
}

/* The range of keys that go on with bytes behind `prefix`, behind `after` if it is a name. */
static enum status
names_range(struct timed_item *item, struct str prefix, struct str after, struct str *ret_begin,
	    struct str *ret_end)
{
	struct buf begin;
	struct str cut;

	*ret_begin = prefix;
	if (after.ptr) {
		TRY(timed_cut(item->arena, after, &cut));
		begin = timed_arena_buf(item->arena, prefix.len + GROUP_KEY_BYTES + 2 * cut.len);
		buf_append_str(&begin, prefix);
		tuple_put_bytes(&begin, cut);
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
		*ret_begin = buf_str(&begin);
		TRY(buf_status(&begin));
	}
	return timed_key_with(item->arena, prefix, CATALOG_KEY_LAST, ret_end);
}

/* ---- Groups ---- */

enum status
timed_group_get(struct timed_item *item, struct str name, struct timed_group *ret)
{
	struct str cut, key, value;

	*ret = (struct timed_group){ .name = name };
	if (item->type == TIMED_LEAF || name.len > TIMED_GROUP_NAME_BYTES)
		return STATUS_NOT_FOUND;
	TRY(timed_cut(item->arena, name, &cut));
	TRY(group_key(item, cut, &key));
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (!value.ptr)
		return STATUS_NOT_FOUND;
	TRY(record_status(item, timed_group_record_parse(value, ret, item->t->err)));
	ret->name = name;
	return STATUS_OK;
}

enum status
timed_group_set(struct timed_item *item, const struct timed_group *group)
{
	struct buf value = timed_arena_buf(item->arena, RECORD_BYTES + group->name.len);
	struct str cut, key;

	TRY(timed_item_write_begin(item));
	TRY(timed_cut(item->arena, group->name, &cut));
	TRY(group_key(item, cut, &key));
	timed_group_record_put(group, &value);
	TRY(buf_status(&value));
	return timed_data_set(item->t, key, buf_str(&value));
}

enum status
timed_group_add(struct timed_item *item, struct timed_group *group)
{
	static const struct timed_stream nothing;
	struct str cut, key;

	TRY(group_check_name(item, group->name, "group"));
	if (item->type == TIMED_LEAF)
		TRY(timed_stream_set(item, &nothing));
	rand_bytes(group->id, sizeof(group->id));
	TRY(timed_group_set(item, group));
	TRY(timed_cut(item->arena, group->name, &cut));
	TRY(part_key(item, group, TIMED_GROUP_OWNER, NO_NAME, NULL, &key));
	TRY(timed_data_set(item->t, key, cut));
	return groups_add(item, 1);
}

/* Has the sweep clear what the group had, or clears it at once where that costs nothing. */
static enum status
group_leave(struct timed_item *item, const struct timed_group *group)
{
	struct str prefix, end, gone;
	struct buf entry;

	TRY(group_prefix(item, group->id, &prefix));
	if (!item->t->has_history && kv_clears_cheaply(kv_tx_store(item->t->tx))) {
		TRY(timed_key_with(item->arena, prefix, CATALOG_KEY_LAST, &end));
		return kv_clear_range(item->t->tx, prefix, end);
	}
	TRY(timed_gone_key(item->t, item->arena, item->id, &gone));
	prefix = str_skip(prefix, item->body.len);
	entry = timed_arena_buf(item->arena, gone.len + prefix.len);
	buf_append_str(&entry, gone);
	buf_append_str(&entry, prefix);
	TRY(buf_status(&entry));
	return timed_gone_put(item->t, buf_str(&entry));
}

enum status
timed_group_drop(struct timed_item *item, const struct timed_group *group)
{
	struct str cut, key, owner;

	TRY(timed_item_touch(item));
	TRY(timed_cut(item->arena, group->name, &cut));
	TRY(group_key(item, cut, &key));
	TRY(part_key(item, group, TIMED_GROUP_OWNER, NO_NAME, NULL, &owner));
	TRY(timed_data_clear(item->t, key));
	TRY(timed_data_clear(item->t, owner));
	TRY(groups_add(item, -1));
	return group_leave(item, group);
}

static enum status
group_take(struct timed_item *item, struct str prefix, const struct kv_pair *pair,
	   struct timed_group *ret)
{
	struct str cut;

	TRY(key_last(item, pair->key, prefix, &cut));
	ret->name = cut;
	TRY(record_status(item, timed_group_record_parse(pair->value, ret, item->t->err)));
	return name_keep(item, &ret->name, cut);
}

enum status
timed_groups_page(struct timed_item *item, struct str after, size_t limit, struct timed_groups *ret)
{
	const struct kv_range_options options = { .limit = limit };
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str prefix, begin, end;
	struct kv_pair pair;
	enum status status;
	size_t cap = 0;

	*ret = (struct timed_groups){ 0 };
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(group_key(item, NO_NAME, &prefix));
	TRY(names_range(item, prefix, after, &begin, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, &options));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		ret->groups = arena_grow(item->arena, ret->groups, ret->count, &cap,
					 sizeof(*ret->groups));
		if (!ret->groups)
			return STATUS_LIMIT;
		TRY(group_take(item, prefix, &pair, &ret->groups[ret->count++]));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_groups_count(struct timed_item *item, uint64_t *ret)
{
	*ret = 0;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	return timed_count_part(item, TIMED_PART_GROUPS, ret);
}

/* ---- Consumers ---- */

enum status
timed_consumer_get(struct timed_item *item, const struct timed_group *group, struct str name,
		   struct timed_consumer *ret)
{
	struct str cut, key, value;

	*ret = (struct timed_consumer){ .name = name };
	if (name.len > TIMED_GROUP_NAME_BYTES)
		return STATUS_NOT_FOUND;
	TRY(timed_cut(item->arena, name, &cut));
	TRY(part_key(item, group, TIMED_GROUP_CONSUMER, cut, NULL, &key));
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (!value.ptr)
		return STATUS_NOT_FOUND;
	TRY(record_status(item, timed_consumer_record_parse(value, ret, item->t->err)));
	ret->name = name;
	return STATUS_OK;
}

enum status
timed_consumer_put(struct timed_item *item, const struct timed_group *group,
		   const struct timed_consumer *consumer, bool is_new)
{
	struct buf value;
	struct str cut, key;

	TRY(group_check_name(item, consumer->name, "consumer"));
	TRY(timed_item_write_begin(item));
	value = timed_arena_buf(item->arena, RECORD_BYTES + consumer->name.len);
	TRY(timed_cut(item->arena, consumer->name, &cut));
	TRY(part_key(item, group, TIMED_GROUP_CONSUMER, cut, NULL, &key));
	timed_consumer_record_put(consumer, &value);
	TRY(buf_status(&value));
	TRY(timed_data_set(item->t, key, buf_str(&value)));
	return part_add(item, group, TIMED_GROUP_CONSUMERS, NO_NAME, is_new);
}

enum status
timed_consumer_drop(struct timed_item *item, const struct timed_group *group, struct str name,
		    uint64_t *ret_pending)
{
	struct timed_pending_range range = { .consumer = name,
					     .to = { UINT64_MAX, UINT64_MAX },
					     .limit = DROP_PAGE };
	struct timed_pendings page;
	struct str cut, key;

	TRY(timed_item_write_begin(item));
	*ret_pending = 0;
	do {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(timed_pending_range(item, group, &range, &page));
		TRY(timed_pending_drop(item, group, page.entries, page.count));
		*ret_pending += page.count;
		if (page.count)
			range.from = page.entries[page.count - 1].id;
		arena_reset(item->arena, mark);
	} while (page.count == DROP_PAGE && timed_stream_id_next(&range.from));
	TRY(timed_cut(item->arena, name, &cut));
	TRY(part_key(item, group, TIMED_GROUP_CONSUMER, cut, NULL, &key));
	TRY(timed_data_clear(item->t, key));
	TRY(part_key(item, group, TIMED_GROUP_COUNT, cut, NULL, &key));
	TRY(timed_data_clear(item->t, key));
	return part_add(item, group, TIMED_GROUP_CONSUMERS, NO_NAME, -1);
}

static enum status
consumer_take(struct timed_item *item, struct str prefix, const struct kv_pair *pair,
	      struct timed_consumer *ret)
{
	struct str cut;

	TRY(key_last(item, pair->key, prefix, &cut));
	ret->name = cut;
	TRY(record_status(item, timed_consumer_record_parse(pair->value, ret, item->t->err)));
	return name_keep(item, &ret->name, cut);
}

enum status
timed_consumers_page(struct timed_item *item, const struct timed_group *group, struct str after,
		     size_t limit, struct timed_consumers *ret)
{
	const struct kv_range_options options = { .limit = limit };
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct str prefix, begin, end;
	struct kv_pair pair;
	enum status status;
	size_t cap = 0;

	*ret = (struct timed_consumers){ 0 };
	TRY(part_key(item, group, TIMED_GROUP_CONSUMER, NO_NAME, NULL, &prefix));
	TRY(names_range(item, prefix, after, &begin, &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, &options));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		ret->consumers = arena_grow(item->arena, ret->consumers, ret->count, &cap,
					    sizeof(*ret->consumers));
		if (!ret->consumers)
			return STATUS_LIMIT;
		TRY(consumer_take(item, prefix, &pair, &ret->consumers[ret->count++]));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_consumers_count(struct timed_item *item, const struct timed_group *group, uint64_t *ret)
{
	struct str key;

	TRY(part_key(item, group, TIMED_GROUP_CONSUMERS, NO_NAME, NULL, &key));
	return timed_count_get(item, key, ret);
}

/* ---- Pending entries ---- */

static enum status
pending_take(struct timed_item *item, struct str value, struct timed_pending *ret)
{
	TRY(record_status(item, timed_pending_record_parse(value, ret, item->t->err)));
	ret->found = true;
	return arena_copy(item->arena, ret->consumer, &ret->consumer);
}

enum status
timed_pending_get(struct timed_item *item, const struct timed_group *group,
		  struct timed_pending *entries, size_t count)
{
	struct timed_got asked[PENDING_WAVE];
	struct str key, value;

	for (size_t from = 0; from < count; from += PENDING_WAVE) {
		size_t n = count - from < PENDING_WAVE ? count - from : PENDING_WAVE;

		for (size_t i = 0; i < n; i++) {
			TRY(part_key(item, group, TIMED_GROUP_PENDING, NO_NAME,
				     &entries[from + i].id, &key));
			TRY(timed_data_ask(item->t, key, KV_READ, &asked[i]));
		}
		for (size_t i = 0; i < n; i++) {
			struct timed_pending *e = &entries[from + i];

			TRY(timed_data_wait(item->t, &asked[i], item->arena, &value));
			*e = (struct timed_pending){ .id = e->id };
			if (value.ptr)
				TRY(pending_take(item, value, e));
		}
	}
	return STATUS_OK;
}

/* Takes an entry from a consumer. */
static enum status
pending_take_from(struct timed_item *item, const struct timed_group *group, struct str cut,
		  struct timed_stream_id id)
{
	struct str key;

	TRY(part_key(item, group, TIMED_GROUP_OF, cut, &id, &key));
	TRY(timed_data_clear(item->t, key));
	return part_add(item, group, TIMED_GROUP_COUNT, cut, -1);
}

/* Writes an entry for the consumer; `*added` is raised if that did not have it. */
static enum status
pending_write(struct timed_item *item, const struct timed_group *group, struct str cut,
	      const struct timed_pending *e, int64_t *added)
{
	struct buf value = timed_arena_buf(item->arena, RECORD_BYTES + cut.len);
	struct str key;

	timed_pending_record_put(e, cut, &value);
	TRY(buf_status(&value));
	TRY(part_key(item, group, TIMED_GROUP_PENDING, NO_NAME, &e->id, &key));
	TRY(timed_data_set(item->t, key, buf_str(&value)));
	if (e->found && str_eq(e->consumer, cut))
		return STATUS_OK;
	if (e->found)
		TRY(pending_take_from(item, group, e->consumer, e->id));
	++*added;
	TRY(part_key(item, group, TIMED_GROUP_OF, cut, &e->id, &key));
	return timed_data_set(item->t, key, STR(""));
}

enum status
timed_pending_give(struct timed_item *item, const struct timed_group *group, struct str name,
		   struct timed_pending *entries, size_t count)
{
	int64_t of_consumer = 0, of_group = 0;
	struct str cut;

	if (!count)
		return STATUS_OK;
	TRY(timed_item_write_begin(item));
	TRY(timed_cut(item->arena, name, &cut));
	for (size_t i = 0; i < count; i++) {
		struct timed_pending *e = &entries[i];
		struct arena_mark mark = arena_mark(item->arena);

		of_group += !e->found;
		TRY(pending_write(item, group, cut, e, &of_consumer));
		arena_reset(item->arena, mark);
		e->found = true;
		e->consumer = cut;
	}
	TRY(part_add(item, group, TIMED_GROUP_PENDINGS, NO_NAME, of_group));
	return part_add(item, group, TIMED_GROUP_COUNT, cut, of_consumer);
}

enum status
timed_pending_drop(struct timed_item *item, const struct timed_group *group,
		   const struct timed_pending *entries, size_t count)
{
	int64_t gone = 0;

	for (size_t i = 0; i < count; i++) {
		const struct timed_pending *e = &entries[i];
		struct arena_mark mark = arena_mark(item->arena);
		struct str key;

		if (!e->found)
			continue;
		gone++;
		TRY(timed_item_write_begin(item));
		TRY(part_key(item, group, TIMED_GROUP_PENDING, NO_NAME, &e->id, &key));
		TRY(timed_data_clear(item->t, key));
		TRY(pending_take_from(item, group, e->consumer, e->id));
		arena_reset(item->arena, mark);
	}
	return part_add(item, group, TIMED_GROUP_PENDINGS, NO_NAME, -gone);
}

/* Reads ids, and with `has_record` what is said of the entries. */
static enum status
pending_scan(struct timed_item *item, const struct timed_pending_range *range, struct str prefix,
	     bool has_record, struct timed_pendings *ret)
{
	struct kv_range_options options = { .reverse = range->reverse, .limit = range->limit };
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	uint8_t from[TIMED_ENTRY_BYTES], to[TIMED_ENTRY_BYTES];
	struct buf begin, end;
	struct kv_pair pair;
	enum status status;
	struct str entry;
	size_t cap = 0;

	timed_entry_put(range->from, from);
	timed_entry_put(range->to, to);
	begin = timed_arena_buf(item->arena, prefix.len + GROUP_KEY_BYTES + 2 * sizeof(from));
	end = timed_arena_buf(item->arena, prefix.len + GROUP_KEY_BYTES + 2 * sizeof(to));
	buf_append_str(&begin, prefix);
	tuple_put_bytes(&begin, str_of(from, sizeof(from)));
	buf_append_str(&end, prefix);
	tuple_put_bytes(&end, str_of(to, sizeof(to)));
	buf_append_byte(&end, CATALOG_KEY_NEXT);
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	TRY(timed_cursor_open_few(&scan, item->t, buf_str(&begin), buf_str(&end), &options,
				  range->limit));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		struct timed_pending *e;

		TRY(arena_room(item->arena, &ret->entries, ret->count, &cap,
			       sizeof(*ret->entries)));
		e = &ret->entries[ret->count++];
		*e = (struct timed_pending){ 0 };
		TRY(key_last(item, pair.key, prefix, &entry));
		if (entry.len != TIMED_ENTRY_BYTES)
			return timed_item_corrupt(item);
		e->id = timed_entry_get((const uint8_t *)entry.ptr);
		if (has_record)
			TRY(pending_take(item, pair.value, e));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_pending_range(struct timed_item *item, const struct timed_group *group,
		    const struct timed_pending_range *range, struct timed_pendings *ret)
{
	struct str cut = NO_NAME, prefix;

	*ret = (struct timed_pendings){ 0 };
	if (timed_stream_id_cmp(range->from, range->to) > 0)
		return STATUS_OK;
	if (!range->consumer.ptr) {
		TRY(part_key(item, group, TIMED_GROUP_PENDING, NO_NAME, NULL, &prefix));
		return pending_scan(item, range, prefix, true, ret);
	}
	TRY(timed_cut(item->arena, range->consumer, &cut));
	TRY(part_key(item, group, TIMED_GROUP_OF, cut, NULL, &prefix));
	TRY(pending_scan(item, range, prefix, false, ret));
	return timed_pending_get(item, group, ret->entries, ret->count);
}

enum status
timed_pending_count(struct timed_item *item, const struct timed_group *group, struct str consumer,
		    uint64_t *ret)
{
	struct str cut = NO_NAME, key;

	if (consumer.ptr)
		TRY(timed_cut(item->arena, consumer, &cut));
	TRY(part_key(item, group, consumer.ptr ? TIMED_GROUP_COUNT : TIMED_GROUP_PENDINGS, cut,
		     NULL, &key));
	return timed_count_get(item, key, ret);
}

enum status
timed_pending_owner(struct timed_item *item, const struct timed_group *group,
		    const struct timed_pending *entry, struct str *ret)
{
	struct timed_consumer consumer = { .name = entry->consumer };
	struct str key, value;

	*ret = entry->consumer;
	if (!timed_is_cut(entry->consumer))
		return STATUS_OK;
	TRY(part_key(item, group, TIMED_GROUP_CONSUMER, entry->consumer, NULL, &key));
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (!value.ptr)
		return timed_item_corrupt(item);
	TRY(record_status(item, timed_consumer_record_parse(value, &consumer, item->t->err)));
	return arena_copy(item->arena, consumer.name, ret);
}

enum status
timed_pending_is_of(struct timed_item *item, const struct timed_pending *entry, struct str name,
		    bool *ret)
{
	struct str cut;

	TRY(timed_cut(item->arena, name, &cut));
	*ret = str_eq(entry->consumer, cut);
	return STATUS_OK;
}

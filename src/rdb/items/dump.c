/* Payloads out of items. */
#include "rdb/items/rdb_items.h"

#include "loop/step.h"

enum {
	DUMP_PAGE = 256,
	/* Entries of a stream that go together, as Redis has them by default. */
	DUMP_NODE_ENTRIES = 100,
	DUMP_NODE_BYTES = 512 * 1024 * 1024,
	ID_BYTES = 16,
	ENTRY_AS_MASTER = 2, /* it has the fields of the first one of its container */
	ENTRY_FIXED = 3,     /* numbers at the beginning of an entry */
};

static struct rdb_id
id_of(struct timed_stream_id id)
{
	return (struct rdb_id){ id.ms, id.seq };
}

/* A moment of the database, by the wall clock. */
static uint64_t
date_of(const struct timed_item *item, uint64_t ms)
{
	int64_t at = (int64_t)ms - timed_ahead_ms(item->t);

	return at > 0 ? (uint64_t)at : 1;
}

/* An id as two lengths. */
static void
put_id(struct buf *out, struct timed_stream_id id)
{
	rdb_put_length(out, id.ms);
	rdb_put_length(out, id.seq);
}

static enum status
counted(struct timed_item *item, uint64_t promised, uint64_t found)
{
	return promised == found ? STATUS_OK
				 : err_set(item->t->err, STATUS_CORRUPT,
					   "an item has %llu parts, and counts %llu",
					   (unsigned long long)found, (unsigned long long)promised);
}

/* ---- Values, members, elements ---- */

static enum status
value_dump(struct timed_item *item, struct buf *out)
{
	struct str value;

	rdb_put_length(out, item->length);
	for (uint64_t at = 0; at < item->length; at += value.len) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(timed_value_get(item, at, TIMED_PAGE_BYTES, &value));
		buf_append_str(out, value);
		arena_reset(item->arena, mark);
		TRY(step_count_bytes(value.len));
		TRY(buf_status(out));
	}
	return STATUS_OK;
}

/* `least_ms` is the soonest expiry of a field; UINT64_MAX: none expires. */
static void
member_dump(const struct timed_item *item, const struct timed_member *m, uint64_t least_ms,
	    struct buf *out)
{
	if (least_ms != UINT64_MAX)
		rdb_put_length(out, m->expires_ms ? m->expires_ms - least_ms + 1 : 0);
	rdb_put_string(out, m->name);
	if (item->type == TIMED_HASH)
		rdb_put_string(out, m->value);
	else if (item->type == TIMED_ZSET)
		rdb_put_double(out, m->score);
}

/* A page, which lies in `pages`. */
static enum status
members_page(struct timed_item *item, uint64_t from, struct arena *pages, struct timed_members *ret)
{
	struct arena *own = item->arena;
	enum status status;

	arena_clear(pages);
	item->arena = pages;
	status = timed_members_page(item, from, DUMP_PAGE, ret);
	item->arena = own;
	TRY(status);
	return step_count((uint32_t)ret->count);
}

/* When a field of a hash expires by the clock of those who will read it. */
static void
member_by_date(const struct timed_item *item, struct timed_member *m)
{
	if (m->expires_ms)
		m->expires_ms = date_of(item, m->expires_ms);
}

static enum status
fields_soonest(struct timed_item *item, struct arena *pages, uint64_t *ret)
{
	struct timed_members page = { .next = 0 };

	*ret = UINT64_MAX;
	do {
		TRY(members_page(item, page.next, pages, &page));
		for (size_t i = 0; i < page.count; i++) {
			member_by_date(item, &page.members[i]);
			if (page.members[i].expires_ms && page.members[i].expires_ms < *ret)
				*ret = page.members[i].expires_ms;
		}
	} while (page.next);
	return STATUS_OK;
}

static enum status
members_all_dump(struct timed_item *item, struct arena *pages, uint64_t least_ms, struct buf *out)
{
	struct timed_members page = { .next = 0 };
	uint64_t count, found = 0;

	if (least_ms != UINT64_MAX)
		rdb_put_number(out, 8, least_ms);
	TRY(timed_count(item, &count));
	rdb_put_length(out, count);
	do {
		TRY(members_page(item, page.next, pages, &page));
		for (size_t i = 0; i < page.count; i++) {
			member_by_date(item, &page.members[i]);
			member_dump(item, &page.members[i], least_ms, out);
		}
		found += page.count;
		TRY(buf_status(out));
	} while (page.next);
	return counted(item, count, found);
}

static enum status
members_dump(struct timed_item *item, struct buf *out, unsigned *ret_version)
{
	struct arena *pages = arena_new(arena_limit_bytes(item->arena));
	uint64_t least_ms = UINT64_MAX;
	enum status status = STATUS_OK;

	if (!pages)
		return STATUS_NOMEM;
	arena_set_part(pages, arena_part(item->arena));
	if (item->has_dues)
		status = fields_soonest(item, pages, &least_ms);
	if (least_ms != UINT64_MAX)
		*ret_version = RDB_VERSION_FIELDS;
	buf_append_byte(out, least_ms != UINT64_MAX     ? RDB_CODE_HASH_FIELDS
			     : item->type == TIMED_HASH ? RDB_CODE_HASH
			     : item->type == TIMED_SET  ? RDB_CODE_SET
							: RDB_CODE_ZSET);
	if (status == STATUS_OK)
		status = members_all_dump(item, pages, least_ms, out);
	arena_free(pages);
	return status;
}

static enum status
list_dump(struct timed_item *item, struct buf *out)
{
	struct timed_elements page;
	uint64_t count, found = 0;

	TRY(timed_count(item, &count));
	rdb_put_length(out, count);
	do {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(step_count(DUMP_PAGE));
		TRY(timed_list_range(item, found, DUMP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++)
			rdb_put_string(out, page.elements[i].value);
		found += page.count;
		arena_reset(item->arena, mark);
		TRY(buf_status(out));
	} while (page.count == DUMP_PAGE);
	return counted(item, count, found);
}

/* ---- Streams ---- */

static bool
entry_is_as(const struct timed_entry *entry, const struct timed_entry *master)
{
	if (entry->count != master->count)
		return false;
	for (size_t i = 0; i < entry->count; i += 2)
		if (!str_eq(entry->fields[i], master->fields[i]))
			return false;
	return true;
}

/* Appends an entry to the container; how many of the container's it is. */
static size_t
entry_dump(const struct timed_entry *entry, const struct timed_entry *master, struct buf *node)
{
	bool as_master = entry_is_as(entry, master);
	size_t count = ENTRY_FIXED;

	rdb_listpack_number(node, as_master ? ENTRY_AS_MASTER : 0);
	rdb_listpack_number(node, (int64_t)(entry->id.ms - master->id.ms));
	rdb_listpack_number(node, (int64_t)(entry->id.seq - master->id.seq));
	if (!as_master) {
		rdb_listpack_number(node, (int64_t)(entry->count / 2));
		count++;
	}
	for (size_t i = 0; i < entry->count; i++) {
		if (as_master && i % 2 == 0)
			continue;
		rdb_listpack_text(node, entry->fields[i]);
		count++;
	}
	rdb_listpack_number(node, (int64_t)count);
	return count + 1;
}

/* A container, whose key is the id of its first entry. */
static enum status
node_dump(const struct timed_entries *entries, struct buf *node, struct buf *out)
{
	const struct timed_entry *master = &entries->entries[0];
	size_t count = 4 + master->count / 2;

	rdb_listpack_begin(node);
	rdb_listpack_number(node, (int64_t)entries->count);
	rdb_listpack_number(node, 0);
	rdb_listpack_number(node, (int64_t)(master->count / 2));
	for (size_t i = 0; i < master->count; i += 2)
		rdb_listpack_text(node, master->fields[i]);
	rdb_listpack_number(node, 0);
	for (size_t i = 0; i < entries->count; i++)
		count += entry_dump(&entries->entries[i], master, node);
	rdb_listpack_end(node, count);
	TRY(buf_status(node));
	rdb_put_length(out, ID_BYTES);
	rdb_put_id(out, id_of(master->id));
	rdb_put_string(out, buf_str(node));
	TRY(step_count_bytes(node->len));
	return buf_status(out);
}

/* All entries; `*ret_first` stays as it is where there is none. */
static enum status
entries_dump(struct timed_item *item, uint64_t length, struct timed_stream_id *ret_first,
	     struct buf *out)
{
	AUTO(buf_release) struct buf node = BUF_INIT_OF(DUMP_NODE_BYTES, arena_part(item->arena));
	struct timed_stream_range range = { .to = { UINT64_MAX, UINT64_MAX },
					    .limit = DUMP_NODE_ENTRIES };
	uint64_t found = 0;
	bool more = length > 0;

	rdb_put_length(out, (length + DUMP_NODE_ENTRIES - 1) / DUMP_NODE_ENTRIES);
	while (more) {
		struct arena_mark mark = arena_mark(item->arena);
		struct timed_entries entries;

		TRY(timed_stream_range(item, &range, &entries));
		if (!entries.count)
			break;
		if (!found)
			*ret_first = entries.entries[0].id;
		found += entries.count;
		TRY(node_dump(&entries, &node, out));
		range.from = entries.entries[entries.count - 1].id;
		more = entries.count == DUMP_NODE_ENTRIES && timed_stream_id_next(&range.from);
		arena_reset(item->arena, mark);
	}
	return counted(item, length, found);
}

/* What is pending for a consumer (its id alone), or in the whole group. */
static enum status
pending_dump(struct timed_item *item, const struct timed_group *group, struct str consumer,
	     struct buf *out)
{
	struct timed_pending_range range = { .consumer = consumer,
					     .to = { UINT64_MAX, UINT64_MAX },
					     .limit = DUMP_PAGE };
	uint64_t count, found = 0;
	struct timed_pendings page;

	TRY(timed_pending_count(item, group, consumer, &count));
	rdb_put_length(out, count);
	do {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(step_count(DUMP_PAGE));
		TRY(timed_pending_range(item, group, &range, &page));
		for (size_t i = 0; i < page.count; i++) {
			range.from = page.entries[i].id;
			rdb_put_id(out, id_of(range.from));
			if (consumer.ptr)
				continue;
			rdb_put_number(out, 8, date_of(item, page.entries[i].delivered_ms));
			rdb_put_length(out, page.entries[i].times);
		}
		found += page.count;
		arena_reset(item->arena, mark);
		TRY(buf_status(out));
	} while (page.count == DUMP_PAGE && timed_stream_id_next(&range.from));
	return counted(item, count, found);
}

static enum status
consumers_dump(struct timed_item *item, const struct timed_group *group, struct buf *out)
{
	struct str after = { NULL, 0 };
	struct timed_consumers page;
	uint64_t count, found = 0;

	TRY(timed_consumers_count(item, group, &count));
	rdb_put_length(out, count);
	do {
		TRY(timed_consumers_page(item, group, after, DUMP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			after = page.consumers[i].name;
			rdb_put_string(out, after);
			rdb_put_number(out, 8, date_of(item, page.consumers[i].seen_ms));
			TRY(pending_dump(item, group, after, out));
		}
		found += page.count;
	} while (page.count == DUMP_PAGE);
	return counted(item, count, found);
}

static enum status
groups_dump(struct timed_item *item, struct buf *out)
{
	struct str after = { NULL, 0 };
	struct timed_groups page;
	uint64_t count, found = 0;

	TRY(timed_groups_count(item, &count));
	rdb_put_length(out, count);
	do {
		TRY(timed_groups_page(item, after, DUMP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			const struct timed_group *group = &page.groups[i];

			after = group->name;
			rdb_put_string(out, after);
			put_id(out, group->last);
			rdb_put_length(out, (uint64_t)group->read);
			TRY(pending_dump(item, group, (struct str){ NULL, 0 }, out));
			TRY(consumers_dump(item, group, out));
		}
		found += page.count;
	} while (page.count == DUMP_PAGE);
	return counted(item, count, found);
}

static enum status
stream_dump(struct timed_item *item, struct buf *out)
{
	struct timed_stream_id first = { 0, 0 };
	struct timed_stream stream;
	uint64_t length;

	TRY(timed_stream_get(item, &stream));
	TRY(timed_count(item, &length));
	TRY(entries_dump(item, length, &first, out));
	rdb_put_length(out, length);
	put_id(out, stream.last);
	put_id(out, first);
	put_id(out, stream.deleted);
	rdb_put_length(out, stream.added);
	return groups_dump(item, out);
}

/* ---- All of them ---- */

static enum status
item_dump(struct timed_item *item, struct buf *out, unsigned *ret_version)
{
	switch ((int)item->type) {
	case TIMED_VALUE:
		buf_append_byte(out, RDB_CODE_STRING);
		return value_dump(item, out);
	case TIMED_LIST:
		buf_append_byte(out, RDB_CODE_LIST);
		return list_dump(item, out);
	case TIMED_STREAM:
		buf_append_byte(out, RDB_CODE_STREAM);
		return stream_dump(item, out);
	default:
		return members_dump(item, out, ret_version);
	}
}

enum status
rdb_dump(struct timed_item *item, struct buf *out)
{
	unsigned version = RDB_VERSION;
	size_t from = out->len;

	TRY(item_dump(item, out, &version));
	rdb_put_footer(out, from, version);
	return buf_status(out);
}

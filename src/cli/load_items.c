/* Keys of Redis's clients from a dump (dump_items.c). */
#include <math.h>

#include "cli/load_timed.h"
#include "doc/doc_int.h"
#include "model/timed/items/group.h"
#include "model/timed/items/json.h"

/* A line about an item. */
struct item_load {
	const struct load_line *line;
	struct timed_item *item;
	enum timed_type type;
	uint64_t write_us;
	uint64_t expires_ms;
};

/* A member or an element of the line. */
struct entry {
	struct timed_member member; /* a list's element: its name */
	uint64_t write_us;
};

/* ---- Parts of a line ---- */

/* A JSON text or {"$blob": …}. */
static enum status
bytes_read(const struct load_line *line, const struct json_value *value, const char *what,
	   struct str *ret)
{
	struct doc_scalar s = { .kind = DOC_NULL };

	if (value)
		TRY(rows_scalar_read(value, line->arena, &s, line->err));
	if (s.kind != DOC_TEXT && s.kind != DOC_BYTES)
		return err_set(line->err, STATUS_INVALID, "%s is a text or a $blob", what);
	*ret = s.text;
	return STATUS_OK;
}

static enum status
score_read(const struct load_line *line, const struct json_value *value, double *ret)
{
	static const struct {
		const char *name;
		double score;
	} names[] = { { "inf", (double)INFINITY }, { "-inf", -(double)INFINITY }, { "-0", -0.0 } };

	for (size_t i = 0; value->kind == JSON_STRING && i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(value->string, str_from_cstr(names[i].name))) {
			*ret = names[i].score;
			return STATUS_OK;
		}
	if (value->kind != JSON_NUMBER)
		return err_set(line->err, STATUS_INVALID, "%.*s is no score", STR_ARG(value->text));
	*ret = doc_number_double(value->text);
	return STATUS_OK;
}

/* [name, value or score where the type has one, write time, expiry] */
static enum status
entry_read(const struct item_load *l, const struct json_value *value, struct entry *ret)
{
	size_t fixed = l->type == TIMED_HASH || l->type == TIMED_ZSET ? 2 : 1, count;
	const struct load_line *line = l->line;
	struct json_value *parts;

	*ret = (struct entry){ .write_us = l->write_us };
	TRY(json_value_items(value, line->arena, &parts, &count, line->err));
	if (count < fixed || count > fixed + 2)
		return err_set(line->err, STATUS_INVALID, "a member has %zu to %zu parts", fixed,
			       fixed + 2);
	TRY(bytes_read(line, &parts[0], "a member", &ret->member.name));
	if (l->type == TIMED_HASH)
		TRY(bytes_read(line, &parts[1], "a value", &ret->member.value));
	if (l->type == TIMED_ZSET)
		TRY(score_read(line, &parts[1], &ret->member.score));
	if ((count > fixed && !str_to_u64(parts[fixed].text, &ret->write_us)) ||
	    (count > fixed + 1 && !str_to_u64(parts[fixed + 1].text, &ret->member.expires_ms)))
		return err_set(line->err, STATUS_INVALID, "a time is a whole number");
	return STATUS_OK;
}

/* ---- Items of each type ---- */

static enum status
value_load(struct item_load *l)
{
	const struct load_line *line = l->line;
	uint64_t offset = 0;
	struct str value;

	TRY(load_line_u64(line, "offset", &offset));
	TRY(bytes_read(line, json_value_find(line->members, line->count, "value"), "a value",
		       &value));
	if (l->item->type != TIMED_LEAF)
		return timed_value_write(l->item, offset, value);
	return timed_value_set(l->item, value, (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER });
}

/* Adds members, or elements, that were written at the same time. */
static enum status
entries_put(struct item_load *l, const struct entry *entries, size_t count)
{
	struct arena *arena = l->line->arena;
	struct timed_member *members = arena_alloc(arena, (count + 1) * sizeof(*members));
	struct str *values = arena_alloc(arena, (count + 1) * sizeof(*values));

	if (!members || !values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		members[i] = entries[i].member;
		values[i] = entries[i].member.name;
	}
	TRY(timed_written_at(l->item->t, entries[0].write_us));
	if (l->type == TIMED_LIST)
		return timed_list_push(l->item, false, values, count);
	return timed_members_put(l->item, l->type, members, count);
}

static enum status
entries_load(struct item_load *l)
{
	const struct load_line *line = l->line;
	struct json_value *items;
	struct entry *entries;
	size_t count, from = 0;

	TRY(load_line_list(line, "members", true, &items, &count));
	entries = arena_alloc(line->arena, (count + 1) * sizeof(*entries));
	if (!entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		TRY(entry_read(l, &items[i], &entries[i]));
		if (i > from && entries[i].write_us != entries[from].write_us) {
			TRY(entries_put(l, entries + from, i - from));
			from = i;
		}
	}
	return count ? entries_put(l, entries + from, count - from) : STATUS_OK;
}

/* [ms, seq, field, value, …] */
static enum status
stream_entry_read(const struct load_line *line, const struct json_value *value,
		  struct timed_entry *ret)
{
	struct json_value *parts;
	size_t count;

	TRY(json_value_items(value, line->arena, &parts, &count, line->err));
	if (count < 2 || !str_to_u64(parts[0].text, &ret->id.ms) ||
	    !str_to_u64(parts[1].text, &ret->id.seq))
		return err_set(line->err, STATUS_INVALID,
			       "an entry of a stream begins with the two numbers of its id");
	ret->count = count - 2;
	ret->fields = arena_alloc(line->arena, (ret->count + 1) * sizeof(*ret->fields));
	if (!ret->fields)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++)
		TRY(bytes_read(line, &parts[i + 2], "a field of an entry", &ret->fields[i]));
	return STATUS_OK;
}

/* STATUS_INVALID if the entry does not come after all that the stream has. */
static enum status
stream_entry_follows(struct item_load *l, struct timed_stream_id id)
{
	const struct timed_stream_range range = { .from = id,
						  .to = { UINT64_MAX, UINT64_MAX },
						  .limit = 1 };
	struct timed_entries behind;

	TRY(timed_stream_range(l->item, &range, &behind));
	return !behind.count ? STATUS_OK
			     : err_set(l->line->err, STATUS_INVALID,
				       "the entries of a stream are not in the order of their ids");
}

/* ---- Groups of consumers ---- */

static bool
numbers_read(const struct json_value *parts, size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++)
		if (!str_to_u64(parts[i].text, &ret[i]))
			return false;
	return true;
}

/* [name, seen_ms] */
static enum status
consumer_load(struct item_load *l, const struct timed_group *group, const struct json_value *value)
{
	const struct load_line *line = l->line;
	struct timed_consumer consumer, old;
	struct json_value *parts;
	enum status status;
	size_t count;

	TRY(json_value_items(value, line->arena, &parts, &count, line->err));
	if (count != 2 || !numbers_read(parts + 1, 1, &consumer.seen_ms))
		return err_set(line->err, STATUS_INVALID, "a consumer has a name and a time");
	TRY(bytes_read(line, &parts[0], "a consumer", &consumer.name));
	status = timed_consumer_get(l->item, group, consumer.name, &old);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	return timed_consumer_put(l->item, group, &consumer, status == STATUS_NOT_FOUND);
}

/* [ms, seq, consumer, delivered_ms, times] */
static enum status
pending_load(struct item_load *l, const struct timed_group *group, const struct json_value *value)
{
	const struct load_line *line = l->line;
	struct timed_pending e = { .found = false };
	struct timed_consumer owner;
	struct json_value *parts;
	uint64_t id[2], rest[2];
	enum status status;
	struct str name;
	size_t count;

	TRY(json_value_items(value, line->arena, &parts, &count, line->err));
	if (count != 5 || !numbers_read(parts, 2, id) || !numbers_read(parts + 3, 2, rest))
		return err_set(line->err, STATUS_INVALID,
			       "an entry that is pending has the two numbers of its id, a "
			       "consumer, a time and a number");
	TRY(bytes_read(line, &parts[2], "a consumer", &name));
	status = timed_consumer_get(l->item, group, name, &owner);
	if (status == STATUS_NOT_FOUND)
		return err_set(line->err, STATUS_INVALID,
			       "an entry is pending for a consumer that the group does not have");
	TRY(status);
	e.id = (struct timed_stream_id){ id[0], id[1] };
	TRY(timed_pending_get(l->item, group, &e, 1));
	e.delivered_ms = rest[0];
	e.times = rest[1];
	return timed_pending_give(l->item, group, name, &e, 1);
}

/* The list of that name, if the line has it. */
static enum status
group_list_load(struct item_load *l, const struct timed_group *group, const char *name,
		enum status (*load)(struct item_load *l, const struct timed_group *group,
				    const struct json_value *value))
{
	struct json_value *items;
	size_t count;

	TRY(load_line_list(l->line, name, false, &items, &count));
	for (size_t i = 0; i < count; i++)
		TRY(load(l, group, &items[i]));
	return STATUS_OK;
}

static enum status
group_load(struct item_load *l, const struct json_value *value)
{
	const struct load_line *line = l->line;
	struct timed_group group, said = { .read = TIMED_GROUP_UNREAD };
	enum status status;
	uint64_t read;

	TRY(bytes_read(line, value, "a group", &said.name));
	TRY(load_line_u64(line, "group_ms", &said.last.ms));
	TRY(load_line_u64(line, "group_seq", &said.last.seq));
	if (json_value_find(line->members, line->count, "read")) {
		TRY(load_line_u64(line, "read", &read));
		said.read = (int64_t)(read & INT64_MAX);
	}
	status = timed_group_get(l->item, said.name, &group);
	if (status == STATUS_NOT_FOUND) {
		TRY(timed_group_add(l->item, &said));
		group = said;
		status = STATUS_OK;
	}
	TRY(status);
	TRY(group_list_load(l, &group, "consumers", consumer_load));
	return group_list_load(l, &group, "pending", pending_load);
}

/* Adds the entries of the line; the stream then says of itself what the line says. */
static enum status
stream_load(struct item_load *l)
{
	const struct load_line *line = l->line;
	const struct json_value *group = json_value_find(line->members, line->count, "group");
	struct timed_stream stream, said = { 0 };
	struct json_value *items;
	size_t count;

	if (group)
		return group_load(l, group);
	TRY(load_line_list(line, "members", true, &items, &count));
	TRY(load_line_u64(line, "last_ms", &said.last.ms));
	TRY(load_line_u64(line, "last_seq", &said.last.seq));
	TRY(load_line_u64(line, "deleted_ms", &said.deleted.ms));
	TRY(load_line_u64(line, "deleted_seq", &said.deleted.seq));
	TRY(load_line_u64(line, "added", &said.added));
	TRY(timed_stream_get(l->item, &stream));
	for (size_t i = 0; i < count; i++) {
		struct timed_entry entry;

		TRY(stream_entry_read(line, &items[i], &entry));
		TRY(stream_entry_follows(l, entry.id));
		TRY(timed_stream_add(l->item, &stream, &entry));
		if (timed_stream_id_cmp(entry.id, said.last) > 0)
			return err_set(line->err, STATUS_INVALID,
				       "an entry of a stream is behind its last id");
	}
	return timed_stream_set(l->item, &said);
}

/* ---- Documents ---- */

/* The way to a leaf: names, and places of elements. */
static enum status
steps_read(const struct load_line *line, const struct json_value *value,
	   struct timed_json_pair *ret)
{
	struct json_value *steps;

	TRY(json_value_items(value, line->arena, &steps, &ret->count, line->err));
	ret->steps = arena_zalloc(line->arena, (ret->count + 1) * sizeof(*ret->steps));
	if (!ret->steps)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++) {
		ret->steps[i].element = steps[i].kind == JSON_NUMBER;
		ret->steps[i].name = steps[i].string;
		if (ret->steps[i].element ? !str_to_i64(steps[i].text, &ret->steps[i].place)
					  : steps[i].kind != JSON_STRING)
			return err_set(line->err, STATUS_INVALID,
				       "the way to a leaf consists of names and whole numbers");
	}
	return STATUS_OK;
}

/* {"members":…,"next":…}, {"elements":…,"first":…}, {"bytes":…} or {"piece":…}. */
static enum status
container_read(const struct load_line *line, const struct json_value *value,
	       struct timed_json_pair *ret)
{
	static const struct {
		const char *count;
		const char *next;
		enum timed_json_form form;
	} forms[] = { { "members", "next", TIMED_JSON_OBJECT },
		      { "elements", "first", TIMED_JSON_ARRAY },
		      { "bytes", NULL, TIMED_JSON_LONG } };
	const struct json_value *n, *next;
	struct json_member *members;
	size_t count;

	TRY(json_value_members(value, line->arena, &members, &count, line->err));
	n = json_value_find(members, count, "piece");
	if (n) {
		ret->is_piece = true;
		ret->n = ret->leaf.ordinal;
		return bytes_read(line, n, "a piece", &ret->bytes);
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		n = json_value_find(members, count, forms[i].count);
		next = forms[i].next ? json_value_find(members, count, forms[i].next) : NULL;
		if (!n)
			continue;
		ret->leaf.form = forms[i].form;
		if (str_to_u64(n->text, &ret->leaf.count) &&
		    (!forms[i].next || (next && str_to_i64(next->text, &ret->leaf.next))))
			return STATUS_OK;
	}
	return err_set(line->err, STATUS_INVALID, "a leaf of a document cannot be read");
}

static enum status
leaf_load(struct item_load *l, const struct json_value *value)
{
	const struct load_line *line = l->line;
	struct timed_json_pair pair = { .leaf.form = TIMED_JSON_SCALAR };
	struct json_value *parts;
	struct jtree_node *scalar;
	size_t count;

	TRY(json_value_items(value, line->arena, &parts, &count, line->err));
	if (count != 3 || !str_to_u64(parts[1].text, &pair.leaf.ordinal))
		return err_set(line->err, STATUS_INVALID,
			       "a leaf of a document has a way, a number and a value");
	TRY(steps_read(line, &parts[0], &pair));
	if (parts[2].kind == JSON_OBJECT_BEGIN) {
		TRY(container_read(line, &parts[2], &pair));
	} else {
		TRY(jtree_read(parts[2].text, line->arena, &scalar, line->err));
		if (jtree_is_container(scalar))
			return err_set(line->err, STATUS_INVALID, "a leaf is no array");
		pair.leaf.scalar = *scalar;
	}
	return timed_json_put_pair(l->item, &pair);
}

static enum status
document_load(struct item_load *l)
{
	const struct load_line *line = l->line;
	const struct json_value *value = json_value_find(line->members, line->count, "text");
	struct json_value *leaves;
	uint64_t offset = 0;
	struct str text;
	size_t count;

	if (value) {
		TRY(load_line_u64(line, "offset", &offset));
		TRY(bytes_read(line, value, "\"text\"", &text));
		return timed_json_put_text(l->item, offset, text);
	}
	TRY(load_line_list(line, "leaves", true, &leaves, &count));
	for (size_t i = 0; i < count; i++)
		TRY(leaf_load(l, &leaves[i]));
	return STATUS_OK;
}

/* ---- A line ---- */

/* The item of the line: the one that it goes on with, or another one, which is to be empty. */
static enum status
item_begin(struct item_load *l, struct timed *t, struct str key, bool *has_last)
{
	const struct load_line *line = l->line;

	if (!*has_last || !str_eq(l->item->key, key))
		TRY(timed_item_open(t, key, line->arena, l->item));
	*has_last = true;
	if (!json_value_find(line->members, line->count, "more"))
		return timed_item_delete(l->item);
	if (l->item->type != TIMED_LEAF && l->item->type != l->type)
		return err_set(line->err, STATUS_INVALID,
			       "what is there is of another type than the rest of it");
	return STATUS_OK;
}

enum status
load_items_line(struct timed *t, const struct load_line *line, struct timed_item *last,
		bool *has_last)
{
	struct item_load l = { .line = line, .item = last };
	struct timed_expiry expiry = { .kind = TIMED_EXPIRY_NEVER };
	struct str key;

	TRY(bytes_read(line, json_value_find(line->members, line->count, "key"), "\"key\"", &key));
	l.type = rows_type_read(json_value_find(line->members, line->count, "type"));
	if (l.type == TIMED_TYPES || l.type < TIMED_VALUE)
		return err_set(line->err, STATUS_INVALID, "no key can have this \"type\"");
	TRY(load_line_u64(line, "written_us", &l.write_us));
	TRY(load_line_u64(line, "expires_ms", &l.expires_ms));
	TRY(item_begin(&l, t, key, has_last));
	TRY(timed_written_at(t, l.write_us));
	TRY(l.type == TIMED_VALUE    ? value_load(&l)
	    : l.type == TIMED_STREAM ? stream_load(&l)
	    : l.type == TIMED_JSON   ? document_load(&l)
				     : entries_load(&l));
	/* The header may have been written with the time of a member. */
	if (l.expires_ms)
		expiry = (struct timed_expiry){ TIMED_EXPIRY_AT, l.expires_ms };
	TRY(timed_written_at(t, l.write_us));
	return timed_item_expire(last, expiry);
}

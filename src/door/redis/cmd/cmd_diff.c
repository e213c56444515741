/*
 * FROND.DIFF: what became of a key between two moments. Both of its states are read whole, as lists
 * of parts: the value, members, elements, entries. Parts that have names are compared name by name.
 * Elements of a list have none: what both lists begin with, and what both end with, is left out.
 */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/json.h"
#include "door/redis/cmd/members.h"
#include "door/redis/cmd/past.h"
#include "door/redis/cmd/stream.h"
#include "loop/sort.h"
#include "loop/step.h"

struct diff_part {
	struct str name;
	struct str value;
	double score;             /* of a sorted set */
	struct timed_entry entry; /* of a stream */
};

/* The key as it was at one of the moments. */
struct diff_side {
	enum timed_type type;
	uint64_t expires_ms; /* as clients name moments; 0: never */
	struct diff_part *parts;
	size_t count, cap;
};

/* ---- Reading ---- */

static enum status
side_add(struct diff_side *s, struct arena *arena, const struct diff_part *part)
{
	TRY(step_count(1));
	TRY(arena_room(arena, &s->parts, s->count, &s->cap, sizeof(*s->parts)));
	s->parts[s->count++] = *part;
	return STATUS_OK;
}

static enum status
compare_names(const void *arg, const void *a, const void *b, int *ret)
{
	const struct diff_part *x = a, *y = b;

	(void)arg;
	return sort_compare_strs(x->name, y->name, ret);
}

static enum status
side_read_members(struct diff_side *s, struct timed_item *item)
{
	struct members_walk walk;
	struct timed_member m;
	enum status status;

	members_walk_init(&walk, item, false);
	while ((status = members_walk_next(&walk, &m)) == STATUS_OK)
		TRY(side_add(
			s, item->arena,
			&(struct diff_part){ .name = m.name, .value = m.value, .score = m.score }));
	if (status != STATUS_NOT_FOUND)
		return status;
	return sort_items(s->parts, s->count, sizeof(*s->parts), compare_names, NULL, item->arena);
}

static enum status
side_read_list(struct diff_side *s, struct timed_item *item)
{
	struct timed_elements page;

	do {
		TRY(timed_list_range(item, s->count, DATA_PAGE, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(side_add(s, item->arena,
				     &(struct diff_part){ .value = page.elements[i].value }));
	} while (page.count == DATA_PAGE);
	return STATUS_OK;
}

static enum status
side_read_stream(struct diff_side *s, struct timed_item *item)
{
	struct timed_stream_range range = { .to = STREAM_ID_LAST, .limit = DATA_PAGE };
	struct timed_entries page;

	do {
		TRY(timed_stream_range(item, &range, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(side_add(s, item->arena,
				     &(struct diff_part){ .entry = page.entries[i] }));
		if (page.count)
			range.from = page.entries[page.count - 1].id;
	} while (page.count == DATA_PAGE && timed_stream_id_next(&range.from));
	return STATUS_OK;
}

static enum status
side_read_document(struct diff_side *s, struct timed_item *item)
{
	AUTO(buf_release)
	struct buf text = BUF_INIT_OF(DATA_VALUE_BYTES, arena_part(item->arena));
	struct diff_part part = { .name = STR("") };
	struct timed_json j;

	TRY(timed_json_open(item, &j));
	TRY(json_write(&j, j.root, &jtree_dense, 0, &text));
	TRY(buf_copy(&text, item->arena, &part.value));
	return side_add(s, item->arena, &part);
}

static enum status
side_read_item(struct diff_side *s, struct timed_item *item)
{
	struct diff_part part = { .name = STR("") };

	switch (item->type) {
	case TIMED_VALUE:
		TRY(data_value(item, &part.value));
		return side_add(s, item->arena, &part);
	case TIMED_HASH:
	case TIMED_SET:
	case TIMED_ZSET:
		return side_read_members(s, item);
	case TIMED_LIST:
		return side_read_list(s, item);
	case TIMED_STREAM:
		return side_read_stream(s, item);
	case TIMED_JSON:
		return side_read_document(s, item);
	case TIMED_LEAF:
	case TIMED_INSERTED:
	case TIMED_TYPES:
		break;
	}
	return STATUS_OK;
}

/* For past_view(): the call is as of the moment. */
static enum status
side_read(struct call *c, void *arg)
{
	struct diff_side *s = arg;
	struct timed_item *item;
	uint64_t now_ms;

	TRY(txn_item(c, c->argv[1], &item));
	s->type = item->type;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(txn_now_ms(c, &now_ms));
	if (item->expires_ms)
		s->expires_ms = item->expires_ms - (uint64_t)txn_ahead_ms(c);
	return side_read_item(s, item);
}

/* ---- Telling ---- */

/* What a part is, on one of the sides; NULL: it is not there. */
static void
answer_side(struct call *c, enum timed_type type, const struct diff_part *part)
{
	if (!part) {
		reply_null(c->reply);
	} else if (type == TIMED_SET) {
		reply_int(c->reply, 1);
	} else if (type == TIMED_ZSET) {
		reply_double(c->reply, part->score);
	} else if (type == TIMED_STREAM) {
		reply_array(c->reply, part->entry.count);
		for (size_t i = 0; i < part->entry.count; i++)
			reply_bulk(c->reply, part->entry.fields[i]);
	} else {
		reply_bulk(c->reply, part->value);
	}
}

/* A change: which part, what it was, what it is. `index`: of an element. */
static enum status
answer_change(struct call *c, enum timed_type type, size_t index, const struct diff_part *was,
	      const struct diff_part *is)
{
	const struct diff_part *part = was ? was : is;

	TRY(step_count(1));
	reply_array(c->reply, 3);
	if (type == TIMED_LIST)
		reply_int(c->reply, (int64_t)index);
	else if (type == TIMED_STREAM)
		stream_answer_id(c->reply, part->entry.id);
	else
		reply_bulk(c->reply, part->name);
	answer_side(c, type, was);
	answer_side(c, type, is);
	return STATUS_OK;
}

/* All parts of one side, from one index up to another, have come or gone. */
static enum status
answer_all(struct call *c, const struct diff_side *s, size_t from, size_t to, bool came)
{
	for (size_t i = from; i < to; i++)
		TRY(answer_change(c, s->type, i, came ? NULL : &s->parts[i],
				  came ? &s->parts[i] : NULL));
	return STATUS_OK;
}

static enum status
parts_are_equal(enum timed_type type, const struct diff_part *a, const struct diff_part *b,
		bool *ret)
{
	TRY(step_count_bytes(a->value.len));
	*ret = type == TIMED_ZSET ? a->score == b->score : str_eq(a->value, b->value);
	return STATUS_OK;
}

static enum status
compare_parts(enum timed_type type, const struct diff_part *a, const struct diff_part *b, int *ret)
{
	if (type == TIMED_STREAM) {
		*ret = timed_stream_id_cmp(a->entry.id, b->entry.id);
		return STATUS_OK;
	}
	return sort_compare_strs(a->name, b->name, ret);
}

/* Two sides of one type whose parts are in an order. */
static enum status
answer_merged(struct call *c, const struct diff_side *a, const struct diff_side *b, size_t *ret)
{
	size_t i = 0, k = 0;
	bool equal;
	int order;

	while (i < a->count && k < b->count) {
		TRY(compare_parts(a->type, &a->parts[i], &b->parts[k], &order));
		TRY(step_count(1));
		if (order < 0) {
			TRY(answer_change(c, a->type, 0, &a->parts[i++], NULL));
			++*ret;
		} else if (order > 0) {
			TRY(answer_change(c, a->type, 0, NULL, &b->parts[k++]));
			++*ret;
		} else {
			TRY(parts_are_equal(a->type, &a->parts[i], &b->parts[k], &equal));
			if (!equal)
				TRY(answer_change(c, a->type, 0, &a->parts[i], &b->parts[k]));
			*ret += !equal;
			i++;
			k++;
		}
	}
	*ret += a->count - i + (b->count - k);
	TRY(answer_all(c, a, i, a->count, false));
	return answer_all(c, b, k, b->count, true);
}

/* Two lists: what lies between what both begin with and what both end with. */
static enum status
answer_lists(struct call *c, const struct diff_side *a, const struct diff_side *b, size_t *ret)
{
	size_t head = 0, tail = 0;
	bool equal = true;

	while (head < a->count && head < b->count) {
		TRY(parts_are_equal(a->type, &a->parts[head], &b->parts[head], &equal));
		if (!equal)
			break;
		head++;
	}
	while (tail < a->count - head && tail < b->count - head) {
		TRY(parts_are_equal(a->type, &a->parts[a->count - 1 - tail],
				    &b->parts[b->count - 1 - tail], &equal));
		if (!equal)
			break;
		tail++;
	}
	*ret += a->count + b->count - 2 * (head + tail);
	TRY(answer_all(c, a, head, a->count - tail, false));
	return answer_all(c, b, head, b->count - tail, true);
}

static enum status
answer_changes(struct call *c, const struct diff_side *a, const struct diff_side *b, size_t *ret)
{
	if (a->type != b->type) {
		*ret = a->count + b->count;
		TRY(answer_all(c, a, 0, a->count, false));
		return answer_all(c, b, 0, b->count, true);
	}
	return a->type == TIMED_LIST ? answer_lists(c, a, b, ret) : answer_merged(c, a, b, ret);
}

static void
answer_expiry(struct call *c, const struct diff_side *s)
{
	if (s->expires_ms)
		reply_int(c->reply, (int64_t)s->expires_ms);
	else
		reply_null(c->reply);
}

enum status
cmd_frond_diff(struct call *c)
{
	struct diff_side a = { .type = TIMED_LEAF }, b = a;
	size_t place, count = 0;

	TRY(past_view(c, 2, side_read, &a));
	TRY(past_view(c, 3, side_read, &b));
	reply_map(c->reply, 3);
	reply_bulk_cstr(c->reply, "type");
	reply_array(c->reply, 2);
	reply_bulk_cstr(c->reply, data_type_name(a.type));
	reply_bulk_cstr(c->reply, data_type_name(b.type));
	reply_bulk_cstr(c->reply, "expires");
	reply_array(c->reply, 2);
	answer_expiry(c, &a);
	answer_expiry(c, &b);
	reply_bulk_cstr(c->reply, "changes");
	place = reply_later(c->reply);
	TRY(answer_changes(c, &a, &b, &count));
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

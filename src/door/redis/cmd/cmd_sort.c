/* SORT: elements of a list, set or sorted set in the order of themselves or of other keys. */

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/list.h"
#include "door/redis/cmd/members.h"
#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	SORT_GETS = 1024, /* GET options of one command */
};

struct sort {
	struct str by;
	bool has_by;
	bool unsorted; /* BY without a '*' */
	bool descending;
	bool alpha;
	int64_t skip, limit;
	struct str *gets;
	size_t get_count;
	size_t store; /* the argument; 0: none */
};

struct element {
	struct str value;
	struct str weight; /* ALPHA; ptr NULL: none */
	double number;
};

/* ---- Reading the options ---- */

/*
 * BY and GET make names of keys out of elements, which no rule about keys has been asked about: so
 * the client has to be one that may read every key.
 */
static enum status
sort_may_look_up(struct call *c, const char *option, struct str pattern)
{
	if (acl_reads_all_keys(&c->client->acl))
		return STATUS_OK;
	TRY(txn_denied(c, ACL_DENIED_KEY, pattern));
	return call_errorf(c, "ERR %s option of SORT denied due to insufficient ACL permissions.",
			   option);
}

static enum status
sort_parse(struct call *c, struct sort *s)
{
	bool may_store = !(c->command->flags & COMMAND_READONLY);

	s->limit = -1;
	for (size_t i = 2; i < c->argc; i++) {
		size_t left = c->argc - i - 1;

		if (call_arg_is(c, i, "asc")) {
			s->descending = false;
		} else if (call_arg_is(c, i, "desc")) {
			s->descending = true;
		} else if (call_arg_is(c, i, "alpha")) {
			s->alpha = true;
		} else if (call_arg_is(c, i, "limit") && left >= 2) {
			TRY(call_int(c, i + 1, &s->skip));
			TRY(call_int(c, i + 2, &s->limit));
			i += 2;
		} else if (may_store && call_arg_is(c, i, "store") && left >= 1) {
			s->store = ++i;
		} else if (call_arg_is(c, i, "by") && left >= 1) {
			s->by = c->argv[++i];
			s->has_by = true;
			s->unsorted = !s->by.len || !memchr(s->by.ptr, '*', s->by.len);
			if (!s->unsorted)
				TRY(sort_may_look_up(c, "BY", s->by));
		} else if (call_arg_is(c, i, "get") && left >= 1 && s->get_count < SORT_GETS) {
			TRY(sort_may_look_up(c, "GET", c->argv[i + 1]));
			s->gets[s->get_count++] = c->argv[++i];
		} else {
			return call_syntax_error(c);
		}
	}
	return STATUS_OK;
}

/* ---- Other keys ---- */

/*
 * The value that a pattern names for an element: "weight_*", "data_*->field", "#". `ret->ptr` NULL:
 * there is none.
 */
static enum status
sort_look_up(struct call *c, struct str pattern, struct str element, struct str *ret)
{
	const char *star = pattern.len ? memchr(pattern.ptr, '*', pattern.len) : NULL;
	struct str field = { 0 };
	struct timed_item *item;
	struct str tail;
	size_t head;
	char *key;

	*ret = (struct str){ 0 };
	if (str_eq(pattern, STR("#"))) {
		*ret = element;
		return STATUS_OK;
	}
	if (!star)
		return STATUS_OK;
	head = (size_t)(star - pattern.ptr);
	tail = str_skip(pattern, head + 1);
	for (size_t i = 0; i + 2 < tail.len; i++) {
		if (tail.ptr[i] != '-' || tail.ptr[i + 1] != '>')
			continue;
		field = str_skip(tail, i + 2);
		tail.len = i;
		break;
	}
	key = arena_bytes(c->arena, head + element.len + tail.len + 1);
	if (!key)
		return STATUS_LIMIT;
	memcpy(key, pattern.ptr, head);
	memcpy(key + head, element.ptr, element.len);
	memcpy(key + head + element.len, tail.ptr, tail.len);
	TRY(txn_item(c, str_of(key, head + element.len + tail.len), &item));
	TRY(txn_looked_up(c, item));
	if (!field.len)
		return item->type == TIMED_VALUE ? data_value(item, ret) : STATUS_OK;
	if (item->type == TIMED_HASH) {
		struct timed_member m = { .name = field };

		TRY(timed_members_get(item, &m, 1));
		if (m.found)
			*ret = m.value.ptr ? m.value : STR("");
	}
	return STATUS_OK;
}

/* ---- The elements ---- */

static enum status
sort_collect_members(struct call *c, struct timed_item *item, struct element **ret, size_t *count)
{
	struct timed_member *m;

	TRY(members_all(item, c->arena, &m, count));
	*ret = arena_zalloc(c->arena, (*count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *count; i++)
		(*ret)[i].value = m[i].name;
	return STATUS_OK;
}

static enum status
sort_collect_ranked(struct call *c, struct timed_item *item, bool descending, struct element **ret,
		    size_t *count)
{
	const struct timed_zset_range range = {
		.by = TIMED_BY_RANK, .to = UINT64_MAX, .reverse = descending, .limit = SIZE_MAX
	};
	struct timed_members e;

	TRY(timed_zset_range(item, &range, &e));
	*count = e.count;
	*ret = arena_zalloc(c->arena, (e.count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < e.count; i++)
		(*ret)[i].value = e.members[i].name;
	return STATUS_OK;
}

static enum status
sort_collect(struct call *c, struct timed_item *item, const struct sort *s, struct element **ret,
	     size_t *count)
{
	struct timed_elements e;
	uint64_t length;

	*count = 0;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	if (item->type == TIMED_ZSET && s->unsorted)
		return sort_collect_ranked(c, item, s->descending, ret, count);
	if (item->type != TIMED_LIST)
		return sort_collect_members(c, item, ret, count);
	TRY(timed_count(item, &length));
	TRY(timed_list_range(item, 0, length, &e));
	*count = e.count;
	*ret = arena_zalloc(c->arena, (e.count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < e.count; i++)
		(*ret)[i].value = e.elements[i].value;
	return STATUS_OK;
}

/* What they are ordered by. */
static enum status
sort_weigh(struct call *c, const struct sort *s, struct element *e, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct str weight = e[i].value;

		TRY(step_count(1));
		if (s->has_by)
			TRY(sort_look_up(c, s->by, e[i].value, &weight));
		e[i].weight = weight;
		if (s->alpha || !weight.ptr)
			continue;
		/* To Redis a number ends at the first NUL, and what is empty is 0. */
		weight.len = strnlen(weight.ptr, weight.len);
		if (!weight.len)
			continue;
		if (number_read_weight(weight, &e[i].number))
			continue;
		return call_error(c, STR("ERR One or more scores can't be converted into double"));
	}
	return STATUS_OK;
}

static enum status
compare_numbers(const void *arg, const void *x, const void *y, int *ret)
{
	const struct element *a = x, *b = y;

	(void)arg;
	if (a->number == b->number)
		return sort_compare_strs(a->value, b->value, ret);
	*ret = a->number < b->number ? -1 : 1;
	return STATUS_OK;
}

static enum status
compare_texts(const void *arg, const void *x, const void *y, int *ret)
{
	const struct element *a = x, *b = y;

	(void)arg;
	if (a->weight.ptr && b->weight.ptr)
		TRY(sort_compare_strs(a->weight, b->weight, ret));
	else
		*ret = (a->weight.ptr != NULL) - (b->weight.ptr != NULL);
	return *ret ? STATUS_OK : sort_compare_strs(a->value, b->value, ret);
}

static enum status
sort_elements(struct call *c, const struct sort *s, struct element *e, size_t count)
{
	TRY(sort_items(e, count, sizeof(*e), s->alpha ? compare_texts : compare_numbers, NULL,
		       c->arena));
	for (size_t i = 0; s->descending && i < count / 2; i++) {
		struct element swapped = e[i];

		e[i] = e[count - 1 - i];
		e[count - 1 - i] = swapped;
	}
	return STATUS_OK;
}

/* ---- The answer ---- */

static enum status
sort_store(struct call *c, const struct sort *s, const struct str *values, size_t count)
{
	struct str key = c->argv[s->store];
	struct timed_item *to;

	TRY(data_replace(c, key, count, &to));
	if (!count)
		return STATUS_OK;
	TRY(timed_list_push(to, false, values, count));
	return txn_changed(c, key, EVENT_LIST, "sortstore");
}

static enum status
sort_answer(struct call *c, const struct sort *s, const struct element *e, size_t count)
{
	size_t each = s->get_count ? s->get_count : 1;
	struct str *values = arena_zalloc(c->arena, (count * each + 1) * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (!s->get_count)
			values[i] = e[i].value.ptr ? e[i].value : STR("");
		for (size_t k = 0; k < s->get_count; k++)
			TRY(sort_look_up(c, s->gets[k], e[i].value, &values[i * each + k]));
	}
	if (s->store) {
		for (size_t i = 0; i < count * each; i++)
			if (!values[i].ptr)
				values[i] = STR("");
		return sort_store(c, s, values, count * each);
	}
	reply_array(c->reply, count * each);
	for (size_t i = 0; i < count * each; i++)
		reply_bulk_if(c->reply, values[i].ptr, values[i]);
	return STATUS_OK;
}

enum status
cmd_sort(struct call *c)
{
	struct sort s = { .gets = arena_alloc(c->arena, SORT_GETS * sizeof(*s.gets)) };
	struct element *e = NULL;
	struct timed_item *item;
	size_t count, from, to;

	if (!s.gets)
		return STATUS_LIMIT;
	TRY(sort_parse(c, &s));
	TRY(txn_item(c, c->argv[1], &item));
	TRY(txn_looked_up(c, item));
	if (item->type == TIMED_VALUE || item->type == TIMED_HASH || item->type == TIMED_STREAM)
		return call_wrong_type(c);
	TRY(sort_collect(c, item, &s, &e, &count));
	/* A set has no order; what is stored, or a script gets, is the same each time. */
	if (s.unsorted && item->type == TIMED_SET && (s.store || c->in_script)) {
		s.unsorted = s.has_by = false;
		s.alpha = true;
	}
	if (!s.unsorted) {
		TRY(sort_weigh(c, &s, e, count));
		TRY(sort_elements(c, &s, e, count));
	}
	from = s.skip < 0 ? 0 : (uint64_t)s.skip < count ? (size_t)s.skip : count;
	to = s.limit < 0 || (uint64_t)s.limit > count - from ? count : from + (size_t)s.limit;
	return sort_answer(c, &s, count ? e + from : e, to - from);
}

/* SORT: elements of a list, set or sorted set in the order of themselves or of other keys. */

#include <assert.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/list.h"
#include "door/redis/cmd/members.h"
#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	SORT_GETS = 1024, /* GET options of one command */
	SORT_PAGE = 4096, /* elements that are read at once */
};

#define SORT_NOTHING UINT32_MAX
#define SORT_ITSELF  (UINT32_MAX - 1)

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

/*
 * An element, and behind its value the text that it is ordered by, if that is another one. A list
 * may have millions of them, so there is no padding.
 */
struct element {
	double number;
	uint32_t len;
	uint32_t weight_len; /* ALPHA; SORT_NOTHING: there is none; SORT_ITSELF: it is the value */
	char text[];
} __attribute__((packed));

/* The elements that are ordered or answered. */
struct elements {
	struct element **at; /* in the call's arena, as what they point to */
	size_t count;
	size_t room;
};

/* ---- Reading the options ---- */

/*
 * BY and GET make names of keys out of elements, which no rule about keys has been asked about: so
 * a selector that allows the call has to allow to read every key, too.
 */
static enum status
sort_may_look_up(struct call *c, const char *option, struct str pattern)
{
	if (acl_allows_reading_all(&c->client->acl, c->command, c->argv, c->argc, c->arena))
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

/* How many of so many elements LIMIT has, and from which one on. */
static uint64_t
sort_clip(const struct sort *s, uint64_t count, uint64_t *ret_from)
{
	uint64_t left;

	*ret_from = s->skip < 0 ? 0 : (uint64_t)s->skip < count ? (uint64_t)s->skip : count;
	left = count - *ret_from;
	return s->limit < 0 || (uint64_t)s->limit > left ? left : (uint64_t)s->limit;
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

static struct str
element_value(const struct element *e)
{
	return str_of(e->text, e->len);
}

/* `ptr` NULL: nothing. */
static struct str
element_weight(const struct element *e)
{
	if (e->weight_len == SORT_ITSELF)
		return element_value(e);
	if (e->weight_len == SORT_NOTHING)
		return (struct str){ 0 };
	return str_of(e->text + e->len, e->weight_len);
}

/* Reads what the element is ordered by, if it is a number. */
static enum status
sort_weigh(struct call *c, const struct sort *s, struct str weight, double *ret)
{
	*ret = 0;
	if (s->unsorted || s->alpha || !weight.ptr)
		return STATUS_OK;
	/* To Redis a number ends at the first NUL, and what is empty is 0. */
	weight.len = strnlen(weight.ptr, weight.len);
	if (!weight.len || number_read_weight(weight, ret))
		return STATUS_OK;
	return call_error(c, STR("ERR One or more scores can't be converted into double"));
}

static enum status
sort_add(struct call *c, const struct sort *s, struct str value, struct elements *ret)
{
	bool looks = s->has_by && !s->unsorted;
	struct str weight = value, behind = { 0 };
	struct element *e;
	double number;

	assert(ret->count < ret->room);
	if (looks)
		TRY(sort_look_up(c, s->by, value, &weight));
	TRY(sort_weigh(c, s, weight, &number));
	if (looks && s->alpha)
		behind = weight;
	assert(value.len < SORT_ITSELF && behind.len < SORT_ITSELF);
	e = (struct element *)arena_bytes(c->arena, sizeof(*e) + value.len + behind.len);
	if (!e)
		return STATUS_LIMIT;
	e->number = number;
	e->len = (uint32_t)value.len;
	e->weight_len = SORT_ITSELF;
	if (looks)
		e->weight_len = behind.ptr ? (uint32_t)behind.len : SORT_NOTHING;
	if (value.len)
		memcpy(e->text, value.ptr, value.len);
	if (behind.len)
		memcpy(e->text + value.len, behind.ptr, behind.len);
	ret->at[ret->count++] = e;
	return STATUS_OK;
}

/* Members in the order in which they are stored, but for the first `from`. */
static enum status
sort_collect_members(struct call *c, struct timed_item *item, const struct sort *s, uint64_t from,
		     struct elements *ret)
{
	enum status status = STATUS_OK;
	struct members_walk w;
	struct timed_member m;

	members_walk_init(&w, item, true);
	while (status == STATUS_OK && ret->count < ret->room) {
		status = members_walk_next(&w, &m);
		if (status == STATUS_OK && from)
			from--;
		else if (status == STATUS_OK)
			status = sort_add(c, s, m.name, ret);
	}
	members_walk_end(&w);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* At most `n` elements of a list, or members of a sorted set in its order. */
static enum status
sort_collect_page(struct call *c, struct timed_item *item, const struct sort *s, uint64_t from,
		  size_t n, struct elements *ret)
{
	const struct timed_zset_range range = { .by = TIMED_BY_RANK,
						.from = from,
						.to = from + n,
						.reverse = s->descending,
						.limit = SIZE_MAX };
	struct timed_elements list = { 0 };
	struct timed_members members = { 0 };

	if (item->type == TIMED_LIST)
		TRY(timed_list_range(item, from, n, &list));
	else
		TRY(timed_zset_range(item, &range, &members));
	for (size_t i = 0; i < list.count; i++)
		TRY(sort_add(c, s, list.elements[i].value, ret));
	for (size_t i = 0; i < members.count; i++)
		TRY(sort_add(c, s, members.members[i].name, ret));
	return STATUS_OK;
}

/* The same page by page, each of which is forgotten when its elements were taken. */
static enum status
sort_collect_range(struct call *c, struct timed_item *item, const struct sort *s, uint64_t from,
		   struct elements *ret)
{
	struct arena *own = item->arena;
	struct arena *pages = arena_new(arena_limit_bytes(own));
	enum status status = STATUS_OK;

	if (!pages)
		return STATUS_NOMEM;
	arena_set_part(pages, arena_part(own));
	while (status == STATUS_OK && ret->count < ret->room) {
		size_t left = ret->room - ret->count, before = ret->count;
		size_t n = left < SORT_PAGE ? left : SORT_PAGE;

		status = step_count((uint32_t)n);
		item->arena = pages;
		if (status == STATUS_OK)
			status = sort_collect_page(c, item, s, from + before, n, ret);
		item->arena = own;
		if (status == STATUS_OK && ret->count == before)
			break;
		arena_clear(pages);
	}
	arena_free(pages);
	return status;
}

/* Collects all elements, or, if they keep their order, those of LIMIT. */
static enum status
sort_collect(struct call *c, struct timed_item *item, const struct sort *s, struct elements *ret)
{
	uint64_t count, from = 0;

	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	if (s->unsorted)
		count = sort_clip(s, count, &from);
	if (count > SIZE_MAX / sizeof(*ret->at))
		return STATUS_LIMIT;
	ret->at = arena_alloc(c->arena, (size_t)count * sizeof(*ret->at));
	if (!ret->at)
		return STATUS_LIMIT;
	ret->room = (size_t)count;
	if (item->type == TIMED_LIST || (item->type == TIMED_ZSET && s->unsorted))
		return sort_collect_range(c, item, s, from, ret);
	return sort_collect_members(c, item, s, from, ret);
}

static enum status
compare_numbers(const void *arg, const void *x, const void *y, int *ret)
{
	const struct element *a = *(struct element *const *)x, *b = *(struct element *const *)y;

	(void)arg;
	if (a->number == b->number)
		return sort_compare_strs(element_value(a), element_value(b), ret);
	*ret = a->number < b->number ? -1 : 1;
	return STATUS_OK;
}

static enum status
compare_texts(const void *arg, const void *x, const void *y, int *ret)
{
	const struct element *a = *(struct element *const *)x, *b = *(struct element *const *)y;
	struct str wa = element_weight(a), wb = element_weight(b);

	(void)arg;
	if (wa.ptr && wb.ptr)
		TRY(sort_compare_strs(wa, wb, ret));
	else
		*ret = (wa.ptr != NULL) - (wb.ptr != NULL);
	return *ret ? STATUS_OK : sort_compare_strs(element_value(a), element_value(b), ret);
}

static enum status
sort_elements(struct call *c, const struct sort *s, struct elements *e)
{
	TRY(sort_items(e->at, e->count, sizeof(*e->at), s->alpha ? compare_texts : compare_numbers,
		       NULL, c->arena));
	for (size_t i = 0; s->descending && i < e->count / 2; i++) {
		struct element *swapped = e->at[i];

		e->at[i] = e->at[e->count - 1 - i];
		e->at[e->count - 1 - i] = swapped;
	}
	return STATUS_OK;
}

/* ---- The answer ---- */

/* The `nth` value that is answered for an element; `ret->ptr` NULL: none. */
static enum status
sort_value(struct call *c, const struct sort *s, const struct element *e, size_t nth,
	   struct str *ret)
{
	if (s->get_count)
		return sort_look_up(c, s->gets[nth], element_value(e), ret);
	*ret = element_value(e);
	return STATUS_OK;
}

static enum status
sort_store(struct call *c, const struct sort *s, struct element *const *e, size_t count)
{
	size_t each = s->get_count ? s->get_count : 1;
	struct str key = c->argv[s->store];
	struct timed_item *to;
	struct str *values;

	values = arena_zalloc(c->arena, (count * each + 1) * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	/* Before the destination is another: GET may name it. */
	for (size_t i = 0; i < count * each; i++) {
		TRY(sort_value(c, s, e[i / each], i % each, &values[i]));
		if (!values[i].ptr)
			values[i] = STR("");
	}
	TRY(data_replace(c, key, count * each, &to));
	if (!count)
		return STATUS_OK;
	TRY(timed_list_push(to, false, values, count * each));
	return txn_changed(c, key, EVENT_LIST, "sortstore");
}

static enum status
sort_answer(struct call *c, const struct sort *s, struct element *const *e, size_t count)
{
	size_t each = s->get_count ? s->get_count : 1;

	reply_array(c->reply, count * each);
	for (size_t i = 0; i < count * each; i++) {
		struct str value;

		TRY(sort_value(c, s, e[i / each], i % each, &value));
		reply_bulk_if(c->reply, value.ptr, value);
		if (i % each == 0)
			TRY(step_count(1));
	}
	return STATUS_OK;
}

enum status
cmd_sort(struct call *c)
{
	struct sort s = { .gets = arena_alloc(c->arena, SORT_GETS * sizeof(*s.gets)) };
	struct elements e = { 0 };
	struct timed_item *item;
	uint64_t from = 0, count;

	if (!s.gets)
		return STATUS_LIMIT;
	TRY(sort_parse(c, &s));
	TRY(txn_item(c, c->argv[1], &item));
	TRY(txn_looked_up(c, item));
	if (item->type == TIMED_VALUE || item->type == TIMED_HASH || item->type == TIMED_STREAM ||
	    item->type == TIMED_JSON)
		return call_wrong_type(c);
	/* A set has no order; what is stored, or a script gets, is the same each time. */
	if (s.unsorted && item->type == TIMED_SET && (s.store || c->in_script)) {
		s.unsorted = s.has_by = false;
		s.alpha = true;
	}
	TRY(sort_collect(c, item, &s, &e));
	count = e.count;
	if (!s.unsorted) {
		TRY(sort_elements(c, &s, &e));
		count = sort_clip(&s, e.count, &from);
	}
	if (s.store)
		return sort_store(c, &s, count ? e.at + from : e.at, (size_t)count);
	return sort_answer(c, &s, count ? e.at + from : e.at, (size_t)count);
}

/* Fields of hashes that expire by themselves, as in Redis 7.4 and 8.0. */
#include <assert.h>

#include "base/hash.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/cmd/members.h"
#include "door/redis/wire/number.h"

enum {
	/* What is answered for a field. */
	FIELD_ABSENT = -2,
	FIELD_LASTS = -1, /* it does not expire */
	FIELD_UNCHANGED = 0,
	FIELD_CHANGED = 1,
	FIELD_DELETED = 2,

	FIELDS_AT = 4, /* HEXPIRE: where FIELDS is without an option */
};

#define EXPIRE_MOST ((INT64_C(1) << 46) - 1) /* in milliseconds since 1970, as in Redis */

#define NOT_POSITIVE "ERR Number of fields must be a positive integer"

/* ---- The fields of a call ---- */

/* Fields that arguments name; one that is named twice is the one that was named first. */
struct fields {
	struct timed_item *item;
	struct timed_member *members;
	size_t *twins; /* of each, the first of its name */
	size_t count;
	bool *changed; /* it has another value or time now */
	bool *deleted;
};

/* Reads "FIELDS n field …" from argument `at` on. */
static enum status
fields_parse(struct call *c, size_t at, size_t each, const char *not_positive, size_t *ret_count)
{
	int64_t n;

	if (!call_arg_is(c, at, "fields"))
		return call_error(c, STR("ERR Mandatory argument FIELDS is missing or not at the "
					 "right position"));
	if (at + 1 >= c->argc || !number_read_i64(c->argv[at + 1], &n) || n < 1)
		return call_error(c, str_from_cstr(not_positive));
	if ((uint64_t)n != (c->argc - at - 2) / each || (c->argc - at - 2) % each)
		return call_error(
			c, STR("ERR The `numfields` parameter must match the number of arguments"));
	*ret_count = (size_t)n;
	return STATUS_OK;
}

static enum status
fields_find_twins(struct call *c, struct fields *f)
{
	size_t slots = hash_slots(f->count);
	size_t *table = arena_zalloc(c->arena, slots * sizeof(*table));

	f->twins = arena_alloc(c->arena, f->count * sizeof(*f->twins));
	if (!table || !f->twins)
		return STATUS_LIMIT;
	for (size_t i = 0; i < f->count; i++) {
		size_t at = hash_keyed(0, f->members[i].name) & (slots - 1);

		while (table[at] && !str_eq(f->members[table[at] - 1].name, f->members[i].name))
			at = (at + 1) & (slots - 1);
		if (!table[at])
			table[at] = i + 1;
		f->twins[i] = table[at] - 1;
		assert(f->twins[i] <= i); /* the one that was named first */
	}
	return STATUS_OK;
}

/*
 * Looks for `count` fields, each `each` arguments behind the one before. Without `values` their
 * long values are not read.
 */
static enum status
fields_look_up(struct call *c, struct timed_item *item, size_t first, size_t each, size_t count,
	       bool values, struct fields *ret)
{
	*ret = (struct fields){ .item = item, .count = count };
	ret->members = arena_zalloc(c->arena, count * sizeof(*ret->members));
	ret->changed = arena_zalloc(c->arena, count * sizeof(*ret->changed));
	ret->deleted = arena_zalloc(c->arena, count * sizeof(*ret->deleted));
	if (!ret->members || !ret->changed || !ret->deleted)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		ret->members[i] = (struct timed_member){ .name = c->argv[first + i * each],
							 .most = !values };
	TRY(fields_find_twins(c, ret));
	return item->type == TIMED_LEAF ? STATUS_OK : timed_members_get(item, ret->members, count);
}

/* The fields of which `chosen` says so, each once, in the arena. */
static enum status
fields_choose(struct call *c, const struct fields *f, const bool *chosen, struct timed_member **ret,
	      size_t *ret_count)
{
	struct timed_member *m = arena_alloc(c->arena, f->count * sizeof(*m));

	if (!m)
		return STATUS_LIMIT;
	*ret = m;
	*ret_count = 0;
	for (size_t i = 0; i < f->count; i++)
		if (f->twins[i] == i && chosen[i])
			m[(*ret_count)++] = f->members[i];
	return STATUS_OK;
}

/* Writes what has changed, with the events. */
static enum status
fields_write(struct call *c, struct fields *f, const char *event)
{
	struct timed_member *m;
	size_t count;

	for (size_t i = 0; i < f->count; i++)
		f->changed[i] = f->changed[i] && !f->deleted[i];
	TRY(fields_choose(c, f, f->changed, &m, &count));
	if (count) {
		TRY(timed_members_put(f->item, TIMED_HASH, m, count));
		TRY(txn_changed(c, c->argv[1], EVENT_HASH, event));
	}
	TRY(fields_choose(c, f, f->deleted, &m, &count));
	if (!count)
		return STATUS_OK;
	TRY(timed_members_delete(f->item, m, count));
	return data_changed(c, f->item, c->argv[1], EVENT_HASH, "hdel");
}

/* ---- Times ---- */

/* Reads a time. */
static enum status
time_parse(struct call *c, size_t i, struct data_time how, uint64_t now, uint64_t *ret_ms)
{
	int64_t n;
	bool fine;

	if (i >= c->argc || !number_read_i64(c->argv[i], &n))
		return call_not_integer(c);
	if (n < 0)
		return call_error(c, STR("ERR invalid expire time, must be >= 0"));
	fine = !how.seconds || !__builtin_mul_overflow(n, INT64_C(1000), &n);
	if (n || !how.absolute)
		fine &= !__builtin_add_overflow(n, how.absolute ? txn_ahead_ms(c) : (int64_t)now,
						&n);
	if (!fine || n > EXPIRE_MOST)
		return call_errorf(c, "ERR invalid expire time in '%s' command", c->command->name);
	*ret_ms = n > 0 ? (uint64_t)n : 1;
	return STATUS_OK;
}

/* ---- HEXPIRE and its kin ---- */

struct condition {
	bool nx, xx, gt, lt;
};

static bool
condition_holds(const struct condition *k, uint64_t old_ms, uint64_t new_ms)
{
	if ((k->nx && old_ms) || (k->xx && !old_ms))
		return false;
	if (k->gt && (!old_ms || new_ms <= old_ms))
		return false;
	return !k->lt || !old_ms || new_ms < old_ms;
}

static int
expire_field(struct fields *f, size_t i, const struct condition *k, uint64_t at_ms, uint64_t now)
{
	struct timed_member *m = &f->members[f->twins[i]];

	if (!m->found)
		return FIELD_ABSENT;
	if (!condition_holds(k, m->expires_ms, at_ms))
		return FIELD_UNCHANGED;
	if (at_ms <= now) {
		m->found = false;
		f->deleted[f->twins[i]] = true;
		return FIELD_DELETED;
	}
	m->expires_ms = at_ms;
	f->changed[f->twins[i]] = true;
	return FIELD_CHANGED;
}

enum status
cmd_hash_expire(struct call *c)
{
	struct condition k = { .nx = call_arg_is(c, 3, "nx"),
			       .xx = call_arg_is(c, 3, "xx"),
			       .gt = call_arg_is(c, 3, "gt"),
			       .lt = call_arg_is(c, 3, "lt") };
	size_t at = k.nx || k.xx || k.gt || k.lt ? FIELDS_AT : FIELDS_AT - 1;
	struct timed_item *item;
	struct fields f;
	uint64_t at_ms, now;
	size_t count;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(txn_now_ms(c, &now));
	TRY(time_parse(c, 2, data_time_of(c), now, &at_ms));
	TRY(fields_parse(c, at, 1, "ERR Parameter `numFields` should be greater than 0", &count));
	TRY(fields_look_up(c, item, at + 2, 1, count, true, &f));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++)
		reply_int(c->reply, expire_field(&f, i, &k, at_ms, now));
	return fields_write(c, &f, "hexpire");
}

/* Looks up the fields of a command that has nothing but those. */
static enum status
fields_open(struct call *c, bool values, struct fields *ret)
{
	struct timed_item *item;
	size_t count;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(fields_parse(c, 2, 1, NOT_POSITIVE, &count));
	return fields_look_up(c, item, 4, 1, count, values, ret);
}

enum status
cmd_hpersist(struct call *c)
{
	struct fields f;

	TRY(fields_open(c, true, &f));
	reply_array(c->reply, f.count);
	for (size_t i = 0; i < f.count; i++) {
		struct timed_member *m = &f.members[f.twins[i]];

		reply_int(c->reply, !m->found        ? FIELD_ABSENT
				    : !m->expires_ms ? FIELD_LASTS
						     : FIELD_CHANGED);
		f.changed[f.twins[i]] |= m->found && m->expires_ms;
		m->expires_ms = 0;
	}
	return fields_write(c, &f, "hpersist");
}

/* ---- HTTL and its kin ---- */

enum status
cmd_hash_ttl(struct call *c)
{
	const struct data_time how = data_time_of(c);
	struct fields f;
	uint64_t now, ahead;

	TRY(fields_open(c, false, &f));
	TRY(txn_now_ms(c, &now));
	ahead = (uint64_t)txn_ahead_ms(c);
	reply_array(c->reply, f.count);
	for (size_t i = 0; i < f.count; i++) {
		const struct timed_member *m = &f.members[i];
		uint64_t ms = m->expires_ms - (how.absolute ? ahead : now);

		if (!m->found)
			reply_int(c->reply, FIELD_ABSENT);
		else if (!m->expires_ms)
			reply_int(c->reply, FIELD_LASTS);
		else
			reply_int(c->reply, (int64_t)(how.seconds ? (ms + 999) / 1000 : ms));
	}
	return STATUS_OK;
}

/* ---- HGETDEL, HGETEX, HSETEX ---- */

/* What HGETEX and HSETEX say of the time. */
struct when {
	bool given; /* an option was: EX, PX, EXAT, PXAT, PERSIST, KEEPTTL */
	bool persist;
	bool keep;
	uint64_t at_ms; /* 0: none of those with a time */
};

/* True if the argument is an option with a time; `*ret` says of what kind. */
static bool
when_takes_time(const struct call *c, size_t i, struct data_time *ret)
{
	ret->seconds = call_arg_is(c, i, "ex") || call_arg_is(c, i, "exat");
	ret->absolute = call_arg_is(c, i, "exat") || call_arg_is(c, i, "pxat");
	return ret->seconds || ret->absolute || call_arg_is(c, i, "px");
}

static void
answer_values(struct call *c, const struct fields *f)
{
	reply_array(c->reply, f->count);
	for (size_t i = 0; i < f->count; i++)
		reply_bulk_if(c->reply, f->members[i].found, f->members[i].value);
}

enum status
cmd_hgetdel(struct call *c)
{
	struct fields f;

	TRY(fields_open(c, true, &f));
	for (size_t i = 0; i < f.count; i++) {
		f.deleted[i] = f.members[i].found;
		/* It is gone when it is named again. */
		if (f.twins[i] != i)
			f.members[i].found = false;
	}
	answer_values(c, &f);
	return fields_write(c, &f, "hdel");
}

enum status
cmd_hgetex(struct call *c)
{
	struct data_time how = { 0 };
	struct when when = { 0 };
	struct timed_item *item;
	struct fields f;
	size_t at = 2, count;
	uint64_t now;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(txn_now_ms(c, &now));
	if (call_arg_is(c, at, "persist")) {
		when.given = when.persist = true;
		at++;
	} else if (when_takes_time(c, at, &how)) {
		TRY(time_parse(c, at + 1, how, now, &when.at_ms));
		when.given = true;
		at += 2;
	}
	TRY(fields_parse(c, at, 1, NOT_POSITIVE, &count));
	TRY(fields_look_up(c, item, at + 2, 1, count, true, &f));
	answer_values(c, &f);
	for (size_t i = 0; i < count && when.given; i++) {
		struct timed_member *m = &f.members[i];

		f.changed[i] = m->found && m->expires_ms != when.at_ms;
		f.deleted[i] = m->found && when.at_ms && when.at_ms <= now;
		m->expires_ms = when.at_ms;
	}
	return fields_write(c, &f, when.persist ? "hpersist" : "hexpire");
}

struct hsetex {
	struct when when;
	bool fnx, fxx;
	size_t first; /* of the fields; 0: none yet */
	size_t count;
};

/* "FIELDS n field value …" at `*i`, which is then the last argument of it. */
static enum status
hsetex_parse_fields(struct call *c, struct hsetex *h, size_t *i)
{
	int64_t n;

	if (*i + 1 >= c->argc || !number_read_i64(c->argv[*i + 1], &n) || n < 1 || n > INT32_MAX)
		return call_error(c, STR("ERR invalid number of fields"));
	if ((uint64_t)n * 2 != c->argc - *i - 2)
		return call_wrong_arity(c);
	h->first = *i + 2;
	h->count = (size_t)n;
	*i = c->argc - 1;
	return STATUS_OK;
}

static enum status
hsetex_parse(struct call *c, uint64_t now, struct hsetex *h)
{
	for (size_t i = 2; i < c->argc; i++) {
		struct data_time how = { 0 };
		bool times = when_takes_time(c, i, &how), keeps = call_arg_is(c, i, "keepttl");

		if (call_arg_is(c, i, "fields")) {
			TRY(hsetex_parse_fields(c, h, &i));
		} else if (call_arg_is(c, i, "fnx") || call_arg_is(c, i, "fxx")) {
			if (h->fnx || h->fxx)
				return call_error(c, STR("ERR Only one of FXX or FNX arguments "
							 "can be specified"));
			h->fnx = call_arg_is(c, i, "fnx");
			h->fxx = !h->fnx;
		} else if (times || keeps) {
			if (h->when.given)
				return call_error(c, STR("ERR Only one of EX, PX, EXAT, PXAT or "
							 "KEEPTTL arguments can be specified"));
			h->when.given = true;
			h->when.keep = keeps;
			if (times)
				TRY(time_parse(c, ++i, how, now, &h->when.at_ms));
		} else {
			return call_errorf(c, "ERR unknown argument: %.*s",
					   STR_ARG(call_shown(c->argv[i])));
		}
	}
	if (h->first)
		return STATUS_OK;
	return call_wrong_arity(c);
}

/* FNX and FXX. */
static bool
hsetex_applies(const struct hsetex *h, const struct fields *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->members[i].found ? h->fnx : h->fxx)
			return false;
	return true;
}

/* Sets the fields, and deletes them again if their time has passed. */
static enum status
hsetex_write(struct call *c, const struct hsetex *h, struct fields *f, uint64_t now)
{
	bool passed = h->when.at_ms && h->when.at_ms <= now;

	for (size_t i = 0; i < f->count; i++) {
		struct timed_member *m = &f->members[f->twins[i]];

		m->value = c->argv[h->first + 2 * i + 1];
		if (!h->when.keep)
			m->expires_ms = passed ? 0 : h->when.at_ms;
		f->changed[i] = true;
	}
	TRY(fields_write(c, f, "hset"));
	if (h->when.at_ms && !passed)
		return txn_event(c, c->argv[1], EVENT_HASH, "hexpire");
	for (size_t i = 0; passed && i < f->count; i++)
		f->deleted[i] = true;
	return passed ? fields_write(c, f, "hset") : STATUS_OK;
}

enum status
cmd_hsetex(struct call *c)
{
	struct hsetex h = { .count = 0 };
	struct timed_item *item;
	struct fields f;
	uint64_t now;
	bool applies;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(txn_now_ms(c, &now));
	TRY(hsetex_parse(c, now, &h));
	TRY(fields_look_up(c, item, h.first, 2, h.count, false, &f));
	applies = hsetex_applies(&h, &f);
	reply_int(c->reply, applies);
	return applies ? hsetex_write(c, &h, &f, now) : STATUS_OK;
}

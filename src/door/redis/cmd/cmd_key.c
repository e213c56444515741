/* Keys of any type: whether they are there, names, places. */
#include "base/rand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/cmd/members.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/glob.h"
#include "door/redis/wire/number.h"

enum {
	EMBSTR_BYTES = 44, /* of a string that Redis would embed */
	RANDOM_PAGES = 65537,
	INTEGER_BYTES = 20,
};

/* ---- Whether they are there ---- */

enum status
cmd_del(struct call *c)
{
	size_t count = c->argc - 1;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(struct timed_item *));
	int64_t deleted = 0;

	if (!items)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + 1, count, 1, items));
	for (size_t i = 0; i < count; i++) {
		TRY(txn_item(c, c->argv[i + 1], &items[i])); /* it may be there twice */
		if (items[i]->type == TIMED_LEAF)
			continue;
		TRY(data_delete(c, items[i], c->argv[i + 1], "del"));
		deleted++;
	}
	reply_int(c->reply, deleted);
	return STATUS_OK;
}

/* EXISTS and TOUCH: how many of the arguments are there. */
enum status
cmd_exists(struct call *c)
{
	size_t count = c->argc - 1;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(struct timed_item *));
	int64_t found = 0;

	if (!items)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + 1, count, 1, items));
	for (size_t i = 0; i < count; i++)
		found += items[i]->type != TIMED_LEAF;
	reply_int(c->reply, found);
	return STATUS_OK;
}

enum status
cmd_type(struct call *c)
{
	struct timed_item *item;

	TRY(txn_item(c, c->argv[1], &item));
	reply_simple(c->reply, data_type_name(item->type));
	return STATUS_OK;
}

/* ---- Names ---- */

enum status
cmd_rename(struct call *c)
{
	bool only_new = call_is(c, HOW_ONLY_NEW);
	struct timed_item *from, *to;

	TRY(txn_item(c, c->argv[1], &from));
	if (from->type == TIMED_LEAF)
		return call_error(c, STR(ERROR_NO_KEY));
	if (str_eq(c->argv[1], c->argv[2])) {
		if (only_new)
			reply_int(c->reply, 0);
		else
			reply_ok(c->reply);
		return STATUS_OK;
	}
	TRY(txn_item(c, c->argv[2], &to));
	if (only_new && to->type != TIMED_LEAF) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	TRY(timed_item_rename(from, to));
	TRY(txn_is_new(c, c->db, c->argv[2]));
	TRY(txn_changed(c, c->argv[1], EVENT_GENERIC, "rename_from"));
	TRY(txn_changed(c, c->argv[2], EVENT_GENERIC, "rename_to"));
	if (only_new)
		reply_int(c->reply, 1);
	else
		reply_ok(c->reply);
	return STATUS_OK;
}

/* Copies to another key or database; `*ret_done` is false if something is there already. */
static enum status
copy_to(struct call *c, struct timed_item *from, unsigned db, struct str key, bool replace,
	bool *ret_done)
{
	struct timed_item *to;

	TRY(txn_item_of(c, db, key, &to));
	*ret_done = to->type == TIMED_LEAF || replace;
	if (!*ret_done)
		return STATUS_OK;
	if (to->type != TIMED_LEAF)
		TRY(timed_item_delete(to));
	return timed_item_copy(from, to);
}

static enum status
read_db(struct call *c, size_t i, unsigned *ret)
{
	int64_t db;

	TRY(call_int(c, i, &db));
	if (db < 0 || db >= REDIS_DATABASES)
		return call_error(c, STR("ERR DB index is out of range"));
	*ret = (unsigned)db;
	return STATUS_OK;
}

enum status
cmd_copy(struct call *c)
{
	struct timed_item *from;
	unsigned db = c->db;
	bool replace = false;
	bool done = false;

	for (size_t i = 3; i < c->argc; i++) {
		if (call_arg_is(c, i, "replace"))
			replace = true;
		else if (!call_arg_is(c, i, "db") || i + 1 == c->argc)
			return call_syntax_error(c);
		else
			TRY(read_db(c, ++i, &db));
	}
	if (db == c->db && str_eq(c->argv[1], c->argv[2]))
		return call_error(c, STR("ERR source and destination objects are the same"));
	TRY(txn_item(c, c->argv[1], &from));
	TRY(txn_looked_up(c, from));
	if (from->type != TIMED_LEAF)
		TRY(copy_to(c, from, db, c->argv[2], replace, &done));
	if (done) {
		TRY(txn_is_new(c, db, c->argv[2]));
		TRY(txn_changed_in(c, db, c->argv[2], EVENT_GENERIC, "copy_to"));
	}
	reply_int(c->reply, done);
	return STATUS_OK;
}

enum status
cmd_move(struct call *c)
{
	struct timed_item *from;
	bool done = false;
	unsigned db;

	TRY(read_db(c, 2, &db));
	if (db == c->db)
		return call_error(c, STR("ERR source and destination objects are the same"));
	TRY(txn_item(c, c->argv[1], &from));
	if (from->type != TIMED_LEAF)
		TRY(copy_to(c, from, db, c->argv[1], false, &done));
	if (done) {
		TRY(timed_item_delete(from));
		TRY(txn_is_new(c, db, c->argv[1]));
		TRY(txn_changed(c, c->argv[1], EVENT_GENERIC, "move_from"));
		TRY(txn_changed_in(c, db, c->argv[1], EVENT_GENERIC, "move_to"));
	}
	reply_int(c->reply, done);
	return STATUS_OK;
}

/* ---- Many keys ---- */

enum status
cmd_dbsize(struct call *c)
{
	uint64_t count;

	TRY(txn_db_count(c, c->db, &count));
	reply_int(c->reply, (int64_t)count);
	return STATUS_OK;
}

enum status
cmd_keys(struct call *c)
{
	size_t place = reply_later(c->reply);
	struct timed *t;
	uint64_t next = 0;
	size_t count = 0;

	TRY(txn_db_there(c, c->db, &t));
	while (t) {
		struct arena_mark mark = arena_mark(c->arena);
		struct timed_items page;

		TRY(timed_items_page(t, next, DATA_PAGE, c->arena, &page));
		for (size_t i = 0; i < page.count; i++) {
			if (!glob_matches(c->argv[1], page.items[i].key, false))
				continue;
			reply_bulk(c->reply, page.items[i].key);
			count++;
		}
		arena_reset(c->arena, mark);
		next = page.next;
		if (!next)
			break;
	}
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

enum status
cmd_randomkey(struct call *c)
{
	struct timed_items page = { 0 };
	struct timed *t;
	uint64_t random[2];

	TRY(txn_db_there(c, c->db, &t));
	rand_bytes(random, sizeof(random));
	if (t)
		TRY(timed_items_page(t, random[0] % RANDOM_PAGES, 1, c->arena, &page));
	if (t && !page.count)
		TRY(timed_items_page(t, 0, 1, c->arena, &page));
	if (page.count)
		reply_bulk(c->reply, page.items[random[1] % page.count].key);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

enum status
cmd_scan(struct call *c)
{
	struct timed_items page = { 0 };
	struct scan_options options;
	uint64_t cursor;
	struct timed *t;
	size_t place;
	size_t count = 0;

	if (!str_to_u64(c->argv[1], &cursor))
		return call_error(c, STR("ERR invalid cursor"));
	TRY(scan_parse(c, 2, true, &options));
	TRY(txn_db_there(c, c->db, &t));
	if (t)
		TRY(timed_items_page(t, cursor, options.least, c->arena, &page));
	reply_array(c->reply, 2);
	reply_bulk_int(c->reply, (int64_t)page.next);
	place = reply_later(c->reply);
	for (size_t i = 0; i < page.count; i++) {
		const char *name = data_type_name(page.items[i].type);

		if ((options.type.ptr && !str_eq_nocase(options.type, str_from_cstr(name))) ||
		    !glob_matches(options.pattern, page.items[i].key, false))
			continue;
		reply_bulk(c->reply, page.items[i].key);
		count++;
	}
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

/* ---- Emptying databases ---- */

static enum status
flush_db(struct call *c, unsigned db)
{
	struct timed *t;

	TRY(txn_db_there(c, db, &t));
	if (!t)
		return STATUS_OK;
	TRY(timed_items_flush(t));
	txn_forget(c->x);
	return txn_flushed(c, db);
}

static enum status
flush_parse(struct call *c)
{
	if (c->argc == 1 ||
	    (c->argc == 2 && (call_arg_is(c, 1, "sync") || call_arg_is(c, 1, "async"))))
		return STATUS_OK;
	return call_syntax_error(c);
}

enum status
cmd_flushdb(struct call *c)
{
	TRY(flush_parse(c));
	TRY(flush_db(c, c->db));
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_flushall(struct call *c)
{
	TRY(flush_parse(c));
	for (unsigned db = 0; db < REDIS_DATABASES; db++)
		TRY(flush_db(c, db));
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_swapdb(struct call *c)
{
	int64_t a, b;

	TRY(call_int_range(c, 1, INT32_MIN, INT32_MAX, "invalid first DB index", &a));
	TRY(call_int_range(c, 2, INT32_MIN, INT32_MAX, "invalid second DB index", &b));
	if (a < 0 || a >= REDIS_DATABASES || b < 0 || b >= REDIS_DATABASES)
		return call_error(c, STR("ERR DB index is out of range"));
	TRY(txn_swap(c, (unsigned)a, (unsigned)b));
	reply_ok(c->reply);
	return STATUS_OK;
}

/* ---- OBJECT ---- */

/* What Redis would have the item as, by its size and by settings. */
static enum status
object_encoding(struct redis *r, struct timed_item *item, const char **ret)
{
	uint64_t count = 0, small;
	struct str value;
	int64_t n;

	if (item->type == TIMED_VALUE) {
		TRY(data_value(item, &value));
		*ret = value.len <= INTEGER_BYTES && number_read_i64(value, &n) ? "int"
		       : value.len <= EMBSTR_BYTES                              ? "embstr"
										: "raw";
		return STATUS_OK;
	}
	if (item->type == TIMED_JSON) {
		*ret = "raw";
		return STATUS_OK;
	}
	TRY(timed_count(item, &count));
	small = atomic_load(item->type == TIMED_HASH ? &r->small_hash : &r->small_zset);
	if (item->type == TIMED_LIST)
		*ret = "quicklist";
	else if (item->type == TIMED_STREAM)
		*ret = "stream";
	else if (item->type == TIMED_SET)
		*ret = "hashtable";
	else if (count <= small)
		*ret = "listpack";
	else
		*ret = item->type == TIMED_HASH ? "hashtable" : "skiplist";
	return STATUS_OK;
}

enum status
cmd_object(struct call *c)
{
	static const char *const help[] = {
		"ENCODING <key>",
		"    Return the kind of internal representation used in order to store the value",
		"    associated with a <key>.",
		"FREQ <key>",
		"    Return the access frequency index of the <key>. The returned integer is",
		"    proportional to the logarithm of the recent access frequency of the key.",
		"IDLETIME <key>",
		"    Return the idle time of the <key>, that is the approximated number of",
		"    seconds elapsed since the last access to the key.",
		"REFCOUNT <key>",
		"    Return the number of references of the value associated with the specified",
		"    <key>.",
	};
	struct timed_item *item;
	const char *encoding;
	uint64_t now;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (c->argc != 3)
		return call_unknown_subcommand(c);
	TRY(txn_item(c, c->argv[2], &item));
	(void)txn_count_look(c, item);
	if (item->type == TIMED_LEAF) {
		reply_null(c->reply);
	} else if (call_arg_is(c, 1, "encoding")) {
		TRY(object_encoding(c->redis, item, &encoding));
		reply_bulk_cstr(c->reply, encoding);
	} else if (call_arg_is(c, 1, "refcount")) {
		reply_int(c->reply, 1);
	} else if (call_arg_is(c, 1, "idletime")) {
		TRY(txn_now_ms(c, &now));
		reply_int(c->reply, (int64_t)((now - item->write_us / 1000) / 1000));
	} else if (call_arg_is(c, 1, "freq")) {
		return call_error(
			c, STR("ERR An LFU maxmemory policy is not selected, access frequency "
			       "not tracked. Please note that when switching between policies at "
			       "runtime LRU and LFU data will take some time to adjust."));
	} else {
		return call_unknown_subcommand(c);
	}
	return STATUS_OK;
}

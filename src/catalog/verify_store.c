/* The check of a store: its own keys, each database by its kind, and what lies beside them. */
#include <assert.h>
#include <stdlib.h>

#include "catalog/check.h"
#include "catalog/clock.h"
#include "catalog/move_int.h"
#include "catalog/records.h"
#include "kv/keyspace.h"
#include "kv/txid.h"

enum {
	VERIFY_SCRATCH_BYTES = 1024 * 1024,
	VERIFY_PAGE = 1000,                       /* of databases */
	VERIFY_NUMBERS_BYTES = 256 * 1024 * 1024, /* eight for each database, and as much again */
};

/* ---- Parts of the root that other modules check ---- */

static struct {
	uint64_t part;
	catalog_root_check *check;
} root_checks[CATALOG_ROOT_CHECKS];

void
catalog_verify_register(uint64_t part, catalog_root_check *check)
{
	size_t at = 0;

	while (at < CATALOG_ROOT_CHECKS && root_checks[at].check && root_checks[at].part != part)
		at++;
	assert(at < CATALOG_ROOT_CHECKS);
	/* Not written again by a repeated call, because other threads may be reading it by then. */
	if (root_checks[at].part == part && root_checks[at].check == check)
		return;
	root_checks[at].part = part;
	root_checks[at].check = check;
}

/* ---- The store ---- */

struct store_check {
	struct catalog_verify *v;
	struct arena *arena;
	uint64_t *numbers; /* of databases */
	size_t count;
	size_t cap;
	uint64_t *kept; /* numbers of deleted databases of which something is kept */
	size_t kept_count;
	size_t kept_cap;
	bool has_newer; /* a description that cannot be read: not every number is known */
	bool has_next;
	uint64_t next; /* the number that the next database gets */
};

/*
 * The name at the end of a key: of CouchDB's space, or with a number in front of it that says of
 * which. False, and it has been told, for anything else.
 */
static enum status
root_name(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair,
	  enum catalog_space *ret_space, struct str *ret, bool *ret_ok)
{
	enum status status;

	arena_clear(s->v->scratch);
	status = catalog_key_name_next(*k, s->v->scratch, ret_space, ret);
	*ret_ok = status == STATUS_OK;
	if (status != STATUS_CORRUPT)
		return status;
	catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key, "not the name of a database");
	return STATUS_OK;
}

/* One database, by the function of its kind. */
static enum status
verify_db(struct catalog_verify *v, const struct catalog_db *db)
{
	enum status status;

	v->db = db;
	v->sum.databases++;
	status = v->options->ranges ? catalog_verify_in_ranges(v) : db->kind->verify(v);
	/* What cannot be read ends the check of this database, and of no other. */
	if (status == STATUS_CORRUPT) {
		catalog_verify_found(
			v, CATALOG_FINDING_DAMAGE, STR(""), "the rest of it was not checked: %s",
			kv_tx_error(v->tx)[0] ? kv_tx_error(v->tx) : "it cannot be read");
		status = STATUS_OK;
	}
	v->db = NULL;
	v->own = NULL;
	return status;
}

/* (ROOT, 1, name): the description of a database, which is then checked. */
static enum status
root_database(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct catalog_verify *v = s->v;
	struct catalog_db description = { 0 };
	struct err err = { 0 };
	enum catalog_space space;
	struct catalog_db *db;
	enum status status;
	bool named;

	TRY(root_name(s, k, pair, &space, &description.name, &named));
	if (!named)
		return STATUS_OK;
	status = catalog_description_parse(pair->value, &description, &err);
	if (status != STATUS_OK) {
		s->has_newer = s->has_newer || status == STATUS_NEWER;
		catalog_verify_unreadable(v, status, &err, pair->key,
					  "not the description of a database");
		return STATUS_OK;
	}
	if (description.kind->space != space ||
	    description.kind->check_name(description.name, NULL) != STATUS_OK)
		catalog_verify_found(v, CATALOG_FINDING_DATABASE, pair->key,
				     "no database can have this name");
	if (description.number < KV_FIRST_PREFIX) {
		catalog_verify_found(v, CATALOG_FINDING_DATABASE, pair->key,
				     "no database can have number %llu",
				     (unsigned long long)description.number);
		return STATUS_OK;
	}
	TRY(catalog_array_grow(s->arena, (void **)&s->numbers, sizeof(*s->numbers), s->count,
			       &s->cap));
	s->numbers[s->count++] = description.number;
	db = catalog_db_new(&description);
	if (!db)
		return STATUS_NOMEM;
	status = verify_db(v, db);
	catalog_db_unref(db);
	return status;
}

/* (ROOT, 7, name): a database that is being moved. One that comes has a number already. */
static enum status
root_move(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct catalog_move move = { 0 };
	struct err err = { 0 };
	enum status status;
	bool named;

	TRY(root_name(s, k, pair, &move.space, &move.name, &named));
	if (!named)
		return STATUS_OK;
	status = catalog_move_parse(pair->value, s->v->scratch, &move, &err);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_unreadable(s->v, status, &err, pair->key,
					  "not what is known of a move");
		return STATUS_OK;
	}
	TRY(status);
	if (!move.number || move.state == CATALOG_MOVE_LIVE)
		return STATUS_OK;
	TRY(catalog_array_grow(s->arena, (void **)&s->numbers, sizeof(*s->numbers), s->count,
			       &s->cap));
	s->numbers[s->count++] = move.number;
	return STATUS_OK;
}

/* (ROOT, 4, P): a deleted database, whose keys are being cleared. */
static void
root_dropped(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct err err = { 0 };
	enum status status;
	struct catalog_drop drop;
	uint64_t number;

	if (tuple_next_u64(k, &number) != STATUS_OK || k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "not the number of a database");
		return;
	}
	status = catalog_drop_record_parse(pair->value, &drop, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key,
					  "not the record of a deleted database");
}

/* (ROOT, 16, ms, P): a deleted database, some keys of which are kept until then. */
static enum status
root_kept(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct err err = { 0 };
	struct catalog_drop drop = { 0 };
	enum status status;
	uint64_t number, ms;

	if (tuple_next_u64(k, &ms) != STATUS_OK || tuple_next_u64(k, &number) != STATUS_OK ||
	    k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "not a time and the number of a database");
		return STATUS_OK;
	}
	status = catalog_drop_record_parse(pair->value, &drop, &err);
	if (status == STATUS_OK && drop.until_ms != ms)
		status = STATUS_CORRUPT;
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key,
					  "not the record of a deleted database");
	TRY(catalog_array_grow(s->arena, (void **)&s->kept, sizeof(*s->kept), s->kept_count,
			       &s->kept_cap));
	s->kept[s->kept_count++] = number;
	return STATUS_OK;
}

/* (ROOT, 255, id): when, and under which stamp, a transaction of unknown result was committed. */
static void
root_txid(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct txid_record record;
	struct str id;

	if (!catalog_verify_text_next(k, TUPLE_BYTES, &id) || k->rest.len)
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "not a transaction's id");
	else if (txid_record_parse(pair->value, &record) != STATUS_OK)
		catalog_verify_found(s->v, CATALOG_FINDING_VALUE, pair->key,
				     "not what a transaction leaves behind");
}

/* A key with a number for its value. */
static bool
root_number(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair,
	    uint64_t *ret)
{
	struct tuple_reader r = tuple_reader(pair->value);

	if (k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "the store has no such key");
		return false;
	}
	if (tuple_next_u64(&r, ret) == STATUS_OK && r.rest.len == 0)
		return true;
	catalog_verify_found(s->v, CATALOG_FINDING_VALUE, pair->key, "not a number");
	return false;
}

/* The watched stamp, or what happened to a database. */
static enum status
root_event(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct catalog_event event = { 0 };
	struct err err = { 0 };
	enum catalog_space space;
	enum status status;
	bool named;

	if (k->rest.len == 0) {
		if (pair->value.len != KV_VERSIONSTAMP_BYTES)
			catalog_verify_found(s->v, CATALOG_FINDING_VALUE, pair->key,
					     "not a versionstamp");
		return STATUS_OK;
	}
	TRY(root_name(s, k, pair, &space, &event.name, &named));
	if (!named)
		return STATUS_OK;
	status = catalog_event_record_parse(pair->value, &event, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key, "not an event");
	return STATUS_OK;
}

/* (ROOT, 9, section, name): a setting. */
static void
root_setting(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct tuple_elem section, name;
	struct err err = { 0 };
	enum status status;
	struct str text;

	if (tuple_next(k, &section) != STATUS_OK || section.kind != TUPLE_STRING ||
	    tuple_next(k, &name) != STATUS_OK || name.kind != TUPLE_STRING || k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "not a setting's section and name");
		return;
	}
	arena_clear(s->v->scratch);
	status = catalog_setting_record_parse(pair->value, s->v->scratch, &text, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key, "not a setting's text");
}

/*
 * Checks (ROOT, 10, P), a database with indexes to build, and (ROOT, 12, P, id), a design document
 * with views to build. Both have the database's space and name in the value.
 */
static void
root_work(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair, bool of_design)
{
	enum catalog_space space;
	struct tuple_elem id;
	struct err err = { 0 };
	enum status status;
	uint64_t number;
	struct str name;

	if (tuple_next_u64(k, &number) != STATUS_OK ||
	    (of_design && (tuple_next(k, &id) != STATUS_OK || id.kind != TUPLE_STRING)) ||
	    k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     of_design ? "not a database's number and an id"
					       : "not a database's number");
		return;
	}
	arena_clear(s->v->scratch);
	status = catalog_work_record_parse(pair->value, s->v->scratch, &space, &name, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key,
					  "not a database's space and name");
}

static void
root_clock(struct store_check *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct steady_state state;
	struct err err = { 0 };
	struct tuple_elem id;
	enum status status;

	if (tuple_next(k, &id) != STATUS_OK || id.kind != TUPLE_BYTES || k->rest.len) {
		catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
				     "not the id of a machine's start");
		return;
	}
	status = catalog_clock_record_parse(pair->value, &state, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(s->v, status, &err, pair->key, "not what clocks showed");
}

/* The check of a part of the root that the catalog does not know; NULL: there is no such part. */
static catalog_root_check *
root_check_of(uint64_t part)
{
	const struct catalog_kind *kind;

	for (size_t i = 0; i < CATALOG_ROOT_CHECKS && root_checks[i].check; i++)
		if (root_checks[i].part == part)
			return root_checks[i].check;
	/* Some parts are a kind's own. */
	for (size_t i = 0; (kind = catalog_kind_at(i)) != NULL; i++)
		if (kind->verify_root && kind->root_part == part)
			return kind->verify_root;
	return NULL;
}

static enum status
root_pair(struct store_check *s, const struct kv_pair *pair, struct tuple_reader k)
{
	catalog_root_check *check;
	uint64_t part, format;

	if (tuple_next_u64(&k, &part) != STATUS_OK)
		part = UINT64_MAX;
	switch (part) {
	case KV_ROOT_FORMAT:
		(void)root_number(s, &k, pair, &format);
		return STATUS_OK;
	case KV_ROOT_DATABASES:
		return root_database(s, &k, pair);
	case KV_ROOT_NEXT_PREFIX:
		s->has_next = root_number(s, &k, pair, &s->next);
		return STATUS_OK;
	case KV_ROOT_DROPPED:
		root_dropped(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_KEPT:
		return root_kept(s, &k, pair);
	case KV_ROOT_EVENTS:
		return root_event(s, &k, pair);
	case KV_ROOT_INCARNATION:
		(void)root_number(s, &k, pair, &format);
		return STATUS_OK;
	case KV_ROOT_MOVES:
		return root_move(s, &k, pair);
	case KV_ROOT_REPLICATOR:
		return STATUS_OK;
	case KV_ROOT_SETTINGS:
		root_setting(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_INDEX_WORK:
		root_work(s, &k, pair, false);
		return STATUS_OK;
	case KV_ROOT_VIEW_WORK:
		root_work(s, &k, pair, true);
		return STATUS_OK;
	case KV_ROOT_CLOCKS:
		root_clock(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_TXIDS:
		root_txid(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_UPLOADS:
	default:
		check = root_check_of(part);
		if (check)
			check(s->v, k, pair);
		else
			catalog_verify_found(s->v, CATALOG_FINDING_KEY, pair->key,
					     "the store has no such key");
		return s->v->failed;
	}
}

static enum status
check_root(struct store_check *s)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	buf_clear(&s->v->key);
	tuple_put_u64(&s->v->key, KV_ROOT);
	TRY(catalog_verify_cursor_open_at(s->v, &c));
	while (!c.done) {
		TRY(root_pair(s, &c.pair, tuple_reader(c.tail)));
		TRY(catalog_verify_cursor_next(s->v, &c));
	}
	return STATUS_OK;
}

static int
compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return (*x > *y) - (*x < *y);
}

/* Each database's number is its own, and less than the one that the next database gets. */
static enum status
check_numbers(struct store_check *s)
{
	struct catalog_verify *v = s->v;

	if (s->count)
		qsort(s->numbers, s->count, sizeof(*s->numbers), compare_numbers);
	if (s->kept_count)
		qsort(s->kept, s->kept_count, sizeof(*s->kept), compare_numbers);
	for (size_t i = 1; i < s->count; i++) {
		if (s->numbers[i] != s->numbers[i - 1])
			continue;
		buf_clear(&v->key);
		tuple_put_u64(&v->key, s->numbers[i]);
		TRY(buf_status(&v->key));
		catalog_verify_found(v, CATALOG_FINDING_DATABASE, buf_str(&v->key),
				     "two databases have number %llu",
				     (unsigned long long)s->numbers[i]);
	}
	if (s->count == 0 || (s->has_next && s->next > s->numbers[s->count - 1]))
		return STATUS_OK;
	buf_clear(&v->key);
	tuple_put_u64(&v->key, KV_ROOT);
	tuple_put_u64(&v->key, KV_ROOT_NEXT_PREFIX);
	TRY(buf_status(&v->key));
	catalog_verify_found(v, CATALOG_FINDING_DATABASE, buf_str(&v->key),
			     "the next database would get a number that is in use: there is %llu",
			     (unsigned long long)s->numbers[s->count - 1]);
	return STATUS_OK;
}

/* Is the number that of a database which is being cleared, or of which something is kept? */
static enum status
is_dropped(struct store_check *s, uint64_t number, bool *ret)
{
	struct catalog_verify *v = s->v;
	struct kv_future *f;
	struct str value;

	buf_clear(&v->key);
	tuple_put_u64(&v->key, KV_ROOT);
	tuple_put_u64(&v->key, KV_ROOT_DROPPED);
	tuple_put_u64(&v->key, number);
	TRY(catalog_key_status(&v->key));
	*ret = s->kept_count &&
	       bsearch(&number, s->kept, s->kept_count, sizeof(number), compare_numbers) != NULL;
	if (*ret)
		return STATUS_OK;
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	*ret = kv_future_value(f, &value);
	kv_future_free(f);
	return STATUS_OK;
}

/* Does a database have this number? */
static enum status
number_is_used(struct catalog_verify *v, uint64_t number, bool *ret)
{
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	struct arena *arena = arena_new(VERIFY_SCRATCH_BYTES);
	struct catalog_page page = { .more = true };
	enum status status = arena ? STATUS_OK : STATUS_NOMEM;
	unsigned failures = 0;

	*ret = false;
	while (status == STATUS_OK && page.more && !*ret) {
		arena_clear(arena);
		status = catalog_all(v->tx, &last, VERIFY_PAGE, arena, &page, NULL);
		if (status == STATUS_NEWER) {
			status = STATUS_OK; /* `last` is the one that cannot be read */
			page = (struct catalog_page){ .more = true };
		} else if (status != STATUS_OK) {
			status = catalog_verify_again(v, &failures, status);
			page = (struct catalog_page){ .more = true };
		}
		for (size_t i = 0; i < page.count && !*ret; i++)
			*ret = page.dbs[i].number == number;
	}
	arena_free(arena);
	/* A description that cannot be read has been told, and its database is not known here. */
	return status == STATUS_CORRUPT ? STATUS_OK : status;
}

/* A database that is on its way has a number and no name. */
static enum status
any_moves(struct catalog_verify *v, bool *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	enum status status;

	tuple_put_u64(&begin, KV_ROOT);
	tuple_put_u64(&begin, KV_ROOT_MOVES);
	TRY(buf_status(&begin));
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	status = catalog_verify_first_key(v, buf_str(&begin), buf_str(&end), &key);
	*ret = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * In ranges: looks once more, since databases may have been made, moved and deleted after the list
 * of them was read.
 */
static enum status
number_look_again(struct store_check *s, uint64_t number, struct str key, bool *used, bool *dropped)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf first = CATALOG_KEY_INIT;
	enum status status;
	bool moves;

	kv_tx_reset(s->v->tx);
	TRY(number_is_used(s->v, number, used));
	TRY(is_dropped(s, number, dropped));
	TRY(any_moves(s->v, &moves));
	tuple_put_u64(&prefix, number);
	TRY(buf_status(&prefix));
	TRY(tuple_prefix_end(buf_str(&prefix), &end));
	status = catalog_verify_first_key(s->v, key, buf_str(&end), &first);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && moves && !*used))
		*dropped = !*used;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* There are keys that begin with this number. */
static enum status
check_prefix(struct store_check *s, uint64_t number, struct str key)
{
	bool dropped, used = false;

	if (number == KV_ROOT)
		return STATUS_OK;
	TRY(is_dropped(s, number, &dropped));
	if (s->count)
		used = bsearch(&number, s->numbers, s->count, sizeof(number), compare_numbers) !=
		       NULL;
	if (used == dropped && s->v->options->ranges)
		TRY(number_look_again(s, number, key, &used, &dropped));
	if (used && dropped)
		catalog_verify_found(s->v, CATALOG_FINDING_DATABASE, buf_str(&s->v->key),
				     "the database with number %llu is there, and is to be cleared",
				     (unsigned long long)number);
	else if (!used && !dropped && !s->has_newer)
		catalog_verify_found(
			s->v, CATALOG_FINDING_NO_DATABASE, key,
			"no database has number %llu, which this and perhaps more keys begin "
			"with",
			(unsigned long long)number);
	return STATUS_OK;
}

/* Keys that belong neither to the store nor to a database; told once for each number. */
static enum status
check_prefixes(struct store_check *s)
{
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_verify *v = s->v;
	enum status status;

	while ((status = catalog_verify_first_key(v, buf_str(&at), STR("\xff"), &key)) ==
	       STATUS_OK) {
		struct tuple_reader r = tuple_reader(buf_str(&key));
		uint64_t number;

		buf_clear(&at);
		if (tuple_next_u64(&r, &number) != STATUS_OK) {
			catalog_verify_found(v, CATALOG_FINDING_KEY, buf_str(&key),
					     "it begins with no number of a database");
			buf_append_buf(&at, &key);
			buf_append_byte(&at, CATALOG_KEY_NEXT);
		} else {
			TRY(check_prefix(s, number, buf_str(&key)));
			TRY(tuple_prefix_end(str_of(key.ptr, key.len - r.rest.len), &at));
		}
		TRY(buf_status(&at));
	}
	if (status == STATUS_CORRUPT) {
		catalog_verify_found(v, CATALOG_FINDING_DAMAGE, buf_str(&at),
				     "keys from here on were not looked at: %s",
				     kv_tx_error(v->tx));
		return STATUS_OK;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
verify_whole(struct catalog_verify *v)
{
	struct store_check s = { .v = v, .arena = arena_new(VERIFY_NUMBERS_BYTES) };
	enum status status = s.arena ? check_root(&s) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = check_numbers(&s);
	if (status == STATUS_OK)
		status = check_prefixes(&s);
	arena_free(s.arena);
	return status;
}

/* ---- Both ---- */

static enum status
verify_named(struct catalog_verify *v, enum catalog_space space, struct str name, struct err *err)
{
	struct catalog_db *db;
	unsigned failures = 0;
	enum status status;

	while ((status = catalog_open(v->tx, NULL, space, name, &db, err)) != STATUS_OK)
		TRY(catalog_verify_again(v, &failures, status));
	status = verify_db(v, db);
	catalog_db_unref(db);
	return status;
}

static enum status
read_version(struct catalog_verify *v)
{
	unsigned failures = 0;
	enum status status;

	while ((status = kv_get_read_version(v->tx, &v->read_version)) != STATUS_OK)
		TRY(catalog_verify_again(v, &failures, status));
	return STATUS_OK;
}

/* What is to be checked: the store, if both are NULL. */
struct subject {
	enum catalog_space space;
	const struct str *name;
	const struct catalog_db *db; /* whose keys stand still */
};

static enum status
verify_run(struct kv_tx *tx, struct subject subject, const struct catalog_verify_options *options,
	   struct catalog_verify_sum *ret, struct err *err)
{
	struct catalog_verify v = {
		.tx = tx,
		/* In ranges, the store's own keys are looked at one by one. */
		.still = options->still || options->ranges || subject.db,
		.options = options,
		.scratch = arena_new(VERIFY_SCRATCH_BYTES),
		.key = CATALOG_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
	};
	enum status status = v.scratch ? read_version(&v) : STATUS_NOMEM;

	if (status == STATUS_OK && subject.db)
		status = verify_db(&v, subject.db);
	else if (status == STATUS_OK)
		status = subject.name ? verify_named(&v, subject.space, *subject.name, err)
				      : verify_whole(&v);
	if (status == STATUS_OK && v.starved)
		status = STATUS_NOMEM;
	if (status != STATUS_OK && err && !err->text[0])
		status = err_set(err, status, "cannot read the store: %s%s%s", status_name(status),
				 kv_tx_error(tx)[0] ? ": " : "", kv_tx_error(tx));
	buf_release(&v.value);
	buf_release(&v.key);
	arena_free(v.scratch);
	*ret = v.sum;
	return status;
}

enum status
catalog_verify_store(struct kv_tx *tx, const struct catalog_verify_options *options,
		     struct catalog_verify_sum *ret, struct err *err)
{
	return verify_run(tx, (struct subject){ 0 }, options, ret, err);
}

enum status
catalog_verify_db(struct kv_tx *tx, enum catalog_space space, struct str name,
		  const struct catalog_verify_options *options, struct catalog_verify_sum *ret,
		  struct err *err)
{
	return verify_run(tx, (struct subject){ .space = space, .name = &name }, options, ret, err);
}

enum status
catalog_verify_still(struct kv_store *store, const struct catalog_db *db,
		     const struct catalog_verify_options *options, struct catalog_verify_sum *ret,
		     struct err *err)
{
	struct kv_tx *tx;
	enum status status = kv_begin(store, KV_TX_READ_ONLY, &tx);

	if (status != STATUS_OK)
		return err_set(err, status, "no transaction can begin: %s", status_name(status));
	status = verify_run(tx, (struct subject){ .db = db }, options, ret, err);
	kv_tx_free(tx);
	return status;
}

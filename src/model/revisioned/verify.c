/* The check of a store: its own keys, each database, and what lies beside them. */
#include "model/revisioned/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "kv/keyspace.h"
#include "model/revisioned/move_int.h"
#include "model/revisioned/verify_int.h"

enum {
	SCRATCH_BYTES = 1024 * 1024,
	NUMBERS_BYTES = 256 * 1024 * 1024, /* eight for each database, and as much again */
	PROGRESS_KEYS = 1024,
	TEXT_BYTES = 256,
	COUNTER_BYTES = 8,
	READ_BYTES = 256 * 1024, /* of a range at a time: several are open at once */
};

const char *
rev_finding_name(enum rev_finding_kind kind)
{
	static const char *const names[REV_FINDING_KINDS] = {
		[REV_FINDING_KEY] = "unknown_key",
		[REV_FINDING_VALUE] = "unreadable_value",
		[REV_FINDING_NO_DATABASE] = "no_database",
		[REV_FINDING_DATABASE] = "database",
		[REV_FINDING_WINNER] = "winner",
		[REV_FINDING_BRANCH_COUNT] = "branch_count",
		[REV_FINDING_SEQUENCE] = "sequence",
		[REV_FINDING_CHANGE] = "change",
		[REV_FINDING_CHANGE_STRAY] = "change_stray",
		[REV_FINDING_ENTRY] = "entry",
		[REV_FINDING_ENTRY_STRAY] = "entry_stray",
		[REV_FINDING_COUNTER] = "counter",
		[REV_FINDING_TALLY] = "tally",
		[REV_FINDING_BODY] = "body",
		[REV_FINDING_BODY_STRAY] = "body_stray",
		[REV_FINDING_BODY_ROOT] = "body_root",
		[REV_FINDING_BODY_CORRUPT] = "body_corrupt",
		[REV_FINDING_ATT] = "attachment",
		[REV_FINDING_ATT_COUNT] = "attachment_count",
		[REV_FINDING_ATT_STRAY] = "attachment_stray",
	};

	return names[kind];
}

void
verify_found(struct verify *v, enum rev_finding_kind kind, struct str key, const char *fmt, ...)
{
	struct rev_finding finding = { .kind = kind, .key = key };
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	finding.text = text;
	if (v->db)
		finding.database = v->db->name;
	v->sum.findings++;
	v->options->found(&finding, v->options->arg);
}

/* ---- Elements ---- */

bool
verify_text_next(struct tuple_reader *r, enum tuple_kind kind, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != kind || e.raw.len == 0)
		return false;
	*ret = e.encoding;
	return true;
}

bool
verify_hash_next(struct tuple_reader *r, struct str *ret)
{
	struct tuple_elem e;

	if (tuple_next(r, &e) != STATUS_OK || e.kind != TUPLE_BYTES)
		return false;
	*ret = e.encoding;
	return true;
}

bool
verify_seq_next(struct tuple_reader *r, struct rev_seq *ret)
{
	const uint8_t *stamp;
	uint64_t incarnation;

	if (tuple_next_u64(r, &incarnation) != STATUS_OK || incarnation > UINT8_MAX ||
	    tuple_next_versionstamp(r, &stamp) != STATUS_OK)
		return false;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return true;
}

bool
verify_rev_parse(struct str tail, struct verify_rev *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str hash;
	const char *rev;
	bool not_deleted;
	uint64_t pos;

	if (!verify_text_next(&r, TUPLE_STRING, &ret->id) ||
	    tuple_next_bool(&r, &not_deleted) != STATUS_OK)
		return false;
	rev = r.rest.ptr;
	if (tuple_next_u64(&r, &pos) != STATUS_OK || pos == 0 || !verify_hash_next(&r, &hash))
		return false;
	ret->deleted = !not_deleted;
	ret->rev = str_of(rev, (size_t)(r.rest.ptr - rev));
	ret->encoding = str_of(tail.ptr, (size_t)(r.rest.ptr - tail.ptr));
	ret->rest = r.rest;
	return true;
}

/* ---- Ranges ---- */

enum status
verify_again(struct verify *v, unsigned *failures, enum status status)
{
	if (!v->still || ++*failures > KV_RETRY_LIMIT)
		return status;
	return kv_on_error(v->tx, status);
}

enum status
verify_get(struct verify *v, struct str key, struct kv_future **ret)
{
	unsigned failures = 0;

	for (;;) {
		struct kv_future *f = kv_get(v->tx, key, KV_SNAPSHOT);
		enum status status = kv_future_wait(f);

		if (status == STATUS_OK) {
			*ret = f;
			return STATUS_OK;
		}
		kv_future_free(f);
		TRY(verify_again(v, &failures, status));
	}
}

enum status
verify_get_range(struct verify *v, struct str begin, struct str end,
		 const struct kv_range_options *options, struct kv_future **ret)
{
	unsigned failures = 0;

	for (;;) {
		struct kv_future *f = kv_get_range(v->tx, begin, end, options);
		enum status status = kv_future_wait(f);

		if (status == STATUS_OK) {
			*ret = f;
			return STATUS_OK;
		}
		kv_future_free(f);
		TRY(verify_again(v, &failures, status));
	}
}

void
verify_count(struct verify *v, const struct kv_pair *pair)
{
	v->sum.keys++;
	v->sum.bytes += pair->key.len + pair->value.len;
	if (v->options->progress && v->sum.keys % PROGRESS_KEYS == 0)
		v->options->progress(&v->sum, v->options->arg);
}

enum status
verify_cursor_next(struct verify *v, struct verify_cursor *c)
{
	enum status status = kv_scan_next(&c->scan, &c->pair);
	unsigned failures = 0;

	while (v->still && status != STATUS_OK && status != STATUS_NOT_FOUND) {
		TRY(failures++ < KV_RETRY_LIMIT ? kv_scan_retry(&c->scan, status) : status);
		status = kv_scan_next(&c->scan, &c->pair);
	}
	c->done = status == STATUS_NOT_FOUND;
	if (c->done)
		return STATUS_OK;
	TRY(status);
	c->tail = str_skip(c->pair.key, c->prefix_len);
	verify_count(v, &c->pair);
	return STATUS_OK;
}

/* Everything that begins with the bytes in v->key. */
static enum status
cursor_open(struct verify *v, struct verify_cursor *c)
{
	struct kv_range_options options = { .limit_bytes = READ_BYTES, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = REV_KEY_INIT;

	TRY(buf_status(&v->key));
	TRY(tuple_prefix_end(buf_str(&v->key), &end));
	TRY(buf_status(&end));
	*c = (struct verify_cursor){ .prefix_len = v->key.len };
	if (v->still)
		TRY(kv_begin(kv_tx_store(v->tx), KV_TX_READ_ONLY, &c->own));
	TRY(kv_scan_init(&c->scan, c->own ? c->own : v->tx, buf_str(&v->key), buf_str(&end),
			 &options));
	return verify_cursor_next(v, c);
}

enum status
verify_cursor_open(struct verify *v, struct verify_cursor *c, enum rev_subspace space)
{
	rev_key_space(&v->key, v->db, space);
	return cursor_open(v, c);
}

void
verify_cursor_close(struct verify_cursor *c)
{
	kv_scan_release(&c->scan);
	kv_tx_free(c->own);
}

/* The first key with begin <= key < end, copied to `ret`. STATUS_NOT_FOUND. */
static enum status
first_key(struct verify *v, struct str begin, struct str end, struct buf *ret)
{
	struct kv_range_options options = { .limit = 1, .mode = KV_SNAPSHOT };
	struct kv_future *f;
	struct kv_range range;
	enum status status;

	buf_clear(ret);
	TRY(verify_get_range(v, begin, end, &options, &f));
	range = kv_future_range(f);
	if (range.count)
		buf_append_str(ret, range.pairs[0].key);
	status = range.count ? buf_status(ret) : STATUS_NOT_FOUND;
	kv_future_free(f);
	return status;
}

/* ---- CONFIG and STATS ---- */

static enum status
check_config(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };

	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_CONFIG));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct str name;

		if (!verify_text_next(&r, TUPLE_STRING, &name) || r.rest.len)
			verify_found(v, REV_FINDING_KEY, c.pair.key, "not the name of a setting");
		else if (utf8_valid_prefix(c.pair.value) < c.pair.value.len)
			verify_found(v, REV_FINDING_VALUE, c.pair.key, "not a text");
		TRY(verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* A counter's value; ptr NULL if it is absent. v->key becomes its key. */
static enum status
stat_get(struct verify *v, struct str name, struct kv_future **ret_future, struct str *ret)
{
	rev_key_named(&v->key, v->db, REV_SUBSPACE_STATS, name);
	TRY(rev_key_status(&v->key));
	TRY(verify_get(v, buf_str(&v->key), ret_future));
	if (!kv_future_value(*ret_future, ret))
		*ret = (struct str){ NULL, 0 };
	return STATUS_OK;
}

static enum status
check_counter(struct verify *v, struct str name, uint64_t count)
{
	struct kv_future *f = NULL;
	struct str value = { 0 };
	uint64_t n = 0;
	enum status status = stat_get(v, name, &f, &value);

	if (status == STATUS_OK) {
		for (size_t i = 0; i < value.len && i < COUNTER_BYTES; i++)
			n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
		if (value.ptr && value.len != COUNTER_BYTES)
			verify_found(v, REV_FINDING_VALUE, buf_str(&v->key), "not a counter");
		else if (n != count)
			verify_found(v, REV_FINDING_COUNTER, buf_str(&v->key),
				     "the counter says %lld, and there are %llu", (long long)n,
				     (unsigned long long)count);
	}
	kv_future_free(f);
	return status;
}

/* The Sequence of the newest purge, which moves the watched key as a change does. */
static enum status
check_purged(struct verify *v)
{
	struct kv_future *f = NULL;
	struct str value = { 0 };
	enum status status = stat_get(v, REV_STAT_PURGED, &f, &value);
	struct rev_seq seq;

	if (status == STATUS_OK && value.len == sizeof(seq.bytes)) {
		memcpy(seq.bytes, value.ptr, sizeof(seq.bytes));
		if (rev_seq_cmp(&seq, &v->newest) > 0)
			v->newest = seq;
	} else if (status == STATUS_OK && value.ptr) {
		verify_found(v, REV_FINDING_VALUE, buf_str(&v->key), "not a Sequence");
	}
	kv_future_free(f);
	return status;
}

/* The key that feeds watch has the versionstamp of the newest change or purge. */
static enum status
check_changed(struct verify *v)
{
	static const struct rev_seq none;
	bool any = rev_seq_cmp(&v->newest, &none) != 0;
	struct kv_future *f = NULL;
	struct str value = { 0 };
	enum status status = stat_get(v, REV_STAT_CHANGED, &f, &value);

	if (status == STATUS_OK &&
	    (value.ptr ? !str_eq(value, str_of(v->newest.bytes + 1, KV_VERSIONSTAMP_BYTES)) : any))
		verify_found(v, REV_FINDING_COUNTER, buf_str(&v->key),
			     "not the versionstamp of the newest change");
	kv_future_free(f);
	return status;
}

static enum status
check_stats(struct verify *v)
{
	static const struct str names[] = {
		{ "doc_count", 9 }, { "doc_del_count", 13 }, { "changed", 7 }, { "purged", 6 }
	};
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };

	TRY(check_counter(v, REV_STAT_DOCS, v->live));
	TRY(check_counter(v, REV_STAT_DELETED, v->deleted));
	TRY(check_purged(v));
	TRY(check_changed(v));
	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_STATS));
	while (!c.done) {
		bool known = false;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			rev_key_named(&v->key, v->db, REV_SUBSPACE_STATS, names[i]);
			TRY(rev_key_status(&v->key));
			known = known || str_eq(c.pair.key, buf_str(&v->key));
		}
		if (!known)
			verify_found(v, REV_FINDING_KEY, c.pair.key, "there is no such counter");
		TRY(verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* ---- One database ---- */

static bool
is_known_space(uint64_t space)
{
	switch (space) {
	case REV_SUBSPACE_ALL_DOCS:
	case REV_SUBSPACE_CHANGES:
	case REV_SUBSPACE_REVISIONS:
	case REV_SUBSPACE_DOCUMENTS:
	case REV_SUBSPACE_LOCAL:
	case REV_SUBSPACE_ATTACHMENTS:
	case REV_SUBSPACE_CONFIG:
	case REV_SUBSPACE_STATS:
	case REV_SUBSPACE_TALLIES:
		return true;
	default:
		return false;
	}
}

/* Keys of the database that are in no subspace; those are jumped over. */
static enum status
check_spaces(struct verify *v)
{
	AUTO(buf_release) struct buf at = REV_KEY_INIT;
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	enum status status;

	buf_append_str(&at, v->db->prefix);
	TRY(tuple_prefix_end(v->db->prefix, &end));
	while ((status = first_key(v, buf_str(&at), buf_str(&end), &key)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(buf_str(&key), v->db->prefix.len));
		uint64_t space;

		buf_clear(&at);
		if (tuple_next_u64(&r, &space) == STATUS_OK && is_known_space(space)) {
			TRY(tuple_prefix_end(str_of(key.ptr, key.len - r.rest.len), &at));
		} else {
			verify_found(v, REV_FINDING_KEY, buf_str(&key),
				     "the database has no such part");
			buf_append_str(&at, buf_str(&key));
			buf_append_byte(&at, REV_KEY_NEXT);
		}
		TRY(buf_status(&at));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
check_db(struct verify *v, const struct rev_db *db)
{
	enum status status;

	v->db = db;
	v->live = 0;
	v->deleted = 0;
	v->changes_there = 0;
	v->pointers = 0;
	v->newest = (struct rev_seq){ { 0 } };
	v->sum.databases++;
	status = verify_documents(v);
	if (status == STATUS_OK)
		status = verify_changes(v);
	if (status == STATUS_OK)
		status = verify_attachments(v);
	if (status == STATUS_OK)
		status = verify_locals(v);
	if (status == STATUS_OK)
		status = check_config(v);
	if (status == STATUS_OK)
		status = check_stats(v);
	if (status == STATUS_OK)
		status = verify_tallies(v);
	if (status == STATUS_OK)
		status = check_spaces(v);
	v->db = NULL;
	return status;
}

/* ---- The store ---- */

struct store {
	struct verify *v;
	struct arena *arena;
	uint64_t *numbers; /* of databases */
	size_t count;
	size_t cap;
	bool has_next;
	uint64_t next; /* the number that the next database gets */
};

/* (ROOT, 1, name): the description of a database, which is then checked. */
static enum status
root_database(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct verify *v = s->v;
	struct rev_db description = { 0 };
	struct rev_db *db;
	enum status status;

	arena_clear(v->scratch);
	status = rev_next_text(k, TUPLE_STRING, v->scratch, true, &description.name);
	if (status == STATUS_CORRUPT || (status == STATUS_OK && k->rest.len)) {
		verify_found(v, REV_FINDING_KEY, pair->key, "not the name of a database");
		return STATUS_OK;
	}
	TRY(status);
	if (!rev_db_name_valid(description.name))
		verify_found(v, REV_FINDING_DATABASE, pair->key, "no database can have this name");
	if (rev_description_parse(pair->value, &description) != STATUS_OK) {
		verify_found(v, REV_FINDING_VALUE, pair->key, "not the description of a database");
		return STATUS_OK;
	}
	if (description.number < KV_FIRST_PREFIX) {
		verify_found(v, REV_FINDING_DATABASE, pair->key, "no database can have number %llu",
			     (unsigned long long)description.number);
		return STATUS_OK;
	}
	TRY(rev_array_grow(s->arena, (void **)&s->numbers, sizeof(*s->numbers), s->count, &s->cap));
	s->numbers[s->count++] = description.number;
	db = rev_db_new(&description);
	if (!db)
		return STATUS_NOMEM;
	status = check_db(v, db);
	rev_db_unref(db);
	return status;
}

/* (ROOT, 3, P, id): when an upload has begun and given its last sign of life. */
static void
root_upload(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(pair->value);
	struct tuple_elem id;
	uint64_t number, ms;

	if (tuple_next_u64(k, &number) != STATUS_OK || tuple_next(k, &id) != STATUS_OK ||
	    id.kind != TUPLE_UUID || k->rest.len)
		verify_found(s->v, REV_FINDING_KEY, pair->key, "not an upload's id");
	else if (rev_next_format(&r) != STATUS_OK || tuple_next_u64(&r, &ms) != STATUS_OK ||
		 tuple_next_u64(&r, &ms) != STATUS_OK || r.rest.len)
		verify_found(s->v, REV_FINDING_VALUE, pair->key, "not the times of an upload");
}

/* (ROOT, 7, name): a database that is being moved. One that comes has a number already. */
static enum status
root_move(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct rev_move move = { 0 };
	enum status status;

	arena_clear(s->v->scratch);
	status = rev_next_text(k, TUPLE_STRING, s->v->scratch, true, &move.name);
	if (status == STATUS_CORRUPT || (status == STATUS_OK && k->rest.len)) {
		verify_found(s->v, REV_FINDING_KEY, pair->key, "not the name of a database");
		return STATUS_OK;
	}
	TRY(status);
	status = rev_move_parse(pair->value, s->v->scratch, &move);
	if (status == STATUS_CORRUPT) {
		verify_found(s->v, REV_FINDING_VALUE, pair->key, "not what is known of a move");
		return STATUS_OK;
	}
	TRY(status);
	if (!move.number || move.state == REV_MOVE_LIVE)
		return STATUS_OK;
	TRY(rev_array_grow(s->arena, (void **)&s->numbers, sizeof(*s->numbers), s->count, &s->cap));
	s->numbers[s->count++] = move.number;
	return STATUS_OK;
}

/* (ROOT, 4, P): a deleted database, whose keys are being cleared. */
static void
root_dropped(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	uint64_t number;

	if (tuple_next_u64(k, &number) != STATUS_OK || k->rest.len)
		verify_found(s->v, REV_FINDING_KEY, pair->key, "not the number of a database");
	else if (pair->value.len)
		verify_found(s->v, REV_FINDING_VALUE, pair->key, "it should be empty");
}

/* (ROOT, 255, id): when, and under which stamp, a transaction of unknown result was committed. */
static void
root_txid(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(pair->value);
	const uint8_t *stamp;
	struct str id;
	uint64_t ms;

	if (!verify_text_next(k, TUPLE_BYTES, &id) || k->rest.len)
		verify_found(s->v, REV_FINDING_KEY, pair->key, "not a transaction's id");
	else if (tuple_next_u64(&r, &ms) != STATUS_OK ||
		 tuple_next_versionstamp(&r, &stamp) != STATUS_OK || r.rest.len)
		verify_found(s->v, REV_FINDING_VALUE, pair->key,
			     "not what a transaction leaves behind");
}

/* A key with a number for its value. */
static bool
root_number(struct store *s, struct tuple_reader *k, const struct kv_pair *pair, uint64_t *ret)
{
	struct tuple_reader r = tuple_reader(pair->value);

	if (k->rest.len) {
		verify_found(s->v, REV_FINDING_KEY, pair->key, "the store has no such key");
		return false;
	}
	if (tuple_next_u64(&r, ret) == STATUS_OK && r.rest.len == 0)
		return true;
	verify_found(s->v, REV_FINDING_VALUE, pair->key, "not a number");
	return false;
}

/* The watched stamp, or what happened to a database. */
static void
root_event(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(pair->value);
	uint64_t kind, incarnation;
	const uint8_t *stamp;
	struct tuple_elem name;

	if (k->rest.len == 0) {
		if (pair->value.len != KV_VERSIONSTAMP_BYTES)
			verify_found(s->v, REV_FINDING_VALUE, pair->key, "not a versionstamp");
		return;
	}
	if (tuple_next(k, &name) != STATUS_OK || name.kind != TUPLE_STRING || k->rest.len)
		verify_found(s->v, REV_FINDING_KEY, pair->key, "the store has no such key");
	else if (rev_next_format(&r) != STATUS_OK || tuple_next_u64(&r, &kind) != STATUS_OK ||
		 (kind != REV_EVENT_CREATED && kind != REV_EVENT_DELETED) ||
		 tuple_next_u64(&r, &incarnation) != STATUS_OK || incarnation > UINT8_MAX ||
		 tuple_next_versionstamp(&r, &stamp) != STATUS_OK || r.rest.len)
		verify_found(s->v, REV_FINDING_VALUE, pair->key, "not an event");
}

/* (ROOT, 9, section, name): a setting. */
static void
root_setting(struct store *s, struct tuple_reader *k, const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(pair->value);
	struct tuple_elem section, name, text;

	if (tuple_next(k, &section) != STATUS_OK || section.kind != TUPLE_STRING ||
	    tuple_next(k, &name) != STATUS_OK || name.kind != TUPLE_STRING || k->rest.len)
		verify_found(s->v, REV_FINDING_KEY, pair->key, "not a setting's section and name");
	else if (rev_next_format(&r) != STATUS_OK || tuple_next(&r, &text) != STATUS_OK ||
		 (text.kind != TUPLE_STRING && text.kind != TUPLE_NULL) || r.rest.len)
		verify_found(s->v, REV_FINDING_VALUE, pair->key, "not a setting's text");
}

static enum status
root_pair(struct store *s, const struct kv_pair *pair, struct tuple_reader k)
{
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
	case KV_ROOT_UPLOADS:
		root_upload(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_DROPPED:
		root_dropped(s, &k, pair);
		return STATUS_OK;
	case KV_ROOT_EVENTS:
		root_event(s, &k, pair);
		return STATUS_OK;
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
	case KV_ROOT_TXIDS:
		root_txid(s, &k, pair);
		return STATUS_OK;
	default:
		verify_found(s->v, REV_FINDING_KEY, pair->key, "the store has no such key");
		return STATUS_OK;
	}
}

static enum status
check_root(struct store *s)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };

	buf_clear(&s->v->key);
	tuple_put_u64(&s->v->key, KV_ROOT);
	TRY(cursor_open(s->v, &c));
	while (!c.done) {
		TRY(root_pair(s, &c.pair, tuple_reader(c.tail)));
		TRY(verify_cursor_next(s->v, &c));
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
check_numbers(struct store *s)
{
	struct verify *v = s->v;

	if (s->count)
		qsort(s->numbers, s->count, sizeof(*s->numbers), compare_numbers);
	for (size_t i = 1; i < s->count; i++) {
		if (s->numbers[i] != s->numbers[i - 1])
			continue;
		buf_clear(&v->key);
		tuple_put_u64(&v->key, s->numbers[i]);
		TRY(buf_status(&v->key));
		verify_found(v, REV_FINDING_DATABASE, buf_str(&v->key),
			     "two databases have number %llu", (unsigned long long)s->numbers[i]);
	}
	if (s->count == 0 || (s->has_next && s->next > s->numbers[s->count - 1]))
		return STATUS_OK;
	buf_clear(&v->key);
	tuple_put_u64(&v->key, KV_ROOT);
	tuple_put_u64(&v->key, KV_ROOT_NEXT_PREFIX);
	TRY(buf_status(&v->key));
	verify_found(v, REV_FINDING_DATABASE, buf_str(&v->key),
		     "the next database would get a number that is in use: there is %llu",
		     (unsigned long long)s->numbers[s->count - 1]);
	return STATUS_OK;
}

/* Is the number that of a database which is being cleared? */
static enum status
is_dropped(struct verify *v, uint64_t number, bool *ret)
{
	struct kv_future *f;
	struct str value;

	buf_clear(&v->key);
	tuple_put_u64(&v->key, KV_ROOT);
	tuple_put_u64(&v->key, KV_ROOT_DROPPED);
	tuple_put_u64(&v->key, number);
	TRY(rev_key_status(&v->key));
	TRY(verify_get(v, buf_str(&v->key), &f));
	*ret = kv_future_value(f, &value);
	kv_future_free(f);
	return STATUS_OK;
}

/* There are keys that begin with this number. */
static enum status
check_prefix(struct store *s, uint64_t number, struct str key)
{
	bool dropped, used = false;

	if (number == KV_ROOT)
		return STATUS_OK;
	TRY(is_dropped(s->v, number, &dropped));
	if (s->count)
		used = bsearch(&number, s->numbers, s->count, sizeof(number), compare_numbers) !=
		       NULL;
	if (used && dropped)
		verify_found(s->v, REV_FINDING_DATABASE, buf_str(&s->v->key),
			     "the database with number %llu is there, and is to be cleared",
			     (unsigned long long)number);
	else if (!used && !dropped)
		verify_found(s->v, REV_FINDING_NO_DATABASE, key,
			     "no database has number %llu, which this and perhaps more keys begin "
			     "with",
			     (unsigned long long)number);
	return STATUS_OK;
}

/* Keys that belong neither to the store nor to a database; told once for each number. */
static enum status
check_prefixes(struct store *s)
{
	AUTO(buf_release) struct buf at = REV_KEY_INIT;
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct verify *v = s->v;
	enum status status;

	while ((status = first_key(v, buf_str(&at), STR("\xff"), &key)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(buf_str(&key));
		uint64_t number;

		buf_clear(&at);
		if (tuple_next_u64(&r, &number) != STATUS_OK) {
			verify_found(v, REV_FINDING_KEY, buf_str(&key),
				     "it begins with no number of a database");
			buf_append_str(&at, buf_str(&key));
			buf_append_byte(&at, REV_KEY_NEXT);
		} else {
			TRY(check_prefix(s, number, buf_str(&key)));
			TRY(tuple_prefix_end(str_of(key.ptr, key.len - r.rest.len), &at));
		}
		TRY(buf_status(&at));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
check_store(struct verify *v)
{
	struct store s = { .v = v, .arena = arena_new(NUMBERS_BYTES) };
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
check_named(struct verify *v, struct str name, struct err *err)
{
	struct rev_db *db;
	enum status status;

	TRY(rev_db_open(v->tx, NULL, name, &db, err));
	status = check_db(v, db);
	rev_db_unref(db);
	return status;
}

static enum status
read_version(struct verify *v)
{
	unsigned failures = 0;
	enum status status;

	while ((status = kv_get_read_version(v->tx, &v->read_version)) != STATUS_OK)
		TRY(verify_again(v, &failures, status));
	return STATUS_OK;
}

/* What is to be checked: the store, if both are NULL. */
struct subject {
	const struct str *name;
	const struct rev_db *db; /* whose keys stand still */
};

static enum status
run(struct kv_tx *tx, struct subject subject, const struct rev_verify_options *options,
    struct rev_verify_sum *ret, struct err *err)
{
	struct verify v = {
		.tx = tx,
		.still = subject.db != NULL,
		.options = options,
		.scratch = arena_new(SCRATCH_BYTES),
		.key = REV_KEY_INIT,
		.value = BUF_INIT(KV_LIMIT_VALUE_BYTES),
	};
	enum status status = v.scratch ? read_version(&v) : STATUS_NOMEM;

	if (status == STATUS_OK && subject.db)
		status = check_db(&v, subject.db);
	else if (status == STATUS_OK)
		status = subject.name ? check_named(&v, *subject.name, err) : check_store(&v);
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
rev_verify_store(struct kv_tx *tx, const struct rev_verify_options *options,
		 struct rev_verify_sum *ret, struct err *err)
{
	return run(tx, (struct subject){ 0 }, options, ret, err);
}

enum status
rev_verify_db(struct kv_tx *tx, struct str name, const struct rev_verify_options *options,
	      struct rev_verify_sum *ret, struct err *err)
{
	return run(tx, (struct subject){ .name = &name }, options, ret, err);
}

enum status
rev_verify_still(struct kv_store *store, const struct rev_db *db,
		 const struct rev_verify_options *options, struct rev_verify_sum *ret,
		 struct err *err)
{
	struct kv_tx *tx;
	enum status status = kv_begin(store, KV_TX_READ_ONLY, &tx);

	if (status != STATUS_OK)
		return err_set(err, status, "no transaction can begin: %s", status_name(status));
	status = run(tx, (struct subject){ .db = db }, options, ret, err);
	kv_tx_free(tx);
	return status;
}

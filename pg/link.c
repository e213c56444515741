/*
 * Connections to frond, one for each server and person, and their transactions.
 *
 * The first request in a transaction of PostgreSQL's begins one of the store's, and the first in a
 * subtransaction makes a savepoint. PostgreSQL commits by callbacks: before its own commit frond's
 * transaction commits, and may still fail; nothing of PostgreSQL's has happened then.
 *
 * Definitions of tables are no part of frond's transactions. What CREATE TABLE has made is dropped
 * if PostgreSQL's transaction aborts; what DROP TABLE drops goes when it has committed.
 */
#include "frond_pg.h"
#include "frond_lock.h"
#include "frond_own.h"

#include "utils/builtins.h"
#include "access/xact.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

enum {
	LINKS_FIRST = 8,
	BULK_BYTES = 4 * 1024 * 1024, /* in the store, which frond.bulk_load commits together */
	TIMEOUT_MS = 60 * 1000,
	BUILD_PAUSE_US = 20 * 1000, /* between two questions about a build that others do */
};

struct link_key {
	Oid server, user;
	bool beside; /* commits by itself */
};

struct frond_link {
	struct link_key key;
	struct frows *rows; /* NULL: none is open */
	bool is_stale;      /* its server or user mapping has changed */
	bool in_txn, wrote;
	bool met;  /* its transaction has met another one: 40001 */
	int began; /* the level of the subtransaction in which frond's transaction has begun */
	int depth; /* of the innermost subtransaction that has a savepoint; 1: the transaction */
	uint32 *savepoints;
	int savepoint_room;
	size_t bulk_bytes;
};

/* A table that was made, or a table or column that is to be dropped. */
struct change {
	struct frond_link *link;
	char *schema, *table, *column;
	bool is_index;                  /* its name is `table` */
	int level;                      /* of the subtransaction */
	const struct frows_new *before; /* of a table that was made anew */
	size_t before_count;
};

/* An index that frond's transaction has made, and that waits for its commit to be built. */
struct build {
	struct frond_link *link;
	char *schema, *table, *name;
	Oid relid;
	uint32 number;
	bool is_unique;
};

static HTAB *links;
static struct frond_link *latest; /* the link that was looked up last; none is ever removed */
static int in_txn_count;          /* links with an open transaction */
static List *made, *drops;        /* of struct change, in TopTransactionContext */
static List *builds;              /* of struct build, likewise */
static bool local_wrote;
static int try_level;        /* of the subtransaction that is a try of a statement; 0: none */
static bool committed_early; /* frond's transaction has, and PostgreSQL's is about to */

static bool
link_is_interrupted(void *arg)
{
	return InterruptPending && (QueryCancelPending || ProcDiePending);
}

static void
note_met(const struct frows *c)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all)))
		l->met |= l->rows == c;
}

void
frond_fail(struct frows *c)
{
	const struct frows_failure *f = frows_failure(c);
	char state[6];

	if (strcmp(f->state, "40001") == 0)
		note_met(c);

	/* Cancelled by a user, or by statement_timeout: PostgreSQL says which. */
	CHECK_FOR_INTERRUPTS();
	/* A table that others have changed is asked for again by the next statement. */
	if (strcmp(f->state, "0A000") == 0 || strncmp(f->state, "42", 2) == 0)
		frond_table_forget();
	memcpy(state, f->state, sizeof(state));
	ereport(ERROR, errcode(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])),
		errmsg("frond: %s", f->text));
}

/* ---- Opening ---- */

/* The options of the user's mapping, or of everybody's; NIL where there is none. */
static List *
mapping_options(Oid server, Oid user)
{
	HeapTuple tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(user),
					  ObjectIdGetDatum(server));

	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
					ObjectIdGetDatum(server));
	if (!HeapTupleIsValid(tuple))
		return NIL;
	ReleaseSysCache(tuple);
	return GetUserMapping(user, server)->options;
}

static void
link_open(struct frond_link *l)
{
	ForeignServer *server = GetForeignServer(l->key.server);
	List *mapping = mapping_options(l->key.server, l->key.user);
	struct frows_where where = {
		.host = frond_option(server->options, "host"),
		.port = frond_option(server->options, "port"),
		.user = frond_option(mapping, "user"),
		.password = frond_option(mapping, "password"),
		.ca_file = frond_option(server->options, "ca_file"),
		.timeout_ms = TIMEOUT_MS,
		.interrupted = link_is_interrupted,
	};
	ListCell *cell;

	foreach (cell, server->options) {
		DefElem *option = lfirst(cell);

		if (strcmp(option->defname, "tls") == 0)
			where.tls = defGetBoolean(option);
		else if (strcmp(option->defname, "timeout_ms") == 0)
			where.timeout_ms = pg_strtoint32(defGetString(option));
	}
	if (!where.host)
		where.host = "127.0.0.1";
	if (!where.port)
		where.port = "9342";
	frows_close(l->rows);
	l->rows = NULL;
	l->is_stale = false;
	if (frows_open(&where, &l->rows))
		return;
	if (!l->rows)
		ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
	frond_fail(l->rows);
}

/* What lies between the fields is hashed, too. */
static void
link_key_set(struct link_key *key, Oid server, Oid user, bool beside)
{
	memset(key, 0, sizeof(*key));
	key->server = server;
	key->user = user;
	key->beside = beside;
}

/* NULL: there is none yet. A statement asks for one of them several times. */
static struct frond_link *
link_find(Oid server, Oid user, bool beside)
{
	struct link_key key;

	if (latest && latest->key.server == server && latest->key.user == user &&
	    latest->key.beside == beside)
		return latest;
	link_key_set(&key, server, user, beside);
	latest = hash_search(links, &key, HASH_FIND, NULL);
	return latest;
}

static struct frond_link *
link_new(Oid server, Oid user, bool beside)
{
	struct link_key key;
	struct frond_link *l;

	link_key_set(&key, server, user, beside);
	l = hash_search(links, &key, HASH_ENTER, NULL);
	memset((char *)l + sizeof(key), 0, sizeof(*l) - sizeof(key));
	return l;
}

static struct frond_link *
link_get(Oid server, Oid user, bool beside)
{
	struct frond_link *l = link_find(server, user, beside);

	if (!l)
		l = link_new(server, user, beside);
	if (l->in_txn) {
		if (!l->rows || !frows_is_open(l->rows))
			ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
				errmsg("frond: the connection was lost in this transaction"));
		return l;
	}
	if (!l->rows || l->is_stale || !frows_is_open(l->rows))
		link_open(l);
	return l;
}

/* One that is open; a connection that has ended while nobody used it is replaced. */
static struct frond_link *
link_get_alive(Oid server, Oid user, bool beside)
{
	struct frond_link *l = link_get(server, user, beside);

	if (!l->in_txn && !frows_is_alive(l->rows))
		link_open(l);
	return l;
}

struct frows *
frond_link_outside(Oid server, Oid user)
{
	return link_get_alive(server, user, false)->rows;
}

struct frows *
frond_link_unasked(Oid server, Oid user)
{
	return link_get(server, user, false)->rows;
}

struct frows *
frond_link_beside(Oid server, Oid user)
{
	return link_get_alive(server, user, true)->rows;
}

/* ---- Within the transaction ---- */

static void
link_set_in_txn(struct frond_link *l, bool in_txn)
{
	in_txn_count += (int)in_txn - (int)l->in_txn;
	l->in_txn = in_txn;
}

static void
link_begin(struct frond_link *l)
{
	frows_begin_later(l->rows, XactReadOnly);
	link_set_in_txn(l, true);
	l->wrote = l->met = false;
	l->bulk_bytes = 0;
	l->began = GetCurrentTransactionNestLevel();
	l->depth = try_level ? try_level : 1;
}

static void
link_save(struct frond_link *l)
{
	int next = l->depth + 1;

	if (next >= l->savepoint_room) {
		int room = 2 * next + LINKS_FIRST;

		l->savepoints = l->savepoints
					? repalloc(l->savepoints, room * sizeof(*l->savepoints))
					: MemoryContextAlloc(TopMemoryContext,
							     room * sizeof(*l->savepoints));
		l->savepoint_room = room;
	}
	if (!frows_savepoint(l->rows, &l->savepoints[next]))
		frond_fail(l->rows);
	l->depth = next;
}

static void
check_writes(const struct frond_link *l)
{
	HASH_SEQ_STATUS all;
	struct frond_link *other;

	if (local_wrote && !frond_allow_mixed_writes)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("this transaction has changed local tables, and cannot change "
			       "tables in frond, too"),
			errhint("Their commits are two. With frond.allow_mixed_writes = on the "
				"changes in frond may stay alone."));
	hash_seq_init(&all, links);
	while ((other = hash_seq_search(&all)))
		if (other != l && other->in_txn && other->wrote) {
			hash_seq_term(&all);
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a transaction writes to one frond, as one person"));
		}
}

bool
frond_link_is_open(Oid server, Oid user)
{
	const struct frond_link *l = link_find(server, user, false);

	return l && l->in_txn;
}

bool
frond_link_has_written(Oid server, Oid user)
{
	const struct frond_link *l = link_find(server, user, false);

	return l && l->in_txn && l->wrote;
}

struct frows *
frond_link_inside(Oid server, Oid user, bool writes)
{
	struct frond_link *l = link_get(server, user, false);

	if (!l->in_txn) {
		/* It may have ended since the last transaction. */
		if (!frows_is_alive(l->rows))
			link_open(l);
		link_begin(l);
	}
	while (l->depth < GetCurrentTransactionNestLevel())
		link_save(l);
	if (writes && !l->wrote) {
		check_writes(l);
		l->wrote = true;
	}
	return l->rows;
}

void
frond_link_refresh_later(Oid server, Oid user)
{
	const struct frond_link *l = link_find(server, user, false);

	if (l && l->in_txn)
		frows_refresh_later(l->rows);
}

bool
frond_link_refreshed(Oid server, Oid user)
{
	const struct frond_link *l = link_find(server, user, false);

	return !l || !l->in_txn || frows_refreshed(l->rows);
}

bool
frond_link_refresh(Oid server, Oid user)
{
	struct frond_link *l = link_get(server, user, false);
	bool moved;

	if (!l->in_txn)
		return true;
	if (!frows_refresh(l->rows, &moved))
		frond_fail(l->rows);
	return moved;
}

/* With frond.bulk_load: commits what was written so far. `ahead`: its answer is read later. */
static void
part_commit(struct frond_link *l, bool ahead)
{
	frond_references_check(InvalidOid, true);
	frond_own_forget(InvalidOid);
	if (!(ahead ? frows_commit_send(l->rows) : frows_commit(l->rows, NULL))) {
		if (!frows_is_open(l->rows))
			ereport(ERROR, errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
				errmsg("frond: it is not known whether a part was committed"));
		frond_fail(l->rows);
	}
	link_set_in_txn(l, false);
}

struct frows *
frond_link_for_schema(Oid server, Oid user)
{
	struct frond_link *l = link_get(server, user, false);

	if (l->in_txn && l->wrote && frond_bulk_load && l->depth == 1)
		part_commit(l, false);
	if (l->in_txn && l->wrote)
		return frond_link_define_within(server, user);
	if (l->in_txn) {
		/* Nothing was written, and the next statement may see a later state. */
		link_set_in_txn(l, false);
		if (!frows_rollback(l->rows) && frows_is_open(l->rows))
			frond_fail(l->rows);
	}
	return link_get_alive(server, user, false)->rows;
}

struct frows *
frond_link_define_within(Oid server, Oid user)
{
	if (GetCurrentTransactionNestLevel() > 1)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a savepoint in which rows in frond were changed cannot make or "
			       "change tables there"),
			errdetail("frond brings back rows to a savepoint, and no definitions."),
			errhint("Put definitions before the savepoint, or before the rows."));
	return frond_link_inside(server, user, true);
}

void
frond_link_wrote(Oid server, Oid user, size_t bytes, bool ahead)
{
	struct frond_link *l = link_get(server, user, false);

	l->bulk_bytes += bytes;
	if (!frond_bulk_load || l->bulk_bytes < BULK_BYTES || l->depth > 1)
		return;
	part_commit(l, ahead);
	link_begin(l);
	l->wrote = true;
}

static void
check_local_write(void)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all)))
		if (l->in_txn && l->wrote) {
			hash_seq_term(&all);
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("this transaction has changed tables in frond, and cannot "
				       "change local tables, too"),
				errhint("Their commits are two. With frond.allow_mixed_writes = on "
					"the changes in frond may stay alone."));
		}
}

void
frond_link_local_write(void)
{
	if (!local_wrote && !frond_allow_mixed_writes)
		check_local_write();
	local_wrote = true;
}

/* ---- Tables that are made and dropped with a transaction ---- */

static struct change *
change_new(Oid server, Oid user, const char *schema, const char *table, const char *column)
{
	struct change *c = palloc0(sizeof(*c));

	/* Opened now: after a commit nothing may fail. */
	c->link = link_get_alive(server, user, true);
	c->schema = pstrdup(schema);
	c->table = pstrdup(table);
	c->column = column ? pstrdup(column) : NULL;
	c->level = GetCurrentTransactionNestLevel();
	return c;
}

void
frond_link_made(Oid server, Oid user, const char *schema, const char *table, const char *column,
		const struct frows_new *before, size_t before_count)
{
	MemoryContext old;
	struct frows_new *columns;
	struct change *c;

	/* What frond's transaction has made goes with it. */
	if (frond_link_has_written(server, user))
		return;
	old = MemoryContextSwitchTo(TopTransactionContext);
	c = change_new(server, user, schema, table, column);
	columns = palloc((before_count + 1) * sizeof(*columns));

	for (size_t i = 0; i < before_count; i++) {
		columns[i] = before[i];
		columns[i].name = pstrdup(before[i].name);
	}
	c->before = columns;
	c->before_count = before_count;
	made = lappend(made, c);
	MemoryContextSwitchTo(old);
}

void
frond_link_drop_later(Oid server, Oid user, const char *schema, const char *table,
		      const char *column)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	drops = lappend(drops, change_new(server, user, schema, table, column));
	MemoryContextSwitchTo(old);
}

static bool
is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool
frond_link_drops(const char *schema, const char *table, const char *column)
{
	ListCell *cell;

	foreach (cell, drops) {
		const struct change *c = lfirst(cell);

		if (!c->is_index && strcmp(c->schema, schema) == 0 &&
		    strcmp(c->table, table) == 0 && is_same(c->column, column))
			return true;
	}
	return false;
}

bool
frond_link_drops_index(const char *schema, const char *index)
{
	ListCell *cell;

	foreach (cell, drops) {
		const struct change *c = lfirst(cell);

		if (c->is_index && strcmp(c->schema, schema) == 0 && strcmp(c->table, index) == 0)
			return true;
	}
	return false;
}

void
frond_link_drop_index_now(Oid server, Oid user, const char *schema, const char *index)
{
	struct frows *c = frond_link_define_within(server, user);
	ListCell *cell;

	if (!frows_index_drop(c, schema, index))
		frond_fail(c);
	foreach (cell, drops) {
		const struct change *d = lfirst(cell);

		if (d->is_index && strcmp(d->schema, schema) == 0 && strcmp(d->table, index) == 0)
			drops = foreach_delete_current(drops, cell);
	}
}

void
frond_link_forget_drops(const struct frond_table *t)
{
	ListCell *cell;

	foreach (cell, drops) {
		const struct change *c = lfirst(cell);
		bool is_its = c->is_index ? frond_index_stored(t, c->table) != NULL
					  : c->column && strcmp(c->table, t->table) == 0;

		if (is_its && strcmp(c->schema, t->schema) == 0)
			drops = foreach_delete_current(drops, cell);
	}
}

static struct change *
index_change_new(Oid server, Oid user, const char *schema, const char *index)
{
	struct change *c = change_new(server, user, schema, index, NULL);

	c->is_index = true;
	return c;
}

void
frond_link_made_index(Oid server, Oid user, const char *schema, const char *index)
{
	MemoryContext old;

	if (frond_link_has_written(server, user))
		return;
	old = MemoryContextSwitchTo(TopTransactionContext);
	made = lappend(made, index_change_new(server, user, schema, index));
	MemoryContextSwitchTo(old);
}

void
frond_link_drop_index_later(Oid server, Oid user, const char *schema, const char *index)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	drops = lappend(drops, index_change_new(server, user, schema, index));
	MemoryContextSwitchTo(old);
}

/* After the transaction: a failure is only told. */
static void
change_drop(const struct change *c)
{
	struct frows *rows = c->link->rows;
	const char *columns[] = { c->column };
	struct frows_table t;
	bool done, is_known;

	if (!rows) {
		ereport(WARNING, errmsg("%s.%s is left in frond: out of memory", c->schema,
					c->column ? c->column : c->table));
		return;
	}
	is_known = !c->is_index && frows_table(rows, c->schema, c->table, &t);
	done = c->is_index ? frows_index_drop(rows, c->schema, c->table)
	       : c->column
		       ? frows_table_alter(rows, c->schema, c->table, NULL, 0, columns, 1, NULL, 0)
		       : frows_table_drop(rows, c->schema, c->table);
	if (is_known && done)
		frond_sequences_forget(rows, &t, c->column);
	if (is_known)
		frows_table_free(&t);
	/* It may have gone with its table. */
	if (!done && strcmp(frows_failure(rows)->state, "42P01") != 0 &&
	    !(c->is_index && strcmp(frows_failure(rows)->state, "42704") == 0))
		ereport(WARNING,
			errmsg("%s.%s could not be dropped in frond: %s", c->schema,
			       c->column ? c->column : c->table, frows_failure(rows)->text));
	if (c->before_count &&
	    !frows_table_create(rows, c->schema, c->table, c->before, c->before_count, NULL))
		ereport(WARNING, errmsg("%s.%s could not be made again in frond: %s", c->schema,
					c->table, frows_failure(rows)->text));
}

static void
changes_drop(List *changes, int level)
{
	ListCell *cell;

	foreach (cell, changes) {
		const struct change *c = lfirst(cell);

		if (c->level >= level)
			change_drop(c);
	}
}

static List *
changes_without(List *changes, int level)
{
	ListCell *cell;

	foreach (cell, changes)
		if (((struct change *)lfirst(cell))->level >= level)
			changes = foreach_delete_current(changes, cell);
	return changes;
}

static void
changes_rise(List *changes, int level)
{
	ListCell *cell;

	foreach (cell, changes) {
		struct change *c = lfirst(cell);

		if (c->level >= level)
			c->level = level - 1;
	}
}

/* ---- Indexes that frond's transaction has made over rows ---- */

void
frond_link_build_later(const struct frond_table *t, Oid user, uint32 number,
		       const struct frows_index *index)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	struct build *b = palloc0(sizeof(*b));

	/* Opened now: after a commit nothing may fail. */
	b->link = link_get_alive(t->server, user, true);
	b->schema = pstrdup(t->schema);
	b->table = pstrdup(t->table);
	b->name = pnstrdup(index->name.ptr, index->name.len);
	b->relid = t->relid;
	b->number = number;
	b->is_unique = index->unique;
	builds = lappend(builds, b);
	MemoryContextSwitchTo(old);
}

void
frond_link_check_built(Oid relid)
{
	ListCell *cell;

	foreach (cell, builds) {
		const struct build *b = lfirst(cell);

		if (b->relid == relid && b->is_unique)
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("the rows of \"%s\" cannot be changed before the end of the "
				       "transaction that has made the unique index \"%s\"",
				       b->table, b->name));
	}
}

/*
 * PostgreSQL holds the locks of the transaction's tables still, so nobody comes between but other
 * clients of frond's.
 */
static void
build_run(const struct build *b)
{
	const struct frows_of of = { b->schema, b->table, NULL };
	bool ready = false, failed = false;

	while (b->link->rows && !ready && !failed && !link_is_interrupted(NULL)) {
		if (!frows_index_build(b->link->rows, &of, b->number, &ready, &failed))
			break;
		if (!ready && !failed)
			pg_usleep(BUILD_PAUSE_US);
	}
	if (failed)
		ereport(WARNING, errmsg("the unique index \"%s\" could not be built, and is to be "
					"dropped: several rows have the same values",
					b->name));
	else if (!ready)
		ereport(WARNING,
			errmsg("frond goes on building the index \"%s\" by itself", b->name));
}

static void
builds_run(void)
{
	ListCell *cell;

	foreach (cell, builds)
		build_run(lfirst(cell));
	if (builds)
		frond_table_forget();
}

/* ---- PostgreSQL's transactions end ---- */

static void
link_commit(struct frond_link *l)
{
	link_set_in_txn(l, false);
	if (!l->wrote) {
		frows_rollback_later(l->rows);
		return;
	}
	if (frows_commit(l->rows, NULL))
		return;
	if (!frows_is_open(l->rows))
		ereport(ERROR, errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
			errmsg("frond: the connection was lost while the transaction committed"),
			errdetail("It is not known whether it has committed."));
	frond_fail(l->rows);
}

static void
links_commit(void)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	if (!in_txn_count)
		return;
	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all))) {
		if (!l->in_txn)
			continue;
		if (!l->wrote) {
			link_commit(l);
			continue;
		}
		/* One at most, which is why the search may end here. */
		hash_seq_term(&all);
		link_commit(l);
		links_commit();
		return;
	}
}

static void
links_abort(void)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all))) {
		if (l->in_txn && l->rows)
			frows_rollback_later(l->rows);
		link_set_in_txn(l, false);
	}
}

/* ---- Statements that are tried ---- */

bool
frond_link_is_used(void)
{
	return in_txn_count > 0;
}

void
frond_link_try(void)
{
	try_level = GetCurrentTransactionNestLevel();
}

void
frond_link_try_end(bool commit)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	bool wrote = false;

	if (commit)
		frond_references_check(InvalidOid, true);
	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all))) {
		wrote |= l->in_txn && l->wrote;
		l->began = l->depth = 1;
	}
	if (commit && wrote) {
		links_commit();
		committed_early = true;
		/* Whoever is told that it was cancelled would take it for undone. */
		HOLD_CANCEL_INTERRUPTS();
	}
	try_level = 0;
}

/* PostgreSQL's transaction has ended behind frond's. */
static void
try_forget(bool aborted)
{
	if (committed_early && aborted)
		ereport(WARNING, errmsg("what this statement has changed in frond is committed"));
	/* An error has let go of it. */
	if (committed_early && !aborted && QueryCancelHoldoffCount > 0)
		RESUME_CANCEL_INTERRUPTS();
	committed_early = false;
	try_level = 0;
}

static void
check_prepare(void)
{
	if (made || drops || frond_link_is_used())
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a transaction that has used tables in frond cannot be prepared"));
}

static void
forget_all(void)
{
	made = NIL;
	drops = NIL;
	builds = NIL;
	local_wrote = false;
	frond_modify_forget(1);
	frond_scan_forget(1);
	frond_references_end();
	frond_locks_forget(1);
	frond_own_forget(InvalidOid);
}

static void
at_xact(XactEvent event, void *arg)
{
	switch (event) {
	case XACT_EVENT_PRE_COMMIT:
		frond_references_check(InvalidOid, true);
		links_commit();
		break;
	case XACT_EVENT_PRE_PREPARE:
		check_prepare();
		break;
	case XACT_EVENT_COMMIT:
		changes_drop(drops, 1);
		builds_run();
		try_forget(false);
		forget_all();
		break;
	case XACT_EVENT_ABORT:
		links_abort();
		changes_drop(made, 1);
		try_forget(true);
		forget_all();
		break;
	case XACT_EVENT_PREPARE:
	case XACT_EVENT_PARALLEL_PRE_COMMIT:
	case XACT_EVENT_PARALLEL_COMMIT:
	case XACT_EVENT_PARALLEL_ABORT:
		break;
	}
}

static void
links_release(int level)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all))) {
		if (!l->in_txn || l->depth < level)
			continue;
		l->depth = level - 1;
		l->began = Min(l->began, l->depth);
		if (!frows_release(l->rows, l->savepoints[level])) {
			hash_seq_term(&all);
			frond_fail(l->rows);
		}
	}
}

/*
 * Rows that are brought back are written, and count in what a transaction may write, so this may
 * fail. A transaction of frond's that has begun in the subtransaction is rolled back as a whole
 * then: nothing of it is left to keep, and what follows is another one. Not so one that has met
 * others: what it has read was not true, and PostgreSQL's transaction may rely on it. Then all that
 * follows fails, and only frond knows why.
 */
static void
link_roll_back_to(struct frond_link *l, int level)
{
	if (frows_rollback_to(l->rows, l->savepoints[level])) {
		(void)frows_release(l->rows, l->savepoints[level]);
		return;
	}
	if (l->began >= level && !l->met && frows_is_open(l->rows) &&
	    strcmp(frows_failure(l->rows)->state, "40001") != 0) {
		frows_rollback_later(l->rows);
		link_set_in_txn(l, false);
		return;
	}
	ereport(WARNING,
		errmsg("the savepoint is not brought back in frond, where only the "
		       "whole transaction can be rolled back"),
		errdetail("%s", frows_failure(l->rows)->text));
}

static void
links_roll_back_to(int level)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all))) {
		if (!l->in_txn || l->depth < level)
			continue;
		l->depth = level - 1;
		if (frows_is_open(l->rows))
			link_roll_back_to(l, level);
	}
}

static void
at_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int level = GetCurrentTransactionNestLevel();

	switch (event) {
	case SUBXACT_EVENT_PRE_COMMIT_SUB:
		links_release(level);
		break;
	case SUBXACT_EVENT_COMMIT_SUB:
		changes_rise(made, level);
		changes_rise(drops, level);
		frond_scan_rise(level);
		frond_references_rise(level);
		frond_locks_rise(level);
		break;
	case SUBXACT_EVENT_ABORT_SUB:
		frond_modify_forget(level);
		frond_scan_forget(level);
		frond_references_forget(level);
		frond_locks_forget(level);
		frond_own_forget(InvalidOid);
		if (level == try_level) {
			links_abort();
			local_wrote = false;
			try_level = 0;
		} else {
			links_roll_back_to(level);
		}
		changes_drop(made, level);
		made = changes_without(made, level);
		drops = changes_without(drops, level);
		break;
	case SUBXACT_EVENT_START_SUB:
		break;
	}
}

/* A server or a user mapping has changed: each connection is made anew when it is free. */
static void
at_change(Datum arg, int cache, uint32 hash)
{
	HASH_SEQ_STATUS all;
	struct frond_link *l;

	hash_seq_init(&all, links);
	while ((l = hash_seq_search(&all)))
		l->is_stale = true;
}

void
frond_link_init(void)
{
	HASHCTL how = { .keysize = sizeof(struct link_key),
			.entrysize = sizeof(struct frond_link) };

	links = hash_create("frond's connections", LINKS_FIRST, &how, HASH_ELEM | HASH_BLOBS);
	RegisterXactCallback(at_xact, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, at_change, (Datum)0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, at_change, (Datum)0);
}

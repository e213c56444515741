/*
 * Rows that are locked: those of FOR UPDATE and its kin, and those that UPDATE, DELETE and
 * ON CONFLICT DO UPDATE find.
 *
 * A lock is one of PostgreSQL's own lock manager, by a hash of the table and the key. So it holds
 * among the backends of this PostgreSQL, goes with its transaction or savepoint, and a cycle is
 * found by PostgreSQL. frond knows nothing of it and checks at each commit what was read: a lock
 * makes transactions wait that would fail otherwise, and nothing is wrong without it.
 *
 * A transaction of frond's reads one state of the store. Where a scan knows the keys of its rows
 * beforehand it locks them before it asks, so that the state of a transaction that begins there has
 * what the others have committed. One that has read before moves on to a later state, which it may
 * do as long as nothing of what it has read was changed. Rows that are found otherwise are locked
 * when PostgreSQL's node LockRows, or the write, comes to them. Whoever has waited, and cannot move
 * on, looks whether the row has changed since its own transaction began, and fails with 40001 if
 * so; a statement that is the first of its transaction is then tried again (retry.c).
 *
 * SKIP LOCKED looks for its rows beside the transaction and reads only those in it that it has
 * locked: otherwise it would have read what the others are about to change.
 */
#include "frond_lock.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "storage/itemptr.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

enum {
	/* Of an advisory lock's tag. Those of users have 1 or 2 as their last field. */
	TAG_ROW = 3,
	TAG_COUNTER = 4,
	LEVELS = 64, /* of subtransactions that are told apart */
	ROW_BITS = 16,
	GIVEN_FIRST = 64,
	GIVEN_BYTES = 256 * 1024 * 1024, /* of keys that a scan has given to be locked */
};

/* The rows that a scan gives to LockRows. */
struct frond_marks {
	const struct frond_table *table;
	Oid user;
	LOCKMODE mode;
	LockWaitPolicy policy;
	bool is_beside;
	int key_at[FROWS_KEY_COLUMNS]; /* in the values of a row of the scan */
	MemoryContext memory;
	struct frows_value *keys; /* of each row that was given; its number is its ctid */
	size_t count, room;
};

int frond_row_locks;
int frond_lock_timeout;

static int taken[LEVELS]; /* locks, by the subtransaction that has them */

/* ---- How many ---- */

static int
level_of(int level)
{
	return Min(level, LEVELS) - 1;
}

void
frond_locks_forget(int level)
{
	for (int i = level_of(level); i < LEVELS; i++)
		taken[i] = 0;
}

void
frond_locks_rise(int level)
{
	if (level > LEVELS)
		return;
	taken[level - 2] += taken[level - 1];
	taken[level - 1] = 0;
}

/* What is beyond the limit is not locked. */
static bool
is_full(void)
{
	int count = 0;

	for (int i = 0; i < LEVELS; i++)
		count += taken[i];
	return count >= frond_row_locks;
}

/* ---- Locking ---- */

static LOCKTAG
tag_of(const struct frond_table *t, const struct frows_value *key)
{
	uint64 hash = hash_bytes_extended(t->id, sizeof(t->id), 0);
	LOCKTAG tag;

	for (int i = 0; i < t->key_count; i++)
		hash = hash_bytes_extended(key[i].ptr, key[i].len, hash + 1);
	/* Two databases may have the same table of frond's: none is named. */
	SET_LOCKTAG_ADVISORY(tag, InvalidOid, (uint32)(hash >> 32), (uint32)hash, TAG_ROW);
	return tag;
}

static void
count_taken(LockAcquireResult result)
{
	if (result == LOCKACQUIRE_OK)
		taken[level_of(GetCurrentTransactionNestLevel())]++;
}

/* A cycle is told as what it is to whoever tries again: one more conflict. */
static void
fail_wait(MemoryContext memory)
{
	ErrorData *error;

	MemoryContextSwitchTo(memory);
	error = CopyErrorData();
	if (error->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED)
		PG_RE_THROW();
	FlushErrorState();
	error->sqlerrcode = ERRCODE_T_R_SERIALIZATION_FAILURE;
	ReThrowError(error);
}

static void
wait_for(const LOCKTAG *tag, LOCKMODE mode)
{
	MemoryContext memory = CurrentMemoryContext;
	int timeout = LockTimeout;

	PG_TRY();
	{
		if (LockTimeout == 0)
			LockTimeout = frond_lock_timeout;
		/* Where PostgreSQL has no memory for one more lock the row is left unlocked. */
		count_taken(LockAcquireExtended(tag, mode, false, false, false, NULL));
	}
	PG_CATCH();
	{
		LockTimeout = timeout;
		fail_wait(memory);
	}
	PG_END_TRY();
	LockTimeout = timeout;
}

static LockAcquireResult
take(const LOCKTAG *tag, LOCKMODE mode)
{
	LockAcquireResult result = LockAcquireExtended(tag, mode, false, true, false, NULL);

	count_taken(result);
	return result;
}

bool
frond_lock_take(const struct frond_table *t, const struct frows_value *key, LOCKMODE mode)
{
	LOCKTAG tag;

	if (is_full())
		return true;
	tag = tag_of(t, key);
	return take(&tag, mode) != LOCKACQUIRE_NOT_AVAIL;
}

/* ---- Counters ---- */

static LOCKTAG
counter_tag(const char *name)
{
	uint64 hash = hash_bytes_extended((const unsigned char *)name, (int)strlen(name), 0);
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, InvalidOid, (uint32)(hash >> 32), (uint32)hash, TAG_COUNTER);
	return tag;
}

bool
frond_lock_counter(const char *name)
{
	LOCKTAG tag = counter_tag(name);

	return LockAcquireExtended(&tag, ExclusiveLock, false, false, false, NULL) !=
	       LOCKACQUIRE_NOT_AVAIL;
}

void
frond_unlock_counter(const char *name)
{
	LOCKTAG tag = counter_tag(name);

	(void)LockRelease(&tag, ExclusiveLock, false);
}

/* ---- Rows by their keys ---- */

/* All columns of a row. `values`: room for each; what they point to is the connection's. */
static bool
row_get(struct frows *c, const struct frond_table *t, const struct frows_value *key,
	struct frows_value *values)
{
	const struct frows_of of = frond_table_of(t);
	uint32 *columns = palloc((t->natts + 1) * sizeof(*columns));
	size_t count = 0;
	bool found = false;

	for (int i = 0; i < t->natts; i++)
		if (t->columns[i].is_there)
			columns[count++] = t->columns[i].id;
	frows_get(c, &of, columns, count);
	frows_get_key(c, key, t->key_count);
	if (!frows_get_run(c) || !frows_get_row(c, &found, values))
		frond_fail(c);
	pfree(columns);
	return found;
}

bool
frond_row_read(const struct frond_table *t, Oid user, Relation rel, const struct frows_value *key,
	       TupleTableSlot *ret)
{
	struct frows_value *values = palloc((t->natts + 1) * sizeof(*values));
	Datum *datums = palloc0((t->natts + 1) * sizeof(*datums));
	bool *nulls = palloc((t->natts + 1) * sizeof(*nulls));
	size_t count = 0;

	if (!row_get(frond_link_inside(t->server, user, false), t, key, values))
		return false;
	for (int i = 0; i < t->natts; i++) {
		const struct frows_value *v;

		nulls[i] = true;
		if (!t->columns[i].is_there)
			continue;
		v = &values[count++];
		nulls[i] = v->len < 0;
		if (!nulls[i])
			datums[i] = frond_value_get(&t->columns[i], *v);
	}
	ExecForceStoreHeapTuple(heap_form_tuple(RelationGetDescr(rel), datums, nulls), ret, false);
	return true;
}

/* Whether the transaction still has the row as it is now. */
static bool
is_fresh(const struct frond_table *t, Oid user, const struct frows_value *key)
{
	int count = 0;
	struct frows_value *here = palloc((t->natts + 1) * sizeof(*here));
	struct frows_value *now = palloc((t->natts + 1) * sizeof(*now));
	bool found = row_get(frond_link_inside(t->server, user, false), t, key, here);
	bool is_same = row_get(frond_link_beside(t->server, user), t, key, now) == found;

	for (int i = 0; i < t->natts; i++)
		count += t->columns[i].is_there;
	for (int i = 0; i < count && found && is_same; i++)
		is_same = here[i].len == now[i].len &&
			  (here[i].len <= 0 || memcmp(here[i].ptr, now[i].ptr, here[i].len) == 0);
	pfree(here);
	pfree(now);
	return is_same;
}

static void
check_fresh(const struct frond_table *t, Oid user, const struct frows_value *key)
{
	if (!is_fresh(t, user, key))
		ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			errmsg("could not serialize access due to concurrent update"),
			errdetail("A row of \"%s\" that was waited for has changed since this "
				  "transaction began to read.",
				  t->table));
}

/* True if another transaction had the row, and was waited for. */
static bool
lock_or_wait(const struct frond_table *t, Oid user, const struct frows_value *key, LOCKMODE mode)
{
	LOCKTAG tag;

	if (is_full())
		return false;
	tag = tag_of(t, key);
	switch (take(&tag, mode)) {
	case LOCKACQUIRE_OK:
		/* Whoever had it before may have changed the row since this transaction began. */
		frond_link_refresh_later(t->server, user);
		return false;
	case LOCKACQUIRE_ALREADY_HELD:
	case LOCKACQUIRE_ALREADY_CLEAR:
		return false;
	case LOCKACQUIRE_NOT_AVAIL:
		break;
	}
	wait_for(&tag, mode);
	return true;
}

void
frond_lock_wait(const struct frond_table *t, Oid user, const struct frows_value *key, LOCKMODE mode)
{
	/* A transaction that begins now reads what the others have committed, and so does one of
	 * which all that it has read is still so. */
	if (lock_or_wait(t, user, key, mode) && frond_link_is_open(t->server, user) &&
	    !frond_link_refresh(t->server, user))
		check_fresh(t, user, key);
}

bool
frond_lock_ahead(const struct frond_table *t, Oid user, const struct frows_value *key,
		 LOCKMODE mode)
{
	if (!lock_or_wait(t, user, key, mode) || !frond_link_is_open(t->server, user))
		return false;
	frond_link_refresh_later(t->server, user);
	return true;
}

void
frond_lock_check(const struct frond_table *t, Oid user, const struct frows_value *key)
{
	if (!frond_link_refreshed(t->server, user))
		check_fresh(t, user, key);
}

/* ---- FOR UPDATE and its kin ---- */

RowMarkType
frond_mark_type(RangeTblEntry *rte, LockClauseStrength strength)
{
	switch (strength) {
	case LCS_NONE:
		break;
	case LCS_FORKEYSHARE:
		return ROW_MARK_KEYSHARE;
	case LCS_FORSHARE:
		return ROW_MARK_SHARE;
	case LCS_FORNOKEYUPDATE:
		return ROW_MARK_NOKEYEXCLUSIVE;
	case LCS_FORUPDATE:
		return ROW_MARK_EXCLUSIVE;
	}
	return ROW_MARK_COPY;
}

/* The modes that PostgreSQL takes for rows of its own; they exclude each other likewise. */
static LOCKMODE
mode_of(RowMarkType mark)
{
	switch (mark) {
	case ROW_MARK_EXCLUSIVE:
		return AccessExclusiveLock;
	case ROW_MARK_NOKEYEXCLUSIVE:
		return ExclusiveLock;
	case ROW_MARK_SHARE:
		return RowShareLock;
	case ROW_MARK_KEYSHARE:
		return AccessShareLock;
	case ROW_MARK_REFERENCE:
	case ROW_MARK_COPY:
		break;
	}
	return NoLock;
}

static ExecRowMark *
mark_of(const EState *estate, Index rti)
{
	ExecRowMark *mark = estate->es_rowmarks && rti ? estate->es_rowmarks[rti - 1] : NULL;

	return mark && RowMarkRequiresRowShareLock(mark->markType) ? mark : NULL;
}

LOCKMODE
frond_lock_beforehand(const EState *estate, Index rti)
{
	const ExecRowMark *mark = mark_of(estate, rti);

	/* The others are to look only at rows that the query wants, of which the scan may have
	 * more. */
	if (mark)
		return mark->waitPolicy == LockWaitBlock ? mode_of(mark->markType) : NoLock;
	if (!rti || !list_member_int(estate->es_plannedstmt->resultRelations, (int)rti))
		return NoLock;
	return estate->es_plannedstmt->commandType == CMD_DELETE ? AccessExclusiveLock
								 : ExclusiveLock;
}

struct frond_marks *
frond_marks_new(EState *estate, Index rti, const struct frond_table *t, Oid user,
		const int *attnums, int count)
{
	ExecRowMark *mark = mark_of(estate, rti);
	struct frond_marks *m;

	/* The second one of a relation is of a plan that looks at single rows again. */
	if (!mark || mark->ermExtra)
		return NULL;
	m = MemoryContextAllocZero(estate->es_query_cxt, sizeof(*m));
	m->table = t;
	m->user = user;
	m->mode = mode_of(mark->markType);
	m->policy = mark->waitPolicy;
	m->memory = AllocSetContextCreate(estate->es_query_cxt, "rows that are locked in frond",
					  ALLOCSET_SMALL_SIZES);
	for (int i = 0; i < t->key_count; i++)
		for (int j = 0; j < count; j++)
			if (attnums[j] == t->key[i].attnum)
				m->key_at[i] = j;
	if (m->policy == LockWaitSkip) {
		frond_modify_flush(t->relid, estate);
		/* Beside the transaction, what it has written itself is not seen. */
		m->is_beside = !frond_link_has_written(t->server, user);
	}
	mark->ermExtra = m;
	return m;
}

bool
frond_marks_are_beside(const struct frond_marks *m)
{
	return m && m->is_beside;
}

void
frond_marks_give(struct frond_marks *m, const struct frows_value *values, TupleTableSlot *slot)
{
	MemoryContext old;
	struct frows_value *key;

	/* The ctid is the key then. */
	if (m->table->has_hidden_key)
		return;
	if (MemoryContextMemAllocated(m->memory, false) > GIVEN_BYTES)
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("the keys of rows of \"%s\" that are to be locked have more than %d "
			       "bytes",
			       m->table->table, GIVEN_BYTES));
	old = MemoryContextSwitchTo(m->memory);
	if (m->count == m->room) {
		size_t bytes;

		m->room = m->room ? 2 * m->room : GIVEN_FIRST;
		bytes = m->room * m->table->key_count * sizeof(*m->keys);
		m->keys = m->keys ? repalloc_huge(m->keys, bytes)
				  : MemoryContextAllocHuge(m->memory, bytes);
	}
	key = m->keys + m->count * m->table->key_count;
	for (int i = 0; i < m->table->key_count; i++)
		key[i] = frond_value_copy(values[m->key_at[i]]);
	MemoryContextSwitchTo(old);
	ItemPointerSet(&slot->tts_tid, (BlockNumber)m->count, FirstOffsetNumber);
	m->count++;
}

/* Whether PostgreSQL may look at rows again, since a row of a table of its own has changed. */
static bool
locks_others(const EState *estate)
{
	for (Index i = 1; i <= estate->es_range_table_size; i++) {
		const ExecRowMark *mark = mark_of(estate, i);

		if (mark && !frond_is_table(mark->relid))
			return true;
	}
	return false;
}

void
frond_row_refetch(EState *estate, ExecRowMark *mark, Datum ctid, TupleTableSlot *slot,
		  bool *updated)
{
	const struct frond_marks *m = mark->ermExtra;
	ItemPointer tid = (ItemPointer)DatumGetPointer(ctid);
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	const struct frows_value *key;
	struct frows_value hidden;
	uint8 bytes[8];

	*updated = false;
	if (!m || (!m->table->has_hidden_key && block >= m->count))
		elog(ERROR, "a row that is to be locked is of no scan");
	frows_put_int(bytes, (int64)block << ROW_BITS | ItemPointerGetOffsetNumberNoCheck(tid),
		      sizeof(bytes));
	hidden = (struct frows_value){ bytes, sizeof(bytes) };
	key = m->table->has_hidden_key ? &hidden : m->keys + (size_t)block * m->table->key_count;
	if (m->policy == LockWaitBlock) {
		frond_lock_wait(m->table, m->user, key, m->mode);
	} else if (!frond_lock_take(m->table, key, m->mode)) {
		if (m->policy == LockWaitError)
			ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("could not obtain lock on row in relation \"%s\"",
				       RelationGetRelationName(mark->relation)));
		return;
	}
	/* An empty slot says that there is no such row; any other one is looked at only if a row
	 * has changed. */
	if (m->is_beside)
		*updated = frond_row_read(m->table, m->user, mark->relation, key, slot);
	else if (locks_others(estate))
		(void)frond_row_read(m->table, m->user, mark->relation, key, slot);
	else
		ExecStoreAllNullTuple(slot);
}

#include "door/cql/run/prepared.h"

#include <openssl/sha.h>

#include "base/hash.h"
#include "base/mem.h"

/* What the table of all has. */
struct kept {
	struct expiring_entry entry; /* first */
	struct prepared *prepared;   /* a reference */
};

static bool
kept_is(const struct expiring_entry *e, const void *id)
{
	return memcmp(((const struct kept *)e)->prepared->id, id, PREPARED_ID_BYTES) == 0;
}

static void
kept_free(struct expiring_entry *e)
{
	prepared_unref(((struct kept *)e)->prepared);
	mem_free(e);
}

void
prepared_init(struct cql_door *door)
{
	door->prepared_rules = (struct expiring_rules){
		.most = door->config.settings->prepared,
		.most_bytes = CQL_PREPARED_BYTES,
		.replaces = true,
		.is = kept_is,
		.free = kept_free,
	};
	expiring_init(&door->prepared, &door->prepared_rules);
}

/* Of a text that has the keyspace, a zero byte, which no name has, and the statement. */
static void
prepared_id(struct str both, uint8_t ret[static PREPARED_ID_BYTES])
{
	unsigned char sha[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)both.ptr, both.len, sha);
	memcpy(ret, sha, PREPARED_ID_BYTES);
}

enum status
prepared_new(struct cql_request *r, struct str keyspace, struct str text, struct prepared **ret)
{
	struct arena *arena = arena_new(CQL_PREPARED_ONE_BYTES);
	struct cql q = { .arena = arena, .err = &r->err };
	struct cql_statement *statement;
	struct prepared *p;
	enum status status;
	char *both;

	p = arena ? arena_zalloc(arena, sizeof(*p)) : NULL;
	if (!p) {
		arena_free(arena);
		return STATUS_NOMEM;
	}
	atomic_init(&p->refs, 1);
	p->arena = arena;
	both = arena_bytes(arena, keyspace.len + 1 + text.len + 1);
	status = both ? STATUS_OK : STATUS_LIMIT;
	if (both) {
		if (keyspace.len)
			memcpy(both, keyspace.ptr, keyspace.len);
		both[keyspace.len] = '\0';
		if (text.len)
			memcpy(both + keyspace.len + 1, text.ptr, text.len);
		p->keyspace = str_of(both, keyspace.len);
		p->text = str_of(both + keyspace.len + 1, text.len);
	}
	if (status == STATUS_OK)
		status = cql_parse(&q, p->text, &statement);
	if (status != STATUS_OK) {
		r->q.code = q.code;
		if (status == STATUS_LIMIT)
			status = request_fail(r, CQL_CODE_INVALID,
					      "a statement takes more memory than one may "
					      "(CQL_PREPARED_ONE_BYTES, %d)",
					      CQL_PREPARED_ONE_BYTES);
		arena_free(arena);
		return status;
	}
	prepared_id(str_of(both, keyspace.len + 1 + text.len), p->id);
	p->statement = statement;
	*ret = p;
	return STATUS_OK;
}

void
prepared_unref(struct prepared *p)
{
	if (p && atomic_fetch_sub(&p->refs, 1) == 1)
		arena_free(p->arena);
}

static uint64_t
id_hash(const void *id)
{
	return hash_keyed(0, str_of(id, PREPARED_ID_BYTES));
}

enum status
prepared_keep(struct cql_door *door, struct prepared *p)
{
	struct kept *k;
	enum status status;

	/* One of before may be about a table that has changed since. */
	(void)expiring_end(&door->prepared, id_hash(p->id), p->id);
	k = mem_zalloc(sizeof(*k));
	if (!k)
		return STATUS_NOMEM;
	atomic_fetch_add(&p->refs, 1);
	k->prepared = p;
	status = expiring_add(&door->prepared, id_hash(p->id), p->id, &k->entry,
			      sizeof(*k) + arena_used_bytes(p->arena));
	if (status == STATUS_OK)
		expiring_give(&door->prepared, &k->entry);
	else
		kept_free(&k->entry);
	/* Another client may have prepared it meanwhile. */
	return status == STATUS_EXISTS ? STATUS_OK : status;
}

static enum expiring_look
kept_look(void *arg, struct expiring_entry *e)
{
	struct prepared **ret = arg;

	*ret = ((struct kept *)e)->prepared;
	atomic_fetch_add(&(*ret)->refs, 1);
	return EXPIRING_USE;
}

struct prepared *
prepared_find(struct cql_door *door, struct str id)
{
	struct prepared *found = NULL;

	if (id.len == PREPARED_ID_BYTES)
		(void)expiring_look(&door->prepared, id_hash(id.ptr), id.ptr, kept_look, &found);
	return found;
}

enum status
prepared_set_partition(struct prepared *p, const unsigned *markers, size_t count)
{
	unsigned *kept = arena_alloc(p->arena, (count + 1) * sizeof(*kept));

	if (!kept)
		return STATUS_LIMIT;
	if (count)
		memcpy(kept, markers, count * sizeof(*kept));
	p->partition = kept;
	p->partition_count = count;
	return STATUS_OK;
}

/* ---- Statements whose table has changed ---- */

struct replacing {
	const struct prepared *old;
	struct prepared *by;
	bool replaced;
	bool is_other; /* another run of the statement has replaced it already */
};

/*
 * Swaps it in place, so that no client that executes it meanwhile finds it missing. The table of
 * statements goes on counting the old one's bytes, so the new one may not have more.
 */
static enum expiring_look
kept_replace(void *arg, struct expiring_entry *e)
{
	struct replacing *x = arg;
	struct kept *k = (struct kept *)e;

	x->is_other = k->prepared != x->old;
	if (e->taken || x->is_other ||
	    arena_used_bytes(x->by->arena) > arena_used_bytes(x->old->arena))
		return EXPIRING_LEAVE;
	atomic_fetch_add(&x->by->refs, 1);
	k->prepared = x->by;
	x->replaced = true;
	return EXPIRING_USE;
}

static bool
is_kept(struct cql_door *door, const struct prepared *p)
{
	struct prepared *found = prepared_find(door, str_of(p->id, sizeof(p->id)));

	prepared_unref(found);
	return found == p;
}

/* The same statement, compiled in the transaction. NULL: memory is short. */
static struct prepared *
compile_again(const struct prepared *p, const struct run *run)
{
	struct cql_request *r = run->r;
	struct run again = *run;
	struct prepared *new;
	struct cql q = r->q;
	struct err err = r->err;

	if (prepared_new(r, p->keyspace, p->text, &new) != STATUS_OK) {
		r->q = q;
		r->err = err;
		return NULL;
	}
	if (prepared_set_partition(new, p->partition, p->partition_count) != STATUS_OK) {
		prepared_unref(new);
		return NULL;
	}
	new->hash = p->hash;
	new->reads_row = p->reads_row;
	again.statement = again.outer = new->statement;
	again.keyspace = new->keyspace;
	new->compiled = compiled_new(&again, new->arena);
	return new;
}

static void
renew(struct prepared *p, const struct run *run)
{
	struct cql_door *door = run->r->door;
	struct prepared *new;
	struct replacing x;

	/* Another client has done it, or none has executed it for long. */
	if (!is_kept(door, p))
		return;
	new = compile_again(p, run);
	if (!new)
		return;
	x = (struct replacing){ .old = p, .by = new };
	(void)expiring_look(&door->prepared, id_hash(p->id), p->id, kept_replace, &x);
	if (x.replaced)
		prepared_unref(p);
	else if (!x.is_other) /* which ends the old one first: others may find none for a moment */
		(void)!prepared_keep(door, new);
	prepared_unref(new);
}

enum status
prepared_check(struct prepared *p, struct str id, const struct run *run)
{
	struct cql_request *r = run->r;

	if (run->compiled || !p->hash)
		return STATUS_OK;
	if (p->hash == schema_table_hash(run->table)) {
		if (p->compiled)
			renew(p, run);
		return STATUS_OK;
	}
	(void)expiring_end(&r->door->prepared, id_hash(p->id), p->id);
	r->more.id = id;
	return request_fail(r, CQL_CODE_UNPREPARED,
			    "The table of a prepared statement has changed: prepare it again");
}

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

static bool
kept_has(const void *p, const struct expiring_entry *e)
{
	return ((const struct kept *)e)->prepared == p;
}

/*
 * Keeps it in place of the one of its id, if that is `old`, or whichever it is if `old` is NULL. A
 * client that executes the statement meanwhile finds one of both: it never is missing.
 */
static enum status
keep(struct cql_door *door, struct prepared *p, const struct prepared *old)
{
	struct kept *k = mem_zalloc(sizeof(*k));
	enum status status;

	if (!k)
		return STATUS_NOMEM;
	atomic_fetch_add(&p->refs, 1);
	k->prepared = p;
	status = expiring_put(&door->prepared, id_hash(p->id), p->id, &k->entry,
			      sizeof(*k) + arena_used_bytes(p->arena), old ? kept_has : NULL, old);
	if (status != STATUS_OK)
		kept_free(&k->entry);
	return status;
}

enum status
prepared_keep(struct cql_door *door, struct prepared *p)
{
	return keep(door, p, NULL);
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

	/* Another client has done it, or none has executed it for long. */
	if (!is_kept(door, p))
		return;
	new = compile_again(p, run);
	if (!new)
		return;
	/* One that another run has put there meanwhile stays. */
	(void)!keep(door, new, p);
	prepared_unref(new);
}

static enum expiring_look
kept_end(void *p, struct expiring_entry *e)
{
	return kept_has(p, e) ? EXPIRING_END : EXPIRING_LEAVE;
}

/* Keeps it no longer. One of the same text that a client has prepared meanwhile stays. */
static void
forget(struct cql_door *door, struct prepared *p)
{
	(void)expiring_look(&door->prepared, id_hash(p->id), p->id, kept_end, p);
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
	forget(r->door, p);
	r->more.id = id;
	return request_fail(r, CQL_CODE_UNPREPARED,
			    "The table of a prepared statement has changed: prepare it again");
}

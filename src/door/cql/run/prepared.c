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

void
prepared_forget(struct cql_door *door, struct str id)
{
	if (id.len == PREPARED_ID_BYTES)
		(void)expiring_end(&door->prepared, id_hash(id.ptr), id.ptr);
}

#include "door/couch/view/known.h"

#include "base/hash.h"
#include "base/mem.h"
#include "model/revisioned/revisioned.h"

enum {
	KNOWN_SLOTS = 64,
	KNOWN_TEXT_BYTES = 64 * 1024,    /* the longest text of a design document that is kept */
	KNOWN_ARENA_BYTES = 1024 * 1024, /* memory of an entry */
};

/* Direct-mapped: a design document has one slot, and replaces the entry that is in it. */
struct couch_view_cache {
	struct couch_view_known *slots[KNOWN_SLOTS];
};

struct couch_view_cache *
couch_view_cache_new(void)
{
	return mem_zalloc(sizeof(struct couch_view_cache));
}

void
couch_view_cache_free(struct couch_view_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < KNOWN_SLOTS; i++)
		couch_view_known_unref(cache->slots[i]);
	mem_free(cache);
}

void
couch_view_known_unref(struct couch_view_known *known)
{
	if (!known || --known->refs)
		return;
	arena_free(known->arena);
	mem_free(known);
}

static struct couch_view_known **
known_slot(struct couch_req *r, struct str name)
{
	return &r->loop->views->slots[hash_keyed(r->db->number, name) % KNOWN_SLOTS];
}

/* ---- Finding ---- */

static bool
known_is_of(const struct couch_view_known *known, const struct catalog_db *db, struct str name)
{
	struct str id = known->named.id;

	return known->named.version.owner == db->number && str_starts_with(id, STR("_design/")) &&
	       str_eq(str_skip(id, sizeof("_design/") - 1), name);
}

enum status
couch_view_known_holds(struct kv_tx *tx, const struct catalog_db *db,
		       const struct couch_view_known *known, bool *ret)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct catalog_seq newest;

	*ret = false;
	TRY(kv_get_metadata_version(tx, version));
	if (memcmp(version, known->version, sizeof(version)) != 0)
		return STATUS_OK;
	TRY(rev_db_newest(tx, db, &newest));
	/* The entry must be compared after the wait, because it may have changed. */
	*ret = catalog_seq_cmp(&newest, &known->named.newest) == 0 &&
	       memcmp(version, known->version, sizeof(version)) == 0;
	return STATUS_OK;
}

enum status
couch_view_known_find(struct couch_req *r, struct kv_tx *tx, struct couch_view_known **ret)
{
	struct couch_view_known *known = *known_slot(r, r->parts[2]);
	enum status status;
	bool holds;

	*ret = NULL;
	if (!known || !known_is_of(known, r->db, r->parts[2]))
		return STATUS_OK;
	known->refs++; /* another fiber may take the slot during the wait */
	status = couch_view_known_holds(tx, r->db, known, &holds);
	if (status == STATUS_OK && holds)
		*ret = known;
	else
		couch_view_known_unref(known);
	return status;
}

/* ---- Keeping ---- */

/* Parses the design document again, into the entry's arena. */
static enum status
known_copy(struct couch_view_known *known, const struct couch_view_named *from, bool partitioned_db)
{
	struct couch_view_named *n = &known->named;
	struct arena *arena = known->arena;

	n->id = arena_dup(arena, from->id);
	n->version = (struct js_design){
		.owner = from->version.owner,
		.name = arena_dup(arena, from->version.name),
		.key = arena_dup(arena, from->version.key),
		.language = arena_dup(arena, from->version.language),
		.text = arena_dup(arena, from->version.text),
	};
	if (!n->id.ptr || !n->version.name.ptr || !n->version.key.ptr || !n->version.language.ptr ||
	    !n->version.text.ptr)
		return STATUS_LIMIT;
	return view_design_parse(n->version.text, partitioned_db, arena, &n->design, NULL);
}

static enum status
known_new(const struct couch_view_named *named, bool partitioned_db, struct couch_view_known **ret)
{
	struct couch_view_known *known = mem_zalloc(sizeof(*known));
	enum status status = STATUS_NOMEM;

	if (!known)
		return STATUS_NOMEM;
	known->refs = 1;
	known->arena = arena_new(KNOWN_ARENA_BYTES);
	if (known->arena)
		status = known_copy(known, named, partitioned_db);
	if (status == STATUS_OK)
		*ret = known;
	else
		couch_view_known_unref(known);
	return status;
}

enum status
couch_view_known_keep(struct couch_req *r, struct kv_tx *tx, const struct couch_view_named *named,
		      const struct view_group *group)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct couch_view_known *known, **slot;
	struct catalog_seq newest;

	if (group->phase != VIEW_PHASE_READY || named->version.text.len > KNOWN_TEXT_BYTES)
		return STATUS_OK;
	TRY(kv_get_metadata_version(tx, version));
	TRY(rev_db_newest(tx, r->db, &newest));
	/*
	 * `named` was read in an earlier transaction. It holds in this snapshot only if nothing was
	 * written in between.
	 */
	if (catalog_seq_cmp(&newest, &named->newest) != 0 ||
	    catalog_seq_cmp(&group->covers, &newest) < 0)
		return STATUS_OK;
	slot = known_slot(r, r->parts[2]);
	known = *slot;
	if (!known || !known_is_of(known, r->db, r->parts[2]) ||
	    !str_eq(known->named.version.key, named->version.key)) {
		/* If there is no memory, nothing is kept, and the next request reads again. */
		if (known_new(named, rev_db_is_partitioned(r->db), &known) != STATUS_OK)
			return STATUS_OK;
		couch_view_known_unref(*slot);
		*slot = known;
	}
	known->group = *group;
	known->group.refusals = NULL;
	known->group.refusal_count = 0;
	known->named.newest = newest;
	memcpy(known->version, version, sizeof(version));
	return STATUS_OK;
}

/* The design documents of a database that have a validate_doc_update. */
#include "door/couch/doc/validators.h"

#include "base/hash.h"
#include "base/mem.h"
#include "catalog/keys.h"
#include "doc/json_value.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/functions.h"

enum {
	PAGE_DESIGNS = 100,
	DESIGN_BYTES = 32 * 1024 * 1024,   /* of one design document's text */
	SCRATCH_BYTES = 256 * 1024 * 1024, /* that reading them may take */
};

static void
set_free(struct couch_kept *kept)
{
	struct couch_validators *set = (struct couch_validators *)kept;

	arena_free(set->arena);
	mem_free(set);
}

void
couch_validators_unref(struct couch_validators *set)
{
	couch_kept_unref(set ? &set->kept : NULL);
}

/* ---- Reading ---- */

static enum status
set_new(struct couch_validators **ret)
{
	struct couch_validators *set = mem_zalloc(sizeof(*set));

	if (!set)
		return STATUS_NOMEM;
	set->kept = (struct couch_kept){ .refs = 1, .free = set_free };
	*ret = set;
	return STATUS_OK;
}

/* Adds a design document's text, if it has a validator. */
static enum status
validators_add(struct couch_validators *set, const struct catalog_db *db, struct str id,
	       struct str text, struct arena *scratch, size_t *cap)
{
	struct json_member *members;
	struct js_design *design;
	struct str kept;
	size_t count;

	TRY(json_read_members(text, scratch, &members, &count, NULL));
	if (!json_value_find(members, count, "validate_doc_update"))
		return STATUS_OK;
	if (!set->arena)
		set->arena = arena_new(COUCH_VALIDATORS_BYTES);
	if (!set->arena)
		return STATUS_NOMEM;
	TRY(arena_copy(set->arena, text, &kept));
	TRY(catalog_array_grow(set->arena, (void **)&set->designs, sizeof(*set->designs),
			       set->count, cap));
	design = &set->designs[set->count];
	TRY(couch_function_version(db, id, kept, set->arena, design));
	set->print = hash_keyed(set->print, design->key);
	set->count++;
	return STATUS_OK;
}

static enum status
set_read_page(struct kv_tx *tx, const struct catalog_db *db, struct name_range *range,
	      struct arena *scratch, struct couch_validators *set, size_t *cap, bool *ret_more)
{
	AUTO(buf_release) struct buf text = BUF_INIT_OF(DESIGN_BYTES, arena_part(scratch));
	struct rev_entry_page page;

	TRY(rev_all_docs_page(tx, db, range, scratch, &page));
	for (size_t i = 0; i < page.count; i++) {
		struct arena_mark mark = arena_mark(scratch);
		struct rev_doc doc;
		struct couch_doc_out d = { .id = page.entries[i].id, .doc = &doc };

		TRY(rev_doc_read_head(tx, db, d.id, page.entries[i].rev, false, scratch, &doc));
		buf_clear(&text);
		TRY(couch_doc_write(&d, &text));
		TRY(buf_status(&text));
		TRY(validators_add(set, db, d.id, buf_str(&text), scratch, cap));
		arena_reset(scratch, mark);
	}
	*ret_more = page.more;
	range->begin = page.last;
	range->exclusive_begin = true;
	return STATUS_OK;
}

static enum status
set_read(struct kv_tx *tx, const struct catalog_db *db, struct arena *scratch,
	 struct couch_validators *set)
{
	struct name_range range = {
		.begin = STR("_design/"),
		.end = STR("_design0"),
		.has_begin = true,
		.has_end = true,
		.exclusive_end = true,
		.limit = PAGE_DESIGNS,
	};
	size_t cap = 0;
	bool more = true;

	while (more)
		TRY(set_read_page(tx, db, &range, scratch, set, &cap, &more));
	return STATUS_OK;
}

/* Reads the validators of a database, without a table. The set is the caller's. */
static enum status
couch_validators_read(struct kv_tx *tx, const struct catalog_db *db, struct couch_validators **ret,
		      struct err *err)
{
	struct couch_validators *set;
	struct arena *scratch;
	enum status status;

	TRY(set_new(&set));
	scratch = arena_new(SCRATCH_BYTES);
	status = scratch ? set_read(tx, db, scratch, set) : STATUS_NOMEM;
	arena_free(scratch);
	if (status == STATUS_OK) {
		*ret = set;
		return STATUS_OK;
	}
	couch_validators_unref(set);
	if (status == STATUS_LIMIT)
		return err_set(err, status,
			       "the design documents with a validate_doc_update have more than %d "
			       "bytes together",
			       COUCH_VALIDATORS_BYTES);
	return status;
}

/* ---- The table ---- */

enum status
couch_validators_find(struct couch_kept_table *table, struct kv_tx *tx, const struct catalog_db *db,
		      struct couch_validators **set, struct err *err)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct couch_validators *found;

	TRY(kv_get_metadata_version(tx, version));
	found = (struct couch_validators *)couch_kept_find(table, db->number, version);
	if (found) {
		found->kept.refs++;
	} else {
		/*
		 * Reading may wait, and another fiber may have kept a set meanwhile. This newer set
		 * replaces it.
		 */
		TRY(couch_validators_read(tx, db, &found, err));
		couch_kept_put(table, db->number, version, &found->kept);
	}
	couch_validators_unref(*set);
	*set = found;
	return STATUS_OK;
}

enum status
couch_validators_open(struct couch_req *r, struct kv_tx *tx)
{
	return couch_validators_find(&r->loop->validators, tx, r->db, &r->validators, &r->fail.err);
}

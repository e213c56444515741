/* Documents as JSON, with what a client asked to know about their revisions. */
#include "doc/json.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "loop/step.h"

unsigned
couch_doc_flags(const struct couch_req *r)
{
	static const struct {
		const char *name;
		unsigned flags;
	} known[] = {
		{ "revs", COUCH_DOC_REVS },
		{ "revs_info", COUCH_DOC_REVS_INFO },
		{ "conflicts", COUCH_DOC_CONFLICTS },
		{ "deleted_conflicts", COUCH_DOC_DELETED_CONFLICTS },
		{ "meta", COUCH_DOC_REVS_INFO | COUCH_DOC_CONFLICTS | COUCH_DOC_DELETED_CONFLICTS },
		{ "local_seq", COUCH_DOC_LOCAL_SEQ },
		{ "latest", COUCH_DOC_LATEST },
		{ "attachments", COUCH_DOC_ATTS },
		{ "att_encoding_info", COUCH_DOC_ATT_ENCODING },
	};
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (couch_param_true(r, known[i].name))
			flags |= known[i].flags;
	}
	return flags;
}

static void
doc_out_write_hash_string(struct str hash, struct buf *out)
{
	if (hash.len == REV_HASH_BYTES) {
		buf_append_byte(out, '"');
		buf_append_hex(out, hash);
		buf_append_byte(out, '"');
	} else {
		json_write_str(out, hash);
	}
}

void
couch_revisions_write(const struct rev_branch *branch, uint64_t limit, struct buf *out)
{
	uint64_t told = branch->ancestors_count;

	if (limit && told > limit - 1)
		told = limit - 1;
	buf_append_cstr(out, ",\"_revisions\":{\"start\":");
	buf_append_u64(out, branch->rev.pos);
	buf_append_cstr(out, ",\"ids\":[");
	doc_out_write_hash_string(branch->rev.hash, out);
	for (size_t i = 0; i < told; i++) {
		buf_append_byte(out, ',');
		doc_out_write_hash_string(branch->ancestors[i], out);
	}
	buf_append_cstr(out, "]}");
}

/* Only heads have bodies. Every ancestor's is missing, as after a compaction in CouchDB. */
static void
doc_out_write_revs_info(const struct rev_branch *branch, struct buf *out)
{
	buf_append_cstr(out, ",\"_revs_info\":[{\"rev\":");
	couch_rev_write(branch->rev, out);
	buf_append_cstr(out, branch->deleted ? ",\"status\":\"deleted\"}"
					     : ",\"status\":\"available\"}");
	for (size_t i = 0; i < branch->ancestors_count; i++) {
		struct rev_id rev = { branch->rev.pos - 1 - i, branch->ancestors[i] };

		buf_append_cstr(out, ",{\"rev\":");
		couch_rev_write(rev, out);
		buf_append_cstr(out, ",\"status\":\"missing\"}");
	}
	buf_append_byte(out, ']');
}

static void
doc_out_write_conflicts(const struct couch_doc_out *d, bool deleted, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < d->tree->count; i++) {
		const struct rev_branch *b = &d->tree->branches[i];

		if (b == d->branch || b->deleted != deleted)
			continue;
		if (any)
			buf_append_byte(out, ',');
		else
			buf_append_cstr(out, deleted ? ",\"_deleted_conflicts\":["
						     : ",\"_conflicts\":[");
		any = true;
		couch_rev_write(b->rev, out);
	}
	if (any)
		buf_append_byte(out, ']');
}

static void
doc_out_write_meta(const struct couch_doc_out *d, struct buf *out)
{
	unsigned flags = d->opts ? d->opts->flags : 0;

	if (flags & COUCH_DOC_REVS)
		couch_revisions_write(d->branch, d->opts->revs_limit, out);
	if (flags & COUCH_DOC_REVS_INFO)
		doc_out_write_revs_info(d->branch, out);
	if (flags & COUCH_DOC_CONFLICTS)
		doc_out_write_conflicts(d, false, out);
	if (flags & COUCH_DOC_DELETED_CONFLICTS)
		doc_out_write_conflicts(d, true, out);
	if (flags & COUCH_DOC_LOCAL_SEQ) {
		buf_append_cstr(out, ",\"_local_seq\":\"");
		catalog_seq_write(&d->tree->seq, out);
		buf_append_byte(out, '"');
	}
}

enum status
couch_doc_write(const struct couch_doc_out *d, struct buf *out)
{
	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, d->id);
	buf_append_cstr(out, ",\"_rev\":");
	couch_rev_write(d->doc->rev, out);
	if (d->doc->deleted)
		buf_append_cstr(out, ",\"_deleted\":true");
	if (d->tree)
		doc_out_write_meta(d, out);

	TRY(rev_body_write(d->doc, true, out));
	if (d->doc->atts_count == 0)
		return STATUS_OK;
	/* Attachments come last, before the closing brace, behind all the small members. */
	out->len--;
	TRY(couch_atts_write(d, out));
	buf_append_byte(out, '}');
	return buf_status(out);
}

enum status
couch_head_finish_read(enum status status, const struct rev_branch *branch, struct rev_doc *doc)
{
	if (status == STATUS_NOT_FOUND && branch->deleted)
		*doc = (struct rev_doc){ .rev = branch->rev };
	else if (status != STATUS_OK)
		return status;
	doc->deleted = branch->deleted;
	return STATUS_OK;
}

enum status
couch_head_read(struct couch_req *r, struct kv_tx *tx, struct str id,
		const struct rev_branch *branch, struct rev_doc *ret)
{
	enum status status = rev_doc_read_head(tx, r->db, id, branch->rev, branch->deleted,
					       r->arena, ret);

	return couch_head_finish_read(status, branch, ret);
}

enum status
couch_head_write(struct couch_req *r, struct kv_tx *tx, struct str id, const struct rev_tree *tree,
		 const struct rev_branch *branch, const struct couch_doc_opts *opts,
		 struct buf *out)
{
	struct rev_doc doc;
	struct couch_doc_out d = { id, &doc, tree, branch, opts };

	TRY(couch_head_read(r, tx, id, branch, &doc));
	return couch_doc_write(&d, out);
}

enum status
couch_head_look_up(struct couch_req *r, struct kv_tx *tx, struct str id, struct rev_id rev,
		   bool latest, struct rev_branch *ret)
{
	struct rev_descent d;
	uint32_t link;

	if (!latest)
		return rev_branch_read(tx, r->db, id, rev, r->arena, ret);
	TRY(rev_descent_read(tx, r->db, id, &rev, 1, REV_DESCENT_WHOLE, r->arena, &d));
	link = rev_descent_first(&d, rev);
	if (link == 0)
		return STATUS_NOT_FOUND;
	*ret = d.heads[d.links[link - 1].head];
	return STATUS_OK;
}

/* Adds the heads for one revision, best first, that are not there yet. */
static void
wanted_add_heads(struct couch_wanted *w, const struct rev_descent *d, uint32_t link, bool *taken)
{
	for (; link; link = d->links[link - 1].next) {
		uint32_t head = d->links[link - 1].head;

		if (!taken[head])
			w->heads[w->heads_count++] = &d->heads[head];
		taken[head] = true;
	}
}

enum status
couch_heads_wanted(struct couch_req *r, struct kv_tx *tx, struct str id, const struct rev_id *revs,
		   size_t count, unsigned flags, struct couch_wanted *ret)
{
	struct arena *arena = r->arena;
	struct rev_descent d;
	bool *taken;

	TRY(rev_descent_read(tx, r->db, id, revs, count, flags, arena, &d));
	if (d.too_many)
		return STATUS_LIMIT;
	*ret = (struct couch_wanted){
		.heads = arena_alloc(arena,
				     (d.heads_count + 1) * sizeof(const struct rev_branch *)),
		.missing = arena_alloc(arena, (count + 1) * sizeof(struct rev_id)),
	};
	taken = arena_zalloc(arena, d.heads_count + 1);
	if (!ret->heads || !ret->missing || !taken)
		return STATUS_LIMIT;
	/* The set has each revision once, in the order in which they were named. */
	for (size_t i = 0; i < d.set.count; i++) {
		if (d.first[i])
			wanted_add_heads(ret, &d, d.first[i], taken);
		else
			ret->missing[ret->missing_count++] = d.set.revs[i];
	}
	return step_count((uint32_t)(d.set.count + d.links_count));
}

bool
couch_opts_need_ancestors(const struct couch_doc_opts *opts)
{
	return (opts->flags & COUCH_DOC_REVS) || opts->has_since;
}

enum status
couch_head_complete(struct couch_req *r, struct kv_tx *tx, struct str id,
		    const struct rev_branch *head, const struct couch_doc_opts *opts,
		    struct rev_branch *ret)
{
	*ret = *head;
	if (head->ancestors || head->rev.pos == 1 || !couch_opts_need_ancestors(opts))
		return STATUS_OK;
	return rev_branch_read(tx, r->db, id, head->rev, r->arena, ret);
}

/* GET /{db}/_design/{ddoc}/_info, and POST /{db}/_view_cleanup. */
#include "doc/json.h"
#include "door/couch/admin/partition.h"
#include "door/couch/admin/purges.h"
#include "door/couch/admin/tx.h"
#include "door/couch/view/endpoints.h"
#include "door/couch/view/named.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "index/versions.h"
#include "index/view/documents.h"

/* ---- _info ---- */

struct info_call {
	struct couch_view_named named;
	struct view_group group; /* all zero: there is none yet */
	uint64_t bytes;
	uint64_t pending;
};

static enum status
info_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct info_call *c = arg;
	const struct view_documents *documents;
	uint64_t docs;
	enum status status;

	*c = (struct info_call){ 0 };
	TRY(couch_partition_check_db(r));
	TRY(couch_view_named_read(r, tx, (struct str){ 0 }, &c->named));
	documents = view_documents_of(r->db);
	status = view_group_open(tx, r->db, &c->named.design, r->arena, &c->group, &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		c->group = (struct view_group){ 0 };
	else if (status != STATUS_OK)
		return status;
	else
		TRY(view_group_bytes(tx, r->db, &c->group, &c->bytes));
	return documents->count(tx, r->db, &c->group.covers, &docs, &c->pending);
}

static void
info_write_options(const struct view_design *design, struct buf *out)
{
	static const char *const names[] = { "include_design", "local_seq", "partitioned" };
	const bool on[] = { design->include_design, design->local_seq, design->partitioned };
	const char *separator = "";

	buf_append_cstr(out, ",\"update_options\":[");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!on[i])
			continue;
		buf_printf(out, "%s\"%s\"", separator, names[i]);
		separator = ",";
	}
	buf_append_byte(out, ']');
}

/* How many documents each view lacks rows of now, if it lacks any. */
static void
info_write_lacking(const struct view_design *design, const struct view_group *group,
		   struct buf *out)
{
	const char *separator = "";

	buf_append_cstr(out, ",\"lacking\":{");
	for (size_t i = 0; i < design->view_count && group->number; i++) {
		const struct view_view *view = &design->views[i];

		if (!group->lacking[view->map])
			continue;
		buf_append_cstr(out, separator);
		json_write_str(out, view->name);
		buf_printf(out, ":%llu", (unsigned long long)group->lacking[view->map]);
		separator = ",";
	}
	buf_append_byte(out, '}');
}

static void
info_write_refused(const struct view_group *group, struct buf *out)
{
	buf_printf(out, ",\"refused\":{\"total\":%llu,\"newest\":[",
		   (unsigned long long)group->refused);
	for (size_t i = group->refusal_count; i-- > 0;) {
		const struct view_refusal *refusal = &group->refusals[i];

		buf_append_cstr(out, i + 1 < group->refusal_count ? ",{\"id\":" : "{\"id\":");
		json_write_str(out, refusal->id);
		buf_append_cstr(out, ",\"view\":");
		if (refusal->view.len)
			json_write_str(out, refusal->view);
		else
			buf_append_cstr(out, "null");
		buf_append_cstr(out, ",\"limit\":");
		json_write_str(out, refusal->limit);
		buf_append_byte(out, '}');
	}
	buf_append_cstr(out, "]}");
}

static void
info_write_seq(const char *name, const struct catalog_seq *seq, struct buf *out)
{
	buf_printf(out, ",\"%s\":\"", name);
	catalog_seq_write(seq, out);
	buf_append_byte(out, '"');
}

static void
info_write(struct couch_req *r, const struct info_call *c, struct buf *out)
{
	const struct view_group *group = &c->group;
	unsigned long long bytes = c->bytes;
	struct view_activity activity = { 0 };
	struct index_versions versions;

	index_versions_read(&versions);
	if (r->couch->config.views)
		view_activity_get(r->couch->config.views, r->db->number, c->named.design.signature,
				  &activity);
	buf_append_cstr(out, "{\"name\":");
	json_write_str(out, r->parts[2]);
	buf_append_cstr(out, ",\"view_index\":{\"signature\":\"");
	for (size_t i = 0; i < VIEW_SIGNATURE_BYTES; i++)
		buf_printf(out, "%02x", c->named.design.signature[i]);
	buf_append_cstr(out, "\",\"language\":");
	json_write_str(out, c->named.design.language);
	buf_printf(out, ",\"sizes\":{\"file\":%llu,\"active\":%llu,\"external\":%llu}", bytes,
		   bytes, bytes);
	info_write_seq("update_seq", &group->covers, out);
	info_write_seq("purge_seq", &group->purge_seq, out);
	info_write_options(&c->named.design, out);
	buf_printf(out, ",\"collator_versions\":[\"%s\"]", versions.collator);
	buf_printf(out,
		   ",\"updater_running\":%s,\"compact_running\":false,\"waiting_commit\":false,"
		   "\"waiting_clients\":%llu",
		   activity.updating ? "true" : "false", (unsigned long long)activity.waiting);
	buf_printf(out, ",\"updates_pending\":{\"minimum\":%llu,\"preferred\":%llu,\"total\":%llu}",
		   (unsigned long long)c->pending, (unsigned long long)c->pending,
		   (unsigned long long)c->pending);
	info_write_lacking(&c->named.design, group, out);
	info_write_refused(group, out);
	buf_append_cstr(out, "}}");
}

enum status
couch_view_info(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct info_call c;

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, info_read, &c));
	info_write(r, &c, &out);
	return couch_reply(r, 200, &out);
}

/* ---- _view_cleanup ---- */

enum {
	CLEANUP_PAGE = 100, /* design documents that one transaction reads */
};

struct cleanup {
	struct name_range range;
	struct buf live; /* signatures */
	bool more;
};

/* Adds the signature of a design document, if it has views that can be built. */
static enum status
cleanup_add(struct couch_req *r, struct kv_tx *tx, struct cleanup *c, struct str id)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	struct view_design design;
	struct rev_doc doc;
	struct err err = { 0 };
	enum status status;

	TRY(rev_doc_read(tx, r->db, id, r->arena, &doc));
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	status = view_design_parse(buf_str(&text), rev_db_is_partitioned(r->db), r->arena, &design,
				   &err);
	if (status == STATUS_OK && design.view_count)
		buf_append(&c->live, design.signature, VIEW_SIGNATURE_BYTES);
	TRY(buf_status(&c->live));
	return status == STATUS_INVALID ? STATUS_OK : status;
}

struct cleanup_step {
	struct cleanup *c;
	struct str last;
	size_t live_bytes; /* before the step */
};

static enum status
cleanup_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct cleanup_step *s = arg;
	struct cleanup *c = s->c;
	struct rev_entry_page page;

	c->live.len = s->live_bytes;
	TRY(rev_all_docs_page(tx, r->db, &c->range, r->arena, &page));
	for (size_t i = 0; i < page.count; i++) {
		struct arena_mark mark = arena_mark(r->arena);

		TRY(cleanup_add(r, tx, c, page.entries[i].id));
		arena_reset(r->arena, mark);
	}
	s->last = page.last;
	c->more = page.more;
	return STATUS_OK;
}

/* Gathers the signatures of all design documents. */
static enum status
cleanup_gather(struct couch_req *r, struct cleanup *c)
{
	struct buf AUTO(buf_release) last = BUF_SHORT(REV_DOC_ID_BYTES);

	while (c->more) {
		struct arena_mark mark = arena_mark(r->arena);
		struct cleanup_step s = { .c = c, .live_bytes = c->live.len };

		TRY(couch_db_read(r, COUCH_ACCESS_ADMIN, cleanup_read, &s));
		buf_set(&last, s.last);
		TRY(buf_status(&last));
		c->range.begin = buf_str(&last);
		c->range.exclusive_begin = true;
		arena_reset(r->arena, mark);
	}
	return STATUS_OK;
}

enum status
couch_view_cleanup(struct couch_req *r)
{
	struct cleanup c = {
		.range = { .begin = STR("_design/"),
			   .has_begin = true,
			   .end = STR("_design0"),
			   .has_end = true,
			   .exclusive_end = true,
			   .limit = CLEANUP_PAGE },
		.live = couch_buf(r, COUCH_ANSWER_BYTES),
		.more = true,
	};
	uint64_t cleared;
	enum status status = cleanup_gather(r, &c);

	if (status == STATUS_OK)
		status = view_cleanup(r->couch->config.store, CATALOG_SPACE_COUCH, r->db->name,
				      (void *)c.live.ptr, c.live.len / VIEW_SIGNATURE_BYTES,
				      &cleared, &r->fail.err);
	buf_release(&c.live);
	TRY(status);
	TRY(couch_purges_trim(r));
	return couch_reply_ok(r, 202);
}

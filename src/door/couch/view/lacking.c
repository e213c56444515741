/* What an answer tells of documents that a limit has kept out of the view. */
#include "doc/json.h"
#include "door/couch/view/run.h"

/* The reason that goes with the name of a limit. */
static const char *
limit_reason(struct str limit)
{
	static const struct {
		const char *limit;
		const char *reason;
	} reasons[] = {
		{ "view_key_bytes", "a row's key takes more than 6000 bytes as it is stored, or "
				    "with the document's id more than a key of the store may" },
		{ "view_row_bytes", "a row's key and value take more than 8500000 bytes" },
		{ "view_doc_bytes", "the document's rows take more than 64000000 bytes" },
		{ "not_json", "a row is no JSON" },
	};

	_Static_assert(VIEW_KEY_BYTES == 6000 && VIEW_ROW_BYTES == 8500000 &&
			       VIEW_DOC_BYTES == 64000000,
		       "the reasons name the limits");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (str_eq(limit, str_from_cstr(reasons[i].limit)))
			return reasons[i].reason;
	return "a limit of a newer frond";
}

static void
lacking_write(struct buf *out, const struct view_lacking *l, bool first)
{
	buf_append_cstr(out, first ? "{\"id\":" : ",{\"id\":");
	json_write_str(out, l->id);
	buf_append_cstr(out, ",\"error\":\"not_in_view\",\"reason\":\"");
	buf_append_cstr(out, limit_reason(l->limit));
	buf_append_cstr(out, "\",\"limit\":");
	json_write_str(out, l->limit);
	buf_append_cstr(out, ",\"rows\":");
	if (l->rows)
		buf_append_u64(out, l->rows);
	else
		buf_append_cstr(out, "null");
	buf_append_byte(out, '}');
}

/*
 * A group that an older frond has built does not know which documents it lacks. It names the newest
 * that it has met; they may have been changed since.
 */
static enum status
lacking_add_unnoted(struct view_run *v, struct kv_tx *tx, struct view_lacking *all, size_t *count,
		    bool *more)
{
	struct view_group group;

	TRY(view_group_open(tx, v->r->db, &v->named.design, v->r->arena, &group, &v->r->fail.err));
	for (size_t i = group.refusal_count; i-- > 0;) {
		const struct view_refusal *refusal = &group.refusals[i];

		if (refusal->view.len &&
		    !str_eq(refusal->view, v->named.design.maps[v->named.view->map].name))
			continue;
		*more = *more || *count == VIEW_REFUSALS_SHOWN;
		if (*count < VIEW_REFUSALS_SHOWN)
			all[(*count)++] = (struct view_lacking){ .id = refusal->id,
								 .limit = refusal->limit };
	}
	*more = *more || group.refused > group.refusal_count;
	return STATUS_OK;
}

/* A step: reads and writes what is told. */
static enum status
lacking_write_all(struct view_run *v, struct kv_tx *tx, void *arg)
{
	struct view_lacking all[VIEW_REFUSALS_SHOWN];
	struct buf *out = &v->stream.out;
	size_t count = 0;
	bool more = false;

	(void)arg;
	if (!v->built)
		return STATUS_OK;
	TRY(view_lacks_list(tx, v->r->db, &v->group, v->named.view->map, v->args.partition,
			    VIEW_REFUSALS_SHOWN, v->r->arena, all, &count, &more));
	if (v->group.unnoted)
		TRY(lacking_add_unnoted(v, tx, all, &count, &more));
	if (!count)
		return STATUS_OK;
	buf_append_cstr(out, ",\"errors\":[");
	for (size_t i = 0; i < count; i++)
		lacking_write(out, &all[i], i == 0);
	buf_append_byte(out, ']');
	if (more)
		buf_append_cstr(out, ",\"errors_more\":true");
	return buf_status(out);
}

enum status
view_send_lacking(struct view_run *v)
{
	struct arena_mark mark = arena_mark(v->r->arena);
	enum status status = STATUS_OK;

	if (v->group.lacking[v->named.view->map] || v->group.unnoted)
		status = view_run_step(v, lacking_write_all, NULL);
	arena_reset(v->r->arena, mark);
	return status;
}

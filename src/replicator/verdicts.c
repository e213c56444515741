/* Ends of jobs on their way into the documents of _replicator. */
#include "replicator/verdicts.h"

#include "base/log.h"
#include "base/mem.h"
#include "doc/packed.h"
#include "model/revisioned/revisioned.h"
#include "replicator/doc_state.h"

enum {
	VERDICT_ARENA_BYTES = 256 << 20,
};

void
verdict_push(struct replicator *r, struct str id, struct str detail, bool failed)
{
	struct verdict *v = mem_zalloc(sizeof(*v));

	if (!v)
		return;
	v->id = mem_strdup(id);
	v->detail = mem_strdup(detail);
	v->failed = failed;
	if (!v->id || !v->detail) {
		mem_free(v->id);
		mem_free(v->detail);
		mem_free(v);
		return;
	}
	v->next = r->verdicts;
	r->verdicts = v;
	event_set(&r->verdicts_bell);
}

void
verdict_note_end(struct replicator *r, const struct job *j, const char *reason)
{
	struct buf AUTO(buf_release) detail = BUF_INIT(REPLICATOR_ANSWER_BYTES);

	if (reason) {
		verdict_push(r, j->spec->doc_id, str_from_cstr(reason), true);
		return;
	}
	job_write_stats(j, &detail);
	if (buf_status(&detail) == STATUS_OK)
		verdict_push(r, j->spec->doc_id, buf_str(&detail), false);
}

/* ---- Storing how jobs ended ---- */

struct verdict_call {
	struct replicator *replicator;
	const struct verdict *verdict;
	struct arena *arena;
};

/* The edit keeps all attachments of the document. */
static enum status
verdict_keep_attachments(const struct rev_doc *doc, struct arena *arena, struct rev_edit *edit)
{
	struct rev_att_edit *atts = arena_zalloc(arena, (doc->atts_count + 1) * sizeof(*atts));

	if (!atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->atts_count; i++)
		atts[i] = (struct rev_att_edit){ .source = REV_ATT_STUB,
						 .att = { .name = doc->atts[i].name } };
	edit->atts = atts;
	edit->atts_count = doc->atts_count;
	return STATUS_OK;
}

static enum status
verdict_store_in_db(struct kv_tx *tx, const struct catalog_db *db, struct verdict_call *t)
{
	struct str id = str_from_cstr(t->verdict->id);
	const struct doc_limits limits = rev_doc_limits(db, DOC_LIMIT_MAX_BYTES);
	struct buf AUTO(buf_release) told = BUF_INIT(VERDICT_ARENA_BYTES);
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE, .id = id };
	struct rev_result result;
	struct rev_doc doc;
	struct str text;

	TRY(rev_doc_read(tx, db, id, t->arena, &doc));
	TRY(doc_text_of(&doc, t->arena, &text));
	TRY(doc_state_write_end(text, t->verdict->failed, str_from_cstr(t->verdict->detail),
				t->arena, &told));
	text = buf_dup(&told, t->arena);
	if (!text.ptr)
		return STATUS_LIMIT;
	TRY(doc_explode_text(text, t->arena, &limits, rev_doc_prefix_bytes(db, id), &edit.doc,
			     NULL));
	edit.parent = doc.rev;
	TRY(verdict_keep_attachments(&doc, t->arena, &edit));
	TRY(rev_write(tx, db, &edit, 1, 0, t->arena, &result, NULL));
	return result.status;
}

static enum status
verdict_store_body(struct kv_tx *tx, void *arg)
{
	struct verdict_call *t = arg;
	struct catalog_db *db;
	enum status status;

	arena_clear(t->arena);
	TRY(rev_db_open(tx, NULL, STR(REPLICATOR_DB), &db, NULL));
	status = verdict_store_in_db(tx, db, t);
	catalog_db_unref(db);
	return status;
}

static void
verdict_store(struct replicator *r, const struct verdict *v)
{
	struct verdict_call t = { r, v, arena_new(VERDICT_ARENA_BYTES) };
	struct err err = { 0 };
	enum status status = t.arena ? kv_run(r->config.store, verdict_store_body, &t, NULL, &err)
				     : STATUS_NOMEM;

	/* The document may have been deleted meanwhile. */
	if (status != STATUS_OK && status != STATUS_NOT_FOUND && status != STATUS_DELETED)
		log_event(LOG_LEVEL_WARN, "replication_untold", "doc=\"%s\" state=%s status=%s",
			  v->id, v->failed ? "failed" : "completed", status_name(status));
	arena_free(t.arena);
}

static struct verdict *
verdict_pop(struct replicator *r, bool *ret_stopping)
{
	struct verdict *v;

	pthread_mutex_lock(&r->lock);
	v = r->verdicts;
	if (v)
		r->verdicts = v->next;
	else
		event_init(&r->verdicts_bell);
	/* Jobs may end while others are still being stopped: their verdicts are stored as well. */
	*ret_stopping = r->stopping && r->drained;
	pthread_mutex_unlock(&r->lock);
	return v;
}

void
verdicts_store(void *replicator)
{
	struct replicator *r = replicator;
	bool stopping;

	for (;;) {
		struct verdict *v = verdict_pop(r, &stopping);

		if (v) {
			verdict_store(r, v);
			mem_free(v->id);
			mem_free(v->detail);
			mem_free(v);
		} else if (stopping) {
			break;
		} else {
			(void)event_wait(&r->verdicts_bell, WAIT_FOREVER);
		}
	}
	replicator_fiber_ended(r);
}

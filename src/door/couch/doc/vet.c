/* Runs validators and compiles views before edits are written. */
#include "door/couch/doc/vet.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/compile.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/functions.h"
#include "door/couch/doc/replication_doc.h"
#include "door/couch/doc/validators.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "loop/sort.h"
#include "loop/step.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"

struct vet_item {
	/*
	 * False: validators need not see it, as it will not be written: it conflicts, or it is
	 * known already; or it is a design document.
	 */
	bool shown;
	bool compiled; /* the edit is a design document whose views must compile */
	bool old_deleted;
	struct rev_id old; /* the revision that it was compared with; pos 0: none */
	uint64_t print;    /* a hash of the edit */
	struct str id;     /* of the edit, in the arena of the attempt */
	struct js_edit texts;
	struct couch_fail *denial; /* NULL: none */
};

/* What validators are shown, and what they have said. In the arena of the attempt that made it. */
struct couch_vetting {
	unsigned rounds;
	uint64_t validators; /* their print */
	bool admin;          /* the user administers the database */
	struct str security;
	struct vet_item *items;
	size_t count;
};

/* What an attempt knows of the edits. */
struct vet {
	const struct couch_vetter *by;
	struct kv_tx *tx;
	const struct rev_edit *edits;
	struct vet_item *items;
	size_t count;
	const struct couch_vetting *seen; /* by validators, of as many edits; NULL: nothing */
	struct rev_branch *olds;          /* by edit; rev.pos 0: none */
	struct rev_change_page now;       /* the documents of edits that name no live parent */
	struct buf text;
};

/* ---- What an edit is compared with ---- */

static int
compare_changes(const void *a, const void *b)
{
	return str_cmp(((const struct rev_change *)a)->id, ((const struct rev_change *)b)->id);
}

static bool
edit_names_parent(const struct rev_edit *edit)
{
	return edit->kind == REV_EDIT_INTERACTIVE && edit->parent.pos;
}

/*
 * True if validators have seen this edit before, as one of a new document. It need not be looked up
 * again: if somebody has made the document meanwhile, the write finds the conflict by itself.
 */
static bool
vet_saw_new(const struct vet *v, size_t i)
{
	const struct vet_item *then = v->seen ? &v->seen->items[i] : NULL;

	return then && then->shown && then->print == v->items[i].print &&
	       v->edits[i].kind == REV_EDIT_INTERACTIVE && !v->edits[i].parent.pos;
}

/* Looks up, in one wave, the documents of edits that name no parent, unless that is known. */
static enum status
vet_look_up(struct vet *v)
{
	struct rev_change_range range = { 0 };
	struct str *ids = arena_alloc(v->by->arena, (v->count + 1) * sizeof(*ids));
	size_t n = 0;

	if (!ids)
		return STATUS_LIMIT;
	for (size_t i = 0; i < v->count; i++)
		if (!edit_names_parent(&v->edits[i]) && !vet_saw_new(v, i) &&
		    v->edits[i].id.len <= REV_DOC_ID_BYTES)
			ids[n++] = v->edits[i].id;
	v->now = (struct rev_change_page){ 0 };
	if (n == 0)
		return STATUS_OK;
	TRY(sort_strs(ids, n, v->by->arena));
	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	TRY(rev_changes_of(v->tx, v->by->db, &range, ids, n, v->by->arena, &v->now));
	return sort_items_by(v->now.changes, v->now.count, sizeof(*v->now.changes), compare_changes,
			     v->by->arena);
}

static const struct rev_change *
vet_find(const struct vet *v, struct str id)
{
	const struct rev_change wanted = { .id = id };

	return v->now.count ? bsearch(&wanted, v->now.changes, v->now.count,
				      sizeof(*v->now.changes), compare_changes)
			    : NULL;
}

static bool
branch_has(const struct rev_branch *b, struct rev_id rev)
{
	if (rev_id_eq(b->rev, rev))
		return true;
	return rev.pos < b->rev.pos && b->rev.pos - rev.pos <= b->ancestors_count &&
	       str_eq(b->ancestors[b->rev.pos - rev.pos - 1], rev.hash);
}

/*
 * A revision that was made elsewhere is compared with the nearest of its ancestors that is stored,
 * which is a head here. One that is known is not written.
 */
static enum status
vet_compare_replicated(struct vet *v, size_t i)
{
	const struct rev_edit *edit = &v->edits[i];
	struct rev_id rev = { edit->start, edit->history[0] };
	struct rev_tree tree;

	v->items[i].shown = true;
	if (!vet_find(v, edit->id))
		return STATUS_OK;
	TRY(rev_tree_read(v->tx, v->by->db, edit->id, REV_TREE_ALL, v->by->arena, &tree));
	for (size_t b = 0; b < tree.count; b++) {
		const struct rev_branch *branch = &tree.branches[b];
		uint64_t back = edit->start - branch->rev.pos;

		TRY(step_count(1));
		if (branch_has(branch, rev)) {
			v->items[i].shown = false;
			return STATUS_OK;
		}
		if (branch->rev.pos < edit->start && back < edit->history_count &&
		    str_eq(edit->history[back], branch->rev.hash) &&
		    branch->rev.pos > v->olds[i].rev.pos)
			v->olds[i] = *branch;
	}
	return STATUS_OK;
}

/* The edits that name a parent: what is shown if that is a live head. In one wave. */
static enum status
vet_compare_parents(struct vet *v)
{
	struct rev_want *wants = arena_alloc(v->by->arena, (v->count + 1) * sizeof(*wants));
	struct rev_branch *heads = arena_alloc(v->by->arena, (v->count + 1) * sizeof(*heads));
	size_t n = 0;

	if (!wants || !heads)
		return STATUS_LIMIT;
	for (size_t i = 0; i < v->count; i++)
		if (edit_names_parent(&v->edits[i]) && !couch_is_design(v->edits[i].id))
			wants[n++] = (struct rev_want){ v->edits[i].id, v->edits[i].parent, false };
	TRY(rev_branches_read_live(v->tx, v->by->db, wants, n, v->by->arena, heads));
	n = 0;
	for (size_t i = 0; i < v->count; i++) {
		if (!edit_names_parent(&v->edits[i]) || couch_is_design(v->edits[i].id))
			continue;
		v->olds[i] = heads[n++];
		v->items[i].shown = v->olds[i].rev.pos > 0;
	}
	return STATUS_OK;
}

/* A hash of what an edit writes. Of replicated ones the revision says what they are. */
static uint64_t
edit_print(const struct rev_edit *edit)
{
	uint64_t print = hash_keyed(edit->kind + 2 * (uint64_t)edit->deleted, edit->id);

	print = hash_keyed(print, edit->doc.term);
	if (edit->kind == REV_EDIT_REPLICATED)
		return hash_keyed(print + edit->start, edit->history[0]);
	for (size_t i = 0; i < edit->atts_count; i++) {
		const struct rev_att_edit *att = &edit->atts[i];

		print = hash_keyed(print + (uint64_t)att->source, att->att.name);
		print = hash_keyed(print, att->att.type);
		if (att->source != REV_ATT_STUB)
			print = hash_keyed(print, str_of(att->att.digest, sizeof(att->att.digest)));
	}
	return print;
}

static bool
edit_is_sound(const struct rev_edit *edit)
{
	return edit->id.len && (edit->kind == REV_EDIT_INTERACTIVE ||
				(edit->history_count && edit->start >= edit->history_count));
}

static enum status
vet_compare(struct vet *v)
{
	for (size_t i = 0; i < v->count; i++)
		v->items[i].print = edit_print(&v->edits[i]);
	TRY(vet_look_up(v));
	TRY(vet_compare_parents(v));
	for (size_t i = 0; i < v->count; i++) {
		const struct rev_edit *edit = &v->edits[i];
		struct vet_item *item = &v->items[i];
		const struct rev_change *now;

		TRY(step_count(1));
		item->id = edit->id;
		item->compiled = !edit->deleted && v->by->compiles && couch_is_design(edit->id);
		if (couch_is_design(edit->id) || !edit_is_sound(edit))
			continue;
		if (edit->kind == REV_EDIT_REPLICATED) {
			TRY(vet_compare_replicated(v, i));
		} else if (!edit->parent.pos) {
			now = vet_find(v, edit->id);
			item->shown = !now || now->deleted;
		}
		item->old = v->olds[i].rev;
		item->old_deleted = v->olds[i].deleted;
	}
	return STATUS_OK;
}

/* True if validators have seen everything that is to be written now. */
static bool
vetting_covers(const struct couch_vetting *seen, const struct vet *v, struct str security)
{
	if (!seen || seen->count != v->count || seen->validators != v->by->validators->print ||
	    !str_eq(seen->security, security))
		return false;
	for (size_t i = 0; i < v->count; i++) {
		const struct vet_item *then = &seen->items[i];
		const struct vet_item *now = &v->items[i];

		if (then->print != now->print)
			return false;
		if (now->shown && (!then->shown || !rev_id_eq(then->old, now->old) ||
				   then->old_deleted != now->old_deleted))
			return false;
	}
	return true;
}

/* ---- What validators are shown ---- */

static enum status
vet_keep_text(struct vet *v, struct str *ret)
{
	return buf_copy(&v->text, v->by->arena, ret);
}

static enum status
vet_write_old(struct vet *v, size_t i, const struct rev_doc *doc)
{
	static const struct rev_tree no_tree;
	const struct couch_doc_opts opts = { .flags = COUCH_DOC_REVS,
					     .revs_limit = COUCH_FUNCTION_REVS };
	const struct couch_doc_out d = { v->edits[i].id, doc, &no_tree, &v->olds[i], &opts };

	buf_clear(&v->text);
	TRY(couch_doc_write(&d, &v->text));
	return vet_keep_text(v, &v->items[i].texts.old);
}

/* The attachments of the document as it is to be. Those that it keeps are in the old one. */
static enum status
vet_merge_atts(struct vet *v, const struct rev_edit *edit, const struct rev_doc *old,
	       struct rev_doc *ret)
{
	ret->atts = arena_alloc(v->by->arena, (edit->atts_count + 1) * sizeof(*ret->atts));
	if (!ret->atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < edit->atts_count; i++) {
		struct rev_att *att = &ret->atts[ret->atts_count];

		*att = edit->atts[i].att;
		if (edit->atts[i].source != REV_ATT_STUB && !att->revpos)
			att->revpos = edit->parent.pos + 1;
		ret->atts_count++;
		for (size_t k = 0; edit->atts[i].source == REV_ATT_STUB && k < old->atts_count;
		     k++) {
			TRY(step_count(1));
			if (str_eq(old->atts[k].name, att->name))
				*att = old->atts[k];
		}
	}
	return STATUS_OK;
}

static void
vet_write_revisions(const struct rev_edit *edit, struct buf *out)
{
	struct rev_branch branch = { .rev = edit->parent };

	if (edit->kind == REV_EDIT_REPLICATED) {
		branch.rev = (struct rev_id){ edit->start, edit->history[0] };
		branch.ancestors = edit->history + 1;
		branch.ancestors_count = edit->history_count - 1;
	}
	if (branch.rev.pos) {
		buf_append_cstr(out, ",\"_rev\":");
		couch_rev_write(branch.rev, out);
	}
	if (edit->deleted)
		buf_append_cstr(out, ",\"_deleted\":true");
	if (branch.rev.pos)
		couch_revisions_write(&branch, 0, out);
}

static enum status
vet_write_new(struct vet *v, size_t i, const struct rev_doc *old)
{
	const struct rev_edit *edit = &v->edits[i];
	struct rev_doc doc = { .deleted = edit->deleted, .packed = edit->doc.packed };
	const struct couch_doc_out d = { .id = edit->id, .doc = &doc };

	if (!doc.packed.ptr) {
		doc.leaves = edit->doc.leaves;
		doc.count = edit->doc.count;
	}
	TRY(vet_merge_atts(v, edit, old, &doc));
	buf_clear(&v->text);
	buf_append_cstr(&v->text, "{\"_id\":");
	json_write_str(&v->text, edit->id);
	vet_write_revisions(edit, &v->text);
	TRY(rev_body_write(&doc, true, &v->text));
	if (doc.atts_count) {
		v->text.len--;
		TRY(couch_atts_write(&d, &v->text));
		buf_append_byte(&v->text, '}');
	}
	return vet_keep_text(v, &v->items[i].texts.doc);
}

/* Keeps the text of a design document that is going to be compiled. */
static enum status
vet_write_design(struct vet *v, size_t i)
{
	const struct doc *new = &v->edits[i].doc;
	const struct rev_doc doc = { .packed = new->packed,
				     .leaves = new->leaves,
				     .count = new->count };

	buf_clear(&v->text);
	buf_append_byte(&v->text, '{');
	TRY(rev_body_write(&doc, false, &v->text));
	TRY(arena_copy(v->by->arena, v->edits[i].id, &v->items[i].id));
	return vet_keep_text(v, &v->items[i].texts.doc);
}

static enum status
vet_write_item(struct vet *v, size_t i, struct rev_ahead *ahead)
{
	const struct rev_branch *branch = &v->olds[i];
	struct rev_doc old = { 0 };

	v->items[i].texts.old = STR("null");
	if (branch->rev.pos) {
		enum status status = rev_ahead_take(ahead, v->by->arena, &old);

		TRY(couch_head_finish_read(status, branch, &old));
		TRY(vet_write_old(v, i, &old));
	}
	return vet_write_new(v, i, &old);
}

static enum status
vet_write_items(struct vet *v, struct rev_ahead *ahead)
{
	struct rev_want *wants = arena_alloc(v->by->arena, (v->count + 1) * sizeof(*wants));
	size_t n = 0;

	if (!wants)
		return STATUS_LIMIT;
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].shown && v->olds[i].rev.pos)
			wants[n++] = (struct rev_want){ v->edits[i].id, v->olds[i].rev,
							v->olds[i].deleted };
	if (n)
		TRY(rev_ahead_begin(ahead, v->tx, v->by->db, v->by->memory, wants, n, false));
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].compiled)
			TRY(vet_write_design(v, i));
		else if (v->items[i].shown)
			TRY(vet_write_item(v, i, ahead));
	return STATUS_OK;
}

/* Reads and writes what validators have to see. */
static enum status
vet_collect(struct vet *v)
{
	struct rev_ahead ahead = { 0 };
	enum status status;

	v->text = BUF_INIT_OF(COUCH_ROW_BYTES, v->by->memory);
	status = vet_write_items(v, &ahead);
	rev_ahead_release(&ahead);
	buf_release(&v->text);
	return status;
}

enum status
couch_vetting_compare(const struct couch_vetter *by, struct kv_tx *tx, const struct rev_edit *edits,
		      size_t count, struct couch_vettings *vettings)
{
	struct couch_vetting *seen = vettings->seen;
	struct couch_vetting *next;
	struct vet v = { .by = by,
			 .tx = tx,
			 .edits = edits,
			 .count = count,
			 .seen = seen && seen->count == count ? seen : NULL };
	struct str security;

	if (by->validators->count == 0 && !by->compiles && !by->users && !by->owners) {
		vettings->seen = NULL;
		return STATUS_OK;
	}
	v.items = arena_zalloc(by->arena, (count + 1) * sizeof(*v.items));
	v.olds = arena_zalloc(by->arena, (count + 1) * sizeof(*v.olds));
	next = arena_zalloc(by->arena, sizeof(*next));
	if (!v.items || !v.olds || !next)
		return STATUS_LIMIT;
	TRY(couch_security_of(tx, by->db, by->arena, &security));
	TRY(vet_compare(&v));
	if (vetting_covers(seen, &v, security))
		return STATUS_OK;
	TRY(vet_collect(&v));
	*next = (struct couch_vetting){
		.rounds = seen ? seen->rounds : 0,
		.validators = by->validators->print,
		.security = security,
		.items = v.items,
		.count = count,
	};
	vettings->asked = next;
	return STATUS_UNVETTED;
}

/* ---- Running validators ---- */

struct couch_fail *
couch_vet_denial(const struct couch_vettings *vettings, size_t i)
{
	const struct vet_item *item = vettings->seen ? &vettings->seen->items[i] : NULL;

	return item && (item->shown || item->compiled) ? item->denial : NULL;
}

static enum status
vet_deny(struct arena *arena, struct vet_item *item, const struct js_error *error)
{
	item->denial = arena_zalloc(arena, sizeof(*item->denial));
	if (!item->denial)
		return STATUS_LIMIT;
	(void)couch_fail_function(item->denial, error->name, error->reason, arena);
	return STATUS_OK;
}

static enum status
vet_take_verdict(struct arena *arena, struct vet_item *item, struct js_verdict *verdict)
{
	if (verdict->kind == JS_ALLOWED)
		return STATUS_OK;
	if (verdict->kind == JS_FORBIDDEN)
		verdict->error.name = STR("forbidden");
	else if (verdict->kind == JS_UNAUTHORIZED)
		verdict->error.name = STR("unauthorized");
	return vet_deny(arena, item, &verdict->error);
}

/* Shows one validator all edits that no other one has denied. */
static enum status
vet_run_one(const struct couch_vetter *by, struct couch_vetting *vetting,
	    const struct js_design *design, struct str user_ctx)
{
	struct js_edit *edits = arena_alloc(by->arena, (vetting->count + 1) * sizeof(*edits));
	struct js_verdict *verdicts = arena_alloc(by->arena,
						  (vetting->count + 1) * sizeof(*verdicts));
	struct js_call call;
	enum status status;
	size_t n = 0;

	if (!edits || !verdicts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < vetting->count; i++)
		if (vetting->items[i].shown && !vetting->items[i].denial)
			edits[n++] = vetting->items[i].texts;
	if (n == 0)
		return STATUS_OK;
	TRY(couch_function_call_of(by->js, by->gone, by->arena, design, &call, by->fail));
	status = js_validate(&call, user_ctx, vetting->security, edits, n, verdicts,
			     &by->fail->err);
	if (status != STATUS_OK && status != STATUS_FUNCTION)
		return status;
	n = 0;
	for (size_t i = 0; i < vetting->count; i++) {
		struct vet_item *item = &vetting->items[i];

		if (!item->shown || item->denial)
			continue;
		/* A validator that cannot be run at all lets nothing pass. */
		if (status == STATUS_FUNCTION)
			TRY(vet_deny(by->arena, item, &call.error));
		else
			TRY(vet_take_verdict(by->arena, item, &verdicts[n++]));
	}
	return STATUS_OK;
}

/* Counts a round. What validators have to see may change each time, so there is a limit. */
static enum status
vetting_begin(const struct couch_vetter *by, struct couch_vetting *vetting)
{
	if (++vetting->rounds > COUCH_VET_ROUNDS)
		return err_set(&by->fail->err, STATUS_TX_CONFLICT,
			       "what validators have to see changes all the time");
	/* Another group of the request may have found other validators since. */
	vetting->validators = by->validators->print;
	return STATUS_OK;
}

static enum status
vetting_run_validators(const struct couch_vetter *by, struct couch_vetting *vetting)
{
	AUTO(buf_release) struct buf user_ctx = BUF_INIT_OF(COUCH_SMALL_BODY_BYTES, by->memory);

	couch_user_ctx_write(by->db, by->user, &user_ctx);
	TRY(buf_status(&user_ctx));
	for (size_t i = 0; i < by->validators->count; i++)
		TRY(vet_run_one(by, vetting, &by->validators->designs[i], buf_str(&user_ctx)));
	return STATUS_OK;
}

static void
vettings_take_seen(struct couch_vettings *vettings)
{
	vettings->seen = vettings->asked;
	vettings->asked = NULL;
}

enum status
couch_vetting_run(const struct couch_vetter *by, struct couch_vettings *vettings)
{
	TRY(vetting_begin(by, vettings->asked));
	TRY(vetting_run_validators(by, vettings->asked));
	vettings_take_seen(vettings);
	*by->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	return STATUS_OK;
}

/* ---- Edits of requests ---- */

static struct couch_vetter
vetter_of(struct couch_req *r)
{
	return (struct couch_vetter){
		.js = r->couch->config.js,
		.db = r->db,
		.validators = r->validators,
		.user = &r->user,
		.users = couch_in_users_db(r),
		.owners = couch_in_replicator_db(r) && !r->user.admin,
		.arena = r->arena,
		.memory = http_memory(r->x),
		.gone = http_closed_event(r->x),
		.fail = &r->fail,
	};
}

/* Whether there is a worker is asked of the system, so only where it matters. */
static bool
vet_has_to_compile(const struct couch_req *r, const struct rev_edit *edits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!edits[i].deleted && couch_is_design(edits[i].id))
			return couch_designs_are_compiled(r);
	return false;
}

enum status
couch_vet_edits(struct couch_req *r, struct kv_tx *tx, const struct rev_edit *edits, size_t count,
		struct couch_vettings *vettings)
{
	struct couch_vetter by;
	enum status status;

	TRY(couch_validators_open(r, tx));
	by = vetter_of(r);
	by.compiles = vet_has_to_compile(r, edits, count);
	status = couch_vetting_compare(&by, tx, edits, count, vettings);
	if (status == STATUS_UNVETTED)
		TRY(couch_db_is_admin(r, tx, &vettings->asked->admin));
	return status;
}

/*
 * Turns a refusal by one of the server's own checks into a denied edit; passes other failures on.
 */
static enum status
vet_take_failure(struct couch_req *r, struct vet_item *item, enum status status,
		 const struct couch_fail *fail)
{
	if (status == STATUS_OK)
		return STATUS_OK;
	if (fail->error == COUCH_ERROR_NONE)
		return status;
	item->denial = arena_alloc(r->arena, sizeof(*item->denial));
	if (!item->denial)
		return STATUS_LIMIT;
	*item->denial = *fail;
	return STATUS_OK;
}

/* Compiles the design documents among the edits. */
static enum status
vet_compile(struct couch_req *r, struct couch_vetting *vetting)
{
	for (size_t i = 0; i < vetting->count; i++) {
		struct vet_item *item = &vetting->items[i];
		struct couch_fail fail = { .error = COUCH_ERROR_NONE };
		enum status status;

		if (!item->compiled)
			continue;
		status = couch_design_compile(r, item->id, item->texts.doc, &fail);
		TRY(vet_take_failure(r, item, status, &fail));
	}
	return STATUS_OK;
}

/*
 * Checks edits in _users or _replicator by the server's own rules, which stand in for a validator
 * there.
 */
static enum status
vet_run_rules(struct couch_req *r, bool users, struct couch_vetting *vetting)
{
	const struct couch_user_writer writer = { r->arena, &r->user, vetting->admin };

	for (size_t i = 0; i < vetting->count; i++) {
		struct vet_item *item = &vetting->items[i];
		struct couch_fail fail = { .error = COUCH_ERROR_NONE };
		enum status status;

		if (!item->shown)
			continue;
		status = users ? couch_user_doc_check(&writer, item->id, item->texts.doc,
						      item->texts.old, &fail)
			       : couch_replication_check(&writer, item->texts.doc, item->texts.old,
							 &fail);
		TRY(vet_take_failure(r, item, status, &fail));
	}
	return STATUS_OK;
}

enum status
couch_vet_run(struct couch_req *r, struct couch_vettings *vettings)
{
	const struct couch_vetter by = vetter_of(r);
	struct couch_vetting *vetting = vettings->asked;

	TRY(vetting_begin(&by, vetting));
	if (by.users || by.owners)
		TRY(vet_run_rules(r, by.users, vetting));
	TRY(vetting_run_validators(&by, vetting));
	TRY(vet_compile(r, vetting));
	vettings_take_seen(vettings);
	r->fail = (struct couch_fail){ .error = COUCH_ERROR_NONE };
	return STATUS_OK;
}

/* ---- One document ---- */

/* Between two attempts of couch_db_write(). What was denied needs no other one. */
static enum status
vet_between_attempts(struct couch_req *r)
{
	const struct couch_fail *denial;

	TRY(couch_vet_run(r, &r->vettings));
	denial = couch_vet_denial(&r->vettings, 0);
	if (!denial)
		return STATUS_OK;
	r->fail = *denial;
	return denial->err.status;
}

enum status
couch_vet_edit(struct couch_req *r, struct kv_tx *tx, const struct rev_edit *edit)
{
	r->vet = vet_between_attempts;
	return couch_vet_edits(r, tx, edit, 1, &r->vettings);
}

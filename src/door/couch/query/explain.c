/* POST /{db}/_explain: how a query would be answered, in CouchDB's form. */
#include "doc/json.h"
#include "door/couch/admin/partition.h"
#include "door/couch/admin/tx.h"
#include "door/couch/query/endpoints.h"
#include "door/couch/query/find_aggregate.h"
#include "door/couch/query/indexes.h"
#include "door/couch/query/plan.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "index/plan/names.h"
#include "model/revisioned/revisioned.h"

struct explain {
	struct couch_req *r;
	struct find_args args;
	struct query_indexes indexes;
	struct plan plan;
	enum find_way way;
};

/* ---- Lists of names ---- */

static void
explain_write_names(const struct str *names, size_t count, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(out, i ? "," : "");
		json_write_str(out, names[i]);
	}
	buf_append_byte(out, ']');
}

static const char *
explain_bool(bool value)
{
	return value ? "true" : "false";
}

/* ---- What was asked ---- */

static void
explain_write_limit(const struct find_args *a, struct buf *out)
{
	buf_append_cstr(out, ",\"limit\":");
	if (a->aggregate && !a->has_limit)
		buf_append_cstr(out, "null");
	else
		buf_append_u64(out, a->limit);
}

static void
explain_write_opts(const struct find_args *a, struct buf *out)
{
	buf_append_cstr(out, ",\"opts\":{\"use_index\":");
	explain_write_names(a->use_index, a->use_index_count, out);
	buf_append_cstr(out, ",\"bookmark\":");
	json_write_str(out, a->bookmark.ptr ? a->bookmark : STR("nil"));
	explain_write_limit(a, out);
	buf_append_cstr(out, ",\"skip\":");
	buf_append_u64(out, a->skip);
	buf_append_cstr(out, ",\"sort\":{");
	for (size_t i = 0; i < a->sort.count; i++) {
		buf_append_cstr(out, i ? "," : "");
		json_write_str(out, a->sort.fields[i]);
		buf_append_cstr(out, a->sort.descending ? ":\"desc\"" : ":\"asc\"");
	}
	buf_append_cstr(out, "},\"fields\":");
	explain_write_names(a->fields, a->fields_count, out);
	buf_append_cstr(out, ",\"partition\":");
	json_write_str(out, a->partition.ptr ? a->partition : STR(""));
	buf_append_cstr(out, ",\"r\":");
	buf_append_u64(out, a->r);
	buf_printf(out,
		   ",\"conflicts\":%s,\"stale\":%s,\"update\":%s,\"stable\":%s,"
		   "\"execution_stats\":%s,\"allow_fallback\":%s}",
		   explain_bool(a->conflicts), a->stale ? "\"ok\"" : "false",
		   explain_bool(a->update), explain_bool(a->stable),
		   explain_bool(a->execution_stats), explain_bool(a->allow_fallback));
}

/* ---- The indexes that were not chosen ---- */

static void
explain_write_candidates(const struct plan *p, struct buf *out)
{
	bool any = false;

	buf_append_cstr(out, ",\"index_candidates\":[");
	for (size_t i = p->count; i-- > 0;) {
		const struct plan_candidate *c = &p->candidates[i];

		if (c->index == p->chosen)
			continue;
		buf_append_cstr(out, any ? ",{\"index\":" : "{\"index\":");
		any = true;
		query_index_write(c->index, out);
		buf_printf(out,
			   ",\"analysis\":{\"usable\":%s,\"reasons\":[{\"name\":\"%s\"}],"
			   "\"ranking\":%llu,\"covering\":%s}}",
			   explain_bool(c->usable), c->reason, (unsigned long long)c->ranking,
			   c->index->ddoc.ptr ? explain_bool(c->covers) : "null");
	}
	buf_append_byte(out, ']');
}

/* ---- Hints: which fields an index could use ---- */

static enum status
names_collect(struct name_list *names, const struct normal_node *n)
{
	if (n->kind == NORMAL_FIELD)
		return name_list_add(names, n->path.joined);
	for (const struct normal_node *i = n->first; i; i = i->next)
		TRY(names_collect(names, i));
	return STATUS_OK;
}

static enum status
explain_write_hints(const struct explain *e, struct buf *out)
{
	struct name_list all = { .arena = e->r->arena };
	struct name_list indexable = { .arena = e->r->arena };
	struct name_list others = { .arena = e->r->arena };

	TRY(names_collect(&all, e->args.normal));
	TRY(name_list_settle(&all));
	for (size_t i = 0; i < e->plan.ranges.count; i++)
		TRY(name_list_add(&indexable, e->plan.ranges.items[i].path->joined));
	TRY(name_list_settle(&indexable));
	for (size_t i = 0; i < all.count; i++) {
		if (!name_list_has(&indexable, all.items[i]))
			TRY(name_list_add(&others, all.items[i]));
	}
	buf_append_cstr(out, ",\"selector_hints\":[{\"type\":\"json\",\"indexable_fields\":");
	explain_write_names(indexable.items, indexable.count, out);
	buf_append_cstr(out, ",\"unindexable_fields\":");
	explain_write_names(others.items, others.count, out);
	buf_append_cstr(out, "}]");
	return STATUS_OK;
}

/* ---- How the index is read ---- */

/* One end of the values of a field; NULL if there is no bound. */
static const struct value_bound *
field_range_bound(const struct field_range *r, bool high)
{
	const struct value_bound *b = r ? (high ? &r->values.high : &r->values.low) : NULL;

	return b && b->value ? b : NULL;
}

/* One end of the range of keys: the values of the columns up to the first without that bound. */
static void
explain_write_key(const struct plan *p, bool high, struct buf *out)
{
	const struct query_index *index = p->chosen;
	bool any = false;

	buf_append_byte(out, '[');
	for (size_t i = 0; i < index->columns.count; i++) {
		const struct field_range *r = field_ranges_find(&p->ranges, &index->paths[i]);
		const struct value_bound *b = field_range_bound(r, high);

		if (!b)
			break;
		buf_append_cstr(out, any ? "," : "");
		any = true;
		buf_append_str(out, field_bound_text(b));
	}
	if (high)
		buf_append_cstr(out, any ? ",\"<MAX>\"" : "\"<MAX>\"");
	buf_append_byte(out, ']');
}

static void
explain_write_id(const struct plan *p, bool high, struct buf *out)
{
	const struct field_range *r = field_ranges_find(&p->ranges, &p->chosen->paths[0]);
	const struct value_bound *b = field_range_bound(r, high);

	if (b)
		buf_append_str(out, field_bound_text(b));
	else
		buf_append_cstr(out, high ? "\"<MAX>\"" : r ? "\"\"" : "null");
}

static void
explain_write_range(const struct plan *p, bool high, struct buf *out)
{
	if (p->nothing || p->ranges.empty)
		buf_append_cstr(out, "null");
	else if (p->chosen->ddoc.ptr)
		explain_write_key(p, high, out);
	else
		explain_write_id(p, high, out);
}

static void
explain_write_mrargs(const struct explain *e, struct buf *out)
{
	const struct find_args *a = &e->args;
	const struct plan *p = &e->plan;
	bool backwards = a->sort.count && a->sort.descending;

	buf_printf(out,
		   ",\"mrargs\":{\"include_docs\":%s,\"view_type\":\"map\",\"reduce\":false,"
		   "\"partition\":",
		   explain_bool(a->r == 1 && !p->covers));
	if (a->partition.ptr)
		json_write_str(out, a->partition);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"start_key\":");
	explain_write_range(p, backwards, out);
	buf_append_cstr(out, ",\"end_key\":");
	explain_write_range(p, !backwards, out);
	buf_printf(out,
		   ",\"direction\":\"%s\",\"stable\":%s,\"update\":%s,\"conflicts\":%s},"
		   "\"covering\":%s",
		   backwards ? "rev" : "fwd", explain_bool(a->stable || a->stale),
		   explain_bool(a->update && !a->stale), a->conflicts ? "true" : "\"undefined\"",
		   explain_bool(p->covers));
}

/* ---- The whole ---- */

/* Behind `{"ddoc":`: an index, or ids that the selector names. */
static void
explain_write_read(const struct plan_read *read, struct buf *out)
{
	if (read->index)
		json_write_str(out, read->index->ddoc);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"name\":");
	json_write_str(out, read->index ? read->index->name : STR("_all_docs"));
	buf_printf(out, ",\"ranges\":%zu,\"estimated_rows\":%llu}",
		   read->index ? read->keys.count : read->ids_count,
		   (unsigned long long)read->rows);
}

static enum status
explain_make_plan(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const struct plan_terms terms = { .explain = true };
	struct explain *e = arg;

	TRY(couch_partition_check_db(r));
	TRY(query_indexes_load(r, tx, &e->indexes));
	if (e->args.aggregate) {
		struct find_aggregate_plan p;

		TRY(find_aggregate_plan(r, tx, &e->args, &e->indexes, true, &p));
		e->plan = p.plan;
		e->way = p.way;
		return STATUS_OK;
	}
	return plan_make(r, tx, &e->args, &e->indexes, &terms, &e->plan);
}

/* What frond does, which CouchDB's members do not tell: what is read, and how much of it. */
static void
explain_write_plan(const struct plan *p, struct buf *out)
{
	static const char *const ways[] = {
		[PLAN_IDS] = "ids",
		[PLAN_INDEX] = "index",
		[PLAN_SETS] = "sets",
	};
	bool any = false;

	buf_printf(out,
		   ",\"plan\":{\"way\":\"%s\",\"sorts\":%s,\"estimated_rows\":%llu,\"reads\":[",
		   p->way == PLAN_SETS && p->intersects        ? "intersection"
		   : p->way == PLAN_SETS && p->reads_count > 1 ? "union"
							       : ways[p->way],
		   explain_bool(plan_sorts(p)), (unsigned long long)p->rows);
	for (size_t i = 0; i < p->reads_count; i++) {
		buf_append_cstr(out, i ? ",{\"ddoc\":" : "{\"ddoc\":");
		explain_write_read(&p->reads[i], out);
	}
	buf_append_cstr(out, "],\"indexes\":[");
	for (size_t i = 0; i < p->count; i++) {
		if (!p->candidates[i].read.counted)
			continue;
		buf_append_cstr(out, any ? ",{\"ddoc\":" : "{\"ddoc\":");
		any = true;
		explain_write_read(&p->candidates[i].read, out);
	}
	buf_append_cstr(out, "]}");
}

static enum status
explain_write(const struct explain *e, struct buf *out)
{
	const struct find_args *a = &e->args;

	buf_append_cstr(out, "{\"dbname\":");
	json_write_str(out, e->r->parts[0]);
	buf_append_cstr(out, ",\"index\":");
	if (e->plan.chosen)
		query_index_write(e->plan.chosen, out);
	else
		buf_append_cstr(out, "null");
	buf_append_cstr(out, ",\"partitioned\":");
	buf_append_cstr(out, explain_bool(rev_db_is_partitioned(e->r->db)));
	buf_append_cstr(out, ",\"selector\":");
	normal_write(a->normal, out);
	explain_write_opts(a, out);
	explain_write_limit(a, out);
	buf_append_cstr(out, ",\"skip\":");
	buf_append_u64(out, a->skip);
	buf_append_cstr(out, ",\"fields\":");
	explain_write_names(a->fields, a->fields_count, out);
	explain_write_candidates(&e->plan, out);
	TRY(explain_write_hints(e, out));
	if (e->plan.chosen) {
		explain_write_mrargs(e, out);
		explain_write_plan(&e->plan, out);
	}
	if (a->aggregate) {
		buf_append_cstr(out, ",\"aggregate\":{");
		aggregate_write(a->aggregate, out);
		buf_printf(out, ",\"groups\":\"%s\"}", find_way_name(e->way));
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}

enum status
couch_explain(struct couch_req *r)
{
	AUTO(buf_release) struct buf out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct explain e = { .r = r };

	TRY(couch_db_precheck(r));
	TRY(find_args_read(r, &e.args));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, explain_make_plan, &e));
	TRY(explain_write(&e, &out));
	return couch_reply(r, 200, &out);
}

/* Which indexes a query can use, and CouchDB's choice among them. */
#include "door/couch/query/plan_int.h"
#include "index/plan/cover.h"
#include "index/plan/order.h"

/* ---- use_index ---- */

struct str
plan_named_design(const struct find_args *args)
{
	struct str ddoc = args->use_index[0];

	return str_starts_with(ddoc, STR("_design/")) ? str_skip(ddoc, strlen("_design/")) : ddoc;
}

static bool
plan_is_named(const struct find_args *args, const struct query_index *index)
{
	if (!args->use_index_count || !index->ddoc.ptr)
		return false;
	if (!str_eq(str_skip(index->ddoc, strlen("_design/")), plan_named_design(args)))
		return false;
	return args->use_index_count == 1 || str_eq(index->name, args->use_index[1]);
}

bool
plan_ignores_use_index(const struct find_args *args, const struct query_index *chosen)
{
	return args->use_index_count && !plan_is_named(args, chosen);
}

/* ---- Which indexes are usable ---- */

bool
candidate_is_required(const struct find_args *args, const struct normal_node *n,
		      const struct query_index *index)
{
	const struct cover sorted = { args->sort.fields, args->sort.count, { 0 } };

	for (size_t i = 0; i < index->columns.count; i++) {
		if (cover_has(&sorted, index->columns.fields[i]) ||
		    normal_path_is(&index->paths[i], "_id") ||
		    normal_path_is(&index->paths[i], "_rev"))
			continue;
		if (!normal_requires(n, &index->paths[i]))
			return false;
	}
	return true;
}

/* Columns are fixed where each match has one value. */
struct column_look {
	const struct normal_node *selector;
	const struct query_index *index;
};

static struct order_column
column_look(const void *arg, size_t column)
{
	const struct column_look *look = arg;
	bool fixed = look->index->ddoc.ptr &&
		     normal_is_constant(look->selector, &look->index->paths[column]);

	return (struct order_column){ look->index->columns.fields[column],
				      fixed ? ORDER_FIXED : 0 };
}

/* True if the columns, but for leading ones of one value, begin with the fields of the sort. */
static bool
plan_has_order(const struct find_args *args, const struct query_index *index)
{
	const struct column_look look = { args->normal, index };
	struct order order = {
		.look = column_look, .arg = &look, .count = index->columns.count, .adjacent = true
	};

	for (size_t i = 0; i < args->sort.count; i++)
		if (!order_take(&order, args->sort.fields[i], args->sort.descending))
			return false;
	return true;
}

/* _all_docs sorts only where the selector says something about ids. */
static bool
plan_all_docs_has_required(const struct find_args *args, const struct plan *p)
{
	struct str name = STR("_id");
	const struct normal_path id = { .names = &name, .count = 1 };

	return !args->sort.count || field_ranges_find(&p->ranges, &id);
}

/* What is in the entries of an index: the ids of documents, too. */
static struct cover
index_cover(const struct query_index *index)
{
	return (struct cover){ index->columns.fields, index->columns.count, STR("_id") };
}

/* The number of leading columns that have a range. */
static size_t
plan_count_prefix(const struct plan *p, const struct query_index *index)
{
	size_t n = 0;

	while (n < index->columns.count && field_ranges_find(&p->ranges, &index->paths[n]))
		n++;
	return n;
}

void
candidate_judge(const struct find_args *args, const struct plan *p, struct plan_candidate *c)
{
	const struct query_index *index = c->index;
	const struct cover cover = index_cover(index);

	c->required = index->ddoc.ptr ? candidate_is_required(args, args->normal, index)
				      : plan_all_docs_has_required(args, p);
	c->order = plan_has_order(args, index);
	c->named = plan_is_named(args, index);
	c->partial = index->filter.ptr != NULL;
	c->in_scope = !index->ddoc.ptr || index->partitioned == (args->partition.ptr != NULL);
	c->covers = index->ddoc.ptr && (args->shown || args->aggregate) &&
		    cover_has_all(&cover, args->fields, args->fields_count);
	c->prefix = plan_count_prefix(p, index);
	c->usable = (!c->partial || c->named) && c->in_scope && c->required && c->order;
	if (c->usable)
		return;
	if (c->partial)
		c->reason = "is_partial";
	else if (!c->in_scope)
		c->reason = "scope_mismatch";
	else
		c->reason = c->required ? "sort_order_mismatch" : "field_mismatch";
}

/* ---- Which one is chosen ---- */

/*
 * The one goes first that has more columns with ranges, or has fewer columns. Indexes come in the
 * order of their names, which decides where both are alike.
 */
static struct choice_merits
candidate_merits(const struct plan_candidate *c)
{
	return (struct choice_merits){ { (int64_t)c->prefix, -(int64_t)c->index->columns.count } };
}

static bool
plan_prefers(const struct plan_candidate *a, const struct plan_candidate *b)
{
	const struct choice_merits left = candidate_merits(a), right = candidate_merits(b);

	return choice_prefers(&left, &right);
}

/* True if the candidate is one of those that are compared with each other: of the favoured type. */
static bool
plan_competes(const struct plan_candidate *c, bool any_json)
{
	return c->considered && (c->index->ddoc.ptr != NULL) == any_json;
}

/* Ranks those that compete, and returns the best. */
static struct plan_candidate *
plan_rank(struct plan *p, bool any_json, uint64_t *ret_competing)
{
	struct plan_candidate *best = NULL;

	*ret_competing = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		if (!plan_competes(c, any_json))
			continue;
		++*ret_competing;
		for (size_t k = 0; k < p->count; k++) {
			const struct plan_candidate *o = &p->candidates[k];

			if (o != c && plan_competes(o, any_json) &&
			    (plan_prefers(o, c) || (k < i && !plan_prefers(c, o))))
				c->ranking++;
		}
		if (!best || plan_prefers(c, best))
			best = c;
	}
	return best;
}

/* Says of each candidate why it was not chosen, and how far behind it is. */
static void
plan_explain(struct plan *p, const struct plan_candidate *best, bool any_json, uint64_t competing)
{
	bool unfavored = false;
	bool excluded = false;
	bool unusable = false;
	bool out_of_scope = false;
	uint64_t rank = competing ? competing : 1;

	for (size_t i = 0; i < p->count; i++) {
		const struct plan_candidate *c = &p->candidates[i];

		unfavored = unfavored || (c->considered && !plan_competes(c, any_json));
		excluded = excluded || (c->usable && !c->considered);
		out_of_scope = out_of_scope || (!c->in_scope && (!c->partial || c->named));
		unusable = unusable || (!c->usable && c->in_scope && (!c->partial || c->named));
	}
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		if (c == best)
			continue;
		if (plan_competes(c, any_json)) {
			c->reason = p->ranges.count > c->prefix ? "less_overlap"
				    : c->index->columns.count > best->index->columns.count
					    ? "too_many_fields"
					    : "alphabetically_comes_after";
			continue;
		}
		c->ranking = rank;
		if (c->considered) {
			c->reason = "unfavored_type";
			continue;
		}
		c->ranking += unfavored;
		if (c->usable) {
			c->reason = "excluded_by_user";
			continue;
		}
		c->ranking += excluded + (c->partial || !c->in_scope ? unusable : 0) +
			      (c->partial ? out_of_scope : 0);
	}
}

void
candidates_rank(struct planner *m)
{
	uint64_t competing;

	m->best = plan_rank(m->p, m->any_json, &competing);
	plan_explain(m->p, m->best, m->any_json, competing);
}

void
candidates_promote(struct planner *m, struct plan_candidate *chosen)
{
	for (size_t i = 0; i < m->p->count; i++) {
		struct plan_candidate *c = &m->p->candidates[i];

		if (c->considered && c->ranking < chosen->ranking)
			c->ranking++;
	}
	if (m->best)
		m->best->reason = "more_rows";
	chosen->ranking = 0;
	chosen->considered = true;
	m->best = chosen;
}

/* True if each field that the selector names is a column. */
static bool
plan_names_only_columns(const struct cover *cover, const struct normal_node *n)
{
	if (n->kind == NORMAL_FIELD)
		return cover_has(cover, n->path.joined);
	for (const struct normal_node *i = n->first; i; i = i->next) {
		if (!plan_names_only_columns(cover, i))
			return false;
	}
	return true;
}

bool
candidate_covers_all(const struct plan_candidate *c, const struct normal_node *n)
{
	const struct cover cover = index_cover(c->index);

	return c->covers && plan_names_only_columns(&cover, n);
}

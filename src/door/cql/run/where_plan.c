/* What WHERE says of the primary key: partitions, ranges of rows in them, ranges of tokens. */
#include "cql/murmur3.h"
#include "door/cql/run/where_index.h"
#include "loop/sort.h"
#include "loop/step.h"

#define NEEDS_FILTERING                                                                            \
	"Cannot execute this query as it might involve data filtering and thus may have "          \
	"unpredictable performance. If you want to execute this query despite the performance "    \
	"unpredictability, use ALLOW FILTERING"

enum {
	PARTITION_KEY_BYTES = 64 * 1024,
};

/* A plan that is being made. */
struct planning {
	struct run *run;
	const struct where *where;
	const struct where_index *index; /* NULL: none */
	bool allows;
	struct where_plan *plan;
	size_t clustering; /* columns of that key */
	bool has_token;
	/* The clustering columns in front that are = or IN: combinations of their values. */
	size_t prefix;              /* columns of each */
	struct doc_scalar **combos; /* of `prefix` scalars each */
	size_t combo_count;
};

static bool
is_slice(enum cql_operator op)
{
	return op == CQL_OP_LT || op == CQL_OP_LE || op == CQL_OP_GT || op == CQL_OP_GE;
}

static bool
is_exact(enum cql_operator op)
{
	return op == CQL_OP_EQ || op == CQL_OP_IN;
}

static bool
is_lower(enum cql_operator op)
{
	return op == CQL_OP_GT || op == CQL_OP_GE;
}

/* The term by which a column is restricted, alone or among others; NULL: there is none. */
static const struct where_term *
term_of(const struct planning *p, const struct schema_column *c)
{
	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *t = &p->where->terms[i];

		if (t->relation->left == CQL_LEFT_TOKEN)
			continue;
		for (size_t j = 0; j < t->column_count; j++)
			if (t->columns[j] == c)
				return t;
	}
	return NULL;
}

/* ---- What may be said together ---- */

static enum status
check_pair(struct run *run, const struct where_term *a, const struct where_term *b)
{
	struct str name = b->columns[0]->name;
	enum cql_operator op = a->relation->op, other = b->relation->op;

	if (a->relation->left != CQL_LEFT_TOKEN && b->relation->left == CQL_LEFT_TOKEN)
		return STATUS_OK;
	if (op == CQL_OP_CONTAINS || op == CQL_OP_CONTAINS_KEY || other == CQL_OP_CONTAINS ||
	    other == CQL_OP_CONTAINS_KEY || a->relation->left == CQL_LEFT_ELEMENT ||
	    b->relation->left == CQL_LEFT_ELEMENT || a->relation->left == CQL_LEFT_JSON ||
	    b->relation->left == CQL_LEFT_JSON)
		return STATUS_OK;
	if (op == CQL_OP_EQ || other == CQL_OP_EQ)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "%.*s cannot be restricted by more than one relation if it "
				    "includes an Equal",
				    STR_ARG(name));
	if (op == CQL_OP_IN || other == CQL_OP_IN)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "%.*s cannot be restricted by more than one relation if it "
				    "includes a IN",
				    STR_ARG(name));
	if (is_lower(op) == is_lower(other))
		return request_fail(run->r, CQL_CODE_INVALID,
				    "More than one restriction was found for the %s bound on %.*s",
				    is_lower(op) ? "start" : "end", STR_ARG(name));
	return STATUS_OK;
}

static bool
share_column(const struct where_term *a, const struct where_term *b)
{
	if ((a->relation->left == CQL_LEFT_TOKEN) != (b->relation->left == CQL_LEFT_TOKEN))
		return false;
	for (size_t i = 0; i < a->column_count; i++)
		for (size_t j = 0; j < b->column_count; j++)
			if (a->columns[i] == b->columns[j])
				return true;
	return false;
}

static enum status
check_terms(struct planning *p)
{
	const struct where *w = p->where;

	for (size_t i = 0; i < w->count; i++) {
		TRY(step_count(1));
		p->has_token |= w->terms[i].relation->left == CQL_LEFT_TOKEN;
		for (size_t j = i + 1; j < w->count; j++)
			if (share_column(&w->terms[i], &w->terms[j]))
				TRY(check_pair(p->run, &w->terms[i], &w->terms[j]));
	}
	return STATUS_OK;
}

/* True if an index answers the term. */
static bool
is_served(const struct planning *p, const struct where_term *t)
{
	return p->index && p->index->served[t - p->where->terms];
}

static enum status
needs_filtering(struct planning *p)
{
	p->plan->filters = true;
	if (p->allows)
		return STATUS_OK;
	return request_fail(p->run->r, CQL_CODE_INVALID, NEEDS_FILTERING);
}

static bool
is_containing(const struct where_term *t)
{
	return t->relation->op == CQL_OP_CONTAINS || t->relation->op == CQL_OP_CONTAINS_KEY;
}

static enum status
fail_containing(struct planning *p)
{
	return request_fail(p->run->r, CQL_CODE_INVALID,
			    "Clustering columns can only be restricted with CONTAINS with a "
			    "secondary index or filtering");
}

/* ---- Lists ---- */

/* Sorting values of one type. */
struct value_order {
	const struct cql_type *type;
	bool descending;
};

static enum status
compare_values(const void *arg, const void *a, const void *b, int *ret)
{
	const struct value_order *o = arg;
	const struct cql_value *x = a, *y = b;

	*ret = cql_value_compare(o->type, x->bytes, y->bytes);
	if (o->descending)
		*ret = -*ret;
	return STATUS_OK;
}

/* The values of IN, sorted, each once. */
static enum status
sort_values(struct planning *p, const struct cql_type *type, bool descending,
	    struct cql_value *values, size_t *count)
{
	const struct value_order order = { type, descending };
	size_t kept = 0;

	TRY(sort_items(values, *count, sizeof(*values), compare_values, &order, p->run->r->arena));
	for (size_t i = 0; i < *count; i++)
		if (!kept || cql_value_compare(type, values[kept - 1].bytes, values[i].bytes) != 0)
			values[kept++] = values[i];
	*count = kept;
	return STATUS_OK;
}

/* Tuples in the order in which their rows lie. */
static enum status
compare_tuples(const void *arg, const void *a, const void *b, int *ret)
{
	const struct where_term *t = arg;
	const struct cql_value *x = a, *y = b;
	struct cql_elements ex, ey;
	struct cql_value px, py;

	*ret = 0;
	cql_elements_init(&ex, t->type, x->bytes);
	cql_elements_init(&ey, t->type, y->bytes);
	for (size_t i = 0; !*ret && i < t->column_count && cql_elements_next(&ex, &px) &&
			   cql_elements_next(&ey, &py);
	     i++) {
		*ret = cql_value_compare(t->columns[i]->type, px.bytes, py.bytes);
		if (t->columns[i]->descending)
			*ret = -*ret;
	}
	return STATUS_OK;
}

static enum status
sort_tuples(struct planning *p, struct where_term *t)
{
	size_t kept = 0;

	TRY(sort_items(t->values, t->value_count, sizeof(*t->values), compare_tuples, t,
		       p->run->r->arena));
	for (size_t i = 0; i < t->value_count; i++)
		if (!kept || !str_eq(t->values[kept - 1].bytes, t->values[i].bytes))
			t->values[kept++] = t->values[i];
	t->value_count = kept;
	return STATUS_OK;
}

/* The values of each IN, in the order in which rows lie; each once. */
static enum status
sort_lists(struct planning *p)
{
	for (size_t i = 0; i < p->where->count; i++) {
		struct where_term *t = &p->where->terms[i];

		if (t->relation->op != CQL_OP_IN)
			continue;
		if (t->relation->left == CQL_LEFT_TUPLE)
			TRY(sort_tuples(p, t));
		else
			TRY(sort_values(p, t->type, t->columns[0]->descending, t->values,
					&t->value_count));
	}
	return STATUS_OK;
}

/* ---- The partition key ---- */

/* Finds out whether each component is = or IN. */
static enum status
plan_partition_columns(struct planning *p)
{
	const struct schema_table *t = p->run->table;
	size_t exact = 0, restricted = 0; /* by terms that no index answers */

	for (size_t i = 0; i < t->partition_count; i++) {
		const struct where_term *term = term_of(p, &t->columns[i]);

		restricted += term != NULL && !is_served(p, term);
		exact += term && term->relation->left == CQL_LEFT_COLUMN &&
			 is_exact(term->relation->op);
	}
	p->plan->by_partitions = exact == t->partition_count;
	if (p->has_token && restricted && !p->plan->by_partitions)
		return needs_filtering(p);
	if (restricted && !p->plan->by_partitions)
		return needs_filtering(p);
	return STATUS_OK;
}

static enum status
partition_token(struct planning *p, struct where_partition *part)
{
	const struct schema_table *t = p->run->table;
	AUTO(buf_release) struct buf key = cql_buf(p->run->q, PARTITION_KEY_BYTES * 64);
	struct str *columns = arena_alloc(p->run->r->arena, t->partition_count * sizeof(*columns));
	enum status status;

	if (!columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->partition_count; i++)
		columns[i] = part->values[i].bytes;
	status = cql_partition_token(&key, columns, t->partition_count, &part->token);
	if (status == STATUS_INVALID)
		return request_fail(p->run->r, CQL_CODE_INVALID,
				    "Key length is longer than maximum of 65535");
	if (status == STATUS_OK && !columns[0].len && t->partition_count == 1)
		return request_fail(p->run->r, CQL_CODE_INVALID, "Key may not be empty");
	return status;
}

static enum status
partition_make(struct planning *p, const size_t *at, struct where_partition *part)
{
	const struct schema_table *t = p->run->table;
	struct arena *arena = p->run->r->arena;

	part->values = arena_alloc(arena, t->partition_count * sizeof(*part->values));
	part->scalars = arena_alloc(arena, t->partition_count * sizeof(*part->scalars));
	if (!part->values || !part->scalars)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->partition_count; i++) {
		part->values[i] = term_of(p, &t->columns[i])->values[at[i]];
		TRY(value_to_key(p->run->q, t->columns[i].type, part->values[i].bytes,
				 &part->scalars[i]));
	}
	return partition_token(p, part);
}

static enum status
plan_partitions(struct planning *p)
{
	const struct schema_table *t = p->run->table;
	struct where_plan *plan = p->plan;
	size_t *at = arena_zalloc(p->run->r->arena, t->partition_count * sizeof(*at));
	size_t total = 1;

	if (!at)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->partition_count; i++) {
		const struct where_term *term = term_of(p, &t->columns[i]);

		total *= term->value_count;
		if (total > CQL_PARTITIONS)
			return request_fail(p->run->r, CQL_CODE_INVALID,
					    "IN names more than %d partitions (CQL_PARTITIONS)",
					    CQL_PARTITIONS);
	}
	plan->nothing |= total == 0;
	plan->in_partition = total > 1;
	plan->partitions = arena_alloc(p->run->r->arena, (total + 1) * sizeof(*plan->partitions));
	if (!plan->partitions)
		return STATUS_LIMIT;
	for (size_t n = 0; n < total; n++) {
		TRY(step_count(1));
		TRY(partition_make(p, at, &plan->partitions[n]));
		plan->partition_count++;
		/* The last component counts up first. */
		for (size_t i = t->partition_count; i-- > 0;) {
			if (++at[i] < term_of(p, &t->columns[i])->value_count)
				break;
			at[i] = 0;
		}
	}
	return STATUS_OK;
}

/* ---- Tokens ---- */

static void
plan_tokens(struct planning *p)
{
	struct where_plan *plan = p->plan;

	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *t = &p->where->terms[i];
		struct table_token_edge edge;
		enum cql_operator op = t->relation->op;

		if (t->relation->left != CQL_LEFT_TOKEN || !t->value_count || op == CQL_OP_IN)
			continue;
		edge = (struct table_token_edge){
			.kind = op == CQL_OP_LT || op == CQL_OP_GT ? TIMED_BOUND_EXCLUSIVE
								   : TIMED_BOUND_INCLUSIVE,
			.token = cql_int_read(t->values[0].bytes),
		};
		if (op == CQL_OP_EQ || is_lower(op))
			plan->from_token = edge;
		if (op == CQL_OP_EQ || !is_lower(op))
			plan->to_token = edge;
	}
}

/* ---- The clustering key ---- */

/* Each combination once with each of these; `parts` of them are for one combination. */
static enum status
combos_multiply(struct planning *p, struct doc_scalar *scalars, size_t count, size_t parts)
{
	struct arena *arena = p->run->r->arena;
	size_t total = p->combo_count * count, n = 0;
	struct doc_scalar **combos;

	if (total > CQL_RANGES)
		return request_fail(p->run->r, CQL_CODE_INVALID,
				    "IN names more than %d rows of a partition (CQL_RANGES)",
				    CQL_RANGES);
	combos = arena_alloc(arena, (total + 1) * sizeof(struct doc_scalar *));
	if (!combos)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->combo_count; i++) {
		for (size_t j = 0; j < count; j++, n++) {
			TRY(step_count(1));
			combos[n] = arena_alloc(arena, (p->prefix + parts) * sizeof(**combos));
			if (!combos[n])
				return STATUS_LIMIT;
			if (p->prefix)
				memcpy(combos[n], p->combos[i], p->prefix * sizeof(**combos));
			memcpy(combos[n] + p->prefix, scalars + j * parts,
			       parts * sizeof(**combos));
		}
	}
	p->combos = combos;
	p->combo_count = total;
	p->prefix += parts;
	return STATUS_OK;
}

/* The scalars of one value: of a tuple, its elements. */
static enum status
scalars_of(struct planning *p, const struct where_term *t, const struct cql_value *v,
	   struct doc_scalar *ret, size_t *ret_count)
{
	struct cql_elements e;
	struct cql_value part;
	size_t n = 0;

	*ret_count = 1;
	if (t->relation->left != CQL_LEFT_TUPLE)
		return value_to_key(p->run->q, t->columns[0]->type, v->bytes, ret);
	cql_elements_init(&e, t->type, v->bytes);
	while (n < t->column_count && cql_elements_next(&e, &part)) {
		if (part.presence != CQL_SET)
			return request_fail(p->run->r, CQL_CODE_INVALID,
					    "Invalid null value in condition for column %.*s",
					    STR_ARG(t->columns[n]->name));
		TRY(value_to_key(p->run->q, t->columns[n]->type, part.bytes, &ret[n]));
		n++;
	}
	*ret_count = n;
	return STATUS_OK;
}

/* A term that is = or IN on the column behind the prefix, or on several from it on. */
static enum status
plan_exact(struct planning *p, const struct where_term *t)
{
	struct doc_scalar *scalars;
	size_t parts = 1;

	p->plan->nothing |= t->value_count == 0;
	scalars = arena_alloc(p->run->r->arena,
			      (t->value_count + 1) * t->column_count * sizeof(*scalars));
	if (!scalars)
		return STATUS_LIMIT;
	for (size_t i = 0; i < t->value_count; i++) {
		TRY(scalars_of(p, t, &t->values[i], scalars + i * t->column_count, &parts));
		if (parts != t->column_count)
			return request_fail(p->run->r, CQL_CODE_INVALID,
					    "Expected %zu elements in value tuple, but got %zu",
					    t->column_count, parts);
	}
	return combos_multiply(p, scalars, t->value_count, t->column_count);
}

static bool
same_direction(const struct where_term *t)
{
	for (size_t i = 1; i < t->column_count; i++)
		if (t->columns[i]->descending != t->columns[0]->descending)
			return false;
	return true;
}

/* An end that a slice gives, behind each combination; of mixed directions by the first column. */
static enum status
plan_slice(struct planning *p, const struct where_term *t)
{
	bool exact = same_direction(t);
	bool is_from = is_lower(t->relation->op) != t->columns[0]->descending;
	bool exclusive = t->relation->op == CQL_OP_LT || t->relation->op == CQL_OP_GT;
	struct doc_scalar *bound = arena_alloc(p->run->r->arena,
					       (t->column_count + 1) * sizeof(*bound));
	size_t parts;

	if (!bound)
		return STATUS_LIMIT;
	TRY(scalars_of(p, t, &t->values[0], bound, &parts));
	if (!exact) {
		parts = 1;
		exclusive = false;
	}
	for (size_t i = 0; i < p->plan->range_count; i++) {
		struct where_range *r = &p->plan->ranges[i];
		struct table_edge *edge = is_from ? &r->from : &r->to;
		struct doc_scalar *all = arena_alloc(p->run->r->arena,
						     (p->prefix + parts) * sizeof(*all));

		if (!all)
			return STATUS_LIMIT;
		if (p->prefix)
			memcpy(all, p->combos[i], p->prefix * sizeof(*all));
		memcpy(all + p->prefix, bound, parts * sizeof(*all));
		*edge = (struct table_edge){ .kind = exclusive ? TIMED_BOUND_EXCLUSIVE
							       : TIMED_BOUND_INCLUSIVE,
					     .parts = all,
					     .count = p->prefix + parts };
	}
	return STATUS_OK;
}

static enum status
ranges_make(struct planning *p)
{
	struct where_plan *plan = p->plan;

	plan->ranges = arena_alloc(p->run->r->arena, (p->combo_count + 1) * sizeof(*plan->ranges));
	if (!plan->ranges)
		return STATUS_LIMIT;
	for (size_t i = 0; i < p->combo_count; i++) {
		struct table_edge edge = { .kind = p->prefix ? TIMED_BOUND_INCLUSIVE
							     : TIMED_BOUND_END,
					   .parts = p->combos[i],
					   .count = p->prefix };

		plan->ranges[i] = (struct where_range){ .from = edge,
							.to = edge,
							.is_row = p->prefix == p->clustering };
	}
	plan->range_count = p->combo_count;
	plan->one_row = p->prefix == p->clustering;
	return STATUS_OK;
}

static enum status
fail_gap(struct planning *p, const struct schema_column *c, const struct schema_column *before,
	 bool sliced)
{
	if (p->allows) {
		p->plan->filters = true;
		return STATUS_OK;
	}
	if (sliced)
		return request_fail(p->run->r, CQL_CODE_INVALID,
				    "Clustering column \"%.*s\" cannot be restricted (preceding "
				    "column \"%.*s\" is restricted by a non-EQ relation)",
				    STR_ARG(c->name), STR_ARG(before->name));
	return request_fail(p->run->r, CQL_CODE_INVALID,
			    "PRIMARY KEY column \"%.*s\" cannot be restricted as preceding column "
			    "\"%.*s\" is not restricted",
			    STR_ARG(c->name), STR_ARG(before->name));
}

/* Those columns of the clustering key that are behind what a range of rows can say. */
static enum status
check_behind(struct planning *p, size_t at, bool sliced)
{
	const struct schema_table *t = p->run->table;
	const struct schema_column *columns = t->columns + t->partition_count;

	for (size_t i = at; i < p->clustering; i++)
		if (term_of(p, &columns[i]) && !is_served(p, term_of(p, &columns[i])))
			return fail_gap(p, &columns[i], &columns[at - 1], sliced);
	return STATUS_OK;
}

/* The columns behind the first that is neither = nor IN. */
static enum status
plan_clustering_rest(struct planning *p)
{
	const struct schema_table *t = p->run->table;
	const struct schema_column *columns = t->columns + t->partition_count;
	const struct where_term *first = p->prefix < p->clustering ? term_of(p, &columns[p->prefix])
								   : NULL;
	size_t end = p->prefix + 1;

	TRY(ranges_make(p));
	if (p->prefix == p->clustering)
		return STATUS_OK;
	if (!first)
		return check_behind(p, end, false);
	if (!is_slice(first->relation->op) || first->columns[0] != &columns[p->prefix])
		return needs_filtering(p);
	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *term = &p->where->terms[i];

		if (!is_slice(term->relation->op) || term->relation->left == CQL_LEFT_TOKEN ||
		    term->columns[0] != &columns[p->prefix])
			continue;
		TRY(plan_slice(p, term));
		if (p->prefix + term->column_count > end)
			end = p->prefix + term->column_count;
	}
	return check_behind(p, end, true);
}

static enum status
plan_clustering(struct planning *p)
{
	const struct schema_table *t = p->run->table;
	const struct schema_column *columns = t->columns + t->partition_count;
	static struct doc_scalar *const none[1] = { NULL };

	p->combos = arena_alloc(p->run->r->arena, sizeof(none));
	if (!p->combos)
		return STATUS_LIMIT;
	p->combos[0] = NULL;
	p->combo_count = 1;
	while (p->prefix < p->clustering) {
		const struct where_term *term = term_of(p, &columns[p->prefix]);

		if (!term || !is_exact(term->relation->op) ||
		    (term->relation->left != CQL_LEFT_COLUMN &&
		     term->relation->left != CQL_LEFT_TUPLE) ||
		    term->columns[0] != &columns[p->prefix])
			break;
		TRY(plan_exact(p, term));
	}
	return plan_clustering_rest(p);
}

/*
 * With an index: relations of the clustering key are checked with each row. They are free as long
 * as those before them are exact, as if there were partitions.
 */
static bool
is_behind_exact(const struct planning *p, const struct where_term *t)
{
	const struct schema_table *table = p->run->table;
	size_t at = schema_column_at(table, t->columns[0]);

	for (size_t i = table->partition_count; i < at; i++) {
		const struct where_term *before = term_of(p, &table->columns[i]);

		if (!before || !is_exact(before->relation->op))
			return false;
	}
	return true;
}

/* Columns outside of the key, and those of the clustering key where partitions are not known. */
static enum status
check_others(struct planning *p)
{
	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *t = &p->where->terms[i];

		if (t->relation->left == CQL_LEFT_TOKEN || is_served(p, t))
			continue;
		if (p->index && t->columns[0]->kind == SCHEMA_CLUSTERING && is_behind_exact(p, t))
			continue;
		if (t->columns[0]->kind == SCHEMA_CLUSTERING && is_containing(t) && !p->allows)
			return fail_containing(p);
		if (t->columns[0]->kind > SCHEMA_CLUSTERING ||
		    (t->columns[0]->kind == SCHEMA_CLUSTERING && !p->plan->by_partitions))
			return needs_filtering(p);
	}
	return STATUS_OK;
}

/* The rules of what stands beside an index. */
static enum status
check_index(const struct planning *p)
{
	for (size_t i = 0; p->index && i < p->where->count; i++) {
		const struct where_term *t = &p->where->terms[i];

		if (t->relation->left != CQL_LEFT_TOKEN && t->relation->op == CQL_OP_IN &&
		    t->columns[0]->kind == SCHEMA_PARTITION)
			return request_fail(p->run->r, CQL_CODE_INVALID,
					    "Select on indexed columns and with IN clause for the "
					    "PRIMARY KEY are not supported");
	}
	return STATUS_OK;
}

/* A column outside of the key is one value, or a range. */
static enum status
check_in(struct planning *p)
{
	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *t = &p->where->terms[i];

		if (t->relation->op == CQL_OP_IN && t->columns[0]->kind > SCHEMA_CLUSTERING)
			return request_fail(p->run->r, CQL_CODE_INVALID,
					    "IN predicates on non-primary-key columns (%.*s) is "
					    "not yet supported",
					    STR_ARG(t->columns[0]->name));
	}
	return STATUS_OK;
}

/* The term of the clustering key that begins furthest behind, among the first `count`. */
static const struct where_term *
last_clustering(const struct planning *p, size_t count)
{
	const struct where_term *last = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct where_term *t = &p->where->terms[i];

		if (t->relation->left == CQL_LEFT_TOKEN || t->columns[0]->kind != SCHEMA_CLUSTERING)
			continue;
		if (!last || t->columns[0]->position >= last->columns[0]->position)
			last = t;
	}
	return last;
}

/* Without filtering the clustering key is restricted from its front on, by one slice at most. */
static enum status
check_clustering(struct planning *p)
{
	const struct schema_table *t = p->run->table;
	const struct schema_column *gap = NULL;

	for (size_t i = 0; i < p->where->count; i++) {
		const struct where_term *term = &p->where->terms[i];
		const struct where_term *last = last_clustering(p, i);

		if (term->relation->left == CQL_LEFT_TOKEN ||
		    term->columns[0]->kind != SCHEMA_CLUSTERING)
			continue;
		if (last && is_slice(last->relation->op) &&
		    term->columns[0]->position > last->columns[0]->position)
			return fail_gap(p, term->columns[0], last->columns[0], true);
		if (is_containing(term))
			return fail_containing(p);
	}
	for (size_t i = t->partition_count; i < t->key_count; i++) {
		if (!term_of(p, &t->columns[i]))
			gap = gap ? gap : &t->columns[i];
		else if (gap)
			return fail_gap(p, &t->columns[i], gap, false);
	}
	return STATUS_OK;
}

enum status
where_check(struct run *run, const struct where *w, bool allows)
{
	struct where_plan plan = { 0 };
	struct planning p = { .run = run, .where = w, .allows = allows, .plan = &plan };

	TRY(check_terms(&p));
	TRY(check_in(&p));
	if (!allows)
		TRY(check_clustering(&p));
	TRY(plan_partition_columns(&p));
	return check_others(&p);
}

enum status
where_plan(struct run *run, const struct where *w, const struct where_index *index, bool allows,
	   struct where_plan *ret)
{
	struct planning p = { .run = run,
			      .where = w,
			      .index = index,
			      .allows = allows,
			      .plan = ret,
			      .clustering = run->table->key_count - run->table->partition_count };

	*ret = (struct where_plan){ .index = index };
	TRY(check_terms(&p));
	TRY(check_index(&p));
	TRY(sort_lists(&p));
	TRY(plan_partition_columns(&p));
	TRY(check_others(&p));
	if (!ret->by_partitions) {
		plan_tokens(&p);
		return STATUS_OK;
	}
	TRY(plan_partitions(&p));
	return plan_clustering(&p);
}

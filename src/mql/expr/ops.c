/* Which operators there are. */
#include <pthread.h>

#include "mql/expr/expr_int.h"

static const struct mql_expr_op *const tables[] = {
	mql_expr_arith_ops,   mql_expr_array_ops,  mql_expr_bind_ops,   mql_expr_bits_ops,
	mql_expr_convert_ops, mql_expr_date_ops,   mql_expr_hash_ops,   mql_expr_logic_ops,
	mql_expr_number_ops,  mql_expr_object_ops, mql_expr_regex_ops,  mql_expr_script_ops,
	mql_expr_set_ops,     mql_expr_span_ops,   mql_expr_string_ops, mql_expr_total_ops,
	mql_expr_trig_ops,
};

enum {
	SLOTS = 1024, /* of the table by name: a power of two, several times the operators */
};

static pthread_once_t ops_once = PTHREAD_ONCE_INIT;
static const struct mql_expr_op *ops[SLOTS];

static void
ops_begin(void)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (const struct mql_expr_op *op = tables[t]; op->name; op++) {
			size_t slot = str_hash(str_from_cstr(op->name)) % SLOTS;

			while (ops[slot])
				slot = (slot + 1) % SLOTS;
			ops[slot] = op;
		}
	}
}

const struct mql_expr_op *
mql_expr_op_of(struct str name)
{
	size_t slot = str_hash(name) % SLOTS;

	pthread_once(&ops_once, ops_begin);
	while (ops[slot] && !mql_is(name, ops[slot]->name))
		slot = (slot + 1) % SLOTS;
	return ops[slot];
}

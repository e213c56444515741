/* A compiled projection: project_compile.c makes it, project_run.c runs it. */
#ifndef FROND_MQL_PROJECT_INT_H
#define FROND_MQL_PROJECT_INT_H

#include "mql/stage/project.h"

enum mql_projection_mode {
	MQL_PROJECTION_UNKNOWN, /* while it is compiled */
	MQL_PROJECTION_INCLUDE,
	MQL_PROJECTION_EXCLUDE,
	MQL_PROJECTION_ADD,
};

enum mql_field_kind {
	MQL_FIELD_TREE, /* `first`: of the members below */
	MQL_FIELD_INCLUDE,
	MQL_FIELD_EXCLUDE,
	MQL_FIELD_EXPR,
	MQL_FIELD_SLICE,
	MQL_FIELD_ELEMENT, /* $elemMatch */
};

/* A member that a projection names. */
struct mql_field {
	enum mql_field_kind kind;
	struct str name;
	struct mql_field *next;
	struct mql_field *first;
	struct mql_field *last;
	size_t count; /* of the members below */
	size_t index; /* among those of its tree */
	/* The members below by their names (hash_keyed()), if there are many; free: NULL. */
	const struct mql_field **slots;
	size_t slot_count; /* a power of two; 0: there are few */
	bool computed;     /* a tree with values that are computed */
	bool positional;   /* on the way of "a.b.$" */
	struct mql_expr *expr;
	struct mql_match *match;
	bool skips; /* $slice: [skip, limit]; else: only a limit, which may be negative */
	int64_t skip;
	int64_t limit;
};

struct mql_projection {
	enum mql_projection_mode mode;
	bool positional;
	struct mql_field root;
};

/* NULL: the tree does not name it. */
const struct mql_field *mql_field_find(const struct mql_field *tree, struct str name);

#endif

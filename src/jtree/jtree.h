/*
 * JSON values as trees in memory, for who changes parts of a document or asks for parts by a
 * JSONPath (jsonpath.h).
 *
 * Nodes and what they name lie in an arena; nothing is freed before it. Members keep the order in
 * which they came, and of a name that comes twice the first place and the last value. Numbers are
 * integers of 64 bits, signed or not, or else doubles. A tree has JTREE_DEPTH containers inside
 * each other at most, so functions that call themselves have a bounded stack.
 *
 * A container may be there without what is in it (`whole` is false): whoever keeps the document
 * gives a struct jtree_source, which reads a part when it is asked for.
 *
 * Whatever a client can make long counts its steps (loop/step.h). Threading: that of the arena.
 * Failures: STATUS_LIMIT, the arena is full; those of step_count().
 */
#ifndef FROND_JTREE_JTREE_H
#define FROND_JTREE_JTREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	JTREE_DEPTH = 128,        /* containers inside each other */
	JTREE_NUMBER_BYTES = 32,  /* of a number as text */
	JTREE_INDEXED_FROM = 32,  /* an object with as many members has an index of their names */
	JTREE_ELEMENT_BYTES = 72, /* that a node takes, about: for estimates */
};

enum jtree_kind {
	JTREE_NULL,
	JTREE_BOOL,
	JTREE_INT,
	JTREE_UNSIGNED, /* beyond INT64_MAX */
	JTREE_DOUBLE,   /* finite */
	JTREE_TEXT,     /* valid UTF-8 */
	JTREE_ARRAY,
	JTREE_OBJECT,
};

struct jtree_node {
	enum jtree_kind kind;
	bool whole;  /* a container: what is in it is in memory, and so on; true for others */
	bool marked; /* for whoever needs to know which nodes it has met */
	bool gone;   /* it is taken out of its container, by jtree_remove() */
	struct jtree_node *parent; /* NULL: the root */
	struct str name;           /* in an object */
	union {
		bool truth;
		int64_t i;
		uint64_t u;
		double d;
		struct str text;
		struct {
			struct jtree_node **children; /* in their order; NULL unless whole */
			size_t cap;
		};
	};
	uint64_t count;            /* children, in memory or not */
	struct jtree_node **slots; /* of a large object: by name; NULL: not made */
	size_t slot_count;
	/* For whoever keeps the document: where it lies among its siblings, and what comes next. */
	uint64_t ordinal;
	int64_t place;
	int64_t next;
};

/* Reads what is not in memory. All three may be called for nodes that are not whole only. */
struct jtree_source {
	/* The member of that name; NULL: there is none. */
	enum status (*member)(void *arg, struct jtree_node *object, struct str name,
			      struct jtree_node **ret);
	/* The element, which is there. */
	enum status (*element)(void *arg, struct jtree_node *array, uint64_t index,
			       struct jtree_node **ret);
	/* All that is below the node: it is whole then. */
	enum status (*load)(void *arg, struct jtree_node *node);
	void *arg;
};

static inline bool
jtree_is_container(const struct jtree_node *node)
{
	return node->kind == JTREE_ARRAY || node->kind == JTREE_OBJECT;
}

static inline bool
jtree_is_number(const struct jtree_node *node)
{
	return node->kind == JTREE_INT || node->kind == JTREE_UNSIGNED ||
	       node->kind == JTREE_DOUBLE;
}

/* The value of a number, rounded where a double cannot hold it. */
static inline double
jtree_number(const struct jtree_node *node)
{
	return node->kind == JTREE_DOUBLE     ? node->d
	       : node->kind == JTREE_UNSIGNED ? (double)node->u
					      : (double)node->i;
}

/* ---- Nodes (jtree.c) ---- */

/* A node of that kind, whole and empty. */
MUST_USE enum status jtree_new(struct arena *arena, enum jtree_kind kind, struct jtree_node **ret);

/* The member of a whole object; NULL: there is none. */
MUST_USE enum status jtree_member(struct arena *arena, struct jtree_node *object, struct str name,
				  struct jtree_node **ret);

/*
 * Adds the node, which is in no tree, as the last member of a whole object. The object has no
 * member of that name. The name is borrowed.
 */
MUST_USE enum status jtree_add(struct arena *arena, struct jtree_node *object, struct str name,
			       struct jtree_node *node);
/* Puts nodes, which are in no tree, into a whole array, in front of what is at that index. */
MUST_USE enum status jtree_insert(struct arena *arena, struct jtree_node *array, uint64_t at,
				  struct jtree_node *const *nodes, size_t count);
/* Takes elements out of a whole array. */
void jtree_cut(struct jtree_node *array, uint64_t at, uint64_t count);
/*
 * Takes nodes out of their containers, which are whole. None is below another one, none is named
 * twice, none is the root.
 */
MUST_USE enum status jtree_remove(struct jtree_node *const *nodes, size_t count);
/* Makes a node another value, at the same place. What is in `value` is then the node's. */
void jtree_assign(struct jtree_node *node, const struct jtree_node *value);

/* A copy of a whole tree, with texts and names of its own, in no tree. */
MUST_USE enum status jtree_copy(struct arena *arena, const struct jtree_node *node,
				struct jtree_node **ret);
/*
 * Whether two whole trees are the same value: numbers are, if they are of the same kind, too;
 * members in any order.
 */
MUST_USE enum status jtree_equal(struct arena *arena, struct jtree_node *a, struct jtree_node *b,
				 bool *ret);
/* Containers inside each other in a whole tree: 0 for a scalar. */
unsigned jtree_height(const struct jtree_node *node);
/* Containers around a node. */
unsigned jtree_depth(const struct jtree_node *node);
/*
 * Merges a whole value into a whole node (RFC 7396): members that are null go. `patch` stays as it
 * is. The caller has compared the depths.
 */
MUST_USE enum status jtree_merge(struct arena *arena, struct jtree_node *node,
				 const struct jtree_node *patch);

/* ---- Texts (read.c, write.c) ---- */

/*
 * Reads a JSON text. STATUS_JSON_SYNTAX, STATUS_JSON_UTF8, STATUS_JSON_DEPTH, explained. Texts and
 * names without escapes are borrowed from the text.
 */
MUST_USE enum status jtree_read(struct str text, struct arena *arena, struct jtree_node **ret,
				struct err *err);

/* How a text is laid out; empty texts: as short as it can be. */
struct jtree_layout {
	struct str indent; /* in front of a line, once for each container around it */
	struct str
		newline;  /* in front of each member and element, and of a bracket that ends them */
	struct str space; /* behind the colon */
};

extern const struct jtree_layout jtree_dense; /* as short as it can be */

/*
 * Appends the text of a whole tree; `level` containers are around it. Two trees have the same text
 * only if they are the same, with their members in the same order. A full buffer remembers that.
 */
MUST_USE enum status jtree_write(const struct jtree_node *node, const struct jtree_layout *layout,
				 unsigned level, struct buf *out);
/* What stands between the parts, for who writes containers of its own. */
void jtree_write_line(const struct jtree_layout *layout, unsigned level, struct buf *out);
/* The number of a node that is one. */
struct str jtree_write_number(const struct jtree_node *node, char buf[static JTREE_NUMBER_BYTES]);

#endif

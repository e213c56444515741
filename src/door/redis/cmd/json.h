/*
 * What commands on documents share: paths, finding nodes, answers. A path that begins with $ leads
 * to any number of nodes, and answers are arrays; any other one is of the first version of
 * RedisJSON ("legacy"), and answers are about one node.
 */
#ifndef FROND_DOOR_REDIS_CMD_JSON_H
#define FROND_DOOR_REDIS_CMD_JSON_H

#include "door/redis/cmd/data.h"
#include "model/timed/items/json.h"
#include "jtree/jsonpath.h"

struct json_path {
	const struct jsonpath *path;
	struct str text; /* as it was given */
	bool legacy;
};

/* The path of argument `i`, or the root as a legacy path. STATUS_ANSWERED. */
MUST_USE enum status json_path(struct call *c, size_t i, struct json_path *ret);

/* The JSON value that argument `i` is. STATUS_ANSWERED. */
MUST_USE enum status json_value(struct call *c, size_t i, struct jtree_node **ret);

/* The document of argument `i`; `ret->root` NULL: it is not there. STATUS_ANSWERED. */
MUST_USE enum status json_open(struct call *c, size_t i, struct timed_json *ret);
/* Both, of a command that takes a key and at most a path behind it. STATUS_ANSWERED. */
MUST_USE enum status json_begin(struct call *c, struct json_path *path, struct timed_json *ret);

/* Of a set of kinds, the bit of one. */
#define JSON_KIND(kind) (1u << (kind))
#define JSON_NUMBERS    (JSON_KIND(JTREE_INT) | JSON_KIND(JTREE_UNSIGNED) | JSON_KIND(JTREE_DOUBLE))

/* The nodes that a path leads to. */
MUST_USE enum status json_find(struct call *c, struct timed_json *j, const struct jsonpath *path,
			       struct jsonpath_matches *ret);

/* What a command works on, and what it answers for each node. */
struct json_targets {
	struct jtree_node **nodes; /* NULL: one of another kind, for which null is answered */
	size_t count;
	struct {
		bool there;
		int64_t n;
	} * results;
};

/*
 * The nodes that a path leads to. Where one is not of these kinds, a JSONPath has NULL in its
 * place, and a legacy path leaves it out; a legacy path that leads to none of these kinds is an
 * error, whose text ends with `what`, such as "not an array". STATUS_ANSWERED also if the key is
 * not there.
 */
MUST_USE enum status json_targets(struct call *c, struct timed_json *j,
				  const struct json_path *path, unsigned kinds, const char *what,
				  struct json_targets *ret);
/*
 * The same where each is to get values: those are neither too deep there, nor is there no room for
 * them in leaves.
 */
MUST_USE enum status json_targets_for(struct call *c, struct timed_json *j,
				      const struct json_path *path, unsigned kinds,
				      const char *what, struct jtree_node *const *values,
				      size_t value_count, struct json_targets *ret);
/* Answers the results: an array, or of a legacy path the last one. */
void json_reply_targets(struct call *c, const struct json_path *path, const struct json_targets *t);

/* Nodes that go or get other values: each once, and none below another one. */
MUST_USE enum status json_topmost(struct call *c, struct jsonpath_matches *m);

/* Writes what has changed, with the event. */
MUST_USE enum status json_changed(struct call *c, size_t i, struct timed_json *j,
				  const char *event);

/* STATUS_ANSWERED if a value is too deep for a place with so many containers around it. */
MUST_USE enum status json_check_depth(struct call *c, unsigned depth,
				      const struct jtree_node *value);

/* "ERR Path '…' does not exist", with "or …" behind it. */
MUST_USE enum status json_no_path(struct call *c, const struct json_path *path, const char *what);
MUST_USE enum status json_no_key(struct call *c);

/* Appends the text of a node, of which more may have to be read. */
MUST_USE enum status json_write(struct timed_json *j, struct jtree_node *node,
				const struct jtree_layout *layout, unsigned level, struct buf *out);
/* Answers it. */
MUST_USE enum status json_reply_node(struct call *c, struct timed_json *j, struct jtree_node *node);
/* A buffer for an answer. */
struct buf json_buf(struct call *c);

#endif

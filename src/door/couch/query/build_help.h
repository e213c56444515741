/* Requests that help to build the index that they need. */
#ifndef FROND_DOOR_COUCH_QUERY_BUILD_HELP_H
#define FROND_DOOR_COUCH_QUERY_BUILD_HELP_H

#include "door/couch/query/index_def.h"

/*
 * Does up to `steps` steps of the index's build, if it is being built, as long as the clock is
 * before `until_ns` (clock_mono_ns()). What is left, or fails, is built in the background. The
 * caller holds no transaction.
 */
void query_build_help(struct couch_req *r, const struct query_index *index, unsigned steps,
		      uint64_t until_ns);

#endif

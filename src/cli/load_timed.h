/*
 * frond load of what frond dump has written of a database of rows or of Redis's clients. Lines are
 * applied in batches, a transaction for each batch. All of it belongs to one thread.
 */
#ifndef FROND_CLI_LOAD_TIMED_H
#define FROND_CLI_LOAD_TIMED_H

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/load_files.h"
#include "cli/rows.h"
#include "model/timed/items/items.h"

enum {
	LOAD_TIMED_BATCH_BYTES = 256 *
				 1024, /* of the lines of one transaction; one may have more */
};

/* Loads the files. Returns the exit code of the command. */
int load_timed(const struct load_request *request);

/* A line of a dump, taken apart. */
struct load_line {
	struct json_member *members;
	size_t count;
	struct arena *arena;
	struct err *err;
};

/* The member's number. `*ret` stays what it is if there is no such member. STATUS_INVALID. */
MUST_USE enum status load_line_u64(const struct load_line *line, const char *name, uint64_t *ret);

/*
 * The elements of the member, a list; none if there is no such member. STATUS_INVALID, also for a
 * member that is missing where the line `needs` it.
 */
MUST_USE enum status load_line_list(const struct load_line *line, const char *name, bool needs,
				    struct json_value **ret, size_t *ret_count);

/* The member's text; `ret->ptr` is NULL if there is no such member. STATUS_INVALID. */
MUST_USE enum status load_line_text(const struct load_line *line, const char *name,
				    struct str *ret);
/* True if the member is there, and true. */
bool load_line_is_true(const struct load_line *line, const char *name);

/* Applies a line about a row. */
MUST_USE enum status load_rows_line(struct timed *t, const struct load_line *line);

/*
 * Applies a line about an item. `last` is the item of the line before it in the same transaction,
 * if `*has_last`, and becomes this one's.
 */
MUST_USE enum status load_items_line(struct timed *t, const struct load_line *line,
				     struct timed_item *last, bool *has_last);

#endif

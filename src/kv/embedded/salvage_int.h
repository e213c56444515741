/*
 * The parts of a salvage: which files there are (salvage_files.c), their entries as one ordered
 * stream (salvage_merge.c), and the new store (salvage.c). Threading: one thread.
 */
#ifndef FROND_KV_EMBEDDED_SALVAGE_INT_H
#define FROND_KV_EMBEDDED_SALVAGE_INT_H

#include "kv/embedded/raw.h"
#include "kv/salvage.h"

enum {
	SALVAGE_ARENA_BYTES = 2000 * 1024 * 1024, /* of what logs have, above all */
};

/* ---- Files ---- */

struct salvage_table {
	uint64_t number;
	const char *name;
	bool present; /* in the directory */
	bool listed;  /* the manifest has it: then the bounds are those of its keys */
	struct str smallest;
	struct str largest;
	bool taken; /* it was read */
	struct raw_table raw;
};

struct salvage_files {
	int dir;
	const struct kv_salvage_how *how;
	uint64_t bytes; /* that were read, */
	uint64_t total; /* of so many */
	struct arena *arena;
	struct salvage_table *tables; /* by their numbers */
	size_t table_count;
	size_t table_cap;
	struct raw_log *logs; /* by their numbers */
	size_t log_count;
	size_t log_cap;
	bool has_manifest; /* it tells which tables count */
	bool torn;         /* the newest log ends in a write that was not finished */
};

/* A stretch of keys of which something is not known, or is deleted. */
struct salvage_span {
	struct str begin;  /* the first key */
	struct str end;    /* the first one behind it; ptr NULL: there is none */
	uint64_t sequence; /* a deletion: of what is older */
	uint64_t keys;     /* a loss: how many were found in it */
	const char *text;  /* of a loss */
	bool has_keys;     /* of a loss: the bounds mean something */
};

/* A growing list of them in the arena. */
struct salvage_spans {
	struct salvage_span *all;
	size_t count;
	size_t cap;
};

MUST_USE enum status salvage_spans_add(struct salvage_spans *spans, struct arena *arena,
				       const struct salvage_span *span);

/*
 * Finds all files in the directory at `path`, and reads the tables' places and the logs. `scratch`:
 * a directory of which the manifest's copy is read. Tells of what is lost. STATUS_NOT_FOUND if no
 * file is a store's.
 */
MUST_USE enum status salvage_files_read(struct salvage_files *files, const char *path,
					const char *scratch, struct salvage_spans *losses,
					struct err *err);

/* Tells how far it is, if somebody is to be told. */
void salvage_files_tell(const struct salvage_files *files, uint64_t keys);

/* ---- The stream ---- */

/* A pair that the store has. Borrowed for the call. */
typedef enum status salvage_take(void *arg, struct str key, struct str value, struct err *err);

/*
 * Gives away the newest state of each key that is not deleted, in the order of keys, and counts
 * those that lie in each loss. Orders the losses by their first keys.
 */
MUST_USE enum status salvage_merge(struct salvage_files *files, struct salvage_spans *losses,
				   salvage_take *take, void *arg, struct err *err);

/* The function of the engine. */
MUST_USE enum status emb_salvage(struct str source, struct str target,
				 const struct kv_salvage_how *how, struct kv_salvage_sum *ret,
				 struct err *err);

#endif

/*
 * What operators have a store do: compact.c, estimate.c, backup.c. From any thread; all of it
 * blocks for as long as the disk takes.
 */
#ifndef FROND_KV_EMBEDDED_UPKEEP_H
#define FROND_KV_EMBEDDED_UPKEEP_H

#include "kv/embedded/embedded_int.h"

enum status emb_compact(struct kv_store *base, struct err *err);
/* Writes what is in memory into tables, and waits for that. In the gate, or as the only user. */
MUST_USE enum status emb_compact_flush(struct emb_store *store, struct err *err);

/* See kv_estimate_bytes(). */
enum status emb_estimate_bytes(struct kv_store *base, struct str begin, struct str end,
			       uint64_t *ret);
enum status emb_backup_create(struct kv_store *base, const char *dir, struct kv_backup *ret,
			      struct err *err);
enum status emb_backup_restore(const char *dir, uint32_t id, struct str address,
			       const struct kv_restore *how, struct kv_backup *ret,
			       struct err *err);
/* Applies a log behind the version of a store that nobody else uses. */
enum status emb_log_forward(struct kv_store *base, struct kv_restore_log *log, struct err *err);

#endif

/*
 * What requests do in the worlds of between.h: the functions that tables of operations name, and
 * what prepares a world for them.
 */
#ifndef FROND_TESTS_MODEL_BETWEEN_OPS_H
#define FROND_TESTS_MODEL_BETWEEN_OPS_H

#include "between.h"

enum {
	OP_TINY = 4, /* keys of a range of counters, for op_tend() */
};

/* Edits, or without `json` deletes: `id`, parent `rev`. */
void op_edit(struct between_world *w, const struct between_op *op, struct buf *said);
/* Replicates the history `rev`, and `more` beside it. */
void op_copy(struct between_world *w, const struct between_op *op, struct buf *said);
/*
 * New documents with ascending ids, `id` in their midst, or copies of the history `rev`: so many
 * that one read tells which of them are new.
 */
void op_load(struct between_world *w, const struct between_op *op, struct buf *said);
/* Purges `rev`, and `more`. */
void op_purge(struct between_world *w, const struct between_op *op, struct buf *said);
/* An edit that keeps the attachment "kept", and has a new one of the content `more`. */
void op_attach(struct between_world *w, const struct between_op *op, struct buf *said);
/* An edit that takes over what was uploaded. */
void op_publish(struct between_world *w, const struct between_op *op, struct buf *said);
void op_sweep(struct between_world *w, const struct between_op *op, struct buf *said);
void op_give_up(struct between_world *w, const struct between_op *op, struct buf *said);
void op_upload_more(struct between_world *w, const struct between_op *op, struct buf *said);
void op_local_put(struct between_world *w, const struct between_op *op, struct buf *said);
void op_local_delete(struct between_world *w, const struct between_op *op, struct buf *said);
/* Writes down what `read` reads. */
void op_note(struct between_world *w, const struct between_op *op, struct buf *said);
void op_reader_add(struct between_world *w, const struct between_op *op, struct buf *said);
/* To the newest purge, or with `rev` to the oldest. */
void op_reader_advance(struct between_world *w, const struct between_op *op, struct buf *said);
void op_reader_remove(struct between_world *w, const struct between_op *op, struct buf *said);
void op_limit_purges(struct between_world *w, const struct between_op *op, struct buf *said);
void op_trim(struct between_world *w, const struct between_op *op, struct buf *said);
void op_limit_revs(struct between_world *w, const struct between_op *op, struct buf *said);
void op_tend(struct between_world *w, const struct between_op *op, struct buf *said);
/* Writes by the description `known`, which knows of old ranges alone. */
void op_put_known(struct between_world *w, const struct between_op *op, struct buf *said);
void op_index_add(struct between_world *w, const struct between_op *op, struct buf *said);
void op_index_remove(struct between_world *w, const struct between_op *op, struct buf *said);
/* Creates an index by the description of the world. */
void op_index_add_known(struct between_world *w, const struct between_op *op, struct buf *said);
/* Clears `rev` entries of an index that is dropped. */
void op_index_clear_some(struct between_world *w, const struct between_op *op, struct buf *said);
void op_build_all(struct between_world *w, const struct between_op *op, struct buf *said);
void op_build(struct between_world *w, const struct between_op *op, struct buf *said);

/* What op_note() reads. */
enum status op_read_doc(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			struct buf *out);
enum status op_read_together(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			     struct buf *out);
enum status op_read_head(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			 struct buf *out);
enum status op_read_tree(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			 struct buf *out);
enum status op_read_winner(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			   struct buf *out);
enum status op_read_descent(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			    struct buf *out);
enum status op_read_att(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			struct buf *out);
enum status op_read_local(struct between_call *c, struct kv_tx *tx, const struct catalog_db *db,
			  struct buf *out);

/* Uploads one chunk and more; finishes the upload. */
void op_upload_begin(struct between_world *w);
void op_upload_finish(struct between_world *w);

#endif

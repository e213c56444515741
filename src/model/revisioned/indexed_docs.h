/* What builds and checks of indexes need of documents. */
#ifndef FROND_MODEL_INDEXED_DOCS_H
#define FROND_MODEL_INDEXED_DOCS_H

#include "index/engine/build.h"
#include "model/revisioned/read.h"

/* For index_documents_register(). */
extern const struct index_documents rev_indexed_documents;

/*
 * The document as entries are made of it. With its revision, if the database has an index that
 * needs it; that is in the arena. Everything else is borrowed. STATUS_LIMIT.
 */
MUST_USE enum status rev_index_source(const struct catalog_db *db, struct str id,
				      const struct rev_doc *doc, struct arena *arena,
				      struct index_source *ret);

/* Whether documents with this id may have entries: all but design documents. */
bool rev_id_is_indexed(struct str id);

#endif

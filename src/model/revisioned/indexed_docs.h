/* What builds and checks of indexes need of documents. */
#ifndef FROND_MODEL_INDEXED_DOCS_H
#define FROND_MODEL_INDEXED_DOCS_H

#include "index/engine/build.h"

/* For index_documents_register(). */
extern const struct index_documents rev_indexed_documents;

/* Whether documents with this id may have entries: all but design documents. */
bool rev_id_is_indexed(struct str id);

#endif

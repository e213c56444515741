/* What views need of documents (index/view/documents.h). */
#ifndef FROND_MODEL_VIEWED_DOCS_H
#define FROND_MODEL_VIEWED_DOCS_H

#include "index/view/documents.h"

extern const struct view_documents rev_viewed_documents;

#endif

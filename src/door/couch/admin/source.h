/* Reads a document's body in hooks that the model calls (model/revisioned/write.h). */
#ifndef FROND_DOOR_COUCH_ADMIN_SOURCE_H
#define FROND_DOOR_COUCH_ADMIN_SOURCE_H

#include "base/arena.h"
#include "index/engine/source.h"

/* The members of the body as JSON text, in the arena. STATUS_LIMIT. */
MUST_USE enum status couch_source_text(const struct index_source *source, struct arena *arena,
				       struct str *ret);

#endif

/*
 * Documents with revisions: what a write means to CouchDB's clients. This header includes all of
 * the model's; a caller may include those that it needs instead.
 *
 * A database's name maps to a short prefix P (catalog/); its subspaces:
 *
 *     (P, ALL_DOCS, DocID)        → format, RevPos, RevHash
 *     (P, CHANGES, Incarnation, Versionstamp)
 *                                 → format, DocID, RevPos, RevHash, BranchCount, NotDeleted
 *     (P, REVISIONS, DocID, NotDeleted, RevPos, RevHash)
 *                                 → winner: format, (Incarnation, Versionstamp), BranchCount,
 *                                           (ancestors…)
 *                                   others: format, null, null, (ancestors…)
 *     (P, DOCUMENTS, DocID, NotDeleted, RevPos, RevHash)
 *                                 → 1; + path… → leaf; or 2, the packed body; or 3, the text
 *                                   of the body in chunks; + null, name → an attachment
 *     (P, LOCAL, DocID)           → form, revision number, body; + path… → leaf
 *     (P, ATTACHMENTS, "data", id, n) → REV_ATT_CHUNK_BYTES; the last chunk may have less
 *     (P, ATTACHMENTS, "refs", id)    → little-endian counter of the revisions that have it
 *     (ROOT, 3, P, id)            → format, begun, last (ms): an upload that no revision has yet
 *     (P, INDEXES, …)             reserved
 *     (P, CONFIG, name)           → value
 *     (P, STATS, name)            → little-endian counter, changed by atomic addition
 *     (P, STATS, "changed")       → Versionstamp of the newest change: what feeds watch
 *     (P, STATS, "purged")        → the Sequence of the newest purge
 *     (P, PURGES, "records", Incarnation, Versionstamp, part)
 *                                 → format, purge's id, DocID, RevPos, RevHash, …: what was purged
 *     (P, PURGES, "readers", name)    → format, Sequence: how far a reader of these has read
 *     (P, PURGES, "cleared")          → format, Sequence: of the newest that has been cleared
 *     (P, TALLIES, list, lo, hi)  → little-endian counter: keys of ALL_DOCS or CHANGES in a range
 *     (P, PARTITIONS, "partition:", counter)
 *                                 → little-endian counter, in a partitioned database
 *
 * The winner is always the last key of its document in REVISIONS, and only its value carries the
 * Sequence. CHANGES carries the winner's deleted flag, whichever branch was edited.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. Everything returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_REVISIONED_H
#define FROND_MODEL_REVISIONED_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "catalog/name_range.h"
#include "catalog/seq.h"
#include "doc/doc.h"
#include "doc/packed.h"
#include "kv/kv.h"
#include "model/revisioned/att.h"
#include "model/revisioned/database.h"
#include "model/revisioned/list.h"
#include "model/revisioned/local.h"
#include "model/revisioned/partition.h"
#include "model/revisioned/purges.h"
#include "model/revisioned/read.h"
#include "model/revisioned/revision.h"
#include "model/revisioned/write.h"

#endif

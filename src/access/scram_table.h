/*
 * SCRAM's keys of passwords that are being set, until the transaction that sets them looks for
 * them.
 *
 * Both verifiers are made where the plain password is seen. CouchDB's goes through a document, and
 * may come to the record by another fiber than the one that hashed it; SCRAM's keys are in no
 * document. The table is small and forgets the oldest. Keys that are lost are made again at the
 * next login.
 *
 * Thread-safe.
 */
#ifndef FROND_ACCESS_SCRAM_TABLE_H
#define FROND_ACCESS_SCRAM_TABLE_H

#include "access/verifier.h"

enum {
	SCRAM_TABLE_ENTRIES = 1024,
};

void scram_table_add(const struct verifier *of, const struct scram *scram);
bool scram_table_find(const struct verifier *of, struct scram *ret);

#endif

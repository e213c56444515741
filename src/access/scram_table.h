/*
 * Holds the SCRAM keys of a password that is being set, until the transaction that sets it takes
 * them.
 *
 * Both verifiers are made while the plain password is known. CouchDB's verifier travels in the
 * document, and another fiber may write the person's record from it. SCRAM's keys must not be in a
 * document, so they wait here. The table is small and forgets the oldest keys. A person whose keys
 * were forgotten gets new ones at the next login.
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

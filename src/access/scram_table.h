/*
 * Holds SCRAM keys that no record has.
 *
 * Two kinds of people need that. When a person's password is set, both verifiers are made while the
 * plain password is known. CouchDB's verifier travels in the document, and another fiber may write
 * the person's record from it. SCRAM's keys must not be in a document, so they wait here until that
 * transaction takes them. A person whose keys were forgotten gets new ones at the next login.
 *
 * Administrators are in the settings, which have one hash of each password and no keys. Their keys
 * are made when the plain password is known, at the start or at a login, and stay in the memory of
 * the process. They are made only if a door has asked for them, because they take as long as the
 * hash.
 *
 * Both tables are small and forget the oldest keys. Thread-safe.
 */
#ifndef FROND_ACCESS_SCRAM_TABLE_H
#define FROND_ACCESS_SCRAM_TABLE_H

#include "access/verifier.h"

enum {
	SCRAM_TABLE_ENTRIES = 1024,
	SCRAM_ADMIN_ENTRIES = 128, /* twice as many as there can be administrators */
};

void scram_table_add(const struct verifier *of, const struct scram *scram);
bool scram_table_find(const struct verifier *of, struct scram *ret);

/* From now on the keys of administrators are made and kept. Before their passwords are hashed. */
void scram_admins_want(void);
bool scram_admins_are_wanted(void);

void scram_admins_add(const struct verifier *of, const struct scram *scram);
bool scram_admins_find(const struct verifier *of, struct scram *ret);

#endif

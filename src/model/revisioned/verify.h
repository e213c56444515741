/*
 * The check of one revisioned database against everything that has to hold between its keys, as
 * README.md lists it (catalog/verify.h checks stores). Memory does not grow with the database:
 * ranges are gone through side by side where their order agrees, and single keys are looked up
 * where it does not.
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_MODEL_VERIFY_H
#define FROND_MODEL_VERIFY_H

#include "catalog/check.h"

/* The kinds of findings that revisioned databases have, beside those of every database. */
#define REV_FINDING_WINNER       "winner"       /* a Sequence at no winner, or none at one */
#define REV_FINDING_BRANCH_COUNT "branch_count" /* it counts other branches than there are */
#define REV_FINDING_SEQUENCE     "sequence"     /* from the future: later ones may sort before it */
#define REV_FINDING_CHANGE       "change"       /* no entry in CHANGES for a winner, or another's */
#define REV_FINDING_CHANGE_STRAY "change_stray" /* one that no winner has the Sequence of */
#define REV_FINDING_ENTRY        "entry"        /* none in ALL_DOCS for a live winner, or not its */
#define REV_FINDING_ENTRY_STRAY  "entry_stray"  /* one for no document, or a deleted one */
#define REV_FINDING_COUNTER      "counter"      /* a counter does not equal the count */
#define REV_FINDING_PARTITION    "partition"    /* an id in no partition, or wrong sizes */
#define REV_FINDING_BODY         "body"         /* a live head has no body */
#define REV_FINDING_BODY_STRAY   "body_stray"   /* a body of what is no head */
#define REV_FINDING_BODY_ROOT    "body_root"    /* a body's leaves lie under no root */
#define REV_FINDING_BODY_CORRUPT "body_corrupt" /* leaves make no document, or are not known */
#define REV_FINDING_ATT          "attachment"   /* it has not the data that it should */
#define REV_FINDING_ATT_COUNT    "attachment_count" /* its counter is not what refers to it */
#define REV_FINDING_INDEX        "index"            /* an entry is missing, or not its document's */
#define REV_FINDING_INDEX_STRAY  "index_stray"      /* an entry that no document has */
#define REV_FINDING_VIEW         "view"  /* rows, sums and lists of a view do not agree */
#define REV_FINDING_PURGE        "purge" /* the record of purges contradicts itself */
#define REV_FINDING_ATT_STRAY    "attachment_stray" /* its data, which no revision has */

/* Checks v->db. Findings are no failure. */
MUST_USE enum status rev_verify(struct catalog_verify *v);

/* (ROOT, 3, P, id): checks the record of an upload. `key` is at the number. */
void rev_verify_upload(struct catalog_verify *v, struct tuple_reader key,
		       const struct kv_pair *pair);

#endif

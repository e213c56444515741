/*
 * A transaction that reads at a later version of the store from here on (kv/refresh.h) gets a later
 * moment, too: it sees writes that came after its first one, and what it writes over them has to be
 * later than they are.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_MODEL_TIMED_RENEW_H
#define FROND_MODEL_TIMED_RENEW_H

#include "model/timed/timed.h"

/*
 * False: it waits for the answer of a read; or the database keeps its past, in which all writes of
 * a transaction have one moment; or the caller has fixed that moment.
 */
bool timed_can_renew(const struct timed *t);
/* The moment is fixed anew when it is wanted next. */
void timed_renew(struct timed *t);

#endif

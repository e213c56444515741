/*
 * Moving a transaction that is open to a later version of the store, as if all that it has read had
 * been read then. Whoever has waited for somebody else's commit so reads what that has written, and
 * does not begin anew.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_KV_REFRESH_H
#define FROND_KV_REFRESH_H

#include "kv/kv.h"

enum {
	/* A transaction that has read or written more stays where it is: all is looked up. */
	KV_REFRESH_BYTES = 64 * 1024,
};

/*
 * True: the transaction reads at the newest version from now on, since nothing that it has read,
 * other than by snapshot reads, was changed up to there. Its own writes stay, and so do answers
 * that it has. False: it reads where it did before. So it is if something has changed, where the
 * store cannot tell, with a transaction that cannot write or has too much in it, and on a cluster,
 * which fixes the version with the first read.
 */
bool kv_refresh(struct kv_tx *tx);

#endif

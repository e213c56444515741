/*
 * A hint for a transaction that reads many places one after the other and is then over, without
 * waiting for a client in between. The engine then keeps from read to read what makes the next one
 * quicker, such as an iterator, although that holds memory and files until the transaction has
 * ended. One that may write has that in any case.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_KV_BRIEF_H
#define FROND_KV_BRIEF_H

#include "kv/kv.h"

/* Before the first read. Holds for all attempts. */
void kv_tx_brief(struct kv_tx *tx);

#endif

/* Reads lists in the settings of TLS, also in the Erlang form of CouchDB's configuration. */
#ifndef FROND_NET_TLS_LIST_H
#define FROND_NET_TLS_LIST_H

#include "base/str.h"

/*
 * Removes the next element of a list with commas. Erlang's spelling is read, too: brackets around
 * the list and quotes around an element, as in ['tlsv1.2', "tlsv1.3"]. Empty elements are skipped.
 * Returns false at the end of the list.
 */
bool tls_list_next(struct str *rest, struct str *ret);

#endif

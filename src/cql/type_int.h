/* What is said of native types, for the files that print and parse them. */
#ifndef FROND_CQL_TYPE_INT_H
#define FROND_CQL_TYPE_INT_H

#include "cql/type.h"

struct cql_native {
	const char *name;
	const char *marshal;  /* the class, behind CQL_MARSHAL */
	unsigned char option; /* of the protocol */
	unsigned char bytes;  /* of every value; 0: they differ */
};

#define CQL_MARSHAL "org.apache.cassandra.db.marshal."

/* By kind. */
extern const struct cql_native cql_natives[CQL_NATIVE_COUNT];

#endif

/* What "frond verify" finds, as a line for people. */
#ifndef FROND_CLI_FINDING_H
#define FROND_CLI_FINDING_H

#include "catalog/verify.h"

/* On standard output: the kind, the database, the part of it, the key, and what is wrong. */
void finding_print(const struct catalog_finding *finding);

#endif

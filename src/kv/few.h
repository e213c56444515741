/* Scans of which few pairs are likely to be wanted. */
#ifndef FROND_KV_FEW_H
#define FROND_KV_FEW_H

#include "kv/kv.h"

/*
 * As kv_scan_init(), for a caller that will probably stop after `first` pairs. The first stretch
 * has so many, and each later one eight times as many, up to about a thousand; none is asked for
 * ahead before they are that long. A `first` above a thousand makes the first stretch that long
 * only without the option `ahead`. 0: the caller wants all pairs.
 */
MUST_USE enum status kv_scan_init_few(struct kv_scan *scan, struct kv_tx *tx, struct str begin,
				      struct str end, const struct kv_range_options *options,
				      size_t first);

/* What has come tells that about so many more pairs are wanted: the next stretch gets them. */
void kv_scan_expect(struct kv_scan *scan, size_t pairs);

#endif

/* Scans of which few pairs are likely to be wanted. */
#ifndef FROND_KV_FEW_H
#define FROND_KV_FEW_H

#include "kv/kv.h"

/*
 * As kv_scan_init(), where `first` pairs are likely to be wanted, and others maybe. The first
 * stretch has no more, later ones have eight times as many each, and none is asked for ahead before
 * there are about a thousand in one. More than a thousand count only without the option `ahead`,
 * and behind these comes a stretch of a thousand. 0: as many as there are.
 */
MUST_USE enum status kv_scan_init_few(struct kv_scan *scan, struct kv_tx *tx, struct str begin,
				      struct str end, const struct kv_range_options *options,
				      size_t first);

#endif

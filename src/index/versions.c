#include "index/versions.h"

#include <stddef.h>
#include <stdio.h>
#include <unicode/ucol.h>

/* Writes a version without the zeros at its end, but with two numbers at least: "72.1". */
static void
versions_write(const UVersionInfo version, char *ret, size_t size)
{
	size_t count = U_MAX_VERSION_LENGTH;
	int len = 0;

	while (count > 2 && version[count - 1] == 0)
		count--;
	for (size_t i = 0; i < count && len >= 0 && (size_t)len < size; i++)
		len += snprintf(ret + len, size - (size_t)len, i ? ".%u" : "%u", version[i]);
}

void
index_versions_read(struct index_versions *ret)
{
	UErrorCode code = U_ZERO_ERROR;
	UVersionInfo version;
	UCollator *root;

	*ret = (struct index_versions){ .library = "" };
	u_getVersion(version);
	versions_write(version, ret->library, sizeof(ret->library));
	root = ucol_open("", &code);
	if (U_FAILURE(code))
		return;
	ucol_getUCAVersion(root, version);
	versions_write(version, ret->algorithm, sizeof(ret->algorithm));
	ucol_getVersion(root, version);
	versions_write(version, ret->collator, sizeof(ret->collator));
	ucol_close(root);
}

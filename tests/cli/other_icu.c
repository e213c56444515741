/*
 * Another ICU, for a program under test: preloaded, it takes the place of the function that tells
 * ICU's version, which is $FROND_TEST_ICU.
 */
#include <stdlib.h>
#include <string.h>
#include <unicode/uversion.h>

U_CAPI void U_EXPORT2
u_getVersion(UVersionInfo version)
{
	const char *number = getenv("FROND_TEST_ICU");

	memset(version, 0, U_MAX_VERSION_LENGTH);
	version[0] = (uint8_t)(number ? atoi(number) : 1);
}

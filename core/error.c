/* SPDX-License-Identifier: MIT
 *
 * error.c: names and sentences of the statuses, made from the one list in codetimer.h; and the version.
 */
#include "codetimer.h"

const char *ct_status_name(int status) {
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
    case value: return #name;
        CT_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    default: return "CT_E?";
    }
}

const char *ct_status_text(int status) {
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
    case value: return text;
        CT_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    default: return "unknown status";
    }
}

const char *ct_version(void) { return CT_VERSION; }

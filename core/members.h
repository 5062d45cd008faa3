/* SPDX-License-Identifier: MIT
 *
 * members.h: floor 2, what the rest of the core needs of a members list (the language is described in
 * codetimer_live.h).
 */
#ifndef CT_MEMBERS_H
#define CT_MEMBERS_H

#include <stddef.h>

#include "codetimer.h"

/* Whether one pattern (without "!") matches a member. The pattern is well-formed. */
int ct__pattern_matches(const char *pattern, size_t pattern_length, const char *member, size_t member_length);

/* The text of a list. */
const char *ct__members_text(const ct_members *members, size_t *length);

#endif

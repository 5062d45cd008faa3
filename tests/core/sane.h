/* SPDX-License-Identifier: MIT
 *
 * sane.h: what must hold of every result, comparison and text, whatever the clock did. NULL, or what does not.
 */
#ifndef SANE_H
#define SANE_H

#include "codetimer.h"

const char *sane_result(const ct_result *result);
const char *sane_comparison(const ct_comparison *comparison);

/* Every report of it in every style, and every file. */
const char *sane_texts_of_result(const ct_result *result);
const char *sane_texts_of_comparison(const ct_comparison *comparison);

#endif

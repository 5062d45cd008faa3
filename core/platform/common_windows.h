/* SPDX-License-Identifier: MIT
 *
 * common_windows.h: what the Windows files share: the version of Windows they are written for (7), and Wine.
 */
#ifndef CT_COMMON_WINDOWS_H
#define CT_COMMON_WINDOWS_H

#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0601
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "platform.h"

/* 1 under Wine, which answers some questions in its own way. */
int ct__os_is_wine(void);

#endif

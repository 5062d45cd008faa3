/* SPDX-License-Identifier: MIT
 *
 * shm_windows.c: counters are not published on Windows yet. A file that is mapped there can neither be lengthened under
 * its mapping nor deleted, and the death of its owner shows otherwise; that has to be built and measured on the system
 * itself.
 */
#define NOT_HERE "live counters of other processes are not supported on Windows yet: counted in this process only"
#include "shm_none.h"

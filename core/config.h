/* SPDX-License-Identifier: MIT
 *
 * config.h: floor 2, the file that the members list is followed in. All functions here are called without the lock.
 */
#ifndef CT_CONFIG_H
#define CT_CONFIG_H

/* Reads what CODETIMER_CONFIG names, the first time that it is called. */
void ct__config_begin(void);

/* Looks at the file, if that is due. */
void ct__config_look(void);

/* Whether there is a file or a provider. */
int ct__config_follows(void);

#endif

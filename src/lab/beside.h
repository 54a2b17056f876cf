/*
 * beside.h: a second box that lives while an attempt is made: lab_beside() in probe.h starts it.
 */
#ifndef MAYFLY_LAB_BESIDE_H
#define MAYFLY_LAB_BESIDE_H

struct beside;
void beside_end(struct beside *b); /* ends the box, and frees */

#endif

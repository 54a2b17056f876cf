/*
 * signals.h: the signals by which a person or a service manager ends a program, as a descriptor that becomes readable: so
 * that they end what is under way, boxes among it, and then the program, by one path.
 */
#ifndef MAYFLY_BASE_SIGNALS_H
#define MAYFLY_BASE_SIGNALS_H

/* For all threads that are made from now on. SIGPIPE is ignored. The signalfd, or -errno. */
int signals_watch(void);
/* 128+N for the signal that has come, which is taken; 0: none has. */
int signals_status(int signal_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_idle.h"

/*
 * Of Debian 12's modules: IO::Socket 1.49, Thread::Queue 3.14, EV 4.33, Mojolicious 9.31, AnyEvent 7.17, POE 1.370,
 * IO::Async 0.802, Net::Server 2.013, FCGI 0.82, SpamAssassin 4.0. Functions in C wait for those that are called here.
 */
const struct idle_rule perl_idle[] = {
        {.frame = "IO::Socket::accept", .within = 2}, /* with a timeout it calls IO::Select */
        {.frame = "Thread::Queue::dequeue", .within = 2},
        {.frame = "EV::run", .within = 1},
        {.frame = "Event::loop", .within = 1},
        {.frame = "Mojo::Reactor::Poll::one_tick", .within = 2},
        {.frame = "Mojo::Server::Prefork::_wait", .within = 3},
        {.frame = "AnyEvent::Loop::one_event", .within = 1},
        {.frame = "POE::Kernel::loop_do_timeslice", .within = 3},
        {.frame = "IO::Async::Loop::Select::loop_once", .within = 1},
        {.frame = "IO::Async::Loop::Poll::loop_once", .within = 3},
        {.frame = "IO::Async::Loop::Epoll::loop_once", .within = 2},
        {.frame = "Net::Server::accept", .within = 3},
        {.frame = "Net::Server::accept_multi_port", .within = 2},
        {.frame = "Net::Server::PreForkSimple::accept", .within = 1}, /* the lock of who accepts next */
        {.frame = "Net::Server::PreForkSimple::run_parent", .within = 1},
        {.frame = "Net::Server::PreFork::run_parent", .within = 2},
        {.frame = "Starman::Server::run_parent", .within = 2},
        {.frame = "FCGI::Accept", .within = 1},
        {.frame = "Mail::SpamAssassin::SpamdForkScaling::main_server_poll", .within = 6},
        {.frame = "Mail::SpamAssassin::SpamdForkScaling::wait_for_orders", .within = 3},
        {0},
};

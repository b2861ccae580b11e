# SPDX-License-Identifier: Apache-2.0
use strict; use IO::Async::Loop; use IO::Async::Timer::Periodic; use Future; my $l = IO::Async::Loop->new;
sub work { my $n = 0; $n += $_ for 1..1000; $n }
sub chain { my $i = shift; return Future->done(work()) if !$i; my $f = $l->later; return $f->then(sub { work(); chain($i-1) }) }
sub again { my $f; $f = chain(20)->on_ready(sub { undef $f; $l->later(\&again) }); } again() for 1..3; $l->run;

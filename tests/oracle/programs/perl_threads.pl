# SPDX-License-Identifier: Apache-2.0
use strict; use warnings; use threads; use threads::shared; use Thread::Queue;
my $in=Thread::Queue->new; my $out=Thread::Queue->new; my %stat:shared;
sub fib { my $n=shift; $n<2?$n:fib($n-1)+fib($n-2) }
sub handle { my $x=shift; my $r=fib(10+$x%6); { lock %stat; $stat{$x%7}++ } return $r }
my @w=map { threads->create(sub { while(defined(my $x=$in->dequeue)) { $out->enqueue(handle($x)) } }) } 1..3;
my $i=0; while(1) { $in->enqueue(++$i) for 1..20; $out->dequeue for 1..20; if ($i%400==0) { my $t=threads->create(sub { my $s=0; $s+=handle($_) for 1..5; $s }); $t->join } }

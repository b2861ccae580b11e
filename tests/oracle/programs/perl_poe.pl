# SPDX-License-Identifier: Apache-2.0
use strict; use warnings; use POE;
sub worker { my ($n)=@_; POE::Session->create(inline_states=>{ _start=>sub{ $_[KERNEL]->yield('work',0) }, work=>sub{ my ($k,$h,$i)=@_[KERNEL,HEAP,ARG0]; $h->{x}{$i%100}+=$i; my $s=join ',', map { $_*2 } grep { $_ & 1 } 1..20; $k->yield('work',$i+1); $k->delay('tick',0.01) if $i%10==0; }, tick=>sub { my @a = sort { $a <=> $b } map { ($_*7919)%101 } 1..50; $_[KERNEL]->call($_[SESSION],'sync',\@a) }, sync=>sub { my $t=0; $t+=$_ for @{$_[ARG0]}; $t } }); }
worker($_) for 1..5; POE::Kernel->run;

# SPDX-License-Identifier: Apache-2.0
use strict; use Template; my $t = Template->new; my $in = "[% BLOCK row %]<td>[% x | html %] [% x.length %]</td>[% END %][% FOREACH r IN rows %][% FOREACH c IN r %][% INCLUDE row x=c %][% END %][% END %][% f(3) %]";
while (1) { my $out=''; $t->process(\$in, {rows=>[map {[map {"<$_>"} 1..10]} 1..10], f=>sub { my $n = 0; $n += $_ for 1..100; $n }}, \$out) or die $t->error }

# SPDX-License-Identifier: Apache-2.0
use strict; use JSON::PP; my $j = JSON::PP->new->canonical->pretty;
my $data = { map { ("key$_" => [map { { n => $_, text => "some \"text\" $_", list => [1..$_ % 5] } } 1..10]) } 1..20 };
while (1) { my $text = $j->encode($data); my $back = $j->decode($text); $j->sort_by(sub { $JSON::PP::a cmp $JSON::PP::b })->encode($back); }

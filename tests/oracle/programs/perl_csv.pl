# SPDX-License-Identifier: Apache-2.0
use strict; use Text::CSV; use Data::Dumper; $Data::Dumper::Useperl = 1; $Data::Dumper::Sortkeys = 1; $ENV{PERL_TEXT_CSV} = 'Text::CSV_PP'; require Text::CSV_PP; my $c = Text::CSV_PP->new({binary => 1});
while (1) { for my $n (1..100) { $c->combine(map { "f,$_ \"$n\"" } 1..10); my $s = $c->string; $c->parse($s); my @f = $c->fields } my $t = Dumper({ map { $_ => [1..$_] } 1..20 }) }

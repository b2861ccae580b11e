# SPDX-License-Identifier: Apache-2.0
use strict; use Perl::Tidy; while (1) { Perl::Tidy::perltidy(source => $INC{'Perl/Tidy/Tokenizer.pm'} || $INC{'Perl/Tidy.pm'}, destination => \my $out, stderr => \my $err, argv => '-npro') }

# SPDX-License-Identifier: Apache-2.0
use strict; use Perl::Critic; my $c = Perl::Critic->new(-severity => 1, -profile => ''); while (1) { $c->critique($INC{'Perl/Critic.pm'}); $c->critique($INC{'PPI/Lexer.pm'}) }

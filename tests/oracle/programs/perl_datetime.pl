# SPDX-License-Identifier: Apache-2.0
use strict; use DateTime; use DateTime::Duration; while (1) { my $d = DateTime->new(year => 2020, month => 1, day => 1, time_zone => 'Europe/Berlin'); for (1..50) { $d->add(days => 7); my $s = $d->strftime('%Y-%m-%d %H:%M %Z'); my $x = $d < DateTime->new(year => 2021); } }

# Which cells of the matrix CI runs.
package Ci;
use strict;
use warnings;

my @cells = ();
my %is_in = map { $_ => 1 } @cells;

sub has { my ($name) = @_; return $is_in{$name} }

sub left_out { return 'none yet' }

1;

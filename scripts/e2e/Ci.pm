# Which cells of the matrix CI runs: those that have held in each of many runs, also with both cores busy, as far as a
# quarter of an hour on two cores has room for them. A cell that is not the same every time is not put here.
package Ci;
use strict;
use warnings;

my %cells = (
    'claude tui' => 'prompt prompt-61k',
    'codex tui'  => 'prompt prompt-61k',
);
my %is_in = map { my $head = $_; map { ("$head $_" => 1) } split / /, $cells{$head} } keys %cells;

# Whether CI runs the cell of this name ("claude tui prompt").
sub has { my ($name) = @_; return $is_in{$name} }

1;

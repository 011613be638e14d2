# Which cells of the matrix CI runs: those that have held in each of many runs, also with both cores busy, as far as a
# quarter of an hour on two cores has room for them. A cell that is not the same every time is not put here.
package Ci;
use strict;
use warnings;

my @both = qw(prompt prompt-61k pattern pattern-check pattern-prompt readme turn-end pause kill9 send-busy send-early
    send-late attach kill logs worktrees 429 529 limit 401 first-run-trust permission unanswered);
my %cells = (
    'claude tui' => [ @both, qw(first-run-bypass first-run-key compaction background fix-spawn tool-output) ],
    'codex tui'  => [ @both, 'first-run-login' ],
);
my %is_in = map { my $head = $_; map { ("$head $_" => 1) } @{ $cells{$head} } } keys %cells;

# Whether CI runs the cell of this name ("claude tui prompt").
sub has { my ($name) = @_; return $is_in{$name} }

1;

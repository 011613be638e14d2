#!/usr/bin/perl
# The driver of the matrix of real agent CLIs: chooses cells, runs them side by side, prints a row for each. It is started by
# scripts/e2e-agents.sh, whose head describes the options. SWARM names the program under test; PATH has the CLIs.
use strict;
use warnings;
use FindBin ();
use lib $FindBin::Bin;
use File::Path ();
use File::Spec ();
use File::Temp ();
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time sleep);
use CasesRun ();
use CasesTrouble ();
use CasesVerified ();
use Cell ();
use Ci ();
use Clis ();

$| = 1;
binmode STDOUT, ':encoding(UTF-8)';
my %opt = (cli => '', mode => '', case => '', runs => 1, jobs => 3, patience => 1, keep => '', busy => 0, ci => 0, list => 0);
while (@ARGV) {
    my ($word, $value) = split /=/, shift, 2;
    my ($key) = $word =~ /\A--(\w+)\z/;
    usage("unknown option '$word'") unless defined $key && exists $opt{$key};
    if ($key =~ /^(?:busy|ci|list)$/) { $opt{$key} = 1; next }
    $value //= shift // usage("$word needs a value");
    usage("$word needs a number above 0") if $key =~ /^(?:runs|jobs|patience)$/ && $value !~ /\A[1-9]\d*\z/;
    $opt{$key} = $value;
}

sub usage {
    print STDERR "e2e-agents.sh: $_[0]\n";
    exit 2;
}

# The longest that a cell may take, seconds; the cell is then ended and differs.
my $CELL_SECONDS = 420;

my (@busy, %running, %count, @differing);
my @rows  = (CasesRun::rows(), CasesTrouble::rows(), CasesVerified::rows());
my @cells = choose();
my $root  = File::Temp::mkdtemp('/tmp/swarm-e2e-XXXXXX');
my $keep  = $opt{keep} eq '' ? "$root/kept" : File::Spec->rel2abs($opt{keep});
my $began = time;
# The directory it was started in may go away meanwhile.
chdir '/';
my $main  = $$;
$SIG{INT} = $SIG{TERM} = sub { exit 130 };

if ($opt{list}) {
    print map { name_of($_) . ($_->{reason} ? "\tcannot be tried: $_->{reason}" : '') . "\n" } @cells;
    exit 0;
}
printf "%-9s %-7s %-17s %-9s expected (and what was seen, where it differs)\n", qw(CLI mode case result);
start_busy() if $opt{busy};
run_all();
my $bad = summary();
exit($bad ? 1 : 0);

# All cells that the options name.
sub choose {
    my %wanted = map { my $key = $_; $key => { map { $_ => 1 } split /,/, $opt{$key} } } qw(cli mode case);
    my $is = sub { my ($key, $value) = @_; return !%{ $wanted{$key} } || $wanted{$key}{$value} };
    my (@cells, %known);
    for my $cli (Clis::clis()) {
        $known{cli}{ $cli->{name} } = 1;
        for my $mode (grep { $cli->{$_} } qw(tui oneshot json)) {
            $known{mode}{$mode} = 1;
            for my $row (@rows) {
                $known{case}{ $row->{key} } = 1;
                next if $mode eq 'json' && !$row->{json};
                next unless $is->('cli', $cli->{name}) && $is->('mode', $mode) && $is->('case', $row->{key});
                my $reason = $row->{cannot} ? $row->{cannot}->($cli, $mode) : undef;
                $reason //= "$cli->{program} is not installed" if !$opt{list} && !in_path($cli->{program});
                my @variants = $row->{variants} && !$reason ? $row->{variants}->($cli) : ('');
                push @cells, map { { cli => $cli, mode => $mode, row => $row, variant => $_, reason => $reason } } @variants;
            }
        }
    }
    for my $key (qw(cli mode case)) {
        $known{$key}{$_} or usage("unknown $key '$_'") for keys %{ $wanted{$key} };
    }
    return @cells if !$opt{ci};
    $count{left_out}{"$_->{cli}{name} $_->{mode}"}++ for grep { !$_->{reason} && !Ci::has(name_of($_)) } @cells;
    return grep { Ci::has(name_of($_)) } @cells;
}

sub in_path { my ($program) = @_; return scalar grep { -x "$_/$program" } split /:/, $ENV{PATH} }

sub case_of { my ($cell) = @_; return $cell->{row}{key} . ($cell->{variant} ? "-$cell->{variant}" : '') }

sub name_of { my ($cell) = @_; return join ' ', $cell->{cli}{name}, $cell->{mode}, case_of($cell) }

# The factor for all limits of a cell.
sub patience { my ($cell) = @_; return $opt{patience} * ($cell->{cli}{slow} // 1) }

sub expected {
    my ($cell) = @_;
    my $expect = $cell->{row}{expect};
    return ref $expect ? $expect->($cell->{cli}, $cell->{mode}, $cell->{variant}) : $expect;
}

# Keeps all cores at work besides the matrix.
sub start_busy {
    my $cores = () = Cell::slurp('/proc/cpuinfo') =~ /^processor/mg;
    for (1 .. $cores) {
        my $pid = fork // die "cannot fork: $!\n";
        if (!$pid) { $SIG{TERM} = 'DEFAULT'; 1 while getppid == $main; POSIX::_exit(0) }
        push @busy, $pid;
    }
    return;
}

sub run_all {
    my @tasks;
    for my $cell (@cells) {
        $cell->{seen} = [];
        if ($cell->{reason}) { print_row($cell); next }
        push @tasks, map { { cell => $cell, run => $_ } } 1 .. $opt{runs};
    }
    while (@tasks || %running) {
        start_task(shift @tasks) while @tasks && keys %running < $opt{jobs};
        my $pid = waitpid -1, POSIX::WNOHANG();
        if ($pid > 0 && $running{$pid}) { end_task($pid) }
        elsif ($pid <= 0) { sleep 0.1 }
        for my $late (grep { time > $running{$_}{deadline} } keys %running) { Cell::signal_to('KILL', $late) }
    }
    return;
}

sub start_task {
    my ($task) = @_;
    my $cell = $task->{cell};
    # A short name: a socket lies below it.
    $task->{dir} = "$root/" . ++$count{tasks};
    $task->{deadline} = time + patience($cell) * $CELL_SECONDS + 120;
    my $pid = fork // die "cannot fork: $!\n";
    if ($pid) { $running{$pid} = $task; return }
    $SIG{INT} = $SIG{TERM} = 'DEFAULT';
    my $result = run_cell($cell, $task);
    Cell::put("$task->{dir}.seen", $result);
    POSIX::_exit(0);
}

# In a process of its own: what was seen, one line.
sub run_cell {
    my ($cell, $task) = @_;
    my $without = $cell->{row}{without} ? $cell->{row}{without}->($cell->{cli}, $cell->{variant}) : '';
    my $world = eval {
        Cell->new(
            dir => $task->{dir}, here => $FindBin::Bin, path => $ENV{PATH}, swarm => $ENV{SWARM}, cli => $cell->{cli},
            patience => patience($cell), mode => $cell->{mode}, variant => $cell->{variant}, without => $without,
        );
    } or return "cannot set up the cell: $@" =~ s/\s+/ /gr;
    my $limit = $CELL_SECONDS * patience($cell);
    my $seen  = eval {
        local $SIG{ALRM} = sub { die "did not end within $limit s\n" };
        alarm $limit;
        my $result = $cell->{row}{run}->($world);
        alarm 0;
        $result;
    } // "error: $@";
    alarm 0;
    $seen =~ s/\s+/ /g;
    $seen =~ s/ \z//;
    eval { $world->note("seen: $seen"); $world->evidence if $seen ne expected($cell); 1 } or $seen .= " (evidence: $@)";
    eval { $world->finish; 1 } or $seen .= " (clean-up: $@)";
    return $seen;
}

sub end_task {
    my ($pid) = @_;
    my $task = delete $running{$pid};
    my $cell = $task->{cell};
    Cell::end_processes($task->{dir});
    my $seen = Cell::slurp("$task->{dir}.seen");
    $seen = 'the cell ended without a result' if $seen eq '';
    utf8::decode($seen);
    push @{ $cell->{seen} }, $seen;
    if ($seen ne expected($cell)) { keep($task) }
    File::Path::remove_tree($task->{dir}, "$task->{dir}.seen");
    print_row($cell) if @{ $cell->{seen} } == $opt{runs};
    return;
}

# Keeps what explains a cell that differs: its log, captures, the daemon's log, what the model got.
sub keep {
    my ($task) = @_;
    my $to = "$keep/" . (name_of($task->{cell}) =~ tr/ /_/r) . ".$task->{run}";
    File::Path::remove_tree($to);
    File::Path::make_path($to);
    my @files = grep { -f } glob("$task->{dir}/*"), "$task->{dir}/swarm/daemon.log";
    system 'cp', '--', @files, $to if @files;
    for my $dir (grep { -d "$task->{dir}/$_" } qw(mock swarm/ralph swarm/logs swarm/workers)) {
        system 'cp', '-r', '--', "$task->{dir}/$dir", $to;
    }
    return;
}

sub print_row {
    my ($cell) = @_;
    my $expected = expected($cell);
    my @head = ($cell->{cli}{name}, $cell->{mode}, case_of($cell));
    if ($cell->{reason}) {
        $count{untried}++;
        return printf "%-9s %-7s %-17s %-9s cannot be tried: %s\n", @head, '-', $cell->{reason};
    }
    my $good   = grep { $_ eq $expected } @{ $cell->{seen} };
    my $result = $good == $opt{runs} ? 'ok' : 'DIFFERS';
    $result .= " $good/$opt{runs}" if $opt{runs} > 1;
    printf "%-9s %-7s %-17s %-9s %s\n", @head, $result, $expected;
    my %other;
    $other{$_}++ for grep { $_ ne $expected } @{ $cell->{seen} };
    printf "%-45s %dx seen: %s\n", '', $other{$_}, $_ for sort keys %other;
    $count{ $good == $opt{runs} ? 'ok' : 'differs' }++;
    $count{runs} += $opt{runs};
    push @differing, name_of($cell) if %other;
    return;
}

sub summary {
    printf "\n%d cells, %d runs: %d ok, %d differ, %d cannot be tried; %d s\n", scalar @cells, $count{runs} // 0,
        $count{ok} // 0, $count{differs} // 0, $count{untried} // 0, time - $began;
    print "differs: $_\n" for @differing;
    print "kept: $keep\n" if @differing;
    my $left = $count{left_out} // {};
    print 'not run in CI, because they are slow or their result varies: ', join(', ', map { "$_ ($left->{$_} cells)" } sort keys %$left), "\n"
        if %$left;
    return scalar @differing;
}

# However the driver ends, nothing of it goes on.
END {
    if (defined $main && $$ == $main) {
        my $status = $?;
        Cell::signal_to('TERM', @busy, keys %running);
        Cell::end_processes($_->{dir}) for values %running;
        File::Path::remove_tree(map { ($_->{dir}, "$_->{dir}.seen") } values %running);
        rmdir $root;
        $? = $status;
    }
}

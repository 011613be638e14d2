#!/usr/bin/perl
# The fault drill: swarm's daemon under everything that can happen to it, and then an audit of the books.
#
#   drill.pl SWARM [--seconds N] [--seed S] [--workers N] [--keep]
#
# For N seconds (default 60) it runs loops and plain workers of fake agents, and at random kills, stops and continues
# the daemon, the tmux server, panes, agents and clients, fills the disk, removes sockets, and uses every verb, many at
# once. Then the faults end, everything is brought to its end, and what swarm says is held against what the agents wrote
# down themselves. It prints one table and exits 1 on any violation. The seed repeats the order of faults, not their
# timing. Everything is private: a directory of its own below /tmp, a tmux server of its own, processes ended by pid.
#
# The agents' books: one file a worker, lines appended whole: "start RUN PID TIME", "end RUN CODE TIME", "got TEXT TIME",
# and "overlap …" when an agent finds another one of its worker alive.
#
# What must hold after any fault: no run starts twice; no two agents of a worker at once; each iteration up to the last
# has one [END] or [FAIL]; state.json, iterations.log, status and ls agree; an exit code in the log is the one in the
# book; a follower's exit code 0 means a loop that is complete; a text that `send` said to have typed was read once; a
# worker that `kill` said to have killed is dead; nothing is left over.
# What may differ: where a pane, an agent or the tmux server was killed during a run, its exit is a signal or not known;
# where the tmux server was killed, `resume` repeats the iteration as a new run, so it may have more than one [START].
use strict;
use warnings;
use Fcntl ();
use File::Path ();
use File::Temp ();
use List::Util ();
use POSIX ();
use Time::HiRes qw(time sleep);

$| = 1;
my $swarm = shift // usage();
if ($swarm eq '--agent') { agent(@ARGV) }
my %opt = (seconds => 60, seed => int(time) % 100000, workers => 8, keep => 0);
while (@ARGV) {
    my $word = shift;
    if ($word eq '--keep') { $opt{keep} = 1; next }
    my ($key) = $word =~ /\A--(seconds|seed|workers)\z/ or usage();
    usage() unless @ARGV && $ARGV[0] =~ /\A[0-9]+\z/;
    $opt{$key} = shift;
}
usage() unless -x $swarm;
$swarm = readlink_abs($swarm);
srand $opt{seed};

# What is checked; a row each in the report, also where there was no occasion for it.
my @CHECKS = (
    'a follower\'s exit code', 'a loop has its state', 'an iteration fails at most once', 'each iteration ends once',
    'each iteration starts once', 'each run has its iteration', 'exit codes are the agent\'s', 'failures are counted',
    'killed is dead', 'never two at once', 'no branch is left', 'no file is left', 'no pane is left', 'no panic',
    'no process is left', 'no record was broken', 'no run starts twice', 'no worktree is left', 'sent is read',
    'sent is read at most once', 'settles', 'state.json and status agree', 'the loop ends once',
    'what an agent finished counts',
);

# How long anything may take once the faults are over.
my $PATIENCE = 120;

my $root = File::Temp::mkdtemp('/tmp/swarm-drill-XXXXXX');
my ($dir, $work, $repo) = ("$root/swarm", "$root/work", "$root/repo");
my $me  = readlink_abs($0);
my (%worker, @jobs, %fault_times, @violations, %checked, %broken, $mounted, $count, @undo);

mkdir "$root/$_" for qw(home work tmux swarm out);
%ENV = (
    PATH => $ENV{PATH}, HOME => "$root/home", SWARM_DIR => $dir, TMUX_TMPDIR => "$root/tmux", LANG => 'C.UTF-8',
    TERM => 'xterm-256color', USER => 'drill', TZ => 'UTC', GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_NOSYSTEM => 1,
    GIT_AUTHOR_NAME => 'd', GIT_AUTHOR_EMAIL => 'd@example.invalid', GIT_COMMITTER_NAME => 'd',
    GIT_COMMITTER_EMAIL => 'd@example.invalid',
);
chdir $work or die "drill: cannot enter $work: $!\n";
$mounted = $> == 0 && system("mount -t tmpfs -o size=24m,mode=700 none $dir 2>/dev/null") == 0;
system("git init -q -b main $repo && git -C $repo commit -q --allow-empty -m start") == 0 or die "drill: no git\n";
spit("$work/PROMPT.md", "go\n");
$SIG{INT} = $SIG{TERM} = sub { clean_up(); exit 130 };

print "drill: seed $opt{seed}, $opt{seconds} s, $opt{workers} workers, ", ($mounted ? 'small disk' : 'no small disk'), ", in $root\n";
my @plan = plan();
my $stop = time + $opt{seconds};
spawn_one() for 1 .. $opt{workers};
while (time < $stop) {
    collect();
    undo_due();
    top_up();
    my $what = $plan[rand @plan];
    fault(@$what);
    sleep(0.05 + rand 0.5);
}
settle();
audit();
report();
my $bad = @violations;
clean_up();
exit($bad ? 1 : 0);

# ---- the fake agent ----

sub agent {
    my ($book, $mode) = @_;
    open my $parent, '<', '/proc/' . getppid() . '/cmdline' or POSIX::_exit(9);
    my $line = join '', <$parent>;
    my ($run) = $line =~ m{/runs/[^/\0]+\.([0-9]+)\0?\z} or POSIX::_exit(9);
    my $note = sub {
        sysopen my $file, $book, Fcntl::O_WRONLY() | Fcntl::O_APPEND() | Fcntl::O_CREAT() or POSIX::_exit(9);
        syswrite $file, join(' ', @_, sprintf '%.3f', time) . "\n";
    };
    my $end = sub { $note->('end', $run, $_[0]); POSIX::_exit($_[0]) };
    # Before anything is said, so that of two one sees the other.
    $note->('start', $run, $$);
    for my $before (grep { /\Astart/ } lines($book)) {
        my (undef, $other, $pid) = split ' ', $before;
        $note->('overlap', $run, $$, $other, $pid) if $pid != $$ && alive($pid) && cmdline($pid) =~ /\Q$book\E/;
    }
    $SIG{TERM} = sub { $end->(0) };
    print "agent at work\n";
    if ($mode eq 'loop') {
        select undef, undef, undef, 0.1 + rand 2;
        print "agent is done\n";
        $end->(rand() < 0.1 ? 3 : 0);
    }
    while (defined(my $text = <STDIN>)) {
        chomp $text;
        $note->('got', $text) if $text ne '';
    }
    $end->(0);
}

# ---- small things ----

sub usage { print STDERR "usage: drill.sh [--seconds N] [--seed S] [--workers N]\n"; exit 2 }

sub readlink_abs { my ($path) = @_; my $abs = POSIX::getcwd(); return $path =~ m{\A/} ? $path : "$abs/$path" }

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or return '';
    local $/;
    return scalar(<$file>) // '';
}

sub spit { my ($path, $text) = @_; open my $file, '>', $path or return 0; print $file $text; return close $file }

sub lines { return split /\n/, slurp($_[0]) }

sub cmdline { return slurp("/proc/$_[0]/cmdline") =~ tr/\0/ /r }

sub alive { return slurp("/proc/$_[0]/stat") =~ /\) ([A-Z])/ && $1 ne 'Z' && $1 ne 'X' }

sub field { my ($text, $key) = @_; return $text =~ /"$key":\s*"?([^",}\n]*)/ ? $1 : '' }

sub pick { return @_ ? $_[rand @_] : undef }

# Ours only: a pid is signalled when its command line speaks of this drill's directory or this program.
sub hit {
    my ($signal, $pid) = @_;
    return 0 unless $pid && $pid > 1 && alive($pid);
    my $line = cmdline($pid);
    return 0 unless $line =~ /\Q$root\E/ || ours($pid);
    return kill $signal, $pid;
}

sub ours { return slurp("/proc/$_[0]/environ") =~ /\0?SWARM_DIR=\Q$dir\E\0/ }

sub violation { my ($check, $text) = @_; $broken{$check}++; push @violations, "$check: $text"; return }

sub check { my ($check, $holds, $text) = @_; $checked{$check}++; violation($check, $text) unless $holds; return $holds }

# ---- clients ----

# Starts a client; what it comes to is told to `done` with its exit code and what it said.
sub client {
    my ($done, @words) = @_;
    my $out = "$root/out/" . ++$count;
    my $pid = fork // die "drill: fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        exec $swarm, @words or POSIX::_exit(127);
    }
    push @jobs, { pid => $pid, done => $done, words => "@words", out => $out, since => time };
    return $pid;
}

sub collect {
    my @left;
    for my $job (@jobs) {
        if (waitpid($job->{pid}, POSIX::WNOHANG()) == $job->{pid}) {
            my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
            my $said = slurp($job->{out});
            violation('no panic', "swarm $job->{words}: $said") if $code == 101 || $said =~ /panicked/;
            $checked{'no panic'}++;
            $job->{done}->($code, $said) if $job->{done};
            unlink $job->{out};
        } else { push @left, $job }
    }
    # What `done` started is there already.
    my %known = map { $_->{pid} => 1 } @left;
    @jobs = (@left, grep { !$known{$_->{pid}} && alive_child($_->{pid}) } @jobs);
    return;
}

sub alive_child { return -d "/proc/$_[0]" && slurp("/proc/$_[0]/stat") =~ /\) . (\d+)/ && $1 == $$ && kill(0, $_[0]) }

# Runs a client to its end, bounded.
sub ask {
    my ($patience, @words) = @_;
    my ($code, $said);
    my $pid = client(sub { ($code, $said) = @_ }, @words);
    my $until = time + $patience;
    while (!defined $code && time < $until) { sleep 0.02; collect() }
    if (!defined $code) { kill 9, $pid; return (124, "no answer in $patience s") }
    return ($code, $said);
}

# ---- workers ----

my $serial;

sub spawn_one {
    my $n    = ++$serial;
    my $kind = $n % 4 == 0 ? 'plain' : $n % 8 == 3 ? 'tree' : 'loop';
    my $name = "$kind$n";
    my $own  = { kind => $kind, name => $name, book => "$root/work/$name.book", sent => {}, faults => [] };
    $worker{$name} = $own;
    my @run  = ('--', 'perl', $me, '--agent', $own->{book}, $kind eq 'loop' ? 'loop' : 'plain');
    my $limit = 3 + int rand 40;
    my @flags = $kind eq 'loop' ? ('--ralph', '--prompt-file', 'PROMPT.md', '-n', $limit)
        : $kind eq 'tree' ? ('--cwd', $repo, '--worktree') : ();
    my $followed = $kind eq 'loop' && $n % 2;
    push @flags, '-d' if $kind eq 'loop' && !$followed;
    $own->{follower} = client(sub {
        my ($code, $said) = @_;
        if ($followed) { $own->{followed} = $code; $own->{said} = $said }
        else { $own->{spawned} = $code }
    }, 'spawn', '--name', $name, @flags, @run);
    $own->{is_followed} = $followed;
    return;
}

# A worker that is over makes room for a new one.
sub top_up {
    my @live = grep { !$_->{over} } values %worker;
    for my $own (@live) {
        my $record = slurp("$dir/workers/$own->{name}.json");
        $own->{over} = 1 if $record =~ /"stopped"/ || $own->{dead} || (defined $own->{spawned} && $own->{spawned} != 0);
        $own->{over} = 1 if defined $own->{followed} && !-e "$dir/workers/$own->{name}.json";
    }
    spawn_one() if @live < $opt{workers};
    return;
}

sub any { my ($kind) = @_; return pick(grep { !$_->{over} && (!$kind || $_->{kind} =~ /$kind/) } values %worker) }

# The last agent of a worker, by its own word.
sub agent_pid {
    my ($own) = @_;
    my ($last) = reverse grep { /\Astart/ } lines($own->{book});
    return $last ? (split ' ', $last)[2] : 0;
}

sub daemon_pid {
    my ($pid) = slurp("$dir/daemon.lock") =~ /(\d+)/;
    return $pid && alive($pid) && cmdline($pid) =~ /daemon/ ? $pid : 0;
}

sub tmux_pid {
    for my $record (glob "$dir/workers/*.json") {
        my $pid = field(slurp($record), 'server_pid');
        return $pid if $pid =~ /\A\d+\z/ && alive($pid) && cmdline($pid) =~ /tmux/;
    }
    return 0;
}

# ---- faults ----

# Each with its weight.
sub plan {
    my %weight = (
        'daemon: kill -9' => 6, 'daemon: TERM' => 2, 'daemon: STOP, CONT' => 3, 'daemon: restart' => 2,
        'tmux server: kill -9' => 1, 'tmux server: STOP, CONT' => 2, 'pane: closed' => 3, 'pane: wrapper kill -9' => 3,
        'agent: kill -9' => 4, 'agent: STOP, CONT' => 3, 'client: kill -9' => 4, 'follower: kill -9' => 1,
        'clients: ten at once' => 3, 'socket: removed' => 1, 'tmux socket: removed' => 1, 'worker: kill' => 3,
        'loop: pause' => 4, 'loop: resume' => 10, 'loop: set' => 3, 'worker: send' => 8, 'daemon: start' => 4,
        ($mounted ? ('disk: full' => 3) : ('files: limited' => 3)),
    );
    return map { my $what = $_; ([$what]) x $weight{$what} } sort keys %weight;
}

sub later { my ($seconds, $what) = @_; push @undo, [time + $seconds, $what]; return }

sub undo_due {
    my ($all) = @_;
    my @due = grep { $all || $_->[0] <= time } @undo;
    @undo = grep { !$all && $_->[0] > time } @undo;
    $_->[1]->() for @due;
    return;
}

sub fault {
    my ($what) = @_;
    my %do = (
        'daemon: kill -9'    => sub { hit(KILL => daemon_pid()) },
        'daemon: TERM'       => sub { hit(TERM => daemon_pid()) },
        'daemon: restart'    => sub { client(undef, 'daemon', 'restart') },
        'daemon: start'      => sub { client(undef, 'daemon', 'start') },
        'daemon: STOP, CONT' => sub { stop_cont(daemon_pid(), 6) },
        'tmux server: kill -9' => sub { my $hit = hit(KILL => tmux_pid()); touched() if $hit; $hit },
        'tmux server: STOP, CONT' => sub { stop_cont(tmux_pid(), 6) },
        'pane: closed'        => \&close_pane,
        'pane: wrapper kill -9' => sub { of_agent(sub { my $pid = parent($_[0]); cmdline($pid) =~ /__pane/ && hit(KILL => $pid) }) },
        'agent: kill -9'      => sub { of_agent(sub { hit(KILL => $_[0]) }) },
        'agent: STOP, CONT'   => sub { my $own = any() or return 0; stop_cont(agent_pid($own), 3) },
        'client: kill -9'     => \&kill_client,
        'follower: kill -9'   => sub { my $own = pick(grep { $_->{is_followed} && !defined $_->{followed} } values %worker) or return 0; kill 9, $own->{follower} },
        'clients: ten at once' => sub { client(undef, @{pick(['ls'], ['status', 'loop1'], ['ralph', 'ls'], ['daemon', 'status'], ['peek', 'plain4'])}) for 1 .. 10; 1 },
        'socket: removed'     => sub { unlink "$dir/swarm.sock" },
        'tmux socket: removed' => sub { unlink "$dir/tmux.sock" },
        'worker: kill'        => \&kill_worker,
        'loop: pause'         => sub { my $own = any('loop') or return 0; client(undef, 'ralph', 'pause', $own->{name}) },
        'loop: resume'        => \&resume_loop,
        'loop: set'           => sub { my $own = any('loop') or return 0; client(undef, 'ralph', 'set', $own->{name}, 'max_iterations=' . (5 + int rand 40)) },
        'worker: send'        => \&send_text,
        'disk: full'          => \&fill_disk,
        'files: limited'      => \&limit_files,
    );
    $fault_times{$what}++ if $do{$what}->();
    return;
}

# The tmux server was hit: so was every worker.
sub touched { my ($own) = @_; push @{$_->{faults}}, time for $own ? $own : values %worker; return }

sub stop_cont {
    my ($pid, $most) = @_;
    hit(STOP => $pid) or return 0;
    later(0.1 + rand $most, sub { kill CONT => $pid if alive($pid) });
    return 1;
}

sub of_agent {
    my ($do) = @_;
    my $own = any() or return 0;
    my $pid = agent_pid($own) or return 0;
    return 0 unless alive($pid) && cmdline($pid) =~ /\Q$own->{book}\E/;
    my $hit = $do->($pid);
    touched($own) if $hit;
    return $hit;
}

sub parent { return slurp("/proc/$_[0]/stat") =~ /\) . (\d+)/ ? $1 : 0 }

sub close_pane {
    my $own = any() or return 0;
    my $record = slurp("$dir/workers/$own->{name}.json");
    my ($pane) = $record =~ /"id":\s*"(%\d+)"/ or return 0;
    my $pid = fork // return 0;
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        open STDOUT, '>', '/dev/null';
        # The pane may be another worker's by now, so it is asked for its worker in the same breath.
        exec 'tmux', '-S', "$dir/tmux.sock", 'if-shell', '-F', '-t', $pane, "#{==:#{\@swarm_worker},$own->{name}}", "kill-pane -t $pane"
            or POSIX::_exit(127);
    }
    push @jobs, { pid => $pid, words => 'tmux kill-pane', out => "$root/out/none", since => time };
    touched($own);
    return 1;
}

sub kill_client {
    my $own = any() or return 0;
    my @words = @{pick(['ls'], ['status', $own->{name}], ['ralph', 'pause', $own->{name}], ['ralph', 'resume', $own->{name}], ['logs', $own->{name}])};
    my $pid = client(undef, @words);
    later(rand 0.05, sub { kill 9, $pid if alive_child($pid) });
    return 1;
}

sub kill_worker {
    my $own = any() or return 0;
    $own->{asked_to_die} ||= time;
    client(sub {
        my ($code, $said) = @_;
        return if $code != 0;
        $own->{dead} = 1;
        my $pid = agent_pid($own);
        check('killed is dead', !($pid && alive($pid) && cmdline($pid) =~ /\Q$own->{book}\E/), "$own->{name}: $pid lives; kill said: $said");
    }, 'kill', $own->{name}, $own->{kind} eq 'tree' ? '--rm-worktree' : ());
    return 1;
}

sub resume_loop {
    my $own = any('loop') or return 0;
    client(undef, 'ralph', 'resume', $own->{name});
    return 1;
}

sub send_text {
    my $own = any('plain|tree') or return 0;
    return 0 unless lines($own->{book});
    my $text = 'text' . ++$count;
    my $since = time;
    client(sub { $own->{sent}{$text} = [$_[0], $since, time, $_[1]] }, 'send', $own->{name}, $text);
    return 1;
}

sub fill_disk {
    return 0 if -e "$dir/filler";
    my $pid = fork // return 0;
    if (!$pid) {
        sysopen my $file, "$dir/filler", Fcntl::O_WRONLY() | Fcntl::O_CREAT() or POSIX::_exit(0);
        for my $size (65536, 4096, 1) { my $block = 'x' x $size; 1 while syswrite($file, $block) }
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    later(0.5 + rand 4, sub { unlink "$dir/filler" });
    return 1;
}

# The daemon that is started next cannot write files of any size worth having; it ends soon.
sub limit_files {
    my $old = daemon_pid();
    hit(KILL => $old) if $old;
    my $pid = fork // return 0;
    if (!$pid) { exec 'sh', '-c', "ulimit -f 1; trap '' XFSZ; exec \"\$0\" daemon start >/dev/null 2>&1", $swarm or POSIX::_exit(127) }
    push @jobs, { pid => $pid, words => 'daemon start, limited', out => "$root/out/none", since => time };
    later(1 + rand 3, sub { hit(KILL => daemon_pid()) });
    return 1;
}

# ---- the end ----

sub wait_for {
    my ($what, $holds) = @_;
    my $until = time + $PATIENCE;
    while (time < $until) {
        collect();
        return 1 if $holds->();
        sleep 0.1;
    }
    # At once: whoever waits for the report may not wait this long.
    print "drill: never: $what\n";
    violation('settles', "never: $what");
    return 0;
}

sub status { my ($name) = @_; my ($code, $said) = ask(60, 'status', $name, '--format', 'json'); return $said }

sub settle {
    print "drill: the faults end\n";
    undo_due(1);
    unlink "$dir/filler";
    my ($code, $said) = ask(60, 'daemon', 'start');
    check('settles', $code == 0, "daemon start: $code $said");
    wait_for('all clients but followers end: ' . join(', ', map { $_->{words} } @jobs), sub {
        !grep { my $pid = $_->{pid}; !grep { $_->{is_followed} && $_->{follower} == $pid } values %worker } @jobs;
    });
    for my $own (grep { $_->{kind} eq 'loop' } values %worker) {
        my $name = $own->{name};
        wait_for("loop $name ends: " . status($name), sub {
            my $now = status($name);
            return 1 if $now =~ /no worker named/;
            my $state = field(slurp("$dir/ralph/$name/state.json"), 'status');
            return 1 if $state =~ /\A(?:stopped|failed)\z/;
            my ($iteration) = $now =~ /"ralph_iteration":\s*(\d+)/;
            my ($max)       = $now =~ /"max_iterations":\s*(\d+)/;
            ask(60, 'ralph', 'set', $name, 'max_iterations=' . ($iteration || 1)) if defined $iteration && $max > $iteration;
            ask(60, 'ralph', 'resume', $name) if $now =~ /"paused_by":\s*"|"lost"/;
            return 0;
        });
    }
    wait_for('followers end', sub { !@jobs });
    print "drill: all has come to its end; the books are read\n";
    return;
}

sub audit {
    audit_worker($_) for sort { $a->{name} cmp $b->{name} } values %worker;
    for my $own (grep { $_->{kind} ne 'loop' } values %worker) {
        next if status($own->{name}) =~ /no worker named/;
        my ($code, $said) = ask(60, 'kill', $own->{name}, $own->{kind} eq 'tree' ? '--rm-worktree' : ());
        check('settles', $code == 0, "kill $own->{name}: $code $said");
    }
    audit_left_overs();
    return;
}

sub daemon_deaths { return List::Util::sum0(@fault_times{grep { /\A(?:daemon: (?:kill|TERM|restart)|files: limited)/ } keys %fault_times}) }

sub faulted { my ($own, $from, $to) = @_; return scalar grep { $_ >= $from - 1 && $_ <= $to + 4 } @{$own->{faults}} }

sub audit_worker {
    my ($own) = @_;
    my (%start, %pid, %end, %ended, %got);
    my $name = $own->{name};
    for my $line (lines($own->{book})) {
        my ($word, @rest) = split ' ', $line;
        if ($word eq 'start') {
            check('no run starts twice', !$start{$rest[0]}, "$name: $line");
            ($pid{$rest[0]}, $start{$rest[0]}) = @rest[1, 2];
        }
        if ($word eq 'end') { ($end{$rest[0]}, $ended{$rest[0]}) = @rest[1, 2] }
        if ($word eq 'got') { $got{$rest[0]}++ }
        check('never two at once', $word ne 'overlap', "$name: $line") if $word =~ /\A(?:overlap|start)\z/;
    }
    audit_sent($own, \%got);
    audit_loop($own, \%start, \%end, \%ended) if $own->{kind} eq 'loop';
    return;
}

sub audit_sent {
    my ($own, $got) = @_;
    for my $text (sort keys %{$own->{sent}}) {
        my ($code, $from, $to, $said) = @{$own->{sent}{$text}};
        my $times = $got->{$text} // 0;
        check('sent is read at most once', $times <= 1, "$own->{name}: $text $times times");
        # One that `send` said to wait on the terminal is lost with an agent that dies before it reads it.
        my $until = $said =~ /has not read it yet/ ? 9e99 : $to;
        my $killed = $own->{asked_to_die} && $own->{asked_to_die} <= $until + 4;
        next if $code != 0 || faulted($own, $from, $until) || $killed;
        check('sent is read', $times == 1, "$own->{name}: send of $text at $from said 0 ($said); read $times times; read in all: " . join(' ', sort keys %$got));
    }
    return;
}

sub audit_loop {
    my ($own, $start, $end, $ended) = @_;
    my ($name, $base) = ($own->{name}, "$dir/ralph/$own->{name}");
    my $state = slurp("$base/state.json");
    if ($state eq '') {
        check('a loop has its state', !%$start, "$name: no state.json, but runs");
        return;
    }
    my $last = field($state, 'current_iteration');
    my @log  = map { s/\A\S+ //r } lines("$base/iterations.log");
    my $text = join "\n", @log;
    my $now  = status($name);
    my %shows = (
        running => qr/"status":\s*"(?:starting|running|waiting|retrying|lost|unreachable)"/,
        paused  => qr/"paused_by":\s*"/,
        stopped => qr/"status":\s*"(?:done|killed)"/,
        failed  => qr/"status":\s*"failed"/,
    );
    my $shown = $shows{ field($state, 'status') };
    check('state.json and status agree', $now =~ /"ralph_iteration":\s*$last\b/ && $shown && $now =~ $shown, "$name: $state\n$now");
    my $fails = grep { /\A\[FAIL\] iteration/ } @log;
    check('failures are counted', $fails == field($state, 'total_failures'), "$name: $fails [FAIL] lines, $state\n$text");
    check('the loop ends once', 1 == grep({ /\A\[DONE\]|\A\[FAIL\] loop|loop failed|loop complete/ } @log), "$name: $text");
    my (%run_of, %of_run);
    for my $i (1 .. $last) {
        my @starts = grep { /\A\[START\] iteration $i\// } @log;
        my @ends   = grep { /\A\[END\] iteration $i / } @log;
        my @failed = grep { /\A\[FAIL\] iteration $i / } @log;
        my $result = slurp(sprintf '%s/iterations/%04d/result.json', $base, $i);
        my $run    = field($result, 'run');
        ($run_of{$i}, $of_run{$run}) = ($run, $i) if $run ne '';
        # A daemon that is stopped while it starts a run gives that iteration back. So does one that dies there; a pause
        # before its next start then keeps the two lines apart. Each such line needs its own pause and its own death.
        my @pauses = grep { /\A\[PAUSE\]/ } @log;
        my $hit = @{$own->{faults}} + grep { /reason=shutdown/ } @pauses;
        $hit += List::Util::min(scalar(grep { !/reason=shutdown/ } @pauses), daemon_deaths());
        check('each iteration starts once', @starts == 1 || (@starts > 1 && $hit && @starts <= 1 + $hit), "$name: iteration $i has " . @starts . " [START]\n$text");
        # One that was told to stop in the middle of its work has no end of its own; neither has one that was
        # lost with its server and is not to be repeated, as the limit was lowered meanwhile; neither has one whose
        # spawn failed, and was taken back by the next daemon before any agent ran.
        my $cut = $i == $last && ($own->{asked_to_die} || (!%$start && $text =~ /^\[DONE\] loop killed/m) || ($text =~ /^\[LOST\]/m && field($state, 'max_iterations') < $last));
        check('each iteration ends once', @ends == 1 || (@ends == 0 && (@failed || $cut)), "$name: iteration $i has " . @ends . " [END]\n$text");
        check('an iteration fails at most once', @failed <= 1, "$name: $i\n$text");
        my ($code) = ($ends[0] // '') =~ /exit=(\d+)\b/;
        if (defined $code && $run ne '') {
            check('exit codes are the agent\'s', defined $end->{$run} && $end->{$run} == $code, "$name: iteration $i, run $run: log $code, book " . ($end->{$run} // 'nothing') . "\n$text");
        }
    }
    for my $run (sort { $a <=> $b } keys %$start) {
        my $to = $ended->{$run} // time;
        if (!$of_run{$run}) {
            check('each run has its iteration', faulted($own, $start->{$run}, $to) || $own->{asked_to_die}, "$name: run $run is in the book only\n$text");
        } elsif (defined $end->{$run} && !faulted($own, $start->{$run}, $to) && !$own->{asked_to_die}) {
            my $i = $of_run{$run};
            check('what an agent finished counts', $text =~ /^\[END\] iteration $i exit=$end->{$run}\b/m, "$name: run $run (iteration $i) ended with $end->{$run}\n$text");
        }
    }
    audit_follower($own, $state, $text);
    return;
}

sub audit_follower {
    my ($own, $state, $text) = @_;
    my $code = $own->{followed};
    return unless defined $code && $code < 128;
    my $complete = field($state, 'status') eq 'stopped' && field($state, 'reason') eq 'max_iterations';
    check('a follower\'s exit code', $code == 0 ? $complete : $code == 1 || $code == 3 || $code == 2, "$own->{name}: follower $code, $state\nIt said: $own->{said}");
    return;
}

sub audit_left_overs {
    # What could not be closed at once is closed in a moment.
    my $until = time + 15;
    my @panes;
    do { sleep 0.2; @panes = panes() } while @panes && time < $until;
    check('no pane is left', !@panes, join '; ', @panes);
    # Once more from the beginning, so that what a crash left is swept.
    ask(60, 'daemon', 'restart');
    my ($code, $said) = ask(60, 'daemon', 'stop');
    check('settles', $code == 0, "daemon stop: $code $said");
    wait_for('the daemon and tmux are gone', sub { !processes() });
    check('no process is left', !processes(), join('; ', map { "$_ " . cmdline($_) } processes()));
    my @files = split /\n/, `find $dir`;
    my @stray = grep { m{\.tmp\z|/runs/|\.sock\z|/filler} } @files;
    check('no file is left', !@stray, "@stray");
    check('no record was broken', !grep({ /corrupt/ } @files), join(' ', grep { /corrupt/ } @files));
    my $branches = join ' ', split /\n/, `git -C $repo for-each-ref --format='%(refname:short)' refs/heads`;
    check('no branch is left', $branches eq 'main', $branches);
    check('no worktree is left', 1 == split(/\n/, `git -C $repo worktree list`), 'git worktree list');
    return;
}

sub panes {
    my $format = '#{@swarm_worker} #{@swarm_run} #{pane_id} #{pane_dead} #{pane_start_command}';
    return grep { /\A\S/ } split /\n/, `tmux -S $dir/tmux.sock list-panes -a -F '$format' 2>/dev/null`;
}

# Everything of this drill that runs.
sub processes {
    my @pids = grep { $_ != $$ } map { m{(\d+)\z} } glob '/proc/[0-9]*';
    return grep { alive($_) && (cmdline($_) =~ /\Q$root\E/ || ours($_)) } @pids;
}

sub report {
    my $rule = '-' x 72 . "\n";
    print $rule;
    printf "%-44s %8s %12s\n", 'fault or check', 'times', 'violations';
    print $rule;
    printf "%-44s %8d %12s\n", $_, $fault_times{$_}, '' for sort keys %fault_times;
    print $rule;
    printf "%-44s %8d %12d\n", $_, $checked{$_} // 0, $broken{$_} // 0 for @CHECKS;
    print $rule;
    my @loops = grep { $_->{kind} eq 'loop' } values %worker;
    my $runs = 0;
    $runs += grep({ /\Astart/ } lines($_->{book})) for values %worker;
    printf "%d workers (%d loops), %d runs, seed %d, %d s: %d violations\n", scalar keys %worker, scalar @loops, $runs, $opt{seed}, $opt{seconds}, scalar @violations;
    print "VIOLATION $_\n" for @violations;
    return;
}

sub clean_up {
    for (1 .. 50) {
        my @left = processes();
        last unless @left;
        kill CONT => @left;
        kill KILL => @left;
        1 while waitpid(-1, POSIX::WNOHANG()) > 0;
        sleep 0.1;
    }
    if (@violations || $opt{keep}) {
        # What the small disk holds would go with it.
        system("mkdir $root/kept && cp -a $dir/. $root/kept/ 2>/dev/null") if $mounted;
        print "drill: kept $root\n";
    }
    system("umount -l $dir") if $mounted;
    chdir '/';
    File::Path::remove_tree($root) unless @violations || $opt{keep};
    return;
}

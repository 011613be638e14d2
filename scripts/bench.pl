#!/usr/bin/env perl
# What bench.sh cannot measure with a shell: clocks, sockets, the kernel's counters. Not for use by hand.
#
#   cpu PID…                       nanoseconds of CPU that these processes' threads have used
#   switches PID…                  how often they waited and woke up again
#   memory FIELD PID               kilobytes of a field of /proc/PID/status
#   children PID                   the processes that it started and that live
#   spread                         median and 90th percentile of the numbers on standard input
#   time RUNS COMMAND…             milliseconds of each run of a whole process, a line each
#   gaps FILE                      milliseconds from each `end` to the next `start`, a line each
#   print TTY…                     one line a second to each, for ever
#   captures SOCKET WORKER COUNT   so many captures, by the daemon's own way
#   kills SWARM SOCKET COUNT       milliseconds from a kill to the notice of it, a line each, and `wrong` for a wrong code
use strict;
use warnings;
use IO::Handle;
use IO::Socket::UNIX;
use Time::HiRes qw(time sleep);

my $job = shift // '';
my %jobs = (
    cpu => \&cpu, switches => \&switches, memory => \&memory, children => \&children, spread => \&spread,
    time => \&time_of, gaps => \&gaps, print => \&printer, captures => \&captures, kills => \&kills,
);
($jobs{$job} or die "bench.pl: no such job: '$job'\n")->(@ARGV);

# The first number of a file that matches, or nothing when the process is gone by now.
sub field {
    my ($file, $pattern) = @_;
    open my $handle, '<', $file or return;
    while (<$handle>) { return $1 if /$pattern/ }
    return;
}

# Of all threads: those that ended take their last piece with them (a blocking thread's, after ten idle seconds).
sub threads { map { glob "/proc/$_/task/*" } @_ }

sub cpu {
    my $sum = 0;
    $sum += field("$_/schedstat", qr/^(\d+)/) // 0 for threads(@_);
    print "$sum\n";
}

sub switches {
    my $sum = 0;
    $sum += field("$_/status", qr/^voluntary_ctxt_switches:\s+(\d+)/) // 0 for threads(@_);
    print "$sum\n";
}

sub memory {
    my ($name, $pid) = @_;
    print field("/proc/$pid/status", qr/^$name:\s+(\d+)/) // 0, "\n";
}

sub children {
    my ($parent) = @_;
    for my $file (glob '/proc/[0-9]*/stat') {
        my ($pid) = $file =~ /(\d+)/;
        print "$pid\n" if (field($file, qr/.*\) \S (\d+)/) // 0) == $parent;
    }
}

sub spread {
    my @all = sort { $a <=> $b } map { /([\d.]+)/ ? $1 : () } <STDIN>;
    return print "- -\n" unless @all;
    my $at = sub { $all[int($_[0] * $#all + 0.5)] };
    printf "%.1f %.1f\n", $at->(0.5), $at->(0.9);
}

# Runs a command to its end, without its output; gives its status.
sub quiet {
    my $pid = fork // die "bench.pl: fork: $!\n";
    if (!$pid) { open STDOUT, ">", "/dev/null"; exec { $_[0] } @_ or exit 127 }
    waitpid $pid, 0;
    return $?;
}

sub time_of {
    my ($runs, @command) = @_;
    for (1 .. $runs) {
        my $start = time;
        quiet(@command) == 0 or die "bench.pl: @command failed\n";
        printf "%.2f\n", (time - $start) * 1000;
    }
}

sub gaps {
    open my $handle, '<', $_[0] or die "bench.pl: $_[0]: $!\n";
    my $end;
    while (<$handle>) {
        my ($what, $at) = split;
        printf "%.2f\n", ($at - $end) / 1e6 if $what eq 'start' && defined $end;
        $end = $at if $what eq 'end';
    }
}

# A screen full of text once, then a line that moves, as agents have it. Written to the terminals from outside:
# the panes cannot tell, and no process of the agents' own disturbs the measurement.
sub printer {
    my @terminals = map { open my $handle, '>', $_ or die "bench.pl: $_: $!\n"; $handle->autoflush; $handle } @_;
    my $text = join '', map { sprintf "%3d  fn line_%d() { return \"some text of a usual length\" }\r\n", $_, $_ } 1 .. 45;
    print $_ $text for @terminals;
    for (my $second = 0;; $second++) {
        print $_ "\r* working ($second s, esc to interrupt)" for @terminals;
        sleep 1;
    }
}

# A connection that has said hello.
sub connection {
    my ($path) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $path) or die "bench.pl: $path: $!\n";
    print $socket qq({"swarm":1,"client":"bench"}\n);
    $socket->getline =~ /"daemon"/ or die "bench.pl: no daemon\n";
    return $socket;
}

sub captures {
    my ($path, $worker, $count) = @_;
    my $socket = connection($path);
    # A few are always under way, so that the daemon and tmux never wait for this script.
    my ($asked, $ahead) = (0, 8);
    for (1 .. $count) {
        while ($asked < $count && $asked < $_ + $ahead - 1) {
            print $socket qq({"id":$asked,"method":"peek","params":{"name":"$worker","lines":50}}\n);
            $asked++;
        }
        my $line = $socket->getline // die "bench.pl: the daemon hung up\n";
        $line =~ /"live":true/ or die "bench.pl: no capture: $line";
    }
}

sub kills {
    my ($swarm, $path, $count) = @_;
    my $notices = connection($path);
    print $notices qq({"id":1,"method":"subscribe","params":{"worker":null,"since":null}}\n);
    $notices->getline;
    my $agent = '$SIG{USR1} = sub { exit shift @ARGV }; $| = 1; print "up\n"; sleep 1000 while 1';
    for my $number (1 .. $count) {
        my $code = $number % 200 + 3;
        my ($signal, $wanted) = @{ [[KILL => '"signal":9'], [TERM => '"signal":15'], [USR1 => "\"code\":$code"]]->[$number % 3] };
        my $name = "kill$number";
        # A shell in front would do for an agent too, but have its own mind on signals.
        my @spawn = ($swarm, "spawn", "--name", $name, "--", $^X, "-e", $agent, $code);
        quiet(@spawn) == 0 or die "bench.pl: no spawn\n";
        my ($pid, $up) = (0, '');
        while ($up !~ /up/) { $up = `$swarm peek $name`; sleep 0.01 }
        ($pid) = `$swarm status $name --format json` =~ /"pid": ?(\d+)/ or die "bench.pl: no pid\n";
        my $start = time;
        kill $signal, $pid or die "bench.pl: no agent\n";
        my $line;
        do { $line = $notices->getline // die "bench.pl: the daemon hung up\n" } until $line =~ /"$name".*"kind":"stopped"/;
        printf "%.2f%s\n", (time - $start) * 1000, $line =~ /\Q$wanted\E/ ? '' : " wrong: $signal gave $line";
    }
}

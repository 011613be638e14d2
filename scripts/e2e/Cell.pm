# The private world of one cell of the matrix: a HOME, a SWARM_DIR, a repository and a mock model of its own, the swarm
# commands in it, and waits for states. Each wait has a limit.
package Cell;
use strict;
use warnings;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time sleep);
use Clis ();

my $json = JSON::PP->new->utf8->canonical;

# DIR must not exist; WITHOUT is the setting that is left out (see Clis::preset).
sub new {
    my ($class, %given) = @_;
    my $self = bless { %given, followers => [] }, $class;
    my $dir = $self->{dir};
    mkdir "$dir" or die "cannot create $dir: $!\n";
    mkdir "$dir/$_" for qw(home mock tmux tmp);
    my %env = (
        PATH => $self->{path}, HOME => "$dir/home", LANG => 'C.UTF-8', TERM => 'xterm-256color', SHELL => '/bin/sh',
        SWARM_DIR => "$dir/swarm", TMUX_TMPDIR => "$dir/tmux", TMPDIR => "$dir/tmp",
    );
    $self->{env} = \%env;
    my @flags = $self->{cli}{toolless} ? '--without-tools' : ();
    $self->{mock} = $self->start('mock', 'perl', "$self->{here}/../mock-model.pl", "$dir/mock", @flags);
    $self->until(10, sub { -s "$dir/mock/port" }) or die "the mock model did not start\n";
    chomp(my $port = slurp("$dir/mock/port"));
    %env = (%env, Clis::env($dir, "http://127.0.0.1:$port"));
    $self->repository('repo');
    Clis::preset("$dir/home", "http://127.0.0.1:$port", $self->{without} // '', "$dir/repo");
    return $self;
}

# A repository with a PROMPT.md; the agent works there.
sub repository {
    my ($self, $name) = @_;
    my $repo = "$self->{dir}/$name";
    put("$self->{dir}/home/.gitconfig", "[user]\nname = e2e\nemail = e2e\@localhost\n[init]\ndefaultBranch = main\n");
    mkdir $repo;
    put("$repo/PROMPT.md", "fix it\n");
    put("$repo/.gitignore", ".aider*\n");
    $self->run(20, 'git', '-C', $repo, @$_)->{code} == 0 or die "git @$_ failed\n"
        for [qw(init -q)], [qw(add -A)], [qw(commit -qm start)];
    return;
}

sub slurp {
    my ($path) = @_;
    open my $file, '<', $path or return '';
    local $/ = undef;
    return scalar(<$file>) // '';
}

sub put {
    my ($path, $text) = @_;
    open my $file, '>', $path or die "cannot write $path: $!\n";
    print {$file} $text;
    close $file or die "cannot write $path: $!\n";
    return;
}

# Starts a program in the repository with the cell's environment alone; its output goes to DIR/LABEL.out. Returns its
# process id.
sub start {
    my ($self, $label, @argv) = @_;
    my $pid = fork // die "cannot fork: $!\n";
    return $pid if $pid;
    %ENV = %{ $self->{env} };
    chdir "$self->{dir}/repo" or chdir $self->{dir};
    open STDIN,  '<', '/dev/null';
    open STDOUT, '>', "$self->{dir}/$label.out";
    open STDERR, '>', "$self->{dir}/$label.err";
    exec { $argv[0] } @argv or POSIX::_exit(127);
}

# Waits for a process of ours; its exit status, or "timed out after N s", when it is killed.
sub join_pid {
    my ($self, $pid, $seconds) = @_;
    my $done = $self->until($seconds, sub { waitpid($pid, POSIX::WNOHANG()) == $pid });
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8 if $done;
    signal_to('KILL', $pid);
    waitpid $pid, 0;
    return "timed out after " . $seconds * $self->{patience} . " s";
}

my $serial = 0;

sub run {
    my ($self, $seconds, @argv) = @_;
    my $label = 'run-' . ++$serial;
    my $code  = $self->join_pid($self->start($label, @argv), $seconds);
    my %result = (code => $code, out => slurp("$self->{dir}/$label.out"), err => slurp("$self->{dir}/$label.err"));
    $self->note("$argv[0] @argv[1 .. $#argv] => $code\n$result{out}$result{err}");
    unlink "$self->{dir}/$label.out", "$self->{dir}/$label.err";
    return \%result;
}

# The cell's own log: what was run and what it printed.
sub note {
    my ($self, $text) = @_;
    open my $file, '>>', "$self->{dir}/cell.log" or return;
    printf {$file} "[%.1f] %s\n", time - ($self->{began} //= time), $text;
    close $file;
    return;
}

sub swarm {
    my ($self, @args) = @_;
    return $self->run(90, $self->{swarm}, @args);
}

sub until {
    my ($self, $seconds, $holds) = @_;
    my $end = time + $seconds * $self->{patience};
    until ($holds->()) {
        return 0 if time > $end;
        sleep 0.1;
    }
    return 1;
}

# The model's replies, one hash each; texts alone may be given as strings.
sub replies {
    my ($self, @replies) = @_;
    put("$self->{dir}/mock/replies", join '', map { $json->encode(ref ? $_ : { text => $_ }) . "\n" } @replies);
    return;
}

sub release { my ($self, $name) = @_; put("$self->{dir}/mock/$name", ''); return }

sub requests { my ($self) = @_; return -s "$self->{dir}/mock/requests" || 0 }

# Waits until the model has got that many requests.
sub until_requests {
    my ($self, $count, $seconds) = @_;
    return $self->until($seconds // 60, sub { $self->requests >= $count });
}

# All user texts of the Nth request.
sub texts {
    my ($self, $number) = @_;
    my $text = slurp("$self->{dir}/mock/prompts/$number.json");
    return $text eq '' ? () : @{ $json->decode($text)->{texts} };
}

sub mode { return $_[0]{mode} }

# The command of this cell's mode.
sub command { my ($self) = @_; return @{ $self->{cli}{ $self->{mode} } } }

sub via { my ($self) = @_; return $self->{mode} eq 'oneshot' ? () : @{ $self->{cli}{via} // [] } }

# How long a TUI without hooks may be quiet before its iteration ends. With hooks only its turn's end counts.
sub quiet {
    my ($self) = @_;
    return $self->{mode} eq 'oneshot' || $self->{cli}{hooks} ? 600 : 10;
}

# Starts `swarm spawn --ralph`, which follows the loop; the cell reaps it by `followed`.
sub loop {
    my ($self, $name, @args) = @_;
    my @command = ref $args[-1] ? @{ pop @args } : $self->command;
    my %has = map { $_ => 1 } @args;
    unshift @args, '--prompt-file', 'PROMPT.md' if !$has{'--prompt-file'};
    unshift @args, '--inactivity-timeout', $self->quiet if !$has{'--inactivity-timeout'};
    return $self->start_loop($name, $self->via, @args, '--', @command);
}

# The same with these arguments alone.
sub start_loop {
    my ($self, $name, @args) = @_;
    my @argv = ('spawn', '--name', $name, '--ralph', @args);
    $self->note("follower $name: swarm @argv");
    $self->{follower}{$name} = $self->start("follower-$name", $self->{swarm}, @argv);
    return;
}

# Waits for the follower's end: "exit N".
sub followed {
    my ($self, $name, $seconds) = @_;
    my $pid = delete $self->{follower}{$name} // return 'not followed';
    my $code = $self->join_pid($pid, $seconds // 150);
    return $code =~ /^\d+$/ ? "exit $code" : "the loop $code";
}

sub story { my ($self, $name) = @_; return slurp("$self->{dir}/follower-$name.out") . slurp("$self->{dir}/follower-$name.err") }

sub json_of {
    my ($self, @args) = @_;
    my $got = $self->swarm(@args, '--format', 'json');
    return eval { $json->decode($got->{out}) } // {};
}

sub status { my ($self, $name) = @_; return $self->json_of('status', $name) }

# Waits until `status` of a worker holds; the last status that was seen.
sub until_status {
    my ($self, $name, $seconds, $holds) = @_;
    my $seen = {};
    my $end  = time + $seconds * $self->{patience};
    while (1) {
        my $got = $self->run(30, $self->{swarm}, 'status', $name, '--format', 'json');
        $seen = eval { $json->decode($got->{out}) } // {};
        last if $holds->($seen) || time > $end;
        sleep 0.4;
    }
    return $seen;
}

# How many iterations began, in "N iterations".
sub iterations {
    my ($self, $name) = @_;
    my $count = () = slurp("$self->{dir}/swarm/ralph/$name/iterations.log") =~ /\[START\]/g;
    return $count == 1 ? '1 iteration' : "$count iterations";
}

sub log_of { my ($self, $name) = @_; return slurp("$self->{dir}/swarm/ralph/$name/iterations.log") }

sub daemon_pid {
    my ($self) = @_;
    my ($pid) = slurp("$self->{dir}/swarm/daemon.lock") =~ /\A(\d+)/;
    return $pid;
}

# What a person needs to understand a cell that differs.
sub evidence {
    my ($self) = @_;
    my $dir = $self->{dir};
    my $got = $self->run(30, $self->{swarm}, qw(ls --format json));
    my $workers = eval { $json->decode($got->{out}) } // [];
    $workers = $workers->{workers} if ref $workers eq 'HASH';
    for my $name (map { $_->{name} } @{ $workers // [] }) {
        my %shows = (status => ['--format', 'json'], peek => [], why => [], logs => [qw(--history)]);
        put("$dir/$name.$_", join '', @{ $self->swarm($_, $name, @{ $shows{$_} }) }{qw(out err)}) for keys %shows;
    }
    put("$dir/events", $self->swarm(qw(events --format json))->{out});
    return;
}

# Ends everything that the cell started. A CLI may leave a service of its own behind: it is the cell's when its HOME is.
sub finish {
    my ($self) = @_;
    $self->run(60, $self->{swarm}, qw(kill --all)) if $self->daemon_pid;
    $self->run(30, $self->{swarm}, qw(daemon stop)) if $self->daemon_pid;
    $self->run(10, 'tmux', '-S', "$self->{dir}/swarm/tmux.sock", 'kill-server') if -S "$self->{dir}/swarm/tmux.sock";
    signal_to('TERM', $self->{mock}, values %{ $self->{follower} // {} });
    end_processes($self->{dir});
    return;
}

# A missing process id would mean the whole process group, as 0 does.
sub signal_to {
    my ($signal, @pids) = @_;
    kill $signal, grep { defined && /\A\d+\z/ && $_ > 1 } @pids;
    return;
}

# Processes whose HOME is this cell's, as /proc has their environment. Ending a process that is not ours would be the worst
# that the matrix can do: a cell lies below the driver's own temporary directory, and the comparison is of whole strings.
sub processes {
    my ($dir) = @_;
    $dir =~ m{\A/tmp/swarm-e2e-\w+/\d+\z} or die "not a cell's directory: '$dir'\n";
    my $home = "HOME=$dir/home";
    my @found;
    for my $proc (glob '/proc/[0-9]*') {
        my ($pid) = $proc =~ m{\A/proc/(\d+)\z} or next;
        next if $pid == $$ || $pid == 1;
        my @environment = split /\0/, slurp("$proc/environ");
        push @found, $pid if grep { $_ eq $home } @environment;
    }
    return @found;
}

sub end_processes {
    my ($dir) = @_;
    for my $signal (qw(TERM KILL KILL)) {
        my @pids = processes($dir) or return;
        signal_to($signal, @pids);
        my $end = time + 3;
        sleep 0.1 while time < $end && processes($dir);
    }
    return;
}

1;

#!/usr/bin/perl
# A stand-in for `docker` with sandboxes: records each call, and runs the commands on this machine.
#
# Its files are in $FAKE_DOCKER. Each call is a line in calls, a JSON list. homes/NAME is the home directory of the
# agent in the sandbox NAME, and $FAKE_DOCKER/agent is the program of every template. If the file fail-KIND exists, the
# next call of that kind fails: ls, create, stop, run, exec, root (exec as root) or setup (the last step of a setup).
# With the file hang, no call ends. With the file old, docker has no sandboxes.
use strict;
use warnings;
use JSON::PP;

my $dir = $ENV{FAKE_DOCKER} or die "FAKE_DOCKER is not set\n";
open my $calls, '>>', "$dir/calls" or die $!;
syswrite $calls, JSON::PP->new->canonical->encode(\@ARGV) . "\n";
if (-e "$dir/hang") { sleep 1000 while 1 }
my ($word, $verb, @args) = @ARGV;
fail("docker: '$word' is not a docker command.") if $word ne 'sandbox' or -e "$dir/old";

sub fail { my ($why) = @_; print STDERR "$why\n"; exit 1 }
sub home { my ($name) = @_; return "$dir/homes/$name" }
sub may_fail { my ($kind) = @_; fail("$kind failed in the stand-in") if unlink "$dir/fail-$kind" }
sub exists_or_fail { my ($name) = @_; fail("no such sandbox: $name") unless -d home($name) }

may_fail($verb);
if ($verb eq 'ls') {
    print "SANDBOX\tAGENT\tSTATUS\tWORKSPACE\n";
    print s{.*/}{}r . "\tclaude\trunning\t/w\n" for sort glob "$dir/homes/*";
} elsif ($verb eq 'create') {
    fail('unknown option') unless shift @args eq '--name';
    mkdir "$dir/homes";
    mkdir home($args[0]) or fail("the sandbox exists: $args[0]");
} elsif ($verb eq 'stop') {
    exists_or_fail($args[0]);
} elsif ($verb eq 'rm') {
    system('rm', '-rf', home($args[0]));
} elsif ($verb eq 'exec') {
    my ($root, %given) = 0;
    while ($args[0] =~ /^-/) {
        my $option = shift @args;
        next if $option eq '-i';
        my $value = shift @args;
        if ($option eq '-w') { chdir $value or fail("no such directory: $value") }
        elsif ($option eq '-u') { $root = 1 }
        elsif ($option eq '--env-file') {
            open my $file, '<', $value or fail("no such file: $value");
            while (<$file>) { chomp; my ($name, $text) = split /=/, $_, 2; $given{$name} = $text }
        } else { fail("unknown option: $option") }
    }
    my $name = shift @args;
    exists_or_fail($name);
    may_fail('root') if $root;
    may_fail('setup') if "@args" =~ /printf .* >.*swarm-setup/s;
    inside($name);
    %ENV = (%ENV, %given);
    # The home directory in a template has another path.
    s{/home/agent}{$ENV{HOME}}g for @args;
    exec @args or exit 127;
} elsif ($verb eq 'run') {
    my $name = shift @args;
    exists_or_fail($name);
    fail('no arguments after --') unless shift @args eq '--';
    inside($name);
    exec "$dir/agent", @args or exit 127;
} else {
    fail("unknown command: $verb");
}

# What runs in a sandbox has none of the variables outside, except those of the system and of the test.
sub inside {
    my ($name) = @_;
    for my $key (keys %ENV) {
        delete $ENV{$key} unless $key =~ /^(PATH|LANG|TERM|FAKE_.*)$/;
    }
    $ENV{HOME} = home($name);
    $ENV{GIT_CONFIG_NOSYSTEM} = 1;
    $ENV{INSIDE} = $name;
}

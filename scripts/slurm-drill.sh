#!/bin/sh
# Runs a Slurm of two nodes on this machine and checks what swarm promises for workers on it: submit, attach, events,
# pause, kill, the time limit, a node that goes down in the middle of an iteration, and preemption.
#
#   scripts/slurm-drill.sh [--keep]
#
# All daemons are on loopback, with a key, sockets, state and ports of their own in a temporary directory (--keep leaves
# it). A node has a host name, a boot id and a place for swarm's sockets of its own, so that swarm sees two machines.
# Its power failure kills every process in it. The agents count their iterations themselves, and notice another one that
# runs at the same time. Needs root, namespaces, cgroups, and the packages slurm-wlm and munge; exits with 77 without.
# SWARM is the program to test. If it is not set, the script builds swarm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
keep=
[ "${1:-}" != --keep ] || keep=1

skip() {
    echo "skipped: $1"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "a Slurm with two nodes needs root"
for program in slurmctld slurmd sbatch squeue scontrol scancel srun munged unshare tmux perl; do
    command -v $program >/dev/null || skip "$program is not installed"
done
unshare -m -u true 2>/dev/null || skip "this system permits no namespaces"
if [ -d /sys/fs/cgroup/freezer ]; then
    cgroup=cgroup/v1
elif [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    cgroup=cgroup/v2
else
    skip "this system has no cgroups for Slurm"
fi
if [ -z "${SWARM:-}" ]; then
    (cd "$here/.." && cargo build --locked)
    SWARM=$here/../target/debug/swarm
fi

dir=$(mktemp -d /tmp/slurm-drill.XXXXXX)
user=$(id -u)
# The names of nodes are also those of cgroups, so they are unique on this machine.
one=a$$
two=b$$
export HOME="$dir/home" SWARM_DIR="$dir/home/swarm" SLURM_CONF="$dir/slurm.conf"
unset XDG_CONFIG_HOME TMUX TMUX_TMPDIR
mkdir -p "$dir/home/.config/swarm" "$dir/bin" "$dir/state" "$dir/munge"
chmod 700 "$dir/munge"
ln -s "$(readlink -f "$SWARM")" "$dir/bin/swarm"
PATH=$dir/bin:$PATH
export PATH

# The seconds that are left for all steps; at least one.
begin=$(date +%s)
left() {
    left_now=$((begin + 165 - $(date +%s)))
    [ $left_now -ge 1 ] || left_now=1
    echo $left_now
}

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }

fail() {
    say "FAILED: $*"
    squeue --states=all || :
    for file in "$dir"/work-*/agent.log "$SWARM_DIR"/slurm/*/*/job.log "$SWARM_DIR"/slurm/*/*/daemon.log; do
        echo "== $file"
        tail -n 40 "$file" 2>/dev/null || :
    done
    for file in "$dir"/slurmctld.log "$dir"/*/slurmd.log; do
        echo "== $file"
        tail -n 15 "$file" 2>/dev/null || :
    done
    exit 1
}

# Waits until a command succeeds: $1 text, then the command.
await() {
    await_text=$1
    shift
    await_end=$(($(date +%s) + $(left)))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt $await_end ] || fail "not in time: $await_text"
        sleep 0.1
    done
}

# ---- the cluster ----

# Runs in the namespaces of a node: $1 name, $2 its directory.
# shellcheck disable=SC2016
node_script='
set -e
hostname "$1"
mount --bind "$2/boot" /proc/sys/kernel/random/boot_id
mount --bind "$2/sockets" "/tmp/swarm-$(id -u)"
exec slurmd -D -N "$1" >"$2/slurmd.log" 2>&1
'

node_start() {
    mkdir -p "$dir/$1/sockets" "$dir/$1/spool" "/tmp/swarm-$user"
    chmod 700 "$dir/$1/sockets" "/tmp/swarm-$user"
    rm -rf "$dir/$1/sockets/"*
    cat /proc/sys/kernel/random/uuid >"$dir/$1/boot"
    unshare -m -u sh -c "$node_script" node "$1" "$dir/$1" &
    echo $! >"$dir/$1/pid"
}

# Sends a signal to every process of a node: $1 its namespace, $2 signal.
node_signal() {
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/ns/uts" 2>/dev/null)" = "$1" ]; then
            kill -s "$2" "${process#/proc/}" 2>/dev/null || :
        fi
    done
}

# Kills every process of a node. All of them stop first: none may see the end of another one.
node_power_failure() {
    pid=$(cat "$dir/$1/pid" 2>/dev/null) || return 0
    space=$(readlink "/proc/$pid/ns/uts") || return 0
    [ "$space" != "$(readlink /proc/self/ns/uts)" ] || return 0
    node_signal "$space" STOP
    node_signal "$space" KILL
    rm "$dir/$1/pid"
}

free_port() {
    # Below those that the kernel gives to connections: one of these may be taken before the daemon starts.
    perl -MIO::Socket::INET -e '
        do { $port = 10000 + int rand 20000 } until IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:$port");
        print $port'
}

configure() {
    head -c 1024 /dev/urandom >"$dir/munge/key"
    chmod 400 "$dir/munge/key"
    cat >"$SLURM_CONF" <<CONF
ClusterName=drill
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdPidFile=$dir/%n/slurmd.pid
SlurmdSpoolDir=$dir/%n/spool
SlurmdParameters=config_overrides
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=3
MinJobAge=600
SchedulerParameters=batch_sched_delay=0,sched_min_interval=200000,bf_interval=5
NodeName=$one NodeHostname=$one NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4 Weight=9
NodeName=$two NodeHostname=$two NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4 Weight=1
PartitionName=agents Nodes=$one,$two Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=$one,$two PriorityTier=9 PreemptMode=OFF
CONF
    printf 'CgroupPlugin=%s\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n' $cgroup >"$dir/cgroup.conf"
    cat >"$dir/home/.config/swarm/config.toml" <<CONF
[hosts.lab]
slurm = true
args = ["-p", "agents"]
[hosts.limit]
slurm = true
args = ["-p", "agents", "-w", "$one", "--time=1", "--signal=B:TERM@45"]
CONF
}

are_idle() { [ "$(sinfo --noheader --Node --format=%T -p agents | grep -c '^idle$')" = 2 ]; }

cluster_start() {
    munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
        --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
        >"$dir/munge/out" 2>&1 &
    munge_pid=$!
    await "munged answers" test -S "$dir/munge/socket"
    slurmctld -D -i >"$dir/slurmctld.out" 2>&1 &
    controller_pid=$!
    node_start "$one"
    node_start "$two"
    await "both nodes are idle" are_idle
}

munge_pid=
controller_pid=
cleanup() {
    code=$?
    trap - EXIT INT TERM HUP
    tmux -L "drill$$" kill-server 2>/dev/null || :
    node_power_failure "$one"
    node_power_failure "$two"
    # Both were started by this shell, so that their pids are still theirs.
    for pid in $controller_pid $munge_pid; do
        kill "$pid" 2>/dev/null || :
    done
    wait
    for node in "$one" "$two"; do
        for group in /sys/fs/cgroup/*/slurm_"$node"; do
            find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
        done
    done
    [ -n "$keep" ] || rm -rf "$dir"
    exit $code
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# ---- the loops ----

# An agent that writes down its start and its end. Both nodes are in one process namespace, so it can see whether the
# agent of another start still runs. Its second iteration does not end before the file `hold-1` is gone.
cat >"$dir/bin/agent" <<'AGENT'
#!/bin/sh
cat >/dev/null
if [ -e running ] && kill -0 "$(cat running)" 2>/dev/null; then echo "twice $$" >>agent.log; fi
echo $$ >running
echo "start $(hostname) $$" >>agent.log
step=0
while [ $step -lt 5 ] || [ -e "hold-$(cat count)" ]; do
    sleep 0.1
    step=$((step + 1))
done
echo $(($(cat count) + 1)) >count
echo "end $(hostname) $$" >>agent.log
rm running
AGENT
chmod +x "$dir/bin/agent"

# Starts a loop of three iterations: $1 host, $2 name.
start_loop() {
    mkdir -p "$dir/work-$2"
    cd "$dir/work-$2"
    echo 0 >count
    : >hold-1
    : >agent.log
    swarm loop --on "$1" 'count' --name "$2" --no-promise --check "test \$(cat count) -ge 3" -n 9 -d -- "$dir/bin/agent"
}

started() { [ "$(grep -c '^start' "$dir/work-$1/agent.log")" -ge "$2" ]; }
job_of() { perl -ne 'print $1 if /"id":"(\d+)"/' "$SWARM_DIR/slurm/$1/$2/job.json"; }
state_of() { squeue --noheader --states=all --jobs="$1" --format=%T; }
node_of() { squeue --noheader --jobs="$1" --format=%N; }
waits() { [ "$(state_of "$1")" = PENDING ]; }
# A job that was put back waits two minutes.
# It may not start on the same node in the second of its end.
release() {
    rm "$dir/work-$1/hold-1"
    scontrol update jobid="$2" starttime=now+3
}

# Compares what the agents have written with what swarm has, after one interruption: $1 host, $2 name.
check_books() {
    swarm wait "$1/$2" --timeout "$(left)" || fail "$1/$2 has not ended in order"
    log=$dir/work-$2/agent.log
    ! grep -q '^twice' "$log" || fail "$2: two agents at once"
    ends=$(grep -c '^end' "$log")
    starts=$(grep -c '^start' "$log")
    swarm report "$1/$2" --format json >"$dir/report.json" || fail "no report of $2"
    known=$(perl -MJSON::PP -0ne 'print scalar @{decode_json($_)->{iterations}}' "$dir/report.json")
    [ "$ends" = "$known" ] || fail "$2: the agents have finished $ends iterations, swarm has $known"
    [ "$ends-$starts" = 3-4 ] || fail "$2: $ends iterations, and $((starts - ends)) interrupted ones"
    status=$(swarm status "$1/$2" --format json | perl -MJSON::PP -0ne 'print decode_json($_)->{status}')
    [ "$status" = "done" ] || fail "$2 is $status"
    say "$2: $ends iterations and an interrupted one, the same in the log"
}

configure
cluster_start
say "two nodes are up"

# A time limit of one minute, with the signal 45 s before it.
start_loop limit limited
limited=$(job_of limit limited)

mkdir "$dir/work-plain"
cd "$dir/work-plain"
swarm spawn --on lab --name plain -- sh -c 'hostname; exec cat'
await "the worker runs" swarm peek lab/plain
tmux -L "drill$$" -f /dev/null new-session -d -x 80 -y 24 "swarm attach lab/plain; sleep 60"
shows() { tmux -L "drill$$" capture-pane -p | grep -q "$1"; }
await "attach shows the node" shows "$two"
tmux -L "drill$$" send-keys typed-here Enter
echoed() { swarm peek lab/plain | grep -q '^typed-here'; }
await "keys arrive" echoed
swarm events lab/plain | grep -q 'run 1 started' || fail "no events"
swarm ls --on lab --format names | grep -qx lab/plain || fail "not listed"
agent_pid=$(swarm status lab/plain --format json | perl -MJSON::PP -0ne 'print decode_json($_)->{pid}')
plain=$(job_of lab plain)
swarm kill lab/plain
is_over() { case $(state_of "$1") in COMPLETED | FAILED | CANCELLED) ;; *) return 1 ;; esac }
await "the job has ended" is_over "$plain"
! kill -0 "$agent_pid" 2>/dev/null || fail "the agent is alive after the kill"
swarm logs lab/plain | grep -q typed-here || fail "no log after the end"
swarm why lab/plain >/dev/null || fail "no reason after the end"
swarm clean lab/plain
say "submit, attach, events, kill and clean work"

mkdir "$dir/work-lost"
: >"$dir/work-lost/hold-0"
start_loop lab lost
lost=$(job_of lab lost)
await "its first iteration runs" started lost 1
swarm ralph pause lab/lost
rm "$dir/work-lost/hold-0"
is_paused() { swarm status lab/lost --format json | grep -q '"status": *"paused"'; }
await "the loop is paused" is_paused
swarm ralph resume lab/lost
await "its second iteration runs" started lost 2
failed=$(node_of "$lost")
[ "$failed" = "$two" ] || fail "the loop runs on $failed"
node_power_failure "$two"
scontrol update nodename="$two" state=down reason=drill
await "the job is in the queue again" waits "$lost"
release lost "$lost"
await "the second iteration is repeated" started lost 3
[ "$(grep '^start' "$dir/work-lost/agent.log" | tail -n 1 | cut -d ' ' -f 2)" = "$one" ] || fail "it runs on the lost node"
check_books lab lost
node_start "$two"
say "a node that goes down costs one interrupted iteration"

await "the job at its time limit is in the queue again" waits "$limited"
grep -q 'the job is in the queue again' "$SWARM_DIR/slurm/limit/limited/job.log" || fail "no orderly end"
scontrol update jobid="$limited" timelimit=10
release limited "$limited"
check_books limit limited
say "a time limit costs one interrupted iteration"

await "both nodes are idle again" are_idle
start_loop lab preempted
preempted=$(job_of lab preempted)
await "its second iteration runs" started preempted 2
sbatch --parsable -p urgent -N 2 --exclusive --chdir=/ --output=/dev/null --wrap 'sleep 1' >/dev/null
await "the job was preempted" waits "$preempted"
release preempted "$preempted"
check_books lab preempted
say "preemption costs one interrupted iteration"
say "the drill has passed"

# shellcheck shell=sh
# A Slurm of two nodes on this machine, all on loopback, for scripts/slurm-drill.sh. Sourced; needs root.
# Each node has a host name, a boot id and a directory for swarm's sockets of its own, so that swarm sees two machines.

# Runs once in the namespaces of a node: $1 name, $2 directory of the node.
NODE_SET_UP='
set -e
hostname "$1"
mount --bind "$2/boot" /proc/sys/kernel/random/boot_id
mount --bind "$2/sockets" "/tmp/swarm-$(id -u)"
exec slurmd -D -N "$1" -L "$2/slurmd.log" >"$2/out" 2>&1
'

# Prints a free port of loopback.
free_port() {
    perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:0")->sockport'
}

# Writes the configuration: $1 directory.
cluster_configure() {
    CLUSTER=$1
    SLURM_CONF=$CLUSTER/slurm.conf
    export SLURM_CONF
    mkdir -p "$CLUSTER/state" "$CLUSTER/munge" /run/munge
    chmod 700 "$CLUSTER/munge"
    head -c 1024 /dev/urandom >"$CLUSTER/munge/key"
    chmod 400 "$CLUSTER/munge/key"
    cat >"$SLURM_CONF" <<CONF
ClusterName=drill
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$CLUSTER/munge/socket
CredType=cred/munge
StateSaveLocation=$CLUSTER/state
SlurmctldPidFile=$CLUSTER/slurmctld.pid
SlurmctldLogFile=$CLUSTER/slurmctld.log
SlurmdPidFile=$CLUSTER/%n/slurmd.pid
SlurmdSpoolDir=$CLUSTER/%n/spool
ProctrackType=${PROCTRACK:-proctrack/cgroup}
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=3
MinJobAge=600
SlurmdTimeout=300
SchedulerParameters=batch_sched_delay=0,sched_min_interval=200000,bf_interval=5
NodeName=node1 NodeHostname=node1 NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4
NodeName=node2 NodeHostname=node2 NodeAddr=127.0.0.1 Port=$(free_port) CPUs=4
PartitionName=agents Nodes=node1,node2 Default=YES PriorityTier=1 PreemptMode=REQUEUE OverSubscribe=NO
PartitionName=urgent Nodes=node1,node2 PriorityTier=10 PreemptMode=OFF OverSubscribe=NO
CONF
    cat >"$CLUSTER/cgroup.conf" <<CONF
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
CONF
}

# Starts a node: $1 name.
node_start() {
    mkdir -p "$CLUSTER/$1/sockets" "$CLUSTER/$1/spool"
    mkdir -p "/tmp/swarm-$(id -u)"
    chmod 700 "$CLUSTER/$1/sockets" "/tmp/swarm-$(id -u)"
    cat /proc/sys/kernel/random/uuid >"$CLUSTER/$1/boot"
    unshare -m -u sh -c "$NODE_SET_UP" node "$1" "$CLUSTER/$1" &
    echo $! >"$CLUSTER/$1/pid"
}

# Starts everything and waits until both nodes are idle.
cluster_start() {
    munged --foreground --force --key-file="$CLUSTER/munge/key" --socket="$CLUSTER/munge/socket" \
        --pid-file="$CLUSTER/munge/pid" --log-file="$CLUSTER/munge/log" --seed-file="$CLUSTER/munge/seed" \
        >"$CLUSTER/munge/out" 2>&1 &
    echo $! >"$CLUSTER/munge.pid"
    await "munged answers" test -S "$CLUSTER/munge/socket"
    slurmctld -D -i >"$CLUSTER/slurmctld.out" 2>&1 &
    echo $! >"$CLUSTER/controller.pid"
    node_start node1
    node_start node2
    await "both nodes are idle" nodes_idle
}

nodes_idle() { [ "$(sinfo --noheader --Node --format=%T -p agents 2>/dev/null | sort | uniq -c | tr -s ' ')" = " 2 idle" ]; }

# Waits at most 60 s until a command succeeds: $1 text, then the command.
await() {
    await_text=$1
    shift
    await_left=600
    until "$@" >/dev/null 2>&1; do
        await_left=$((await_left - 1))
        if [ $await_left = 0 ]; then
            echo "drill: not within 60 s: $await_text" >&2
            exit 1
        fi
        sleep 0.1
    done
}

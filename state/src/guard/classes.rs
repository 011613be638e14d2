//! The table of dangerous classes: a name, a reason, and how a command of the class is recognized.
//!
//! Rules ([`rules`]) are for programs whose arguments are enough. A judge answers for one command of a line: [`files`]
//! has those that look at paths, [`network`] those about other hosts, [`programs`] the rest. Deliberately absent: the
//! content of scripts and of code in other languages.

mod files;
mod network;
mod programs;
mod rules;

use super::place::Protected;
use super::scene::Scene;

/// A class of dangerous commands.
pub struct GuardClass {
    /// Its name.
    pub name: &'static str,
    /// The danger, and a safer way.
    pub reason: &'static str,
    /// The group of files that may not be written.
    pub(super) files: Option<Protected>,
    /// Commands of this class, as [`rules`].
    rules: &'static [&'static str],
    /// Judges a command that no rule describes.
    judge: fn(&Scene<'_>) -> bool,
}

impl GuardClass {
    pub(super) fn applies(&self, scene: &Scene<'_>) -> bool {
        self.rules.iter().any(|rule| rules::applies(rule, scene))
            || self.files.is_some_and(|group| files::writes(scene, group))
            || (self.judge)(scene)
    }
}

/// To be completed in the table.
const NO_CLASS: GuardClass = GuardClass { name: "", reason: "", files: None, rules: &[], judge: |_| false };

/// Every class. The first that applies is reported.
pub const CLASSES: [GuardClass; 24] = [
    GuardClass {
        name: "recursive deletion outside the project",
        reason: "It deletes the project itself, its .git, or files outside it, which no snapshot can restore. Delete single \
             directories inside the project, and check a variable in a path with ${NAME:?}.",
        judge: files::deletes_outside,
        ..NO_CLASS
    },
    GuardClass {
        name: "write to a disk or device",
        reason: "It overwrites a disk or another device. Write to a file in the project.",
        files: Some(Protected::Device),
        ..NO_CLASS
    },
    GuardClass {
        name: "formatting a disk",
        reason: "It erases or repartitions a disk. Use an image file in the project.",
        rules: &[
            "fdisk|sfdisk|gdisk|sgdisk|parted|cfdisk ~/dev/* !-l !--list !-d",
            "mkfs*|mke2fs|mkswap ~/dev/*",
            "wipefs -a|--all ~/dev/*",
            "cryptsetup luksFormat|erase|luksErase",
            "lvremove|vgremove|pvremove|blkdiscard",
            "zpool|zfs destroy",
            "diskutil erase*",
            "badblocks -w",
            "hdparm --security-erase*",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "privilege escalation",
        reason: "It runs with the rights of another user, or gives such rights. Work without root, for example with a \
             package manager that installs into the project.",
        rules: &[
            "sudo|doas -i|-s|--login|--shell",
            "su|visudo|useradd|userdel|adduser|deluser|passwd|chpasswd|usermod|gpasswd|setcap",
            "chmod ~+s|u+s|g+s|ug+s|4755|4711|4777|2755|6755",
        ],
        judge: programs::escalates,
        ..NO_CLASS
    },
    GuardClass {
        name: "permission change at large",
        reason: "It changes owners or permissions of many files, or of files outside the project. Change the permissions \
             of single files inside the project.",
        judge: files::changes_permissions,
        ..NO_CLASS
    },
    GuardClass {
        name: "forced push",
        reason: "It overwrites or deletes commits in a repository that other people use. Push to a new branch without force.",
        rules: &["git push ~-f|-d|-uf|-fu|--force*|--delete|--mirror|--prune|+*|:* !-n"],
        ..NO_CLASS
    },
    GuardClass {
        name: "rewriting git history",
        reason: "It rewrites or expires the history, so that commits cannot be restored. Add a commit that changes what \
             must change.",
        rules: &[
            "git filter-branch|filter-repo",
            "git reflog expire|delete",
            "git gc|prune --prune=now|--prune=all|--expire=now",
            "git update-ref -d|--stdin",
            "bfg|git-filter-repo",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "discarding unsaved work",
        reason: "It deletes ignored files, stashes or another worktree's changes, which no snapshot has. Delete files by \
             name, or use git clean without -x.",
        rules: &["git clean -x|-X !-n", "git stash clear", "git worktree remove -f|--force"],
        ..NO_CLASS
    },
    GuardClass {
        name: "keys and passwords",
        reason: "It reads or changes keys, passwords or tokens of the user. Run the tool that needs the key (such as ssh), \
             and do not open the file.",
        files: Some(Protected::Credential),
        rules: &[
            "gh auth token",
            "git credential fill",
            "pass show",
            "security find-*",
            "secret-tool lookup|search",
            "gpg|gpg2 --export-secret*",
            "gcloud auth print-access-token",
        ],
        judge: files::reads_credentials,
    },
    GuardClass {
        name: "sending files to another host",
        reason: "It copies local data to another host. Leave the data in the project, and report what should be sent.",
        judge: network::sends_files,
        ..NO_CLASS
    },
    GuardClass {
        name: "running code from the network",
        reason: "It runs downloaded or decoded text that nobody has read. Save it as a file, read it, then run it.",
        judge: network::runs_download,
        ..NO_CLASS
    },
    GuardClass {
        name: "remote shell",
        reason: "It lets another host reach this machine. To test a connection, use a client such as curl.",
        rules: &[
            "nc|ncat|netcat -e|-c|--exec|--sh-exec",
            "socat ~EXEC:*|exec:*|SYSTEM:*|system:*",
            "ssh ~-R*",
            "ngrok|localtunnel",
        ],
        judge: network::opens_shell,
        ..NO_CLASS
    },
    GuardClass {
        name: "fork bomb",
        reason: "It starts processes without end. Start a fixed number of them.",
        judge: programs::is_fork_bomb,
        ..NO_CLASS
    },
    GuardClass {
        name: "shutdown",
        reason: "It ends the machine or the session, with every agent on it. Ask the user to do it.",
        rules: &[
            "shutdown|reboot|halt|poweroff !-c",
            "init|telinit 0|1|6",
            "systemctl poweroff|reboot|halt|kexec|suspend|hibernate|rescue",
            "loginctl terminate-*|kill-*",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "ending processes at large",
        reason: "It ends processes that this project did not start, such as other agents. Use kill with the id of your own \
             process.",
        rules: &[
            "kill $-1|1",
            "killall|killall5|skill !-l !--list !-V",
            "pkill ~-u|-U|-fu|-9u|--uid*|--euid*",
            "pkill ~claude|codex|opencode|gemini|node|tmux|swarm|bash|sh|zsh|python|python3|java|ssh|sshd|. !-P !--parent",
            "tmux ~kill-server !-L !-S",
            "tmux kill-session -a",
            "fuser -k -m",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "publishing",
        reason: "It publishes a package, an image or a release, which cannot be undone. Build it, and leave publishing to \
             the user; --dry-run is allowed.",
        rules: &[
            "npm|yarn|pnpm|bun|lerna publish|unpublish|deprecate",
            "yarn npm publish",
            "cargo publish|yank",
            "twine|vsce upload|publish",
            "poetry|uv|flit|hatch|pdm|ovsx publish",
            "python|python3 ~twine ~upload",
            "gem|helm push|yank",
            "docker|podman push",
            "docker|podman image push",
            "mvn|sbt ~deploy|publish",
            "gradle|gradlew ~publish*",
            "dotnet nuget push",
            "gh release create",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "cron and start-up files",
        reason: "It runs something later, outside this session. Put the setting into a file of the project.",
        files: Some(Protected::Startup),
        rules: &[
            "crontab !-l",
            "at|batch !-l",
            "systemctl enable|edit|link",
            "launchctl load|bootstrap|enable",
            "update-rc.d|chkconfig",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "git configuration and hooks",
        reason: "It changes the user's git configuration, or what git runs. Use git -c NAME=VALUE for one command, or a \
             plain setting of this repository.",
        files: Some(Protected::GitFiles),
        judge: programs::configures_git,
        ..NO_CLASS
    },
    GuardClass {
        name: "escaping a container",
        reason: "It gives a container access to the host. Mount only the project, and run without --privileged.",
        rules: &[
            "docker|podman|nerdctl --privileged|--pid=host|--ipc=host|--userns=host|--cap-add=ALL|--cap-add=SYS_ADMIN",
            "docker|podman|nerdctl ~/:*|-v/:*|--volume=/:*|*source=/,*|*src=/,*|*docker.sock*|/etc:*|/proc:*|/sys:*",
            "docker|podman|nerdctl --cap-add ~ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE",
            "docker|podman|nerdctl --pid|--ipc|--userns ~host",
            "docker|podman|nerdctl ~seccomp=unconfined|--security-opt=*unconfined|apparmor=unconfined",
            "nsenter|chroot",
            "mount ~/dev/*|--bind|proc|*cgroup*",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "swarm's own files and commands",
        reason: "It changes how swarm supervises and checks this work. Continue the task; the user can stop or change the \
             worker.",
        files: Some(Protected::SwarmFiles),
        rules: &[
            "swarm daemon stop|restart",
            "swarm ralph approve|set",
            "swarm ralph resume|pause|clean ~--all|@worker",
            "swarm kill|clean|respawn|interrupt ~--all|@worker",
            "swarm hooks|plugin uninstall",
            "swarm config edit",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "system files",
        reason: "It changes files of the operating system. Write inside the project.",
        files: Some(Protected::System),
        ..NO_CLASS
    },
    GuardClass {
        name: "kernel, services and firewall",
        reason: "It changes settings of the whole machine. Start the needed program yourself, in the project.",
        rules: &[
            "sysctl ~-w|--write|*=*",
            "insmod|rmmod|modprobe|swapoff|setenforce",
            "systemctl stop|disable|mask|restart|kill !--user",
            "service ~stop|restart",
            "iptables|ip6tables -F|-X|-P|-A|-D|-I",
            "nft flush|delete",
            "ufw disable|reset|allow|delete",
            "umount ~-a|--all|/|/home|/boot",
        ],
        ..NO_CLASS
    },
    GuardClass {
        name: "deleting infrastructure",
        reason: "It deletes containers, volumes or cloud resources that other work may need. Delete single resources by \
             name that this task created.",
        rules: &[
            "docker|podman system|volume|network prune",
            "docker|podman compose down ~-v|--volumes",
            "docker-compose down ~-v|--volumes",
            "kubectl|oc delete ns|namespace|pv|pvc|node|crd",
            "kubectl|oc delete ~--all|-A|--all-namespaces",
            "terraform|tofu|pulumi|cdk ~destroy|-destroy",
            "aws s3 rb",
            "aws s3 rm --recursive",
            "aws ~delete-*|terminate-*",
            "gcloud|az ~delete",
            "gh repo delete|archive",
            "helm uninstall|delete",
        ],
        judge: |scene| {
            let stops = ["rm", "rmi", "kill", "stop", "volume"]
                .contains(&scene.operands().next().unwrap_or_default());
            scene.program() == "docker" && stops && scene.substitutes(&["docker"])
        },
        ..NO_CLASS
    },
    GuardClass {
        name: "deleting a database",
        reason: "It deletes a database or all of its data. Use a new database for tests, and leave this one.",
        rules: &[
            "dropdb",
            "mysqladmin ~drop",
            "redis-cli ~flushall|flushdb|FLUSHALL|FLUSHDB",
            "rails|rake|mix db:drop|db:reset|ecto.drop|ecto.reset",
            "prisma migrate reset",
            "npx|bunx prisma migrate reset",
            "php ~migrate:fresh|db:wipe",
        ],
        judge: programs::drops_database,
        ..NO_CLASS
    },
];

//! A fake host of hooks: an agent session whose turns a test writes.
//!
//! The host writes a transcript as Claude Code does, runs `swarm hook stop` at the end of each turn with the input
//! that Claude Code gives to its hooks, and continues with the text that the hook feeds back. A test can make it behave
//! as badly as real hosts do: a transcript that comes late, no last message, one stop reported twice.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::Utc;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use crate::world::{Ran, SWARM, World};

/// A session of an agent.
pub(crate) struct Host<'w> {
    pub(crate) world: &'w World,
    pub(crate) session: String,
    /// The directory in which it works.
    pub(crate) dir: PathBuf,
    pub(crate) transcript: PathBuf,
    /// Says the agent's last words in the hook's input.
    pub(crate) tells_last: bool,
    /// After how long the last line of a turn stands in the transcript.
    pub(crate) late: Duration,
    /// More of the hook's environment.
    pub(crate) env: Vec<(String, String)>,
    /// Fields of the hook's input that are added, or replaced.
    pub(crate) more: Value,
    turn: u32,
    prompts: u32,
    active: bool,
}

/// The answer of a hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    /// The text that is fed back to the agent; `None`: it stops.
    pub(crate) block: Option<String>,
    /// The message for the person.
    pub(crate) message: Option<String>,
    /// The context that is added to a prompt.
    pub(crate) context: Option<String>,
}

impl Heard {
    /// Parses the output of a hook, which exited with 0 and printed nothing on stderr.
    #[track_caller]
    pub(crate) fn of(ran: Ran) -> Self {
        let ran = ran.ok();
        assert_eq!(ran.err, "");
        if ran.out.is_empty() {
            return Self::default();
        }
        let said = ran.json();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let block = (said["decision"] == "block").then(|| text(&said["reason"]).unwrap());
        let context = text(&said["hookSpecificOutput"]["additionalContext"]);
        Self { block, message: text(&said["systemMessage"]), context }
    }

    /// Insists that the agent goes on, and gives what it is told.
    #[track_caller]
    pub(crate) fn goes_on(&self) -> &str {
        self.block.as_deref().unwrap_or_else(|| panic!("the agent stops: {self:?}"))
    }

    /// Insists that it stops and the person is told of a status.
    #[track_caller]
    pub(crate) fn ends(&self, status: &str) {
        let message = self.message.as_deref().unwrap_or_default();
        assert!(self.block.is_none() && message.contains(status), "no {status}: {self:?}");
    }

    /// Insists that it stops and nothing is said.
    #[track_caller]
    pub(crate) fn is_let(&self) {
        assert_eq!(*self, Self::default());
    }
}

impl<'w> Host<'w> {
    /// A session in the world's working directory.
    pub(crate) fn new(world: &'w World, session: &str) -> Self {
        Self {
            world,
            session: session.to_owned(),
            dir: world.work(),
            transcript: world.path(format!("{session}.jsonl")),
            tells_last: true,
            late: Duration::ZERO,
            env: vec![],
            more: json!({}),
            turn: 0,
            prompts: 1,
            active: false,
        }
    }

    /// Works somewhere else.
    pub(crate) fn in_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
        self
    }

    /// Runs `swarm session ARGS…` for this session, where it works.
    pub(crate) fn swarm_session(&self, args: &[&str]) -> Ran {
        let mut command = self.world.command(SWARM);
        command.current_dir(&self.dir).args(["session"]).args(args);
        if args[0] != "ls" {
            command.args(["--session-id", &self.session]);
        }
        self.world.run(command)
    }

    /// Starts a loop.
    #[track_caller]
    pub(crate) fn start(&self, args: &[&str]) -> Ran {
        self.swarm_session(&[&["start"], args].concat()).ok()
    }

    /// The state file of a loop that is not a do-it loop.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.world.work().join(format!(".claude/ralph-loop.{}.local.md", self.session))
    }

    /// `swarm session status` as JSON.
    pub(crate) fn status(&self) -> Value {
        self.swarm_session(&["status", "--format", "json"]).json()
    }

    /// The log of the session's loop.
    pub(crate) fn log(&self) -> Vec<Value> {
        let ran = self.swarm_session(&["logs", "--format", "json"]).ok();
        ran.json().as_array().cloned().unwrap_or_default()
    }

    /// Returns the stops in the log: the promise that was found, and the status.
    pub(crate) fn found(&self) -> Vec<String> {
        let lines = self.log();
        let stops = lines.iter().filter(|line| line["promise"] != "unread");
        stops.map(|line| format!("{} {}", line["promise"].as_str().unwrap(), line["status"])).collect()
    }

    /// Writes lines into the transcript.
    pub(crate) fn lines(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.bytes(text.as_bytes());
    }

    /// Writes bytes into it.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        append(&self.transcript, bytes);
    }

    /// A person's prompt.
    pub(crate) fn prompt(&mut self, text: &str) {
        self.prompts += 1;
        self.active = false;
        self.lines(&[user(json!(text))]);
    }

    /// The agent calls a tool.
    pub(crate) fn works(&mut self) -> &mut Self {
        self.turn += 1;
        let call = json!({"type":"tool_use","id":format!("t{}", self.turn),"name":"Bash","input":{}});
        let result = json!([{"type":"tool_result","tool_use_id":format!("t{}", self.turn),"content":"ok"}]);
        self.lines(&[assistant(self.turn, json!([call])), user(result)]);
        self
    }

    /// The agent says something and wants to stop.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) -> Heard {
        self.turn += 1;
        let line = assistant(self.turn, json!([{"type":"text","text":text}]));
        let late = self.late;
        let writer: Option<JoinHandle<()>> = if late.is_zero() {
            self.lines(&[line]);
            None
        } else {
            let path = self.transcript.clone();
            Some(std::thread::spawn(move || {
                std::thread::park_timeout(late);
                append(&path, format!("{line}\n").as_bytes());
            }))
        };
        let heard = self.stop(text);
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
        heard
    }

    /// The hook of a stop, and what a host does with its answer.
    #[track_caller]
    pub(crate) fn stop(&mut self, text: &str) -> Heard {
        let heard = Heard::of(self.hook("stop", &self.input("Stop", text)));
        self.takes(&heard);
        heard
    }

    /// Applies an answer as a host does.
    pub(crate) fn takes(&mut self, heard: &Heard) {
        self.active = heard.block.is_some();
        if let Some(text) = &heard.block {
            self.lines(&[user(json!(format!("Stop hook feedback:\n{text}")))]);
        }
    }

    /// Returns the input that Claude Code gives to its hooks.
    pub(crate) fn input(&self, event: &str, last: &str) -> Value {
        let mut input = json!({
            "session_id": self.session, "transcript_path": self.transcript, "cwd": self.dir,
            "prompt_id": format!("p{}", self.prompts), "permission_mode": "default",
            "hook_event_name": event, "stop_hook_active": self.active, "background_tasks": [], "session_crons": [],
        });
        if self.tells_last {
            input["last_assistant_message"] = json!(last);
        }
        for (name, value) in self.more.as_object().unwrap() {
            input[name.as_str()] = value.clone();
        }
        input
    }

    /// A prompt hook: what a person typed.
    #[track_caller]
    pub(crate) fn types(&self, prompt: &str) -> Heard {
        let mut input = self.input("UserPromptSubmit", "");
        input["prompt"] = json!(prompt);
        Heard::of(self.hook("user-prompt-submit", &input))
    }

    /// Runs a hook to its end.
    pub(crate) fn hook(&self, event: &str, input: &Value) -> Ran {
        self.hook_bytes(event, input.to_string().as_bytes())
    }

    /// Runs a hook with any input.
    pub(crate) fn hook_bytes(&self, event: &str, input: &[u8]) -> Ran {
        self.hook_by(self.hook_command(event), input)
    }

    /// The command of a hook.
    pub(crate) fn hook_command(&self, event: &str) -> Command {
        let mut command = self.world.command(SWARM);
        command.args(["hook", event]).envs(self.env.iter().cloned());
        if self.dir.is_dir() {
            command.current_dir(&self.dir);
        }
        command
    }

    /// Runs any command as a hook with an input.
    pub(crate) fn hook_by(&self, mut command: Command, input: &[u8]) -> Ran {
        let (reader, writer) = std::io::pipe().unwrap();
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || {
            // A hook that does not read all of it is none of this thread's business.
            let mut writer = writer;
            drop(writer.write_all(&input));
        });
        command.stdin(Stdio::from(reader));
        let ran = self.world.run(command);
        feeder.join().unwrap();
        ran
    }

    /// Starts a hook and gives it its input.
    pub(crate) fn begin(&self, event: &str, input: &Value) -> Child {
        let mut command = self.hook_command(event);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        child
    }

    /// The same told twice at once.
    #[track_caller]
    pub(crate) fn both(&self, event: &str, input: &Value) -> [Heard; 2] {
        let two = [self.begin(event, input), self.begin(event, input)];
        two.map(|child| Heard::of(child.wait_with_output().unwrap().into()))
    }

    /// Several hooks of one stop, which all wait for the loop's lock before the first has it.
    #[track_caller]
    pub(crate) fn several(&self, input: &Value, count: usize) -> Vec<Heard> {
        let lock = self.lock();
        let children: Vec<Child> = (0..count).map(|_| self.begin("stop", input)).collect();
        for child in &children {
            self.world.until("the hook waits for the lock", || is_open_in(child.id(), &lock).then_some(()));
        }
        drop(lock);
        children.into_iter().map(|child| Heard::of(child.wait_with_output().unwrap().into())).collect()
    }

    /// Locks the state file of a loop that is not a do-it loop.
    pub(crate) fn lock(&self) -> fs::File {
        let state_file = self.state_file().canonicalize().unwrap();
        let name = format!("{:x}", Md5::digest(state_file.as_os_str().as_encoded_bytes()));
        let path = self.world.swarm_dir().join("sessions/.locks").join(name);
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        fs2::FileExt::lock_exclusive(&file).unwrap();
        file
    }
}

/// Whether a process has a file open.
pub(crate) fn is_open_in(pid: u32, file: &fs::File) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let wanted = id(file.metadata().unwrap());
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|meta| id(meta) == wanted)
}

fn append(path: &Path, bytes: &[u8]) {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).unwrap();
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// A line of the agent's.
pub(crate) fn assistant(id: u32, content: Value) -> Value {
    let message = json!({"id": format!("msg_{id}"), "role": "assistant", "content": content});
    json!({"type": "assistant", "timestamp": now(), "isSidechain": false, "message": message})
}

/// A line of a person's, a hook's or a tool's.
pub(crate) fn user(content: Value) -> Value {
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "timestamp": now(), "isSidechain": false, "message": message})
}

fn now() -> String {
    Utc::now().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

// swarm in opencode: a session whose loop is not done goes on when it falls idle, and /ralph-loop and its like are read
// where they are typed. What is decided is decided by `swarm hook`; without that program nothing happens here.
import { spawn } from "node:child_process";

const PROGRAM = "swarm";

// Runs `swarm hook WORD` with `input`; gives what it answers, or nothing.
function ask(word, input, cwd) {
  return new Promise((resolve) => {
    let out = "";
    const child = spawn(PROGRAM, ["hook", word], { cwd, stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
    child.on("error", () => resolve(undefined));
    child.stdin.on("error", () => {});
    child.stdout.on("data", (data) => (out += data));
    child.on("close", () => {
      try {
        resolve(JSON.parse(out));
      } catch {
        resolve(undefined);
      }
    });
    child.stdin.end(JSON.stringify(input));
  });
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n");

export const Swarm = async ({ client, directory }) => {
  // Sessions that were told to go on: the next end of a turn follows from it.
  const held = new Set();

  async function idle(id) {
    const session = await client.session.get({ path: { id } });
    // The session of a sub-agent is not the user's.
    if (!session.data || session.data.parentID) return;
    const messages = await client.session.messages({ path: { id } });
    const last = (messages.data ?? []).filter((message) => message.info.role === "assistant").at(-1);
    if (!last || last.info.error) return;
    const answer = await ask(
      "stop",
      {
        hook_event_name: "Stop",
        session_id: id,
        turn_id: last.info.id,
        cwd: directory,
        stop_hook_active: held.has(id),
        last_assistant_message: textOf(last.parts),
      },
      directory,
    );
    held.delete(id);
    if (answer?.decision !== "block") return;
    held.add(id);
    await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text: answer.reason }] } });
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.idle") await idle(event.properties.sessionID).catch(() => {});
    },
    "chat.message": async (input, output) => {
      const prompt = textOf(output.parts).trim();
      // Only what can be one of our commands is worth a process.
      if (!prompt.startsWith("/")) return;
      const answer = await ask(
        "user-prompt-submit",
        {
          hook_event_name: "UserPromptSubmit",
          session_id: input.sessionID,
          turn_id: output.message?.id,
          cwd: directory,
          prompt,
        },
        directory,
      );
      const text = answer?.decision === "block" ? answer.reason : answer?.hookSpecificOutput?.additionalContext;
      const part = output.parts.find((part) => part.type === "text");
      if (!text || !part) return;
      // It stands before the words that were typed: a refusal, too, is for the agent to tell.
      part.text = answer.decision === "block" ? `Tell the user this and do nothing else:\n${text}` : `${text}\n\n${part.text}`;
    },
  };
};

//! The tests that must fail, one for each kind of runner.
//!
//! They use the usual assertion of their runner, which code under test could replace. Names and texts pass the usual
//! linters. `{token}` and `{id}` are explained at [`CanaryTemplate`].

use super::CanaryTemplate;

/// The name of the runner, the directory and the name of the file, and its text. nextest has that of cargo.
const CANARIES: [(&str, &str, &str, &str); 10] = [
    (
        "pytest",
        "",
        "test_swarm_canary_{id}.py",
        "def test_swarm_canary_{id}():\n    assert \"{token}\" == \"\"\n",
    ),
    (
        "unittest",
        "",
        "test_swarm_canary_{id}.py",
        "import unittest\n\n\nclass SwarmCanary(unittest.TestCase):\n    def test_swarm_canary_{id}(self):\n        \
         self.assertEqual(\"{token}\", \"\")\n",
    ),
    // For `cargo test` and nextest. Binaries run in the order of their names, until one fails.
    (
        "cargo",
        "tests",
        "aa_swarm_canary_{id}.rs",
        "#[test]\nfn swarm_canary_{id}() {\n    panic!(\"{token}\");\n}\n",
    ),
    // For `node --test`, which runs each file in a process of its own. The canary first imports a test file next to
    // it, so that the check stays green if the code under test ends the process.
    (
        "node",
        "test",
        "swarm_canary_{id}.test.mjs",
        r#"import assert from "node:assert";
import { readdirSync } from "node:fs";
import test from "node:test";

const here = new URL(".", import.meta.url);
const isOther = (name) => /\.test\.[cm]?js$/.test(name) && !import.meta.url.endsWith(name);
const near = readdirSync(here).find(isOther);
if (near) await import(new URL(near, here)).catch(() => {});

test("swarm canary {id}", () => {
  assert.equal("{token}", "");
});
"#,
    ),
    // Works as a module and as a script, since Jest has a global `test`.
    (
        "jest",
        "",
        "swarm_canary_{id}.test.js",
        "test(\"swarm canary {id}\", () => {\n  expect(\"{token}\").toBe(\"\");\n});\n",
    ),
    (
        "vitest",
        "",
        "swarm_canary_{id}.test.js",
        "import { expect, test } from \"vitest\";\n\ntest(\"swarm canary {id}\", () => {\n  \
         expect(\"{token}\").toBe(\"\");\n});\n",
    ),
    // Its name fits the patterns `*.js`, `*.test.js` and `*.spec.js` of projects only in part: the baseline shows it.
    (
        "mocha",
        "test",
        "swarm_canary_{id}.test.js",
        "it(\"swarm canary {id}\", () => {\n  throw new Error(\"{token}\");\n});\n",
    ),
    (
        "go",
        "",
        "swarm_canary_{id}_test.go",
        "package {package}\n\nimport \"testing\"\n\nfunc TestSwarmCanary{id}(t \
         *testing.T) {\n\tt.Fatal(\"{token}\")\n}\n",
    ),
    (
        "rspec",
        "spec",
        "swarm_canary_{id}_spec.rb",
        "# frozen_string_literal: true\n\nRSpec.describe \"swarm canary\" do\n  it(\"fails {id}\") { raise \"{token}\" }\nend\n",
    ),
    // PHPUnit requires a class with the name of its file.
    (
        "phpunit",
        "tests",
        "SwarmCanary{id}Test.php",
        "<?php\n\nfinal class SwarmCanary{id}Test extends \\PHPUnit\\Framework\\TestCase\n{\n    public function \
         testFails(): void\n    {\n        $this->fail('{token}');\n    }\n}\n",
    ),
];

pub(super) fn of(runner: &str) -> Option<CanaryTemplate> {
    let runner = if runner == "nextest" { "cargo" } else { runner };
    let (_, dir, file, text) = CANARIES.into_iter().find(|(name, ..)| *name == runner)?;
    let package = if runner == "go" { r"(?m)^package\s+(\w+)" } else { "" };
    Some(CanaryTemplate { file: file.into(), text: text.into(), dir: dir.into(), package: package.into() })
}

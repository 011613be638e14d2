//! The rows of package managers, and of the runners of other languages.

use crate::runners::forms::{part, row, whole, wholes};
use crate::runners::{Delegation, Runner, SummaryFormat};
use crate::words::words;

pub(super) fn rows() -> Vec<Runner> {
    let mut rows = managers();
    rows.extend(javascript());
    rows.extend(builders());
    rows.extend(others());
    rows
}

/// Package managers, which run the scripts of `package.json`.
fn managers() -> Vec<Runner> {
    let package = part("package.json", &["scripts", "config", "type"]);
    let manager = |name: &str, commands: &[&str], dirs: &[&str], files: &[&str]| Runner {
        delegates: Some(Delegation::Package),
        dir_options: words(dirs),
        ..row(name, commands, &[std::slice::from_ref(&package), &wholes(files)], &[], SummaryFormat::None)
    };
    let npmrc = [".npmrc", "~/.npmrc"];
    let yarn = [".yarnrc", ".yarnrc.yml", "~/.yarnrc", "~/.yarnrc.yml", ".npmrc", "~/.npmrc"];
    let pnpm = [".npmrc", "~/.npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs"];
    let npm = ["npm test", "npm t", "npm run", "npm run-script"];
    vec![
        row("bun test", &["bun test"], &[&wholes(&["bunfig.toml"])], SCRIPT_TESTS, SummaryFormat::None),
        manager("npm", &npm, &["--prefix", "-C"], &npmrc),
        manager("pnpm", &["pnpm run", "pnpm test", "pnpm t", "pnpm"], &["-C", "--dir"], &pnpm),
        manager("yarn", &["yarn run", "yarn"], &["--cwd"], &yarn),
        manager("bun", &["bun run"], &["--cwd"], &["bunfig.toml", "~/.bunfig.toml"]),
    ]
}

/// The test files of jest and similar runners.
const SCRIPT_TESTS: &[&str] = &["**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/__tests__/**"];

fn javascript() -> Vec<Runner> {
    let with = |name: &str, files: &[&str], parts: &[&str], tests: &[&str], summary| Runner {
        config_options: words(&["-c", "--config"]),
        ..row(name, &[name], &[&wholes(files), &[part("package.json", parts)]], tests, summary)
    };
    let jest = ["jest.config.*", "jest.setup.*", "jest.preset.*", "babel.config.*", ".babelrc*"];
    let vitest = ["vitest.config.*", "vite.config.*", "vitest.workspace.*", "vitest.setup.*"];
    let mocha = [".mocharc*", "test/mocha.opts"];
    vec![
        Runner {
            packages: words(&["{jest,jest-*,babel-jest}", "@jest/*"]),
            ..with("jest", &jest, &["jest", "type"], SCRIPT_TESTS, SummaryFormat::Jest)
        },
        Runner {
            packages: words(&["{vitest,chai}", "@vitest/*"]),
            ..with("vitest", &vitest, &["type"], SCRIPT_TESTS, SummaryFormat::Vitest)
        },
        Runner {
            packages: words(&["{mocha,chai}"]),
            config_options: words(&["--config", "--package", "-r", "--require", "--import"]),
            ..with(
                "mocha",
                &mocha,
                &["mocha", "type"],
                &["**/test/**/*.{js,cjs,mjs,ts}", "**/*.{test,spec}.{js,cjs,mjs,ts}"],
                SummaryFormat::Mocha,
            )
        },
    ]
}

/// Programs that run the commands of a file.
fn builders() -> Vec<Runner> {
    let makefiles = wholes(&["GNUmakefile", "makefile", "Makefile"]);
    let justfiles = wholes(&["justfile", "Justfile", ".justfile"]);
    vec![
        Runner {
            delegates: Some(Delegation::Make),
            config_options: words(&["-f", "--file", "--makefile"]),
            dir_options: words(&["-C", "--directory"]),
            ..row("make", &["make", "gmake"], &[&makefiles], &[], SummaryFormat::None)
        },
        Runner {
            delegates: Some(Delegation::Just),
            config_options: words(&["-f", "--justfile"]),
            dir_options: words(&["-d", "--working-directory"]),
            ..row("just", &["just"], &[&justfiles], &[], SummaryFormat::None)
        },
    ]
}

const PHPUNIT: [&str; 4] = ["phpunit", "php phpunit", "php vendor/bin/phpunit", "php bin/phpunit"];

fn others() -> Vec<Runner> {
    let gradle = [
        "**/build.gradle",
        "**/build.gradle.kts",
        "settings.gradle",
        "settings.gradle.kts",
        "gradle.properties",
        "gradle/wrapper/*",
        "gradle/init.gradle",
        "~/.gradle/gradle.properties",
        "~/.gradle/init.gradle",
        "~/.gradle/init.d/*",
    ];
    let maven = [".mvn/*", ".mvn/wrapper/*", "~/.m2/settings.xml"];
    let pom = part("**/pom.xml", &["build", "properties", "profiles", "parent"]);
    let cmake = part("**/CMakeLists.txt", &["test", "TEST"]);
    let rspec = [".rspec", ".rspec-local", "~/.rspec", "spec/spec_helper.rb", "spec/rails_helper.rb"];
    let phpunit = ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", "tests/bootstrap.php"];
    let dotnet =
        ["**/*.runsettings", "**/xunit.runner.json", "Directory.Build.props", "Directory.Build.targets"];
    let java_tests = ["**/src/test/**"];
    vec![
        Runner {
            dir_options: words(&["-C"]),
            config_options: words(&["-modfile", "-overlay", "-exec"]),
            ..row(
                "go",
                &["go test"],
                &[&wholes(&["go.work", "~/.config/go/env"])],
                &["**/*_test.go"],
                SummaryFormat::Go,
            )
        },
        Runner {
            config_options: words(&["-b", "--build-file", "-c", "--settings-file", "-I", "--init-script"]),
            dir_options: words(&["-p", "--project-dir"]),
            ..row("gradle", &["gradle", "gradlew"], &[&wholes(&gradle)], &java_tests, SummaryFormat::None)
        },
        Runner {
            config_options: words(&["-f", "--file", "-s", "--settings"]),
            ..row("maven", &["mvn", "mvnw"], &[&wholes(&maven), &[pom]], &java_tests, SummaryFormat::Maven)
        },
        Runner {
            dir_options: words(&["--test-dir"]),
            ..row(
                "ctest",
                &["ctest"],
                &[&wholes(&["CTestConfig.cmake", "CTestCustom.cmake"]), &[cmake]],
                &[],
                SummaryFormat::Ctest,
            )
        },
        Runner {
            config_options: words(&["-O", "--options", "-r", "--require"]),
            ..row("rspec", &["rspec"], &[&wholes(&rspec)], &["**/*_spec.rb"], SummaryFormat::Rspec)
        },
        Runner {
            config_options: words(&["-c", "--configuration", "--bootstrap"]),
            packages: words(&["phpunit/*"]),
            ..row("phpunit", &PHPUNIT, &[&wholes(&phpunit)], &["**/*Test.php"], SummaryFormat::Phpunit)
        },
        Runner {
            config_options: words(&["-s", "--settings"]),
            ..row(
                "dotnet",
                &["dotnet test"],
                &[&wholes(&dotnet), &[whole("nuget.config"), whole("global.json")]],
                &["**/*{Test,Tests}.cs"],
                SummaryFormat::Dotnet,
            )
        },
    ]
}

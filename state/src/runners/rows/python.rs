//! The shared configuration of the runners of Python, and the runners that start others.

use crate::runners::forms::{part, row, whole, wholes};
use crate::runners::{Delegation, Runner, RunnerConfig, SummaryFormat};
use crate::words::words;

/// The directory of bytecode. Without it, Python also runs bytecode that the agent put next to a source file.
pub(super) const CACHE_VARIABLE: &str = "PYTHONPYCACHEPREFIX";

/// The modules that unittest and pytest import. Python finds a file in the working directory first.
const MODULES: &str = "_pytest,pytest,py,pluggy,iniconfig,packaging,exceptiongroup,tomli,pygments,coverage,unittest,\
    abc,argparse,ast,asyncio,atexit,base64,bdb,bisect,bz2,codecs,codeop,collections,concurrent,contextlib,\
    contextvars,copy,copyreg,dataclasses,datetime,difflib,dis,doctest,encodings,enum,fnmatch,functools,gettext,glob,\
    graphlib,hashlib,heapq,importlib,inspect,io,ipaddress,itertools,json,keyword,linecache,locale,logging,lzma,\
    numbers,opcode,operator,os,pathlib,pdb,pickle,pkgutil,posixpath,pprint,re,reprlib,runpy,shlex,\
    shutil,signal,site,socket,ssl,stat,string,struct,subprocess,sysconfig,tempfile,textwrap,threading,token,\
    tokenize,tomllib,traceback,tracemalloc,types,typing,urllib,uuid,warnings,weakref,zipfile,zipimport";

pub(super) fn rows() -> Vec<Runner> {
    let pytest = [pytest_config(), start_config()].concat();
    let python = |runner: Runner| Runner { cache_variables: words(&[CACHE_VARIABLE]), ..runner };
    let tox = [
        part("tox.ini", &["tox", "testenv*", "pytest", "coverage*"]),
        part("pyproject.toml", &["tool.tox"]),
        part("setup.cfg", &["tox*", "testenv*"]),
        whole("tox.toml"),
    ];
    let tests = ["**/test_*.py", "**/*_test.py"];
    vec![
        python(Runner {
            delegates: Some(Delegation::Tox),
            config_options: words(&["-c", "--conf"]),
            ..row("tox", &["tox"], &[&tox, &pytest], &tests, SummaryFormat::Pytest)
        }),
        python(Runner {
            config_options: words(&["-f", "--noxfile"]),
            ..row("nox", &["nox"], &[&wholes(&["noxfile.py"]), &pytest], &tests, SummaryFormat::Pytest)
        }),
    ]
}

/// The configuration of pytest and of its coverage.
pub(super) fn pytest_config() -> Vec<RunnerConfig> {
    let whole_files =
        ["**/conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc"];
    let mut config = wholes(&whole_files);
    config.push(part("pyproject.toml", &["tool.pytest", "tool.coverage"]));
    config.push(part("tox.ini", &["pytest", "coverage*"]));
    config.push(part("setup.cfg", &["tool:pytest", "coverage*"]));
    config
}

/// The files that Python loads before a runner, and those that it finds instead of the runner's modules.
pub(super) fn start_config() -> Vec<RunnerConfig> {
    let hooks = ["*.pth", "sitecustomize.py", "usercustomize.py"];
    let user = hooks.map(|hook| whole(&format!("~/.local/lib/python*/site-packages/{hook}")));
    let hiding = ["{}.py", "{}.pyc", "{}.*.so", "{}/__init__.py"]
        .map(|form| RunnerConfig { hides: true, ..whole(&form.replace("{}", &format!("{{{MODULES}}}"))) });
    [&wholes(&["sitecustomize.py", "usercustomize.py"])[..], &user, &hiding].concat()
}

package commandline

import (
	"slices"
	"strings"

	"nize/store"
)

// commands lists the programs whose first argument selects a command.
var commands = []string{"git", "go", "npm", "pnpm", "yarn", "bun", "cargo", "docker", "podman", "kubectl", "helm", "terraform", "gh", "aws", "gcloud", "az", "systemctl", "apt", "apt-get", "brew", "pip", "uv"}

func hasCommands(program string) bool { return slices.Contains(commands, program) }

// programName returns the name of a program without its directory and its Windows suffix.
func programName(program string) string {
	return strings.TrimSuffix(strings.ToLower(base(program)), ".exe")
}

// base returns the name of a program without its directory.
func base(program string) string { return program[strings.LastIndexAny(program, `/\`)+1:] }

// The non-obvious effects that a pattern allows, by program, and by program and command.
var (
	anyProgram = store.Textf("any program")
	runsCode   = store.Textf("runs whatever its arguments name")
	scripts    = store.Textf("runs scripts of the package")
	recipes    = store.Textf("runs what the files of the directory say")
	elsewhere  = store.Textf("runs in containers or on other machines")
	gitAll     = store.Textf("also push, and hooks of the repository")
	gitHooks   = store.Textf("runs hooks of the repository")
	gitRuns    = store.Textf("its options run programs")
	gitPush    = store.Textf("sends to any remote, and overwrites there")
	anyFile    = store.Textf("any file, also outside the repository")
	sends      = store.Textf("sends and writes any file")
)

var risks = map[string]store.Text{
	"npm": scripts, "pnpm": scripts, "yarn": scripts, "bun": scripts,
	"make": recipes, "just": recipes, "cargo": recipes, "go": recipes, "gradle": recipes, "mvn": recipes, "rake": recipes, "tox": recipes, "pytest": recipes, "cmake": recipes, "ninja": recipes,
	"docker": elsewhere, "podman": elsewhere, "kubectl": elsewhere, "ssh": elsewhere, "helm": elsewhere, "terraform": recipes, "ansible": elsewhere, "ansible-playbook": elsewhere,
	"git": gitAll,
	"rm":  anyFile, "mv": anyFile, "cp": anyFile, "dd": anyFile, "chmod": anyFile, "chown": anyFile, "ln": anyFile, "tee": anyFile, "install": anyFile, "truncate": anyFile, "shred": anyFile, "touch": anyFile, "mkdir": anyFile,
	"curl": sends, "wget": sends, "scp": sends, "sftp": sends, "nc": sends, "ncat": sends, "rclone": sends, "aws": sends, "gcloud": sends,
	"uniq": anyFile, "tar": anyFile, "zip": anyFile, "rsync": sends,
	"git push": gitPush, "git pull": gitHooks, "git clone": gitHooks, "git submodule": gitRuns, "git config": gitRuns, "git bisect": gitRuns, "git difftool": gitRuns, "git mergetool": gitRuns, "git help": gitRuns, "git filter-branch": gitRuns, "git send-email": gitRuns,
	"git commit": gitHooks, "git merge": gitHooks, "git rebase": gitHooks, "git checkout": gitHooks, "git switch": gitHooks, "git am": gitHooks, "git worktree": gitHooks, "git stash": gitHooks, "git cherry-pick": gitHooks, "git revert": gitHooks, "git reset": gitHooks, "git gc": gitHooks,
	"go version": {}, "go list": {}, "go doc": {}, "go env": {}, "npm ls": {}, "npm view": {}, "npm outdated": {}, "docker ps": {}, "docker images": {}, "kubectl get": {}, "kubectl describe": {}, "cargo tree": {}, "cargo metadata": {},
}

// wrappers lists programs that run another program named in their arguments: no pattern is
// proposed for them.
var wrappers = []string{
	"sh", "bash", "zsh", "dash", "fish", "ksh", "csh", "tcsh", "env", "sudo", "doas", "su", "xargs", "eval", "exec", "command", "builtin", "source", ".", "trap", "nohup", "setsid", "timeout", "time", "nice", "ionice", "stdbuf", "strace", "ltrace", "script", "watch", "parallel", "entr", "chroot", "unshare", "flock", "busybox", "alias", "start", "call",
	"cmd", "powershell", "pwsh", "wsl", "iex", "systemd-run", "runuser", "pkexec", "taskset", "chrt", "caffeinate", "faketime", "proot", "firejail", "bwrap", "toolbox", "nsenter", "setpriv", "prlimit", "cgexec", "catchsegv", "ld.so", "unbuffer", "rlwrap", "dbus-run-session", "xvfb-run", "direnv", "mise", "asdf", "nix-shell", "poetry", "pipenv", "bundle", "hatch",
}

// runners lists programs that run code which their arguments contain or name.
var runners = []string{
	"python", "python2", "python3", "node", "deno", "perl", "ruby", "php", "lua", "awk", "gawk", "mawk", "sed", "ed", "npx", "bunx", "uvx", "uv", "pipx", "pip", "tclsh", "osascript", "expect", "gdb", "sqlite3", "psql", "mysql", "jq",
	"vim", "vi", "nvim", "emacs", "nano", "less", "more", "wscript", "cscript", "rundll32", "mshta", "msbuild", "&",
	"at", "batch", "crontab", "systemctl", "tmux", "screen", "gh", "apt", "apt-get", "brew",
}

// RiskOf returns the non-obvious effects that a pattern allows, or the zero Text if none is
// known.
func RiskOf(pattern string) store.Text {
	head, open := strings.CutSuffix(pattern, "*")
	if !open {
		return store.Text{}
	}
	program, rest, whole := strings.Cut(head, " ")
	if program == "" || !whole && strings.HasSuffix(program, "/") {
		return anyProgram
	}
	program = programName(program)
	command, _, _ := strings.Cut(rest, " ")
	if risk, ok := risks[program+" "+command]; ok {
		return risk
	}
	if program == "git" && command != "" && !strings.HasPrefix(command, "-") {
		return store.Text{}
	}
	if risk, ok := risks[program]; ok {
		return risk
	}
	if slices.Contains(wrappers, program) || slices.Contains(runners, program) || strings.HasPrefix(program, "python") {
		return runsCode
	}
	return store.Text{}
}

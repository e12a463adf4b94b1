package commandline

import (
	"slices"
	"strings"
)

// Some programs run another program that an option names: git -c core.pager=x log, find
// -exec x, tar --to-command=x. A wildcard doesn't match such an option, nor one that names
// a file to write. A user who wants that writes it into the pattern.

// options lists such options of one program, or of one of its commands.
type options struct {
	long  []string // with --, or with - if that is how the program writes long options
	short string   // single letters
	words []string // commands, and other words that are not options
	first bool     // options end at the first word that is not one
	sets  bool     // words with = set variables that the program executes
}

// escapes maps programs to such options.
var escapes = map[string]options{
	"find":      {long: []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}},
	"fd":        {long: []string{"--exec", "--exec-batch"}, short: "xX"},
	"tar":       {long: []string{"--to-command", "--use-compress-program", "--checkpoint-action", "--rsh-command", "--rmt-command", "--info-script", "--new-volume-script"}, short: "IF"},
	"cpio":      {long: []string{"--rsh-command"}},
	"ssh":       {short: "oFESIw", first: true},
	"scp":       {short: "oFSD"},
	"sftp":      {short: "oFSDb"},
	"rsync":     {long: []string{"--rsh", "--rsync-path", "--config"}, short: "eM"},
	"curl":      {long: []string{"--config"}, short: "K"},
	"wget":      {long: []string{"--execute", "--config", "--use-askpass", "--output-document", "--output-file"}, short: "eOo"},
	"sort":      {long: []string{"--compress-program", "--output"}, short: "o"},
	"split":     {long: []string{"--filter"}},
	"tree":      {short: "oR"},
	"man":       {long: []string{"--pager", "--html", "--preprocessor", "--config-file"}, short: "PHCp"},
	"rg":        {long: []string{"--pre", "--hostname-bin"}},
	"ag":        {long: []string{"--pager"}},
	"ack":       {long: []string{"--pager", "--ackrc"}},
	"zip":       {long: []string{"--unzip-command"}, short: "T"},
	"go":        {long: []string{"-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-o", "-ldflags", "-gcflags", "-asmflags", "-gccgoflags", "-compiler", "-pkgdir", "-fuzztool", "-w"}, words: []string{"run", "generate", "tool", "install"}},
	"make":      {long: []string{"--eval", "--file", "--makefile", "--directory", "--include-dir"}, short: "fCIE", sets: true},
	"cmake":     {short: "PEDC"},
	"ninja":     {short: "fC"},
	"just":      {long: []string{"--shell", "--shell-arg", "--justfile", "--working-directory", "--set", "--command", "--chooser"}, short: "fdc", sets: true},
	"rake":      {long: []string{"--execute", "--execute-print", "--execute-continue", "--require", "--rakefile", "--libdir"}, short: "erfIEp", sets: true},
	"gradle":    {long: []string{"--init-script", "--project-dir", "--gradle-user-home", "--include-build", "--build-file", "--settings-file"}, short: "IpgDPc"},
	"mvn":       {long: []string{"--file", "--settings", "--global-settings", "--define"}, short: "fsDg"},
	"tox":       {long: []string{"--conf", "--override", "--workdir", "--root"}, short: "cx"},
	"terraform": {long: []string{"-chdir", "-plugin-dir", "-from-module"}, words: []string{"console"}},
	"helm":      {long: []string{"--post-renderer", "--kubeconfig", "--registry-config"}, words: []string{"plugin"}},
	"python":    {short: "cmX", first: true},
	"node":      {long: []string{"--eval", "--print", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "--run", "--inspect"}, short: "eprC", first: true},
	"perl":      {short: "eEMmIdx", first: true},
	"ruby":      {short: "erIxC", first: true},
	"php":       {short: "rBREFdzSc", first: true},
	"npm":       {long: []string{"--script-shell", "--node-options", "--userconfig", "--globalconfig", "--prefix", "--call", "--shell", "--git", "--editor", "--viewer"}, words: []string{"exec", "x", "explore", "config", "set", "edit", "init", "create"}},
	"pnpm":      {long: []string{"--script-shell", "--node-options", "--dir", "--prefix"}, short: "C", words: []string{"exec", "dlx", "config", "create"}},
	"yarn":      {long: []string{"--script-shell", "--cwd", "--use-yarnrc"}, words: []string{"exec", "dlx", "config", "node", "create"}},
	"bun":       {long: []string{"--preload", "--require", "--import", "--eval", "--print", "--cwd", "--config", "--shell"}, short: "rep", words: []string{"x", "exec", "create"}},
	"cargo":     {long: []string{"--config", "--manifest-path"}, short: "CZ", words: []string{"run", "r", "install", "config"}},
	"pytest":    {long: []string{"--rootdir", "--confcutdir", "--override-ini", "--config-file", "--pyargs", "--basetemp", "--pdbcls"}, short: "cpo"},
	"gcc":       {long: []string{"-wrapper", "-specs", "-fplugin", "-iplugindir", "--specs"}, short: "B"},
	"clang":     {long: []string{"-fplugin", "-fpass-plugin", "--config", "-Xclang", "-load"}, short: "B"},
	"gpg":       {long: []string{"--exec-path", "--agent-program", "--dirmngr-program", "--photo-viewer", "--options", "--homedir", "--output"}, short: "o"},
	"hg":        {long: []string{"--config", "--config-file", "--repository", "--cwd"}, short: "R"},
	"svn":       {long: []string{"--config-option", "--config-dir", "--editor-cmd", "--diff-cmd", "--diff3-cmd"}},
	"jj":        {long: []string{"--config", "--config-toml", "--config-file", "--repository"}, short: "R"},
	"tcpdump":   {short: "zw"},
	"nmap":      {long: []string{"--script", "--datadir"}},
	"openssl":   {words: []string{"engine"}, long: []string{"-engine", "-provider", "-provider-path", "-config"}},
	"rpm":       {long: []string{"--eval", "--pipe", "--define", "--rcfile", "--macros", "--load"}, short: "ED"},
	"yq":        {long: []string{"--inplace", "--split-exp", "--in-place"}, short: "is"},
	"ctags":     {long: []string{"--options"}},
	"patch":     {long: []string{"--ed"}, short: "e"},
	"eslint":    {long: []string{"--config", "--rulesdir", "--plugin", "--parser", "--resolve-plugins-relative-to", "--output-file", "--format"}, short: "cof"},
	"prettier":  {long: []string{"--config", "--plugin", "--plugin-search-dir", "--find-config-path"}},
	"mocha":     {long: []string{"--require", "--config", "--loader", "--import", "--reporter", "--ui"}, short: "rRu"},
	"jest":      {long: []string{"--config", "--runner", "--setupFiles", "--globalSetup", "--globalTeardown", "--transform", "--testEnvironment", "--resolver", "--reporters", "--rootDir"}, short: "c"},
	"kubectl":   {long: []string{"--kubeconfig", "--server", "--token", "--as"}, short: "s", words: []string{"exec", "plugin", "debug", "edit", "config", "cp", "attach", "run"}},
	"docker":    {long: []string{"--config", "--host", "--context"}, short: "H", words: []string{"exec", "run", "cp", "plugin", "context"}},
}

// sameOptions maps other names of programs to those in escapes.
var sameOptions = map[string]string{
	"gtar": "tar", "bsdtar": "tar", "gfind": "find", "fdfind": "fd", "gsort": "sort", "gsplit": "split", "gmake": "make", "podman": "docker",
	"g++": "gcc", "cc": "gcc", "c++": "gcc", "clang++": "clang", "py.test": "pytest", "gpg2": "gpg", "egrep": "grep", "autossh": "ssh", "mosh": "ssh", "ugrep": "rg",
	"python2": "python", "python3": "python", "pypy3": "python", "gradlew": "gradle", "mvnw": "mvn", "nodejs": "node", "tofu": "terraform",
}

// gitCommands lists commands of git that run no program named in their arguments. A
// wildcard in place of the command matches no others: config sets aliases and hooks, bisect
// run and submodule foreach run their arguments, and an unknown command is an alias, or a
// program on the path.
var gitCommands = []string{
	"add", "am", "annotate", "apply", "archive", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore", "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "commit-tree", "count-objects", "describe", "diff", "diff-files", "diff-index", "diff-tree",
	"fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "init", "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "merge-tree", "mv", "name-rev", "notes", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote", "reset", "restore", "rev-list", "rev-parse", "revert", "rm",
	"shortlog", "show", "show-branch", "show-ref", "sparse-checkout", "stash", "status", "switch", "symbolic-ref", "tag", "update-index", "update-ref", "verify-commit", "verify-tag", "version", "whatchanged", "worktree", "write-tree",
}

// gitGlobals lists options before the command that don't affect what runs.
var gitGlobals = []string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "--no-replace-objects", "--version", "-v", "--no-lazy-fetch", "--no-advice"}

// gitLong lists options of any command that run programs, read settings or write files.
var gitLong = []string{
	"--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--ext-diff", "--textconv", "--extcmd", "--output", "--output-directory", "--config", "--config-env", "--template", "--separate-git-dir", "--git-dir", "--work-tree",
	"--exec-path", "--strategy", "--sendmail-cmd", "--remote-helper", "--edit-description", "--bundle-uri", "--reference", "--recurse-submodules-default",
}

// gitShort lists such single-letter options by command.
var gitShort = map[string]string{
	"grep": "O", "clone": "uc", "archive": "o", "rebase": "xs", "merge": "s", "pull": "s", "cherry-pick": "", "format-patch": "o", "difftool": "x", "init": "", "ls-remote": "u", "fetch": "", "push": "",
}

// escapesIn reports whether a word that a wildcard matched, from index first on, makes a
// plain command run another program than its own, or write a file that an option names.
func escapesIn(words []string, first int) bool {
	if len(words) == 0 || first >= len(words) {
		return false
	}
	program := programName(words[0])
	if program == "git" {
		return gitEscapes(words, first)
	}
	if same, ok := sameOptions[program]; ok {
		program = same
	}
	if strings.HasPrefix(program, "python3.") {
		program = "python"
	}
	o, ok := escapes[program]
	if !ok {
		return false
	}
	for i := max(first, 1); i < len(words); i++ {
		word := words[i]
		if program == "tar" && i == 1 && !strings.HasPrefix(word, "-") {
			word = "-" + word // the letters of its first word need no dash
		}
		if o.first && !strings.HasPrefix(word, "-") {
			return false
		}
		if o.has(word) || o.sets && strings.Contains(word, "=") || i == 1 && slices.Contains(o.words, word) || i == 2 && slices.Contains(o.words, words[1]+" "+word) {
			return true
		}
	}
	return false
}

// has reports whether a word is one of the options: in full, abbreviated, with its value,
// or among other letters.
func (o options) has(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	if len(name) < 2 || name[0] != '-' {
		return false
	}
	for _, long := range o.long {
		if name == long || strings.HasPrefix(long, "--") && len(name) > 2 && strings.HasPrefix(long, name) || !strings.HasPrefix(long, "--") && name == "-"+long {
			return true
		}
	}
	return name[1] != '-' && strings.ContainsAny(word[1:], o.short)
}

func gitEscapes(words []string, first int) bool {
	at := 1
	for ; at < len(words) && strings.HasPrefix(words[at], "-"); at++ {
		switch {
		case words[at] == "-C" || words[at] == "-c":
			if words[at] == "-c" && at >= first {
				return true
			}
			at++ // its value
		case at >= first && !slices.Contains(gitGlobals, words[at]):
			return true
		}
	}
	if at >= len(words) {
		return false
	}
	command := words[at]
	if at >= first && !slices.Contains(gitCommands, command) {
		return true
	}
	o := options{long: gitLong, short: gitShort[command]}
	for i := max(first, at+1); i < len(words); i++ {
		switch word := words[i]; {
		case o.has(word), strings.Contains(word, "ext::"), strings.Contains(word, "fd::"), i == at+1 && slices.Contains([]string{"bisect run", "submodule foreach", "stash shell", "bundle create"}, command+" "+word):
			return true
		}
	}
	return false
}

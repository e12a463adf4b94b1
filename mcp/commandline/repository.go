package commandline

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"nize/store"
)

// A standing answer may be restricted to one repository. It covers a step that its asker
// says is in that repository, and that doesn't leave it as far as its arguments show: no
// path outside, no "..", no other starting directory, and no other machine. If that can't
// be determined, the step is not covered. The asker must resolve symbolic links, because
// only it sees the files: see [Paths].

// Allows reports whether a standing approval applies to these arguments of an ask, or of a
// call, for which ask is nil.
func Allows(gr store.Grant, args json.RawMessage, ask *store.Ask) bool {
	if !gr.Matches(args) || !Covers(gr.Pattern, args) {
		return false
	}
	return gr.Repository == "" || ask != nil && ask.Repository == gr.Repository && ask.Host == gr.Host && staysIn(ask, args)
}

// harmless lists arguments beside a command line that don't change what it does, or where.
var harmless = []string{"description", "title", "explanation", "reason", "justification", "timeout", "timeoutms", "timeoutseconds", "yieldtimems", "maxoutputtokens", "runinbackground", "isbackground", "background"}

// directories lists arguments that name the directory in which a command line runs.
var directories = []string{"cwd", "workdir", "dir", "directory", "dirpath", "workingdirectory", "workingdir"}

// remote lists programs that act elsewhere, whatever their arguments: on another machine,
// or on files that are not named.
var remote = []string{"ssh", "scp", "sftp", "rsync", "curl", "wget", "nc", "ncat", "rclone", "aws", "gcloud", "az", "docker", "podman", "kubectl", "helm", "ansible", "ansible-playbook", "autossh", "mosh", "telnet", "ftp", "gh", "systemctl", "apt", "apt-get", "brew", "crontab", "at", "kill", "pkill", "killall", "mount", "umount", "reboot", "shutdown"}

// movers lists programs that change the directory of later commands.
var movers = []string{"cd", "chdir", "pushd", "popd"}

// staysIn reports whether a step stays in the repository that its asker names.
func staysIn(ask *store.Ask, args json.RawMessage) bool {
	var got map[string]any
	if json.Unmarshal(args, &got) != nil {
		return false
	}
	root := ""
	if isAbsolute(ask.Repository) {
		if root = strings.TrimRight(ask.Repository, `/\`); root == "" || !within(root, ask.Cwd) {
			return false
		}
	}
	line := ""
	for name, v := range got {
		text, _ := v.(string)
		switch plainly := plainName(name); {
		case empty(v), slices.Contains(harmless, plainly):
		case isField(name) && line == "":
			line = text
		case slices.Contains(directories, plainly) && text == ask.Cwd:
		default:
			return false
		}
	}
	words, _ := plain(line)
	if len(words) == 0 {
		return false
	}
	program := programName(words[0])
	if slices.Contains(wrappers, program) || slices.Contains(remote, program) || slices.Contains(movers, program) {
		return false
	}
	if program == "git" && slices.Contains(words, "-C") { // that directory may belong to another repository
		return false
	}
	return !slices.ContainsFunc(words, func(word string) bool { return leaves(root, word) })
}

// Paths returns the possible paths in the command line of a step, for its asker to resolve.
func Paths(args json.RawMessage) (paths []string) {
	var got map[string]any
	if json.Unmarshal(args, &got) != nil {
		return nil
	}
	for _, field := range fields {
		line, _ := got[field].(string)
		words, _ := plain(line)
		for _, word := range words {
			paths = append(append(paths, word), pieces(word)...)
		}
	}
	return paths
}

// leaves reports whether a word names, or may name, something outside a directory; root is
// "" if it is unknown.
func leaves(root, word string) bool {
	if strings.Contains(word, `\`) {
		return true
	}
	for _, piece := range pieces(word) {
		switch {
		case strings.HasPrefix(piece, "~"):
			return true
		case strings.HasPrefix(piece, "/"):
			if root == "" || !within(root, piece) {
				return true
			}
		case strings.HasPrefix(piece, "-") && strings.Contains(piece, "/"): // -C/x is an option and a path
			return true
		case slices.Contains(strings.Split(piece, "/"), ".."):
			return true
		}
	}
	return false
}

// pieces returns the parts of a word that could each be a path: --a=b:c has --a, b and c.
func pieces(word string) []string {
	return strings.FieldsFunc(word, func(r rune) bool {
		return r < unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`._-+/~\`, r)
	})
}

func isAbsolute(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || len(path) > 2 && path[1] == ':' && (path[2] == '/' || path[2] == '\\')
}

// within reports whether a path is a directory or below it, by name only.
func within(root, path string) bool {
	rest, ok := strings.CutPrefix(path, root)
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') && !slices.Contains(parts, "..")
}

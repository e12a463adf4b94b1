package wire

import (
	"regexp"
	"slices"
	"strings"

	"nize/store"
)

// npmDetail matches the lines of an npm error that name its place, not its cause.
var npmDetail = regexp.MustCompile(`^(code|syscall|errno|path|dest|command|signal|cwd|A complete log|Note that|Log files were not)\b`)

// telling matches lines in which exiting programs state the cause, the preferred form
// first. The lines after them name code locations or further reading.
var telling = []struct {
	form *regexp.Regexp
	last bool // use the last such line instead of the first
}{
	{regexp.MustCompile(`Error response from daemon: |Cannot connect to the Docker daemon|docker daemon socket`), true},
	{regexp.MustCompile(`╰─▶ `), false},                                  // uv
	{regexp.MustCompile(`^(ERROR|[Ee]rror): `), false},                   // pip, uv, docker
	{regexp.MustCompile(`^([\w.]+\.)?\w*(Error|Exception)\b.*: `), true}, // Node, Python
}

// LastWords returns the server's stated reason for its exit: the line that names the cause,
// if its program is known to write more after it, and otherwise its last lines.
func (r *StderrLog) LastWords() string {
	lines := strings.Split(strings.TrimSpace(string(r.Bytes())), "\n")
	lines = lines[max(0, len(lines)-100):]
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if found := tellingLine(lines); found != "" {
		return found
	}
	return r.lastLines(3)
}

// tellingLine returns the line that names the cause, or "". The lines must be trimmed.
func tellingLine(lines []string) string {
	if i := slices.IndexFunc(lines, namesNPMError); i >= 0 {
		return store.Clip(lines[i], 300)
	}
	for _, t := range telling {
		found := ""
		for _, l := range lines {
			if t.form.MatchString(l) && (found == "" || t.last) {
				found = l
			}
		}
		if found != "" {
			return store.Clip(found, 300)
		}
	}
	return ""
}

// namesNPMError reports whether a line is the one that names an npm error.
func namesNPMError(line string) bool {
	rest, now := strings.CutPrefix(line, "npm error ")
	if !now {
		if rest, now = strings.CutPrefix(line, "npm ERR! "); !now {
			return false
		}
	}
	return !npmDetail.MatchString(rest) && len(strings.Fields(rest)) >= 3
}

// Written returns the total number of bytes received.
func (r *StderrLog) Written() uint64 { return r.written() }

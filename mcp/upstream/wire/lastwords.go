package wire

import (
	"regexp"
	"slices"
	"strings"

	"nize/store"
)

// npmDetail are the lines of an npm error that say where and how, not what.
var npmDetail = regexp.MustCompile(`^(code|syscall|errno|path|dest|command|signal|cwd|A complete log|Note that|Log files were not)\b`)

// telling are lines in which programs that end say why, the first kind first;
// what follows them is where in the code, or what else to read.
var telling = []struct {
	form *regexp.Regexp
	last bool // the last such line counts, else the first
}{
	{regexp.MustCompile(`Error response from daemon: |Cannot connect to the Docker daemon|docker daemon socket`), true},
	{regexp.MustCompile(`╰─▶ `), false},                                  // uv
	{regexp.MustCompile(`^(ERROR|[Ee]rror): `), false},                   // pip, uv, docker
	{regexp.MustCompile(`^([\w.]+\.)?\w*(Error|Exception)\b.*: `), true}, // Node, Python
}

// LastWords is what a server said last of why it ends: the line that names the
// cause, where its program is known to go on after it, else its last lines.
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

// tellingLine is the line that names the cause, of lines without blanks around
// them; "" if there is none.
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

// namesNPMError says whether a line is the one of an npm error that names it.
func namesNPMError(line string) bool {
	rest, now := strings.CutPrefix(line, "npm error ")
	if !now {
		if rest, now = strings.CutPrefix(line, "npm ERR! "); !now {
			return false
		}
	}
	return !npmDetail.MatchString(rest) && len(strings.Fields(rest)) >= 3
}

// Written is how many bytes ever came.
func (r *StderrLog) Written() uint64 { return r.written() }

package nize

import (
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEveryTopicHasAText(t *testing.T) {
	for _, topic := range Topics {
		if text := topic.Text(); !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with a heading", topic.Path)
		}
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	topics = regexp.MustCompile("nizectl help ([a-z]+)")
	goFile = regexp.MustCompile("(?:^|[\\s(`])((?:[a-z0-9_]+/)*[a-z0-9_]+\\.go)\\b")
)

// TestLinks looks up every relative link of every page of the tree, with its
// heading, and every topic that a page names.
func TestLinks(t *testing.T) {
	known := map[string]bool{}
	for _, topic := range Topics {
		known[topic.Name] = true
	}
	walk(t, ".md", func(path string) {
		text := read(t, path)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			to := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				to = path
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if heading != "" && !anchors(read(t, to))[heading] {
				t.Errorf("%s links to %s: %s has no such heading", path, m[1], to)
			}
		}
		for _, m := range topics.FindAllStringSubmatch(text, -1) {
			if !known[m[1]] {
				t.Errorf("%s names nizectl help %s, which is not a topic", path, m[1])
			}
		}
	})
}

// outside are files of other projects that comments name.
var outside = map[string]string{
	"store/kv/bolt/check.go": "page.go and meta.go are bbolt's",
	"store/kv/bolt/walk.go":  "page.go and bucket.go are bbolt's",
}

// TestFilesThatAreNamed looks up every Go file that a comment or a page names:
// beside it, by its path in the tree, or by its path below the folder above.
func TestFilesThatAreNamed(t *testing.T) {
	check := func(path, text string) {
		for _, m := range goFile.FindAllStringSubmatch(text, -1) {
			dir := filepath.Dir(path)
			places := []string{m[1], filepath.Join(dir, m[1])}
			if strings.Contains(m[1], "/") {
				places = append(places, filepath.Join(filepath.Dir(dir), m[1]))
			}
			there := slices.ContainsFunc(places, func(p string) bool { _, err := os.Stat(p); return err == nil })
			if !there && outside[path] == "" {
				t.Errorf("%s names %s, which is not there", path, m[1])
			}
		}
	}
	walk(t, ".md", func(path string) {
		for i, part := range strings.Split(read(t, path), "\n```") {
			if i%2 == 0 { // not within a block
				check(path, part)
			}
		}
	})
	walk(t, ".go", func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			check(path, group.Text())
		}
	})
}

// walk calls f with the files of the tree that end so.
func walk(t *testing.T, end string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, end) {
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors are the headings of a page as links name them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if marks, head, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Trim(marks, "#") == "" {
			found[strings.ReplaceAll(strings.ToLower(strings.NewReplacer(",", "", ":", "", "`", "").Replace(head)), " ", "-")] = true
		}
	}
	return found
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)\(`)
)

// TestTestsThatAreNamed: every test that a page names as its proof exists, and each
// row of the tables of defences names one.
func TestTestsThatAreNamed(t *testing.T) {
	tests := map[string]bool{}
	walk(t, "_test.go", func(path string) {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
			tests[m[1]] = true
		}
	})
	walk(t, ".md", func(path string) {
		for _, m := range testName.FindAllStringSubmatch(read(t, path), -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which is not a test", path, m[1])
			}
		}
	})
	_, defended, _ := strings.Cut(read(t, "THREATS.md"), "\n## Defences\n")
	defended, _, found := strings.Cut(defended, "\n## ")
	if !found {
		t.Fatal("THREATS.md has no section Defences, or nothing after it")
	}
	for line := range strings.Lines(defended) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| threat |") && !strings.HasPrefix(line, "| --- ") && !testName.MatchString(line) {
			t.Errorf("THREATS.md names no test for %s", strings.TrimSpace(line))
		}
	}
}

// TestMap checks that the map has a row for each top-level directory of code, and that each
// package comment begins with one sentence of at most 120 characters, which `make map` prints.
func TestMap(t *testing.T) {
	_, text, found := strings.Cut(read(t, "README.md"), "\n## The map\n")
	if !found {
		t.Fatal("README.md has no map")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var rows []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.Trim(strings.Split(line, "|")[1], " `"))
		}
	}
	comments, top := map[string]string{}, map[string]bool{} // comments by directory
	walk(t, ".go", func(path string) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if first, _, below := strings.Cut(dir, "/"); below {
			top[first] = true
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		comments[dir] += file.Doc.Text()
	})
	if want := slices.Sorted(maps.Keys(top)); !slices.Equal(slices.Sorted(slices.Values(rows)), want) {
		t.Errorf("the map has rows for %v, the tree has %v", rows, want)
	}
	for dir, comment := range comments {
		switch line := new(doc.Package).Synopsis(comment); {
		case line == "":
			t.Errorf("%s has no package comment", dir)
		case !strings.HasSuffix(line, ".") && !strings.HasSuffix(line, ":"):
			t.Errorf("the comment of %s does not begin with a sentence: %s", dir, line)
		case utf8.RuneCountInString(line) > 120:
			t.Errorf("the first sentence of %s has %d characters, and at most 120 fit: %s", dir, utf8.RuneCountInString(line), line)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestComparison: the page has thirty points, says yes, no, part or ? of each program,
// explains each part, and has for each neighbour a source and what it does better.
func TestComparison(t *testing.T) {
	text := read(t, "COMPARISON.md")
	points := regexp.MustCompile(`(?m)^\| (\d+) [^|]+\|(.*)\|$`).FindAllStringSubmatch(text, -1)
	if len(points) != 30 {
		t.Errorf("%d points, want 30", len(points))
	}
	_, explained, _ := strings.Cut(text, "\nWhat `part` means:\n")
	explained, _, _ = strings.Cut(explained, "\n## ")
	for i, p := range points {
		if p[1] != strconv.Itoa(i+1) {
			t.Errorf("point %d is numbered %s", i+1, p[1])
		}
		cells := strings.Split(p[2], "|")
		if len(cells) != 8 {
			t.Errorf("point %s has %d programs, want 8", p[1], len(cells))
		}
		for _, c := range cells {
			switch word, _, _ := strings.Cut(strings.TrimSpace(c), " "); word {
			case "yes", "no", "?":
			case "part":
				if !strings.Contains(explained, "\n- **"+p[1]+"** ") {
					t.Errorf("point %s has a part that is not explained", p[1])
				}
			default:
				t.Errorf("point %s says %q", p[1], c)
			}
		}
	}
	if !regexp.MustCompile(`on\s+20\d\d-\d\d-\d\d`).MatchString(text) {
		t.Error("no date at which the sources were read")
	}
	_, sources, _ := strings.Cut(text, "\n## Sources\n")
	_, better, _ := strings.Cut(text, "\n## Strengths of the others\n")
	for _, name := range []string{"mcpproxy-go", "ToolHive", "agentgateway", "ContextForge", "Obot", "LibreChat", "Open WebUI"} {
		if !regexp.MustCompile(`(?s)- \*\*` + regexp.QuoteMeta(name) + `\*\*, [^*]*\([0-9a-f]{8}\)`).MatchString(sources) {
			t.Errorf("no source with its commit for %s", name)
		}
		if !strings.Contains(better, "- **"+name+"**: ") {
			t.Errorf("nothing that %s does better", name)
		}
	}
}

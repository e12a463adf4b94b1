package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

func tool(server, name, description string, params ...string) store.Tool {
	var ps []string
	for _, p := range params {
		ps = append(ps, fmt.Sprintf("%q:{}", p))
	}
	return store.Tool{Server: server, Name: name, Description: description,
		InputSchema: []byte(`{"type":"object","properties":{` + strings.Join(ps, ",") + `}}`)}
}

// office is a few servers that know different things.
var office = map[string][]store.Tool{
	"github": {
		tool("github", "create_issue", "Open a new issue in a repository", "owner", "repo", "title"),
		tool("github", "list_issues", "List the issues of a repository", "owner", "repo"),
		tool("github", "create_pull_request", "Create a pull request from a branch", "head", "base"),
		tool("github", "merge_pull_request", "Merge a pull request", "number"),
		tool("github", "delete_branch", "Delete a branch of a repository", "branch"),
		tool("github", "search_code", "Search for code in repositories", "query"),
	},
	"weather": {
		tool("weather", "get_forecast", "Weather forecast for a city, up to seven days", "city", "days"),
		tool("weather", "get_current", "Current weather conditions: temperature, wind, rain", "city"),
		tool("weather", "air_quality", "Air quality index of a place", "city"),
	},
	"files": {
		tool("files", "read_file", "Read the contents of a file", "path"),
		tool("files", "write_file", "Write text to a file", "path", "content"),
		tool("files", "delete_file", "Delete a file", "path"),
		tool("files", "list_directory", "List what is in a directory", "path"),
		tool("files", "search_files", "Find files by name", "pattern"),
	},
	"mail": {
		tool("mail", "send_email", "Send an email to one or more people", "to", "subject", "body"),
		tool("mail", "search_inbox", "Search the inbox for emails", "query"),
		tool("mail", "create_event", "Create a calendar event and invite guests", "start", "end"),
	},
	"db": {
		tool("db", "query", "Run a SQL query against the database", "sql"),
		tool("db", "list_tables", "List the tables of the database"),
		tool("db", "describe_table", "Describe the columns of a table", "table"),
	},
	"misc": {
		tool("misc", "translate_text", "Translate text into another language", "text", "language"),
		tool("misc", "convert_currency", "Convert an amount between currencies by today's exchange rate", "amount", "from", "to"),
		tool("misc", "roll_dice", "Roll dice", "sides"),
		tool("misc", "convert_timezone", "Convert a time between time zones", "time", "zone"),
		tool("misc", "bar_chart", "Generate a bar chart from data", "data"),
		tool("misc", "take_screenshot", "Take a screenshot of a web page", "url"),
		tool("misc", "book_train", "Search and book train tickets", "from", "to"),
		tool("misc", "stock_price", "Get the current price of a stock", "ticker"),
		tool("misc", "find_restaurant", "Find restaurants near a place", "place"),
		tool("misc", "calculate", "Evaluate a math expression", "expression"),
	},
}

func officeIndex(tb testing.TB, o Options) *Index {
	tb.Helper()
	x := New(o)
	tb.Cleanup(x.Close)
	for _, name := range []string{"github", "weather", "files", "mail", "db", "misc"} {
		replace(tb, x, name, office[name])
	}
	return x
}

func replace(tb testing.TB, x *Index, name string, tools []store.Tool) {
	tb.Helper()
	s := store.Server{Name: name, About: store.About{Description: "All about " + name}, Domain: domains[name]}
	if err := x.Replace(context.Background(), s, tools); err != nil {
		tb.Fatal(err)
	}
}

var domains = map[string]string{"github": "dev", "files": "dev"}

// ids runs a search that must succeed and returns the tools' ids.
func ids(tb testing.TB, x *Index, q Query) []string {
	tb.Helper()
	a, err := x.Search(context.Background(), q)
	if err != nil {
		tb.Fatalf("Search(%q): %v", q.Text, err)
	}
	var out []string
	for _, h := range a.Hits {
		if !(h.Score >= 0 && h.Score <= 1) {
			tb.Errorf("Search(%q): %s has score %v", q.Text, h.Tool.ID(), h.Score)
		}
		out = append(out, h.Tool.ID())
	}
	return out
}

func TestSearch(t *testing.T) {
	x := officeIndex(t, Options{})
	for in, want := range map[string]string{
		"open a new issue":                              "github:create_issue",
		"create_pull_request":                           "github:create_pull_request",
		"CreatePullRequest":                             "github:create_pull_request",
		"github.delete_branch":                          "github:delete_branch",
		"remove the file /tmp/a.txt":                    "files:delete_file",
		"will it rain in Paris":                         "weather:get_current",
		"wether forecast for Rome":                      "weather:get_forecast",
		"send a mail to Bob saying \"delete the file\"": "mail:send_email",
		"convert 5 dollars to another currency":         "misc:convert_currency",
		"merge pullrequest 7":                           "github:merge_pull_request",
		"screen shot of https://example.com/weather":    "misc:take_screenshot",
		"show the columns of the table 'issues'":        "db:describe_table",
		"what is in this folder? I mean its directory":  "files:list_directory",
	} {
		if got := ids(t, x, Query{Text: in}); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", in, got, want)
		}
	}
}

func TestSearchEdges(t *testing.T) {
	ctx := context.Background()
	empty := New(Options{})
	defer empty.Close()
	if a, err := empty.Search(ctx, Query{Text: "anything"}); err != nil || len(a.Hits) > 0 || a.Note == "" {
		t.Errorf("empty index: %+v, %v", a, err)
	}
	x := officeIndex(t, Options{})
	for _, text := range []string{"", "  \n\t", "\x00"} {
		if a, err := x.Search(ctx, Query{Text: text}); err != nil || len(a.Hits) > 0 || a.Note == "" {
			t.Errorf("Search(%q) = %+v, %v", text, a, err)
		}
	}
	if got := ids(t, x, Query{Text: "the file", TopK: 2}); len(got) != 2 {
		t.Errorf("TopK 2 gave %v", got)
	}
	if got := ids(t, x, Query{Text: "list file issue weather query convert", TopK: 1000}); len(got) > MaxTopK {
		t.Errorf("TopK 1000 gave %d", len(got))
	}
	if got := ids(t, x, Query{Text: "file", TopK: -1}); len(got) == 0 || len(got) > DefaultTopK {
		t.Errorf("TopK -1 gave %v", got)
	}
	a, err := x.Search(ctx, Query{Text: "knit a purple jumper for my cat with file", MinScore: 0.9})
	if err != nil || len(a.Hits) > 0 || a.Note == "" {
		t.Errorf("MinScore 0.9: %+v, %v", a, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.Search(cancelled, Query{Text: "file"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: %v", err)
	}
	if err := x.Replace(cancelled, store.Server{Name: "a"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled replace: %v", err)
	}
	for _, h := range must(x.Search(ctx, Query{Text: "read file"})).Hits {
		if h.Tool.InputSchema != nil || h.Tool.Description == "" {
			t.Errorf("hit %+v", h.Tool)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestNoteSaysWhenNothingFits(t *testing.T) {
	x := officeIndex(t, Options{})
	a := must(x.Search(context.Background(), Query{Text: "knit purple jumpers with seventeen needles while reading about whales", MinScore: 0.4}))
	if a.Note == "" {
		t.Errorf("no note on %d hits, best %v", len(a.Hits), a.Hits)
	}
	if a := must(x.Search(context.Background(), Query{Text: "create an issue in the repository", MinScore: 0.4})); a.Note != "" {
		t.Errorf("a note on a good answer: %q", a.Note)
	}
}

func TestDomainsAndFilter(t *testing.T) {
	x := officeIndex(t, Options{})
	for _, domain := range []string{"dev", "github"} {
		for _, id := range ids(t, x, Query{Text: "search for weather emails in the repository file", Domain: domain, TopK: 50}) {
			if server, _, _ := store.SplitToolID(id); server != "github" && (domain == "github" || server != "files") {
				t.Errorf("domain %s gave %s", domain, id)
			}
		}
	}
	if got := ids(t, x, Query{Text: "file", Domain: "nowhere"}); len(got) > 0 {
		t.Errorf("unknown domain gave %v", got)
	}
	got := x.Domains(nil)
	want := []Domain{
		{"db", "All about db", 3}, {"dev", "All about files · All about github", 11}, {"mail", "All about mail", 3},
		{"misc", "All about misc", 10}, {"weather", "All about weather", 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Domains: -want +got\n%s", diff)
	}
	onlyDB := func(t store.Tool) bool { return t.Server == "db" }
	if got := x.Domains(onlyDB); len(got) != 1 || got[0].ID != "db" || got[0].Tools != 3 {
		t.Errorf("Domains of one server: %v", got)
	}
	var all []string
	for after := ""; ; {
		tools, next := x.Domain("dev", after, 4, nil)
		for _, tl := range tools {
			all = append(all, tl.ID())
		}
		if next == "" {
			break
		}
		after = next
	}
	if len(all) != 11 || !slices.IsSorted(all) {
		t.Errorf("pages of code: %v", all)
	}
	if tools, next := x.Domain("dev", "", 4, onlyDB); len(tools) > 0 || next != "" {
		t.Errorf("hidden domain: %v, %q", tools, next)
	}
	if tools, next := x.Domain("dev", "", 0, nil); len(tools) > 0 || next != "" {
		t.Errorf("n of 0: %v, %q", tools, next)
	}
}

// A narrow view must still get TopK hits, from however deep they come.
func TestFilterKeepsTopKFull(t *testing.T) {
	servers, tools := large(3000)
	x := fill(t, Options{}, servers, tools)
	text := "list or get a resource by its name or id"
	for _, server := range []string{servers[5].Name, servers[200].Name} {
		n := len(tools[server])
		keep := func(t store.Tool) bool { return t.Server == server }
		matching := 0
		for _, id := range ids(t, x, Query{Text: text, TopK: MaxTopK, Domain: server}) {
			if s, _, _ := store.SplitToolID(id); s != server {
				t.Errorf("%s is not of %s", id, server)
			}
			matching++
		}
		got := ids(t, x, Query{Text: text, TopK: 5, Keep: keep})
		if len(got) != min(5, matching) {
			t.Errorf("%d of the %d tools of %s that match, want %d", len(got), n, server, min(5, matching))
		}
	}
	// The same order as among the visible tools of the whole ranking is not
	// promised; the same set of visible ones is, when all fit.
	even := func(t store.Tool) bool { return len(t.Name)%2 == 0 }
	if got := ids(t, x, Query{Text: text, TopK: 50, Keep: even}); len(got) != 50 {
		t.Errorf("half of 3,000 tools gave %d hits", len(got))
	}
}

func TestReplaceAndRemove(t *testing.T) {
	x := officeIndex(t, Options{})
	first := x.now.Load()
	if got := ids(t, x, Query{Text: "roll dice"}); got[0] != "misc:roll_dice" {
		t.Fatalf("before: %v", got)
	}
	tools := slices.DeleteFunc(slices.Clone(office["misc"]), func(t store.Tool) bool { return t.Name == "roll_dice" })
	tools = append(tools, tool("misc", "throw_coin", "Throw a coin"), tool("misc", "throw_coin", "The same name again"))
	replace(t, x, "misc", tools)
	if got := ids(t, x, Query{Text: "roll dice"}); slices.Contains(got, "misc:roll_dice") {
		t.Errorf("a removed tool was found: %v", got)
	}
	if got := ids(t, x, Query{Text: "throw a coin"}); len(got) == 0 || got[0] != "misc:throw_coin" || slices.Contains(got[1:], got[0]) {
		t.Errorf("a new tool: %v", got)
	}
	if first.live != 30 || x.now.Load().live != 30 {
		t.Errorf("tools: %d, then %d", first.live, x.now.Load().live)
	}
	docs := len(x.now.Load().docs)
	replace(t, x, "misc", tools)
	if n := len(x.now.Load().docs); n != docs {
		t.Errorf("replacing by the same made %d new docs", n-docs)
	}
	x.Remove("misc")
	x.Remove("misc")
	x.Remove("never was")
	if got := ids(t, x, Query{Text: "throw a coin"}); slices.Contains(got, "misc:throw_coin") {
		t.Errorf("a tool of a removed server was found: %v", got)
	}
	for name := range office {
		x.Remove(name)
	}
	if a := must(x.Search(context.Background(), Query{Text: "file"})); len(a.Hits) > 0 || a.Note == "" {
		t.Errorf("all removed: %+v", a)
	}
}

// What is indexed decides, not the order in which it came, nor what was there
// before, nor a compaction in between.
func TestDeterminism(t *testing.T) {
	servers, tools := corpus()
	straight := fill(t, Options{}, servers, tools)
	shuffled := slices.Clone(servers)
	rnd := rand.New(rand.NewPCG(1, 2))
	rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	other := New(Options{})
	defer other.Close()
	for i, s := range shuffled { // each first with wrong texts, then right
		wrong := slices.Clone(tools[s.Name])
		for k := range wrong {
			wrong[k].Description = strings.Replace(wrong[k].Description, " a ", " an entirely other ", 1)
		}
		other.Replace(context.Background(), store.Server{Name: s.Name, About: store.About{Description: "wrong"}}, wrong)
		other.Replace(context.Background(), store.Server{Name: "gone-" + s.Name}, wrong[:min(3, len(wrong))])
		if i%2 == 0 {
			other.Remove("gone-" + s.Name)
		}
	}
	for i, s := range shuffled {
		if err := other.Replace(context.Background(), s, tools[s.Name]); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			other.Remove("gone-" + s.Name)
		}
	}
	if docs, live := len(other.now.Load().docs), other.now.Load().live; docs > 2*live {
		t.Errorf("%d docs are kept for %d tools: no compaction", docs, live)
	}
	for _, text := range requests {
		q := Query{Text: text, TopK: 20}
		a, b := must(straight.Search(context.Background(), q)), must(other.Search(context.Background(), q))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("Search(%q) depends on history: -straight +other\n%s", text, diff)
		}
		if diff := cmp.Diff(a, must(straight.Search(context.Background(), q))); diff != "" {
			t.Errorf("Search(%q) differs from itself:\n%s", text, diff)
		}
	}
}

// A search waits for no update, however long that takes: here one never ends.
func TestSearchesDoNotWaitForUpdates(t *testing.T) {
	x := officeIndex(t, Options{})
	x.mu.Lock() // as Replace holds it while it reads tools
	defer x.mu.Unlock()
	answered := make(chan error, 1)
	go func() {
		a, err := x.Search(context.Background(), Query{Text: "read the contents of a file"})
		if err == nil && (len(a.Hits) == 0 || a.Hits[0].Tool.ID() != "files:read_file" || len(x.Domains(nil)) == 0 || len(x.Explain(Query{Text: "file"}, "files:read_file")) == 0) {
			err = fmt.Errorf("answer %+v", a)
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a search waits for an update")
	}
}

// Searches go on while servers are replaced and removed, and each answer is of
// one moment: a server's tools are never mixed from two lists.
func TestSearchWhileReplacing(t *testing.T) {
	servers, tools := large(600)
	x := fill(t, Options{}, servers, tools)
	versions := [2][]store.Tool{}
	for v := range versions {
		for i := range 20 {
			versions[v] = append(versions[v], tool("moving", fmt.Sprintf("zebra_%d_%d", v, i), "Count the zebras"))
		}
	}
	replace(t, x, "moving", versions[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				seen := make(map[string]bool)
				for _, id := range ids(t, x, Query{Text: "count zebras", TopK: 20}) {
					if strings.HasPrefix(id, "moving:") {
						seen[strings.Split(id, "_")[1]] = true
					}
				}
				if len(seen) != 1 {
					t.Errorf("tools of %d versions in one answer", len(seen))
					return
				}
				ids(t, x, Query{Text: requests[(g+i)%len(requests)]})
				ids(t, x, Query{Text: "qqxzk", TopK: 5}) // by vectors alone
			}
		})
	}
	for i := range 150 {
		replace(t, x, "moving", versions[i%2])
		s := servers[i%len(servers)]
		x.Remove(s.Name)
		if err := x.Replace(context.Background(), s, tools[s.Name]); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// A server that was used before wins a draw, and nothing more.
func TestServersUsedBefore(t *testing.T) {
	x := officeIndex(t, Options{})
	replace(t, x, "jira", []store.Tool{tool("jira", "create_issue", "Open a new issue in a project"), tool("jira", "list_issues", "List the issues of a project")})
	for _, server := range []string{"jira", "github"} {
		if got := ids(t, x, Query{Text: "create an issue", Servers: []string{server, "unknown"}}); got[0] != server+":create_issue" {
			t.Errorf("%s was used before: %v", server, got)
		}
	}
	if got := ids(t, x, Query{Text: "roll dice", Servers: []string{"jira"}}); got[0] != "misc:roll_dice" {
		t.Errorf("another server was used before: %v", got)
	}
}

func TestExplain(t *testing.T) {
	x := officeIndex(t, Options{})
	for _, id := range []string{"github:create_issue", "misc:roll_dice"} {
		shares := x.Explain(Query{Text: "creat a new isue in the repositry \"demo\""}, id)
		if len(shares) < len(Signals) {
			t.Fatalf("Explain(%s) = %v", id, shares)
		}
		sum := 0.0
		for _, s := range shares {
			sum += s.Value
		}
		if id == "github:create_issue" && sum < 1 || id == "misc:roll_dice" && sum > 1 {
			t.Errorf("shares of %s add up to %.2f: %v", id, sum, shares)
		}
	}
	if got := x.Explain(Query{Text: "file"}, "no:such"); got != nil {
		t.Errorf("Explain of an unknown tool: %v", got)
	}
	if got := x.Explain(Query{}, "files:read_file"); got != nil {
		t.Errorf("Explain of an empty request: %v", got)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range append(requests, "天气", "\xff\xfe", "{\"a\":", "<>", "''", "a b c d e f g h", "🙂 café") {
		f.Add(s, 5, 0.1)
	}
	servers, tools := large(300)
	x := fill(f, Options{}, servers, tools)
	f.Fuzz(func(t *testing.T, text string, k int, least float64) {
		a, err := x.Search(context.Background(), Query{Text: text, TopK: k, MinScore: least})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Hits) > MaxTopK {
			t.Fatalf("%d hits", len(a.Hits))
		}
		seen := make(map[string]bool)
		for _, h := range a.Hits {
			if id := h.Tool.ID(); seen[id] || h.Tool.Name == "" {
				t.Fatalf("%q twice or empty", id)
			} else {
				seen[id] = true
			}
			if !(h.Score >= 0 && h.Score <= 1) || h.Score < least {
				t.Fatalf("score %v below %v", h.Score, least)
			}
		}
		if len(a.Hits) == 0 && a.Note == "" {
			t.Fatal("nothing found and nothing said")
		}
	})
}

// A verb that every toolbox has and a part of a product's name are no fit.
func TestFitIsNoVerbAndNoPartOfAName(t *testing.T) {
	x := New(Options{})
	t.Cleanup(x.Close)
	replace(t, x, "files", []store.Tool{
		tool("files", "create_directory", "Create a new directory or ensure that it exists"),
		tool("files", "edit_file", "Makes line-based edits to a text file. Returns a git-style diff showing the changes made"),
	})
	q := Query{Text: "create a GitHub issue", MinScore: 0.4}
	if a := must(x.Search(context.Background(), q)); len(a.Hits) > 0 || len(a.Near) == 0 {
		t.Errorf("of files: %+v", a)
	}
	for _, said := range []string{"a GitHub repository", "a github repository"} {
		replace(t, x, "forge", []store.Tool{tool("forge", "create_issue", "Create an issue in "+said)})
		if a := must(x.Search(context.Background(), q)); len(a.Hits) == 0 || a.Hits[0].Tool.Name != "create_issue" {
			t.Errorf("of %s: %+v", said, a)
		}
	}
}

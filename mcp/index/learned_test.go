package index

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"nize/store"
)

func TestLearnable(t *testing.T) {
	x := officeIndex(t, Options{})
	for in, want := range map[string]string{
		"show me the open issues of Mrs. Doe":                "open issu 0",
		`send "top secret words" to bob@example.com`:         "send 2",
		"file files filing /etc/file":                        "file 1",
		"branch ghp_abcdefghijklmnopqrst and email 20261121": "branch email 1",
		"what is it":      " 0",
		"查看天气":            "get weather 0",
		"Zsófi Kovács":    " 0",
		"run a SQL query": "run sql queri 0",
	} {
		words, values := x.FeedbackWords(in)
		if got := fmt.Sprintf("%s %d", strings.Join(words, " "), values); got != want {
			t.Errorf("Learnable(%q) = %q, want %q", in, got, want)
		}
	}
}

// taught is the feedback of one person.
func taught(x *Index, requests ...string) (out []store.Feedback) {
	for _, r := range requests {
		words, values := x.FeedbackWords(r)
		out = append(out, store.Feedback{Words: words, Values: values})
	}
	return out
}

func first(t *testing.T, x *Index, q string) store.Hit {
	t.Helper()
	a, err := x.Search(context.Background(), Query{Text: q})
	if err != nil || len(a.Hits) == 0 {
		t.Fatalf("%q: %v, %v", q, a, err)
	}
	return a.Hits[0]
}

// What was learned moves a tool, changes no score, and is gone when forgotten.
func TestLearn(t *testing.T) {
	on := true
	x := New(Options{Learned: func() bool { return on }})
	defer x.Close()
	for _, name := range []string{"ark", "box"} {
		tools := []store.Tool{{Name: "convert", Description: "Converts an amount of money into dollars."}, {Name: "list", Description: "Lists invoices."}}
		if err := x.Replace(context.Background(), store.Server{Name: name}, tools); err != nil {
			t.Fatal(err)
		}
	}
	const q = "convert money into dollars"
	use := func() (v float64) {
		for _, s := range x.Explain(Query{Text: q}, "ark:convert") {
			if s.Signal == Use {
				v = s.Value
			}
		}
		return v
	}
	want := func(what, tool string) store.Hit {
		t.Helper()
		h := first(t, x, q)
		if h.Tool.ID() != tool {
			t.Errorf("%s: %s first, want %s", what, h.Tool.ID(), tool)
		}
		return h
	}
	before := want("nothing learned", "box:convert")
	if use() != 0 {
		t.Errorf("use is %v before anything was learned", use())
	}
	list := taught(x, "dollars for money, convert")
	x.SetFeedback("ark:convert", list)
	x.SetFeedback("gone:tool", list)
	x.SetFeedback("no tool id", list)
	if after := want("learned", "ark:convert"); math.Abs(after.Score-before.Score) > 1e-9 || use() <= 0 {
		t.Errorf("score %v was %v, use %v", after.Score, before.Score, use())
	}
	if got := first(t, x, "list invoices").Tool.Name; got != "list" {
		t.Errorf("another request: %s first", got)
	}
	on = false
	want("switched off", "box:convert")
	on = true
	x.SetFeedback("ark:convert", nil)
	want("one tool forgotten", "box:convert")
	x.SetFeedback("ark:convert", list)
	want("learned again", "ark:convert")
	x.ClearFeedback()
	want("all forgotten", "box:convert")
}

// However often and whatever was learned, it counts as one request does.
func TestLearnedIsCapped(t *testing.T) {
	x := officeIndex(t, Options{})
	const q = "delete a branch of the repository"
	var many []store.Feedback
	for range 3 * store.MaxFeedback {
		many = append(many, taught(x, q)...)
	}
	x.SetFeedback("files:read_file", many)
	if got := len(x.memory.of[source{tool: "files:read_file"}]); got != store.MaxFeedback {
		t.Errorf("%d pieces of feedback for one tool", got)
	}
	for _, s := range x.Explain(Query{Text: q}, "files:read_file") {
		if s.Signal == Use && s.Value > 1+useOfServer+1e-9 {
			t.Errorf("use gives %v", s.Value)
		}
	}
	if got := first(t, x, q).Tool.ID(); got != "github:delete_branch" {
		t.Errorf("%s climbed over the right tool by use alone", got)
	}
	if words, _ := x.FeedbackWords(strings.Repeat("file branch email weather city table issue repository code text translate amount currency dice chart data page train price stock restaurant ", 2)); len(words) != store.MaxFeedbackWords {
		t.Errorf("%d words of one request", len(words))
	}
}

// Requests for the tool beside it are not taken for the learned one.
func TestLearnedLeavesNeighboursAlone(t *testing.T) {
	x := officeIndex(t, Options{})
	x.SetFeedback("github:merge_pull_request", taught(x, "merge the pull request of the repository", "merge pull request"))
	x.SetFeedback("db:list_tables", taught(x, "list the tables of the database", "show tables in database"))
	for q, want := range map[string]string{
		"create a pull request in the repository":    "github:create_pull_request",
		"describe the columns of the database table": "db:describe_table",
		"run a query on the database":                "db:query",
	} {
		if got := first(t, x, q).Tool.ID(); got != want {
			t.Errorf("%q: %s first, want %s", q, got, want)
		}
	}
}

// Searching, learning, forgetting and updating at once.
func TestLearnAtOnce(t *testing.T) {
	x := officeIndex(t, Options{})
	list := taught(x, "delete the branch", "list the tables of the database", "send an email")
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 50 {
				switch n {
				case 0:
					x.SetFeedback("mail:send_email", list[:i%4])
				case 1:
					x.SetFeedback("db:list_tables", list)
					if i%10 == 0 {
						x.ClearFeedback()
					}
				case 2:
					replace(t, x, "db", office["db"][:1+i%3])
				default:
					if got := first(t, x, "send an email").Tool.ID(); got != "mail:send_email" {
						t.Errorf("%s first", got)
					}
				}
			}
		})
	}
	wg.Wait()
}

// What a model wrote helps the tool that it is about, and no further.
func TestSuggest(t *testing.T) {
	x := officeIndex(t, Options{Learned: func() bool { return false }}) // it needs no learning
	use := func(q, id string) (v float64) {
		for _, s := range x.Explain(Query{Text: q}, id) {
			if s.Signal == Use {
				v = s.Value
			}
		}
		return v
	}
	x.SetExamples("db:list_tables", []string{"list the tables of the database", "please show me which tables the database has", "", "zzz"})
	if v := use("list the tables of the database", "db:list_tables"); math.Abs(v-useOfExample) > 1e-9 {
		t.Errorf("an example gives %v", v)
	}
	if v := use("list the tables of the database", "db:describe_table"); v != 0 {
		t.Errorf("its neighbour gets %v", v)
	}
	x.ClearFeedback() // what was learned from use; this was not
	if use("list the tables of the database", "db:list_tables") == 0 {
		t.Error("examples are forgotten with what was learned")
	}

	// A definition that has the model write other tools' requests gains nothing.
	x.SetExamples("misc:roll_dice", []string{"delete a branch of the repository", "send an email", "list the tables of the database"})
	for q, want := range map[string]string{"delete a branch of the repository": "github:delete_branch", "send an email": "mail:send_email", "list the tables of the database": "db:list_tables"} {
		if v := use(q, "misc:roll_dice"); v != 0 {
			t.Errorf("%q gives the poisoned tool %v", q, v)
		}
		if got := first(t, x, q).Tool.ID(); got != want {
			t.Errorf("%q: %s first", q, got)
		}
	}
	x.SetExamples("db:list_tables", nil)
	if v := use("list the tables of the database", "db:list_tables"); v != 0 {
		t.Errorf("taken away, it gives %v", v)
	}
}

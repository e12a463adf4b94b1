package index

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func cut(s string) (words, joined []string) {
	sp := splitter{word: func(w string) { words = append(words, w) }, joined: func(w string, _ int) { joined = append(joined, w) }}
	sp.split(s)
	return words, joined
}

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"  ... !?":                   "",
		"create_pull_request":        "create pull request",
		"createPullRequest":          "create pull request",
		"CreatePullRequest":          "create pull request",
		"create-pull-request":        "create pull request",
		"Google.Contacts/Create":     "google contacts create",
		"HTTPServer":                 "http server",
		"parseJSONFile":              "parse json file",
		"listVMs":                    "list vms",
		"getURLsOf":                  "get urls of",
		"listAPIs and VMs":           "list apis and vms",
		"s3 ec2 k8s mp3 v2":          "s3 ec2 k8s mp3 v2",
		"base64 oauth2 sha256":       "base 64 oauth 2 sha 256",
		"page2of10":                  "page 2 of 10",
		"Alice's don't I'll":         "alice don i",
		"'quoted' it's":              "quoted it",
		"café Müller Łódź naïve":     "cafe muller lodz naive",
		"Ñandú ÇA Straße":            "nandu ca strase",
		"Москва Ünïcode":             "москва unicode",
		"天气":                         "天气",
		"查询天气预报":                     "查询 询天 天气 气预 预报",
		"用GitHub搜索":                  "用 git hub 搜索",
		"看":                          "看",
		"日本語テキスト":                    "日本 本語 語テ テキ キス スト",
		"날씨 정보":                      "날씨 정보",
		"a\x00b\xffc":                "a b c",
		"x_y__z":                     "x y z",
		"ALLCAPS":                    "allcaps",
		"iPhone15Pro":                "i phone 15 pro",
		strings.Repeat("a", 41):      "",
		strings.Repeat("Z9", 100):    "",
		"e\u0301te\u0301":            "ete",
		"𝒳 😀 ok":                     "𝒳 ok",
		"user@example.com":           "user example com",
		"/data/excel/Sales_2024.csv": "data excel sales 2024 csv",
	} {
		got, _ := cut(in)
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" && (len(got) > 0 || want != "") {
			t.Errorf("split(%q): -want +got\n%s", in, diff)
		}
	}
}

func TestJoined(t *testing.T) {
	for in, want := range map[string][]string{
		"GitHub":            {"github"},
		"GitHub LinkedIn":   {"github", "linkedin"},
		"CreatePullRequest": nil, // three parts are an identifier
		"aB":                nil,
		"github":            nil,
		"create_Contact":    nil,
	} {
		if _, got := cut(in); !slices.Equal(got, want) {
			t.Errorf("joined of %q: got %q, want %q", in, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	for in, want := range map[string]string{
		"repositories": "repositori", "repository": "repositori", "creating": "creat", "created": "creat",
		"files": "file", "api": "api", "s3": "s3", "天气": "天气", "deployments": "deploy", "москва": "москва",
	} {
		if got := stem(in); got != want {
			t.Errorf("stem(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"createPullRequest", "查询天气", "a\xff\xfe", "VMs' s3", "é́", "가나다", "A's"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, joined := cut(s)
		for _, w := range append(words, joined...) {
			if w == "" {
				t.Fatalf("split(%q) gave an empty word", s)
			}
			if !utf8.ValidString(w) && utf8.ValidString(s) {
				t.Fatalf("split(%q) broke a letter: %q", s, w)
			}
			stem(w)
		}
		again, _ := cut(s)
		if !slices.Equal(words, again) {
			t.Fatalf("split(%q) differs from itself", s)
		}
	})
}

func TestTable(t *testing.T) {
	var tab table
	empty := tab.view()
	if _, ok := empty.find("a"); ok {
		t.Error("an empty table has a word")
	}
	var views []tableView
	for i := range 5000 {
		w := strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		tab.add(w)
		if i%500 == 0 {
			views = append(views, tab.view())
		}
	}
	for _, v := range append(views, tab.view()) {
		for i, w := range tab.texts {
			n, ok := v.find(w)
			if want := i < len(v.texts); ok != want || ok && int(n) != i {
				t.Fatalf("view of %d words: find(%q) = %d, %v", len(v.texts), w, n, ok)
			}
		}
	}
}

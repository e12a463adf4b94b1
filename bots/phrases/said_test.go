package phrases

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, x := range []struct{ text, hans, hant string }{
		{"the tool is gone; it will not run", "此工具已不存在，不会运行", "此工具已不存在，不會執行"},
		{"the credential token of the team ops", "团队 ops 的凭据 token", "團隊 ops 的憑證 token"},
		{"Your daily budget of 200,000 tokens is used up. It resets on Monday, 2 January, 15:04 (Asia/Taipei). An admin can raise it.",
			"你的每日预算（200,000 个 token）已用完。预算将于 1月2日（星期一）15:04（Asia/Taipei）重置。管理员可以提高额度。",
			"你的每日預算（200,000 個 token）已用完。預算將於 1月2日（星期一）15:04（Asia/Taipei）重設。管理員可以提高額度。"},
		{"The monthly budget of team ops ($5.00) is used to 80 %: $4.00. It resets on Sunday, 1 March, 00:00 (UTC).",
			"团队 ops 的每月预算（$5.00）已使用 80%：$4.00。预算将于 3月1日（星期日）00:00（UTC）重置。",
			"團隊 ops 的每月預算（$5.00）已使用 80%：$4.00。預算將於 3月1日（星期日）00:00（UTC）重設。"},
		{"call 01X: refused: 2 different people of: admins (Ada, Bo); not Eve, who asked decides it",
			"你无权审批调用 01X；可审批的人：管理员（Ada, Bo）；发起人 Eve 除外，需其中 2 人分别批准",
			"你無權核准呼叫 01X；可核准的人：管理員（Ada, Bo）；發起人 Eve 除外，需其中 2 人分別核准"},
		{"call 01X is done: already decided", "调用 01X 已有结果：已完成", "呼叫 01X 已有結果：已完成"},
		{"call 01X: not found", "找不到调用 01X", "找不到呼叫 01X"},
		{"host аpple.com has letters that only look ASCII: in ASCII it is xn--pple-43d.com",
			"主机名 аpple.com 含有形似 ASCII 的字符：实际的 ASCII 写法为 xn--pple-43d.com", "主機名稱 аpple.com 含有形似 ASCII 的字元：實際的 ASCII 寫法為 xn--pple-43d.com"},
		{"The model service main is busy and asks to wait 1m30s. Please try again then.",
			"模型服务 main 正忙，请等待 1 分钟 30 秒后重试。", "模型服務 main 忙碌中，請等待 1 分鐘 30 秒後再試一次。"},
		{"90d", "90 天", "90 天"},
		{"denied by Ann", "Ann 已拒绝", "Ann 已拒絕"},
		{"cancelled by Ann", "Ann 已取消", "Ann 已取消"},
		{"edited", "已编辑", "已編輯"},
		{"its requester was disabled", "发起人已停用", "發起人已停用"},
		{"its requester was joined with Bo", "发起人已与 Bo 合并", "發起人已與 Bo 合併"},
		// %-signs in what others say are no verbs.
		{"its requester may no longer use box:%s%!d", "发起人已无权使用 box:%s%!d", "發起人已無權使用 box:%s%!d"},
		// What nobody of ours said stays.
		{"disk quota exceeded", "disk quota exceeded", "disk quota exceeded"},
		{strings.Repeat("call ", 2000), strings.Repeat("call ", 2000), strings.Repeat("call ", 2000)},
		{"", "", ""},
	} {
		if got := For("zh-CN").Translate(x.text); got != x.hans {
			t.Errorf("%q: got %q, want %q", x.text, got, x.hans)
		}
		if got := For("zh-TW").Translate(x.text); got != x.hant {
			t.Errorf("%q: got %q, want %q", x.text, got, x.hant)
		}
		if got := For("de").Translate(x.text); got != x.text {
			t.Errorf("in English %q became %q", x.text, got)
		}
	}
}

func TestProblem(t *testing.T) {
	for text, want := range map[string]string{
		"deciding about a call: call 01X: not found":               "找不到调用 01X",
		"answering for box:run: call 01X is done: already decided": "调用 01X 已有结果：已完成",
		"storing it: changed meanwhile":                            "内容已更改，请重新查看",
		"reading a file: done":                                     "reading a file: done",
		"no such thing":                                            "no such thing",
	} {
		if got := For("zh").Problem(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got, want := For("en").Problem(errors.New("invalid: write servers, or servers default")), "write servers, or servers default"; got != want {
		t.Errorf("in English: %q", got)
	}
}

// TestSentences keeps the list in step with the rooms that say them: each form
// has to stand in their source, word by word.
func TestSentences(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "phrases") {
			forms(t, name, known)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for text := range simplified() { // nize's last word in a stored conversation
		known[form(string(text))] = true
	}
	for _, list := range [][]sentence{sentences, misfits} {
		inStep(t, list, known)
	}
}

func inStep(t *testing.T, list []sentence, known map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.english] {
			t.Errorf("%q stands twice", s.english)
		}
		seen[s.english] = true
		if !known[form(s.english)] && !known[form(s.english)+" "] && !whole[s.english] {
			t.Errorf("nobody says %q any more", s.english)
		}
		for _, other := range []string{s.simplified, s.traditional} {
			if got, want := verbs(other), verbs(s.english); got != want {
				t.Errorf("%q takes the arguments %q, want %q", other, got, want)
			}
		}
	}
}

// whole are sentences that are put together of several parts in the source.
var whole = map[string]bool{
	"%v %s has letters that only look ASCII: in ASCII it is %s": true,
	"%v %s mixes %s letters: in ASCII it is %s":                 true,
	"admins (%s)":                                     true,
	"admins of the channel (%s)":                      true,
	"call %s: refused: %v":                            true,
	"The disk of nize is nearly full: %s %% are free": true,
	`invalid language "%s": use %s`:                   true,
	`"%s" is none of requester, admins, channel-admins, channel, user:U and group:G`: true,
	"reading conversation %s: not found":                                             true,
	`tool "%s" not found; search with discover_tools`:                                true,
	"unexpected end of JSON input":                                                   true, // encoding/json
	"an object with nothing in it":                                                   true,
	"has a form that the schema excludes":                                            true,
	"is the number %s, whose exponent is over %s":                                    true,
	// states of a server, which are codes, and what stands in Slack's manifest
	"ready": true, "connecting": true, "unreachable": true, "idle": true, "open": true, "disabled": true,
	"What can you do?": true, "Which tools can you use in this channel?": true, "My usage": true, "Show my token usage and cost this month": true,
}

var anyVerb = regexp.MustCompile(`%(?:\[\d+\]|\.\d)?[svdqf]`)

// form is a sentence without the kind of its verbs.
func form(text string) string {
	text = strings.ReplaceAll(text, `"%s"`, "%q")
	return strings.TrimSpace(anyVerb.ReplaceAllString(text, "\x00"))
}

// forms collects what a file could say: its literals, and those that are put
// together with values between them.
func forms(t *testing.T, name string, known map[string]bool) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := []string{"not found", "already decided", "refused", "invalid", "expired", "changed meanwhile", "already exists"}
	ast.Inspect(file, func(n ast.Node) bool {
		if kind, ok := unknownKind(n); ok {
			known[form(kind+` "%s" not found`)] = true
		}
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := joined(e)
		if !ok {
			return true
		}
		known[form(text)] = true
		for _, end := range ends {
			known[form(strings.ReplaceAll(text, "%w", end))] = true
		}
		return true
	})
}

// unknownKind reads a call of store.Unknown.
func unknownKind(n ast.Node) (kind string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 3 {
		return "", false
	}
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		ok = f.Sel.Name == "Unknown"
	case *ast.Ident:
		ok = f.Name == "Unknown"
	default:
		return "", false
	}
	kind, literal := joined(call.Args[0])
	return kind, ok && literal
}

// joined reads a literal, or a sum of which a part is one.
func joined(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, lok := joined(e.X)
		right, rok := joined(e.Y)
		if !lok {
			left = "%s"
		}
		if !rok {
			right = "%s"
		}
		return left + right, lok || rok
	}
	return "", false
}

// What is wrong with arguments is said place by place; names, values and a
// server's descriptions stay.
func TestMisfit(t *testing.T) {
	const head = "arguments don't fit box:run: "
	for text, want := range map[string]string{
		`/n must be an integer, received "x"`: "`/n` 应为整数，收到 \"x\"",
		`/n is required`:                      "`/n` 为必填项",
		`/to is required (string or null: who must be told; at once)`:                                    "`/to` 为必填项（字符串或空值：who must be told; at once）",
		`/to is required (who gets it)`:                                                                  "`/to` 为必填项（who gets it）",
		`/first name must be a string or an array, received an array of 3`:                               "`/first name` 应为字符串或数组，收到有 3 项的数组",
		`/u is not a parameter, did you mean /user?; and 2 more`:                                         "`/u` 不是参数；你是不是想用 `/user`？；另有 2 处",
		`/u is not a parameter; there are /a, /b; /n must be at least 3, received 2`:                     "`/u` 不是参数；可用的有 `/a, /b`；`/n` 不得小于 3，收到 2",
		`/c must be one of "red", "green", received "rod", did you mean "red"?`:                          "`/c` 应为以下之一：\"red\", \"green\"，收到 \"rod\"；你是不是想用 `\"red\"`？",
		`the arguments must have at least 1 properties and has 0, received an object with nothing in it`: "参数至少应有 1 个属性，现有 0 个，收到空对象",
		`/k must be "a" (or use another of the 3 forms)`:                                                 "`/k` 应为 \"a\"（或改用 3 种形式中的另一种）",
		// What was cut stays from there on, and what nobody of ours wrote as it is.
		`/n must be at least 3, received 2; /m must ma…`: "`/n` 不得小于 3，收到 2；/m must ma…",
		`no such rule`: "`no such rule`",
	} {
		if got, want := For("zh").Translate(head+text), "参数不符合 box:run 的定义："+want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	const outside = "/etc/passwd must be readable"
	if got := For("zh").Translate(outside); got != outside {
		t.Errorf("elsewhere: %q", got)
	}
}

func FuzzTranslate(f *testing.F) {
	for _, s := range sentences {
		f.Add(s.english)
	}
	for _, s := range misfits {
		f.Add("arguments don't fit box:run: /n " + s.english + ", received 1; /m " + s.english)
	}
	zh := For("zh")
	f.Fuzz(func(t *testing.T, text string) {
		if got := zh.Translate(text); strings.Contains(got, "%!") && !strings.Contains(text, "%!") {
			t.Errorf("%q became %q", text, got)
		}
	})
}

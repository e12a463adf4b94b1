package phrases

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// What is wrong with a call's arguments is a list of places with the rule that
// each breaks, as mcp/schema writes it for models:
//
//	/n must be an integer, received "x"; /to is required (string: who gets it)
//
// It is read piece by piece, in this context only, since "must be" could be
// anybody's words elsewhere. Names, values and a server's descriptions stay.

// unfit is the sentence whose second part is such a list.
const unfit = "arguments don't fit %s: %s"

// misfits are the rules. A %v is a kind of value, or a value.
var misfits = []sentence{
	{"they break a rule of the schema", "不符合定义中的规则", "不符合定義中的規則"},
	{"and %s more", "另有 %s 处", "另有 %s 處"},
	{"is required", "为必填项", "為必填項"},
	{"is required when %s is given", "在给出 %s 时为必填项", "在提供 %s 時為必填項"},
	{"is not allowed", "不允许使用", "不允許使用"},
	{"is not a parameter", "不是参数", "不是參數"},
	{"; there are %s", "；可用的有 `%s`", "；可用的有 `%s`"},
	{"; there are none", "；没有可用的参数", "；沒有可用的參數"},
	{"must be %v", "应为%v", "應為%v"},
	{"must be at least %s", "不得小于 %s", "不得小於 %s"},
	{"must be at most %s", "不得大于 %s", "不得大於 %s"},
	{"must be greater than %s", "应大于 %s", "應大於 %s"},
	{"must be less than %s", "应小于 %s", "應小於 %s"},
	{"must be a multiple of %s", "应为 %s 的倍数", "應為 %s 的倍數"},
	{"must have at least %s characters and has %s", "至少应有 %s 个字符，现有 %s 个", "至少應有 %s 個字元，現有 %s 個"},
	{"must have at most %s characters and has %s", "最多可有 %s 个字符，现有 %s 个", "最多可有 %s 個字元，現有 %s 個"},
	{"must match the pattern %s", "应符合模式 %s", "應符合模式 %s"},
	{"must have at least %s items and has %s", "至少应有 %s 项，现有 %s 项", "至少應有 %s 項，現有 %s 項"},
	{"must have at most %s items and has %s", "最多可有 %s 项，现有 %s 项", "最多可有 %s 項，現有 %s 項"},
	{"must not repeat an item (%s and %s are equal)", "各项不得重复（第 %s 项与第 %s 项相同，从 0 数起）", "各項不得重複（第 %s 項與第 %s 項相同，從 0 數起）"},
	{"has %s items too many", "多出 %s 项", "多出 %s 項"},
	{"lacks an item of the form that the schema asks for", "缺少符合定义要求的项", "缺少符合定義要求的項"},
	{"must have at least %s items of the form that the schema asks for and has %s", "至少应有 %s 个符合定义要求的项，现有 %s 个", "至少應有 %s 個符合定義要求的項，現有 %s 個"},
	{"must have at most %s items of that form and has %s", "此类项最多可有 %s 个，现有 %s 个", "此類項最多可有 %s 個，現有 %s 個"},
	{"must have at least %s properties and has %s", "至少应有 %s 个属性，现有 %s 个", "至少應有 %s 個屬性，現有 %s 個"},
	{"must have at most %s properties and has %s", "最多可有 %s 个属性，现有 %s 个", "最多可有 %s 個屬性，現有 %s 個"},
	{"must not have a property named %s", "不得有名为 %s 的属性", "不得有名為 %s 的屬性"},
	{"has a form that the schema excludes", "的形式为定义所排除", "的形式為定義所排除"},
	{"fits more than one of the forms that exclude each other (%s and %s, counted from 0)", "同时符合多个互斥的形式（%s 和 %s，从 0 数起）", "同時符合多個互斥的形式（%s 和 %s，從 0 數起）"},
	{"breaks the rule %s", "不符合规则 %s", "不符合規則 %s"},
	{"is nested deeper than %s", "嵌套超过 %s 层", "巢狀超過 %s 層"},
	{"is a number of %s digits, over the limit of %s", "是 %s 位的数字，上限为 %s 位", "是 %s 位的數字，上限為 %s 位"},
	{"is the number %s, whose exponent is over %s", "是数字 %s，其指数超过 %s", "是數字 %s，其指數超過 %s"},

	// what may follow a rule
	{", received %v", "，收到%v", "，收到%v"},
	{", did you mean %s?", "；你是不是想用 `%s`？", "；你是不是想用 `%s`？"},
	{" (or use another of the %s forms)", "（或改用 %s 种形式中的另一种）", "（或改用 %s 種形式中的另一種）"},

	// values
	{"one of %s … (%s in all)", "以下之一：%s …（共 %s 个）", "以下其中之一：%s …（共 %s 個）"},
	{"one of %s", "以下之一：%s", "以下其中之一：%s"},
	{"an object with nothing in it", "空对象", "空物件"},
	{"an object with %s", "含 %s 的对象", "含 %s 的物件"},
	{"an array of %s", "有 %s 项的数组", "有 %s 項的陣列"},
}

// schemaTypes are the kinds of JSON values, behind their article.
var schemaTypes = []sentence{
	{"string", "字符串", "字串"}, {"integer", "整数", "整數"}, {"number", "数字", "數字"}, {"boolean", "布尔值", "布林值"},
	{"array", "数组", "陣列"}, {"object", "对象", "物件"}, {"null", "空值", "空值"},
}

var misfitMatchers = sync.OnceValue(func() []matcher { return compile(misfits) })

// tails are what may stand behind a rule, in their order, each at most once.
var tails = []*regexp.Regexp{
	regexp.MustCompile(`(?s)\A(.+)( \(or use another of the \d+ forms\))\z`),
	regexp.MustCompile(`(?s)\A(.+?)(; there are .+)\z`),
	regexp.MustCompile(`(?s)\A(.+)(, did you mean [^?]+\?)\z`),
	regexp.MustCompile(`(?s)\A(.+?)(, received .+)\z`),
}

// misfit says a whole list. A piece that it doesn't know, such as one that was
// cut, stays as it is with all behind it; a list of which it knows nothing stands
// as code does.
func (c Catalogue) misfit(text string) string {
	var out []string
	rest := text
	for rest != "" {
		said, more, ok := c.firstPiece(rest)
		if !ok {
			break
		}
		out, rest = append(out, said), more
	}
	switch {
	case len(out) == 0:
		return "`" + text + "`"
	case rest != "":
		out = append(out, rest)
	}
	return strings.Join(out, "；")
}

// firstPiece says the shortest head of a list that is known, up to a semicolon.
func (c Catalogue) firstPiece(list string) (said, rest string, ok bool) {
	for at := 0; at <= len(list); {
		end := strings.Index(list[at:], "; ")
		if end < 0 {
			said, ok = c.piece(list)
			return said, "", ok
		}
		end += at
		if said, ok = c.piece(list[:end]); ok && !strings.HasPrefix(list[end:], "; there are ") {
			return said, list[end+2:], true
		}
		at = end + 2
	}
	return "", "", false
}

// piece says a place with its rule; a place may have spaces in it.
func (c Catalogue) piece(text string) (string, bool) {
	if said, ok := c.rule(text); ok {
		return said, true // it is about no place
	}
	for at := range text {
		if text[at] != ' ' {
			continue
		}
		said, ok := c.rule(text[at+1:])
		if !ok && strings.HasPrefix(text[at+1:], "is required") {
			return "", false // the description behind it has a semicolon, and what not
		}
		if !ok {
			continue
		}
		place := text[:at]
		if place == "the arguments" {
			place = c.pick(sentence{simplified: "参数", traditional: "引數"})
		} else {
			place = "`" + place + "` "
		}
		return place + said, true
	}
	return "", false
}

// rule says one with what stands behind it.
func (c Catalogue) rule(text string) (string, bool) {
	tail := ""
	for _, form := range tails {
		found := form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		if said, ok := c.among(misfitMatchers(), found[2], c.kind); ok {
			text, tail = found[1], said+tail
		}
	}
	if head, about, ok := strings.Cut(text, " ("); ok && strings.HasPrefix(head, "is required") && strings.HasSuffix(about, ")") {
		if said, ok := c.among(misfitMatchers(), head, c.kind); ok {
			return said + "（" + c.about(strings.TrimSuffix(about, ")")) + "）" + tail, true
		}
	}
	said, ok := c.among(misfitMatchers(), text, c.kind)
	return said + tail, ok
}

// about says what a parameter takes: its types, and what its server writes of it.
func (c Catalogue) about(text string) string {
	head, claim, has := strings.Cut(text, ": ")
	types, choice, chosen := strings.Cut(head, " one of ")
	if rest, ok := strings.CutPrefix(head, "one of "); ok {
		types, choice, chosen = "", rest, true
	}
	said := c.kind(types)
	if types != "" && said == " "+types {
		return text // no type: all of it is the server's
	}
	if chosen {
		said += " " + c.kind("one of "+choice)
	}
	said = strings.TrimSpace(said)
	if has {
		said += "：" + claim
	}
	return said
}

// kind says a value or some kinds of it. What it doesn't know stands apart.
func (c Catalogue) kind(text string) string {
	if said, ok := c.types(text); ok {
		return said
	}
	if strings.HasPrefix(text, "one of ") || strings.HasPrefix(text, "an object with ") || strings.HasPrefix(text, "an array of ") {
		if said, ok := c.among(misfitMatchers(), text, c.kind); ok {
			return said
		}
	}
	return " " + text
}

func (c Catalogue) types(text string) (string, bool) {
	var out []string
	for word := range strings.SplitSeq(text, " or ") {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "an "), "a ")
		known := ""
		for _, t := range schemaTypes {
			if t.english == word {
				known = c.pick(t)
			}
		}
		if known == "" {
			return "", false
		}
		out = append(out, known)
	}
	return strings.Join(out, "或"), true
}

// pick is a sentence in the catalogue's Chinese.
func (c Catalogue) pick(s sentence) string {
	if c.sentence(Units) == traditional()[Units] {
		return s.traditional
	}
	return s.simplified
}

// among says a text by the first form that it has; part says what a %v holds.
func (c Catalogue) among(forms []matcher, text string, part func(string) string) (string, bool) {
	for _, m := range forms {
		found := m.form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		args := make([]any, len(m.parts))
		for i, translated := range m.parts {
			args[i] = found[i+1]
			switch {
			case m.sentence.english == unfit && i == 1:
				args[i] = c.misfit(found[i+1])
			case translated:
				args[i] = part(found[i+1])
			}
		}
		if form := c.pick(m.sentence); len(args) > 0 {
			return fmt.Sprintf(form, args...), true
		}
		return c.pick(m.sentence), true
	}
	return "", false
}

package phrases

import (
	"strings"
	"testing"
	"unicode"
)

func TestFor(t *testing.T) {
	for locale, want := range map[string]string{
		"zh": "失败", "zh-CN": "失败", "zh_SG": "失败", "zh-Hans-HK": "失败", "zh_CN.UTF-8": "失败", "ZH-cn": "失败",
		"zh-Hant": "失敗", "zh-TW": "失敗", "zh-HK": "失敗", "zh_MO": "失敗", "zh-Hant-CN": "失敗", "zh_TW.Big5": "失敗", "zh_HK@stroke": "失敗",
		"C.UTF-8": "failed", "POSIX": "failed", ".": "failed",
	} {
		if got := For(locale).Say(StateFailed); got != want {
			t.Errorf("For(%q) says %q, want %q", locale, got, want)
		}
	}
	for _, locale := range []string{"", "en", "en-GB", "en_US", "xx-Yyyy-ZZ", "-"} {
		if got := For(locale).Say(StateDone); got != "done" {
			t.Errorf("For(%q) says %q", locale, got)
		}
	}
	if got := For("en").Say(CardBy, "100%"); got != "asked by 100%" {
		t.Errorf("got %q", got)
	}
}

// TestNoMarks: nize's texts use only code spans and lists, which every chat supports. Slack
// would show other Markdown marks literally. The planner's answers are Markdown, like those
// of other models.
func TestNoMarks(t *testing.T) {
	planner := "I would use `%s`, but I could not tell the **%s** from your words."
	for locale, texts := range map[string]map[Key]string{"zh-Hans": simplified(), "zh-Hant": traditional()} {
		for key, text := range texts {
			english := string(key)
			if english != planner && (strings.Contains(english+text, "**") || strings.Contains(english+text, "](")) {
				t.Errorf("%s: %q has marks", locale, english)
			}
		}
	}
}

// TestTraditional: a converted text has the ASCII of the simplified one, such as its arguments
// and commands. Each word that is replaced occurs, and none hides a longer one.
func TestTraditional(t *testing.T) {
	ascii := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII {
				return -1
			}
			return r
		}, text)
	}
	for key, text := range traditional() {
		if got, want := ascii(text), ascii(simplified()[key]); got != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
	var all strings.Builder
	stages := openccStages()
	for _, text := range simplified() {
		for _, s := range stages {
			text = s.convert(text)
		}
		all.WriteString(text + "\n")
	}
	for i := 0; i < len(taiwan); i += 2 {
		if !strings.Contains(all.String(), taiwan[i]) {
			t.Errorf("no text has %s", taiwan[i])
		}
		for j := i + 2; j < len(taiwan); j += 2 {
			if strings.Contains(taiwan[j], taiwan[i]) {
				t.Errorf("%s is before %s, which contains it", taiwan[i], taiwan[j])
			}
		}
	}
	for key, want := range map[Key]string{
		"the token does not allow it": "此權杖不允許使用它", "server %s": "伺服器 %s", "Approved: %s": "已核准：%s", "Send": "傳送", "Settings": "設定",
		"No tool fits.": "沒有合適的工具。", "Theme": "主題", "nizectl and nized are both %s": "nizectl 和 nized 都是 %s",
	} {
		if got := traditional()[key]; got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}

package phrases

import (
	"strings"
	"testing"
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

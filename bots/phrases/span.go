package phrases

import "strings"

// Span says a duration as settings write it, 90d or 4m25s, in words.
func (c Catalogue) Span(text string) string {
	if !spans.MatchString(text) {
		return text
	}
	if c[Language] != english[Language] {
		return c.span(text)
	}
	words := map[string]string{"d": "day", "h": "hour", "m": "minute", "s": "second"}
	var parts []string
	for _, m := range units.FindAllStringSubmatch(text, -1) {
		word := m[1] + " " + words[m[2]]
		if m[1] != "1" {
			word += "s"
		}
		parts = append(parts, word)
	}
	return strings.Join(parts, " ")
}

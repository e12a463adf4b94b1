package view

import (
	"strings"

	"golang.org/x/text/language"
)

// Locale returns the first tag of a browser's list (Accept-Language) as a tag with a
// region, because code written for window.openai finds en-US there, not en. If the tag has
// no region, it adds the most likely one. If the list is empty or invalid, it returns
// en-US.
func Locale(accepted string) string {
	first, _, _ := strings.Cut(accepted, ",")
	first, _, _ = strings.Cut(first, ";")
	tag, err := language.Parse(strings.TrimSpace(first))
	if err != nil || tag == language.Und {
		return "en-US"
	}
	base, script, region := tag.Raw()
	if region.String() != "ZZ" {
		return tag.String()
	}
	likely, _ := tag.Region()
	full := []any{base, likely}
	if usual, _ := language.Make(base.String() + "-" + likely.String()).Script(); script.String() != "Zzzz" && script != usual {
		full = append(full, script)
	}
	if tag, err = language.Compose(full...); err != nil {
		return "en-US"
	}
	return tag.String()
}

package llm

import (
	"fmt"
	"regexp"
	"strings"

	"nize/store"
)

// The frame around a tool's output. The system prompt and the frame itself tell the model
// that the content is data; the output can't close the frame, because closing marks in it
// are escaped.
const (
	frameOpen  = "<tool_result>\n"
	frameClose = "\n</tool_result>"
)

// An escaped mark has an additional backslash after its <. The marks around what
// accompanies a message (attachments.go) are escaped too, so that no data can pass for
// other data.
var (
	frameEscape   = regexp.MustCompile(`(?i)<(\\*/?(?:tool_result|earlier_message|attached_file))`)
	frameUnescape = regexp.MustCompile(`(?i)<\\(\\*/?(?:tool_result|earlier_message|attached_file))`)
)

// Frame marks a tool's output as data.
func Frame(text string) string {
	return frameOpen + frameEscape.ReplaceAllString(text, `<\$1`) + frameClose
}

// Unframe is the inverse of [Frame]; it returns text without a frame unchanged.
func Unframe(text string) string {
	inner, ok := strings.CutPrefix(text, frameOpen)
	if !ok {
		return text
	}
	return frameUnescape.ReplaceAllString(strings.TrimSuffix(inner, frameClose), `<$1`)
}

// Truncate shortens text to at most limit bytes at a character boundary, with a note of how
// much is missing.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head := store.Head(text, limit)
	return fmt.Sprintf("%s\n[cut: %d of %d bytes are left out]", head, len(text)-len(head), len(text))
}

package llm

import (
	"fmt"
	"regexp"
	"strings"

	"nize/store"
)

// The frame around what a tool returned. A model is told (by the system prompt
// and by the frame itself) that what stands in it is data; a text that holds
// the closing mark can't end it, because the mark is escaped.
const (
	frameOpen  = "<tool_result>\n"
	frameClose = "\n</tool_result>"
)

// An escaped mark has one backslash more behind its <. The marks around what
// comes with a message (attachments.go) are escaped too, so that no data can look
// like other data.
var (
	frameEscape   = regexp.MustCompile(`(?i)<(\\*/?(?:tool_result|earlier_message|attached_file))`)
	frameUnescape = regexp.MustCompile(`(?i)<\\(\\*/?(?:tool_result|earlier_message|attached_file))`)
)

// Frame marks a tool's output as data.
func Frame(text string) string {
	return frameOpen + frameEscape.ReplaceAllString(text, `<\$1`) + frameClose
}

// Unframe is the inverse of [Frame]; text without a frame is returned as it is.
func Unframe(text string) string {
	inner, ok := strings.CutPrefix(text, frameOpen)
	if !ok {
		return text
	}
	return frameUnescape.ReplaceAllString(strings.TrimSuffix(inner, frameClose), `<$1`)
}

// Truncate shortens text to at most limit bytes at a character's edge and says how
// much is missing.
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head := store.Head(text, limit)
	return fmt.Sprintf("%s\n[cut: %d of %d bytes are left out]", head, len(text)-len(head), len(text))
}

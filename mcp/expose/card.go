package expose

import (
	"fmt"
	"strings"
	"time"

	"nize/store"
	"nize/store/printable"
)

// PlainCard formats a waiting call as plain text with the content of its card in a chat
// (bots.PartsOf): all arguments in full, external text escaped, and claims of a server or a
// model prefixed with a bar and marked as claims.
func PlainCard(card store.Card, until, now time.Time) string {
	head, name := printable.Escape(card.Tool), ""
	if title := strings.Join(strings.Fields(card.Title), " "); title != "" {
		name, head = "\n"+head, `"`+strings.ReplaceAll(printable.Escape(store.Clip(title, 80)), `"`, "'")+`"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s?%s", head, name)
	for _, w := range card.Warnings {
		b.WriteString("\nwarning: " + printable.Escape(w.String()))
	}
	args, _ := printable.PrettyJSON(card.Args) // invalid JSON is returned quoted
	b.WriteString("\n  " + strings.ReplaceAll(args, "\n", "\n  "))
	fmt.Fprintf(&b, "\nserver %s\nasked by %s", printable.Escape(card.Server), printable.Escape(card.By))
	fmt.Fprintf(&b, "\nuntil %s (in %s)", until.UTC().Format("2006-01-02 15:04:05 MST"), store.SpanText(max(until.Sub(now), 0).Round(time.Second)))
	fmt.Fprintf(&b, "\nruns as: %s", printable.Escape(card.RunsAs.String()))
	for _, line := range []struct {
		head string
		text store.Text
	}{{"the server says", card.Claim}, {"asks because", card.Asks}, {"what would end that", card.Stops}} {
		if line.text != (store.Text{}) {
			b.WriteString("\n" + line.head + ": " + printable.Escape(line.text.String()))
		}
	}
	fmt.Fprintf(&b, "\nserver: %s", printable.Escape(card.Server+" ("+card.Where+")"))
	claim(&b, "description (the server's own claim):", card.Title+"\n"+card.Description)
	claim(&b, "why (the model's own words):", card.Why)
	fmt.Fprintf(&b, "\ndigest: %.12s…\ncall: %s", card.Digest, printable.Escape(card.Call))
	return b.String()
}

// claim writes another author's text, if there is any, so that none of its lines can be
// mistaken for one of nize's own.
func claim(b *strings.Builder, head, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	b.WriteString("\n" + head)
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("\n  | " + printable.Escape(strings.TrimRight(line, "\r")))
	}
}

package llm

import (
	"io"
	"log/slog"
	"testing"

	"nize/store"
)

// TestPlainly: a person reads the reason, and not what is only for the model.
func TestPlainly(t *testing.T) {
	w := &work{Agent: &Agent{Deps: Deps{Log: slog.New(slog.DiscardHandler)}}, thread: store.Thread{}}
	hint := store.Textf("%s; search with discover_tools", store.Textf("tool %q not found", "box:x"))
	for _, row := range []struct {
		answer       answer
		model, human string
	}{
		{w.refusal(&store.CallError{Code: store.CodeNotFound, Message: hint}, ""), `Nothing was done: tool "box:x" not found; search with discover_tools (not_found).`, `tool "box:x" not found`},
		{w.refusal(io.EOF, ""), `Nothing was done: nize had an internal error.`, `nize had an internal error`},
		{checkArgs(`[1]`), `The arguments were not a JSON object, so nothing was done. Send the call again with one JSON object.`, `The arguments were not a JSON object`},
		{unknownFunction("run", []string{"discover_tools"}), `There is no function "run", so nothing was done. The functions are discover_tools.`, `There is no function "run"`},
	} {
		if got := store.BriefText(row.answer.said).String(); got != row.human || row.answer.text != row.model {
			t.Errorf("%q, %q; want %q, %q", row.answer.text, got, row.model, row.human)
		}
	}
}

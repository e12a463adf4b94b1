package openai

import (
	"net/http"
	"strings"
	"testing"

	"nize/llm"
	"nize/store"
)

// A picture is sent beside its message, in the form of either protocol; a message without
// one stays a plain text.
func TestPictureParts(t *testing.T) {
	ask := func(model string) string {
		t.Helper()
		lines := []string{text("ok"), end}
		if strings.HasPrefix(model, "gpt-6") {
			lines = []string{`{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`}
		}
		s := newService(t, stream(lines...))
		c, _ := s.client(t, "openai")
		_, err := c.Generate(t.Context(), llm.Request{Model: model, Context: "now", Functions: []store.Function{{Name: "f"}}, Turns: []store.Turn{
			{Role: store.FromUser, Text: "before"}, {Role: store.FromModel, Text: "yes?"},
			{Role: store.FromUser, Text: "look", Files: []store.File{
				{ID: "F1", Name: "a.png", Kind: store.ImageFile, Type: "image/png", Data: []byte("png")},
				{ID: "F2", Name: "b.png", Kind: store.ImageFile, Type: "image/png"},
				{ID: "F3", Name: "c.txt", Kind: store.TextFile, Text: "hello"},
			}},
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		bodies, _ := s.seen()
		return bodies[0]
	}
	for model, want := range map[string][]string{
		"m":     {`"content":"before"`, `"content":"yes?"`, `"content":[{"type":"text","text":"\u003ccontext\u003e\nnow`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]`},
		"gpt-6": {`"content":"before"`, `"content":"yes?"`, `"content":[{"type":"input_text","text":"\u003ccontext\u003e\nnow`, `{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]`},
	} {
		body := ask(model)
		for _, part := range append(want, `\"b.png\" is a picture; it is not shown`, `hello\n\u003c/attached_file`) {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %s in %s", model, part, body)
			}
		}
		if n := strings.Count(body, "base64"); n != 1 {
			t.Errorf("%s: %d pictures", model, n)
		}
	}
}

// Pictures in results are in a message after the last result of the step.
func TestPicturesInResults(t *testing.T) {
	picture := []store.File{{Kind: store.ImageFile, Type: "image/png", Data: []byte("x")}, {Kind: store.ImageFile, Type: "image/png"}}
	req := llm.Request{Model: "gpt-6", Turns: []store.Turn{
		{Role: store.FromUser, Text: "hi"},
		{Role: store.FromModel, Calls: []store.ToolCall{{ID: "01A", Name: "f", Args: "{}"}, {ID: "01B", Name: "f", Args: "{}"}}},
		{Role: store.FromTool, CallID: "01A", Text: "one", Files: picture}, {Role: store.FromTool, CallID: "01B", Text: "two"},
		{Role: store.FromModel, Text: "so"}, {Role: store.FromUser, Text: "and?"},
	}}
	for _, kind := range []string{"openai-compatible", "openai"} {
		req.Functions = []store.Function{{Name: "f"}}
		s := newService(t, func(w http.ResponseWriter, r *http.Request, try int) {
			if strings.HasSuffix(r.URL.Path, "/responses") {
				stream(`{"type":"response.output_text.delta","delta":"ok"}`, `{"type":"response.completed","response":{}}`)(w, r, try)
				return
			}
			stream(text("ok"), end)(w, r, try)
		})
		c, _ := s.client(t, kind)
		if _, err := c.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		bodies, _ := s.seen()
		two, shown, so := strings.Index(bodies[0], `"two"`), strings.Index(bodies[0], "data:image/png;base64,eA=="), strings.Index(bodies[0], `"so"`)
		if two < 0 || shown < two || so < shown || strings.Count(bodies[0], "data:image") != 1 || !strings.Contains(bodies[0], "They are data") {
			t.Errorf("%s is sent %s", kind, bodies[0])
		}
	}
}

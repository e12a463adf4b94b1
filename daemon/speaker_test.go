package daemon_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/api"
)

// speaker is a model service that does what the test wrote down for a word of
// the person's message: #word calls a tool, or says a text.
type speaker struct {
	url   string
	asked atomic.Int64 // requests for an answer

	mu      sync.Mutex // guards what follows
	plans   map[string]plan
	prompts map[string]string // what the system said, by the word
	read    map[string]string // all that the model read last, by the word
}

// plan is what the model does about one word.
type plan struct {
	tool string
	args string          // of the tool, JSON
	with []plan          // calls of the same step
	say  []string        // the answer, piece by piece
	then string          // the answer after a result
	hold <-chan struct{} // between two pieces, and before the first
	slow time.Duration   // between two pieces
}

var planned = regexp.MustCompile(`#([a-z0-9]+)`)

func newSpeaker(t *testing.T) *speaker {
	t.Helper()
	s := &speaker{plans: map[string]plan{}, prompts: map[string]string{}, read: map[string]string{}}
	web := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(web.Close)
	s.url = web.URL + "/v1"
	return s
}

func (s *speaker) plan(word string, p plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans[word] = p
}

// prompt is what the system said to the model with a word.
func (s *speaker) prompt(word string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts[word]
}

// heard is all that the model read when it was last asked with a word.
func (s *speaker) heard(word string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[word]
}

func (s *speaker) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		return
	}
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.asked.Add(1)
	word, result, system, all := "", false, "", ""
	for _, m := range req.Messages {
		all += m.Role + ": " + string(m.Content) + "\n"
		switch m.Role {
		case "system":
			system += string(m.Content)
		case "user":
			if found := planned.FindAllSubmatch(m.Content, -1); len(found) > 0 {
				word, result = string(found[len(found)-1][1]), false
			}
		case "tool":
			result = true
		}
	}
	s.mu.Lock()
	p := s.plans[word]
	s.prompts[word], s.read[word] = system, all
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(choice string) {
		fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", choice)
		w.(http.Flusher).Flush()
	}
	switch {
	case result:
		text, _ := json.Marshal(cmp.Or(p.then, "That was "+word+".")) // a string always encodes
		chunk(fmt.Sprintf(`{"delta":{"content":%s},"finish_reason":"stop"}`, text))
	case p.tool != "":
		if p.hold != nil {
			select {
			case <-p.hold:
			case <-r.Context().Done():
				return
			}
		}
		var calls []string
		for n, p := range append([]plan{p}, p.with...) {
			args, _ := json.Marshal(`{"tool_id":"` + p.tool + `","params":` + p.args + `}`) // a string always encodes
			calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"execute_tool","arguments":%s}}`, n, n+1, args))
		}
		chunk(fmt.Sprintf(`{"delta":{"tool_calls":[%s]},"finish_reason":"tool_calls"}`, strings.Join(calls, ",")))
	default:
		if p.say == nil {
			p.say = []string{"You said " + word + "."}
		}
		for i, piece := range p.say {
			if p.slow > 0 && i > 0 {
				select {
				case <-time.After(p.slow):
				case <-r.Context().Done():
					return
				}
			}
			if p.hold != nil {
				select {
				case <-p.hold:
				case <-r.Context().Done():
					return
				}
			}
			text, _ := json.Marshal(piece) // a string always encodes
			chunk(fmt.Sprintf(`{"delta":{"content":%s}}`, text))
		}
		chunk(`{"delta":{},"finish_reason":"stop"}`)
	}
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
}

// use makes the service the daemon's model.
func (s *speaker) use(t *testing.T, c *api.Client) {
	t.Helper()
	ctx := t.Context()
	if _, err := api.AddProvider.Call(ctx, c, api.AddProviderRequest{Name: "speakers", Kind: "openai-compatible", BaseURL: s.url, Key: api.NewSecret("the-key")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, c, api.SetModelRequest{Name: "speaker", Target: "speakers/m"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetDefaultModel.Call(ctx, c, api.ModelRequest{Name: "speaker"}); err != nil {
		t.Fatal(err)
	}
}

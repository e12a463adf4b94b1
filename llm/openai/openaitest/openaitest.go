// Package openaitest is a fake model service that speaks OpenAI's protocol. It is
// independent of nize's code, so that mistakes on either side show.
//
// The model [Parrot] answers "Hello there.". Every name in [Faults] is a model too, with
// that fault; faults with calls propose what the newest message names: "go NAME ARGUMENTS".
// All of them answer a message that begins with "again" correctly, so that the turn after a
// fault shows its consequences.
//
// It is as strict as real services: it responds to requests that they would reject with a
// 400 that says why, and [Service.Refused] lists them.
package openaitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Parrot is the model without faults.
const Parrot = "parrot"

// Service is the fake service. Its base URL is URL + "/v1".
type Service struct {
	*httptest.Server
	key string

	mu      sync.Mutex // guards the fields below
	asked   map[string]int
	refused []string
	strayed []string
}

// New starts a service that accepts that key. Close ends it.
func New(key string) *Service {
	s := &Service{key: key, asked: make(map[string]int)}
	s.Server = httptest.NewServer(s)
	return s
}

// Refused returns why requests were rejected that no real service would have accepted.
func (s *Service) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Strayed returns requests that followed a redirect.
func (s *Service) Strayed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strayed)
}

// Asked returns how often a model was asked for the faulty response.
func (s *Service) Asked(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[model]
}

// request is the part of a request that the service reads.
type request struct {
	Model    string `json:"model"`
	Choice   string `json:"tool_choice"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		CallID  string          `json:"tool_call_id"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		s.mu.Lock()
		s.strayed = append(s.strayed, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.key {
		http.Error(w, `{"error":{"message":"Incorrect API key"}}`, http.StatusUnauthorized)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/models") {
		list := []map[string]string{{"id": Parrot}}
		for name := range Faults {
			list = append(list, map[string]string{"id": name})
		}
		json.NewEncoder(w).Encode(map[string]any{"data": list})
		return
	}
	body, err := io.ReadAll(r.Body)
	var req request
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err == nil && !utf8.Valid(body) {
		err = fmt.Errorf("the request is not UTF-8")
	}
	if err == nil {
		err = req.check()
	}
	if err != nil {
		s.mu.Lock()
		s.refused = append(s.refused, err.Error())
		s.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": err.Error()}})
		return
	}
	a := &answer{w: w, r: r, req: req, key: s.key, url: s.URL}
	fault := Faults[req.Model]
	if word, rest, _ := strings.Cut(req.newest(), " "); word == "again" {
		fault = nil
	} else {
		a.name, a.args, _ = strings.Cut(rest, " ")
	}
	// A fault in a call is over when its result is here.
	last := req.Messages[len(req.Messages)-1].Role
	if fault == nil || last == "tool" && req.Model != "endless" {
		a.text("Hello there.")
		a.end("stop")
		a.usage(`{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":200}}`)
		a.line("[DONE]")
		return
	}
	s.mu.Lock()
	s.asked[req.Model]++
	a.try = s.asked[req.Model]
	s.mu.Unlock()
	fault(a)
}

// newest returns the person's last message, without what precedes it.
func (req request) newest() string {
	for _, m := range slices.Backward(req.Messages) {
		var text string
		if m.Role == "user" && json.Unmarshal(m.Content, &text) == nil {
			return text[strings.LastIndex(text, "\n")+1:]
		}
	}
	return ""
}

var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check returns why a real service would reject the request.
func (req request) check() error {
	if len(req.Messages) == 0 {
		return fmt.Errorf("messages is empty")
	}
	open, seen := map[string]bool{}, map[string]bool{}
	for i, m := range req.Messages {
		if m.Role == "tool" {
			if !open[m.CallID] {
				return fmt.Errorf("messages[%d]: a result of the call %q, which none of the calls before it is", i, m.CallID)
			}
			delete(open, m.CallID)
		} else if len(open) > 0 {
			return fmt.Errorf("messages[%d]: %d calls before it have no result", i, len(open))
		}
		if empty := len(m.Content) == 0 || string(m.Content) == "null" || string(m.Content) == `""`; empty && len(m.Calls) == 0 {
			return fmt.Errorf("messages[%d]: it has no content", i)
		}
		for _, c := range m.Calls {
			switch {
			case c.ID == "" || len(c.ID) > 64 || seen[c.ID]:
				return fmt.Errorf("messages[%d]: a call's id %q is missing, too long or there twice", i, c.ID)
			case !legalName.MatchString(c.Function.Name):
				return fmt.Errorf("messages[%d]: invalid function name %q", i, c.Function.Name)
			case !json.Valid([]byte(c.Function.Arguments)):
				return fmt.Errorf("messages[%d]: arguments that are not JSON", i)
			}
			open[c.ID], seen[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls at the end have no result", len(open))
	}
	if req.Choice != "" && len(req.Tools) == 0 {
		return fmt.Errorf("tool_choice without tools")
	}
	for i, t := range req.Tools {
		if !legalName.MatchString(t.Function.Name) {
			return fmt.Errorf("tools[%d]: invalid name %q", i, t.Function.Name)
		}
	}
	return nil
}

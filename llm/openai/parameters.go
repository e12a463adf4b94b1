package openai

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"nize/llm"
	"nize/store"
	"nize/store/toolschema"
)

// The schemas of functions come from servers that nize does not control, and every
// service takes another part of JSON Schema. Most refuse the whole request for one
// schema, and with it every turn of a conversation. So each schema is sent in the
// form that services in general take; if a service refuses it all the same, the
// question is asked again with less, and what it took is remembered.

// forms are how the schemas of one set of functions are sent.
type forms struct {
	narrow bool     // in the subset of OpenAPI
	bare   []string // the functions whose schema only stands in the description
}

// parameters returns a function's schema in its form, and its description.
func (f forms) parameters(fn store.Function, keys bool) (json.RawMessage, string) {
	switch {
	case len(fn.Schema) == 0 || string(fn.Schema) == "null":
		return toolschema.Bare(), fn.Description
	case slices.Contains(f.bare, fn.Name):
		return toolschema.Bare(), strings.TrimSpace(fn.Description + "\nIts parameters are, as JSON Schema: " + store.Clip(string(fn.Schema), maxDescribed))
	case f.narrow:
		return toolschema.Narrow(fn.Schema), fn.Description
	}
	return toolschema.Plain(fn.Schema, keys), fn.Description
}

// maxDescribed bounds a schema that stands in a description.
const maxDescribed = 2000

// knownForms remembers what a model took of a set of functions, where it refused
// more.
type knownForms struct {
	mu    sync.Mutex
	known map[string]forms
}

// maxKnown bounds what is remembered; when it is full, all is tried again.
const maxKnown = 256

func (k *knownForms) get(key string) (forms, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, ok := k.known[key]
	return f, ok
}

func (k *knownForms) put(key string, f forms) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= maxKnown {
		k.known = map[string]forms{}
	}
	k.known[key] = f
}

// formsKey stands for a model and a set of functions.
func formsKey(req llm.Request) string {
	h := fnv.New128a()
	for _, f := range req.Functions {
		io.WriteString(h, f.Name+"\x00")
		h.Write(f.Schema)
		h.Write([]byte{0})
	}
	return req.Model + string(h.Sum(nil))
}

// isGemini and isClaude report whether a model takes what these take, also behind
// another service.
func (c *Client) isGemini(model string) bool {
	return c.is("gemini") || strings.Contains(strings.ToLower(model), "gemini")
}

func (c *Client) isClaude(model string) bool {
	return c.is("anthropic") || strings.Contains(strings.ToLower(model), "claude")
}

// withForms asks with the functions in one form after another, until the service
// does not refuse them. ask has done nothing if it fails.
func (c *Client) withForms(req llm.Request, ask func(forms) error) error {
	if len(req.Functions) == 0 {
		return ask(forms{})
	}
	key := formsKey(req)
	f, ok := c.forms.get(key)
	if !ok {
		f.narrow = c.isGemini(req.Model)
	}
	first := f
	for asked := 1; ; asked++ {
		err := ask(f)
		if err == nil {
			if f.narrow != first.narrow || len(f.bare) != len(first.bare) {
				c.forms.put(key, f)
			}
			return nil
		}
		next, ok := f.less(req.Functions, err)
		if !ok {
			return err
		}
		if asked >= mostAsked { // a service that names one function at a time
			next = forms{narrow: true, bare: namesOf(req.Functions)}
		}
		c.opt.Log.Info("model service is asked again with simpler schemas", "provider", c.opt.Provider.Name, "model", req.Model, "narrow", next.narrow, "bare", next.bare, "error", err)
		f = next
	}
}

// less is the form to try after a refusal; ok is false if the refusal is not about
// schemas, or if there is none left.
func (f forms) less(functions []store.Function, err error) (_ forms, ok bool) {
	message, ok := aboutSchemas(err)
	if !ok || len(f.bare) == len(functions) {
		return f, false
	}
	if !f.narrow {
		return forms{narrow: true, bare: f.bare}, true
	}
	named := namedFunctions(functions, message)
	named = slices.DeleteFunc(named, func(n string) bool { return slices.Contains(f.bare, n) })
	if len(named) == 0 {
		for _, fn := range functions {
			if !slices.Contains(f.bare, fn.Name) {
				named = append(named, fn.Name)
			}
		}
	}
	return forms{narrow: true, bare: append(slices.Clone(f.bare), named...)}, true
}

// mostAsked is how often a question is asked before no schema is sent any more.
const mostAsked = 5

func namesOf(functions []store.Function) (names []string) {
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return names
}

// schemaWords are in the refusals that are about functions.
var schemaWords = []string{"schema", "function", "tool", "parameter", "propert", "json payload", "unknown name", "type", "anyof", "oneof", "allof", "$ref", "enum", "items", "argument", "unmarshal"}

// aboutSchemas returns what a service said, if it may have refused a request because
// of a schema.
func aboutSchemas(err error) (message string, ok bool) {
	var pe *llm.ProviderError
	if !errors.As(err, &pe) || pe.Fault != llm.FaultRequest || pe.Status != 400 && pe.Status != 422 {
		return "", false
	}
	lower := strings.ToLower(pe.Message)
	if strings.Contains(lower, "v1/responses") { // it wants another API
		return "", false
	}
	return pe.Message, lower == "" || slices.ContainsFunc(schemaWords, func(w string) bool { return strings.Contains(lower, w) })
}

// place is how services name a function by its place among all.
var place = regexp.MustCompile(`(?i)(?:tools|functions|function_declarations)[.\[]+(\d+)`)

// namedFunctions lists the functions that a refusal names.
func namedFunctions(functions []store.Function, message string) (named []string) {
	for i, f := range functions {
		words := strings.FieldsFunc(message, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
		})
		found := slices.Contains(words, f.Name)
		for _, at := range place.FindAllStringSubmatch(message, -1) {
			n, err := strconv.Atoi(at[1])
			found = found || err == nil && n == i
		}
		if found {
			named = append(named, f.Name)
		}
	}
	return named
}

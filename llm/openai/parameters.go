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

// The schemas of functions come from servers that nize doesn't control, and each service
// supports a different part of JSON Schema. Most reject the whole request because of one
// schema, and with it every turn of a conversation. So each schema is sent in a form that
// services usually accept. If a service still rejects it, the request is repeated with
// simpler forms, and the accepted form is remembered.

// forms says in which form the schemas of a set of functions are sent.
type forms struct {
	narrow bool     // in the subset of OpenAPI
	bare   []string // functions whose schema is only in the description
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

// maxDescribed limits a schema in a description.
const maxDescribed = 2000

// knownForms remembers the form that a model accepted for a set of functions, if it
// rejected a richer one.
type knownForms struct {
	mu    sync.Mutex
	known map[string]forms
}

// maxKnown limits the entries; if it is reached, all are dropped.
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

// formsKey returns the key for a model and a set of functions.
func formsKey(req llm.Request) string {
	h := fnv.New128a()
	for _, f := range req.Functions {
		io.WriteString(h, f.Name+"\x00")
		h.Write(f.Schema)
		h.Write([]byte{0})
	}
	return req.Model + string(h.Sum(nil))
}

// isGemini and isClaude report whether a model has the limits of these models, also behind
// another service.
func (c *Client) isGemini(model string) bool {
	return c.is("gemini") || strings.Contains(strings.ToLower(model), "gemini")
}

func (c *Client) isClaude(model string) bool {
	return c.is("anthropic") || strings.Contains(strings.ToLower(model), "claude")
}

// withForms calls ask with one form of the functions after another, until the service
// doesn't reject them. A failed ask must have no effect.
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

// less returns the form to try after a rejection; ok is false if the rejection is not about
// schemas, or if there is no simpler form.
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

// mostAsked is how often a request is sent before all schemas are dropped.
const mostAsked = 5

func namesOf(functions []store.Function) (names []string) {
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return names
}

// schemaWords occur in rejections that are about functions.
var schemaWords = []string{"schema", "function", "tool", "parameter", "propert", "json payload", "unknown name", "type", "anyof", "oneof", "allof", "$ref", "enum", "items", "argument", "unmarshal"}

// aboutSchemas returns a service's message if it may have rejected a request because of a
// schema.
func aboutSchemas(err error) (message string, ok bool) {
	var pe *llm.ProviderError
	if !errors.As(err, &pe) || pe.Fault != llm.FaultRequest || pe.Status != 400 && pe.Status != 422 {
		return "", false
	}
	lower := strings.ToLower(pe.Message)
	if strings.Contains(lower, "v1/responses") { // it requires the other API
		return "", false
	}
	return pe.Message, lower == "" || slices.ContainsFunc(schemaWords, func(w string) bool { return strings.Contains(lower, w) })
}

// place matches a function's index, by which services refer to it.
var place = regexp.MustCompile(`(?i)(?:tools|functions|function_declarations)[.\[]+(\d+)`)

// namedFunctions lists the functions that a rejection names.
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

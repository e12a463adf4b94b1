package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/llm"
)

// Differences of services from OpenAI's own, by kind. They are taken from the services'
// documentation or responses; a test has each.
//
//   - anthropic doesn't accept tool_choice none together with its thinking, lists
//     its models with its own headers, and reports missing credit with 400.
//   - Services support different parts of JSON Schema; see parameters.go.
//   - gemini requires the signature beside a call back, doesn't accept a schema
//     without properties, prefixes names with models/, wraps errors in a list
//     and reports a wrong key with 400.
//   - mistral accepts only ids of nine letters and digits, no unknown fields,
//     stream_options among them, and no person's message directly after a
//     tool's result.
//   - xai reports a wrong key with 400 and a withheld answer with 403, and
//     counts reasoning apart from the completion, as gemini does.

// Kinds are the supported services, and whether they need a key.
var Kinds = map[string]bool{
	"openai": true, "anthropic": true, "gemini": true, "mistral": true, "xai": true, "azure": true, "openrouter": true, "deepseek": true, "groq": true,
	"ollama": false, "openai-compatible": false,
}

// KindOf returns the kind of the service at a URL: a known one by its host, otherwise the
// generic one.
func KindOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "openai-compatible"
	}
	for kind, known := range baseURLs {
		if k, err := url.Parse(known); err == nil && k.Host == u.Host {
			return kind
		}
	}
	if strings.HasSuffix(u.Hostname(), ".openai.azure.com") {
		return "azure"
	}
	return "openai-compatible"
}

func (c *Client) is(kind string) bool { return c.opt.Provider.Kind == kind }

// legalMistralID matches the ids of calls that Mistral accepts.
var legalMistralID = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

// kindID returns a call's id in the form that the kind of service accepts.
func (c *Client) kindID(id string) string {
	if !c.is("mistral") || legalMistralID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	return text[len(text)-9:] // the same in every request
}

// bridgeToolResults inserts a short text of the model between a tool's result and a
// person's next message, if the service requires one.
func (c *Client) bridgeToolResults(list []message) []message {
	if !c.is("mistral") {
		return list
	}
	var out []message
	for i, m := range list {
		if m.Role == "user" && i > 0 && list[i-1].Role == "tool" {
			out = append(out, message{Role: "assistant", Content: json.RawMessage(`"(no answer)"`)})
		}
		out = append(out, m)
	}
	return out
}

// skipSignature is documented by Google for calls without a signature, which another model
// made.
var skipSignature = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)

// signCalls restores what the service put beside each call.
func (c *Client) signCalls(calls []call, own opaque) {
	if len(own.Extra) == len(calls) {
		for i, extra := range own.Extra {
			if string(extra) != "null" {
				calls[i].Extra = extra
			}
		}
	}
	if c.is("gemini") && len(calls) > 0 && len(calls[0].Extra) == 0 {
		calls[0].Extra = skipSignature
	}
}

// noParameters reports whether a function's schema must be omitted.
func (c *Client) noParameters(schema json.RawMessage) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return c.is("gemini") && json.Unmarshal(schema, &s) == nil && len(s.Properties) == 0
}

// addHeaders sets the headers that a kind of service needs in addition to the usual
// authorization.
func (c *Client) addHeaders(req *http.Request) {
	key := c.opt.Provider.Key.Reveal()
	switch {
	case c.is("azure"):
		req.Header.Set("api-key", key)
	case c.is("anthropic") && strings.HasSuffix(req.URL.Path, "/models"): // its own API instead of the compatible one
		req.Header.Del("Authorization")
		req.Header.Set("x-api-key", key)
		req.Header.Set("anthropic-version", "2023-06-01")
		req.URL.RawQuery = "limit=1000"
	}
}

// kindFault returns the fault for statuses that a kind of service uses differently; ""
// otherwise.
func (c *Client) kindFault(status int, raw []byte) llm.Fault {
	text := strings.ToLower(string(raw))
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case status == 400 && c.is("anthropic") && has("credit balance is too low"):
		return llm.FaultCredit
	case status == 400 && c.is("gemini") && has("api_key_invalid", "api key not valid"):
		return llm.FaultAuth
	case status == 400 && c.is("xai") && has("incorrect api key"):
		return llm.FaultAuth
	case (status == 403 || status == 429) && c.is("xai") && has("credits", "spending limit"):
		return llm.FaultCredit
	case status == 403 && c.is("xai") && has("usage guidelines"):
		return llm.FaultWithheld
	}
	return ""
}

// unwrapError extracts an error from the list in which Gemini sends it.
func unwrapError(raw []byte) []byte {
	var list []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// retryDelay returns Gemini's Retry-After, which is in the error.
func retryDelay(raw []byte) time.Duration {
	var body struct {
		Error struct {
			Details []struct {
				Delay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil {
		return 0
	}
	for _, d := range body.Error.Details {
		if wait, err := time.ParseDuration(cmp.Or(d.Delay, "0s")); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

// release matches the suffix of a release of a model, and variant the suffix that
// OpenRouter accepts after every name.
var (
	release = regexp.MustCompile(`^-(\d{4,8}|\d{4}-\d{2}-\d{2}|latest)$`)
	variant = regexp.MustCompile(`:[a-z]+$`)
)

// Offers reports whether a service that lists those models offers the named one. Services
// accept more names than they list: a release without its date, a model without its tag, or
// a name of one's own.
func Offers(kind string, listed []string, model string) bool {
	if kind == "azure" { // deployment names are not listed
		return true
	}
	short := strings.TrimSuffix(strings.TrimPrefix(model, "models/"), "-latest")
	if kind == "openrouter" {
		short = variant.ReplaceAllString(short, "")
	}
	return slices.ContainsFunc(listed, func(have string) bool {
		rest, ok := strings.CutPrefix(have, short)
		return have == model || ok && (rest == "" || rest == ":latest" || release.MatchString(rest))
	})
}

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

// Where services differ from OpenAI's own, by kind. What is here was read in their
// documentation, or in what they answer; a test has each.
//
//   - anthropic takes no tool_choice none together with its thinking, lists its
//     models with headers of its own, and says with 400 that there is no credit.
//   - Services differ in what they take of JSON Schema; see parameters.go.
//   - gemini wants the signature back that stands beside a call, takes no schema
//     without properties, writes models/ before names, wraps errors into a list
//     and says with 400 that a key is wrong.
//   - mistral takes ids of nine letters and digits, no fields that it doesn't
//     know, stream_options among them, and no message of a person right behind a
//     tool's result.
//   - xai says with 400 that a key is wrong and with 403 that it withholds an
//     answer, and counts reasoning beside the completion, as gemini does.

// Kinds are the services that this room speaks to, and whether they need a key.
var Kinds = map[string]bool{
	"openai": true, "anthropic": true, "gemini": true, "mistral": true, "xai": true, "azure": true, "openrouter": true, "deepseek": true, "groq": true,
	"ollama": false, "openai-compatible": false,
}

// KindOf is the kind of the service at an address: one that is known by its
// host, else any that speaks the protocol.
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

// legalMistralID is what Mistral takes as the id of a call.
var legalMistralID = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)

// kindID is a call's id in the form that the kind of service takes.
func (c *Client) kindID(id string) string {
	if !c.is("mistral") || legalMistralID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	return text[len(text)-9:] // the same in every request
}

// bridgeToolResults puts a word of the model between a tool's result and the
// next message of a person, where the service wants one.
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

// skipSignature is what Google documents for calls that have no signature, since
// another model made them.
var skipSignature = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)

// signCalls gives each call back what the service put beside it.
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

// noParameters reports whether a function's schema is to be left out.
func (c *Client) noParameters(schema json.RawMessage) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return c.is("gemini") && json.Unmarshal(schema, &s) == nil && len(s.Properties) == 0
}

// addHeaders sets what a kind of service wants beside the usual authorization.
func (c *Client) addHeaders(req *http.Request) {
	key := c.opt.Provider.Key.Reveal()
	switch {
	case c.is("azure"):
		req.Header.Set("api-key", key)
	case c.is("anthropic") && strings.HasSuffix(req.URL.Path, "/models"): // its own API, not the compatible one
		req.Header.Del("Authorization")
		req.Header.Set("x-api-key", key)
		req.Header.Set("anthropic-version", "2023-06-01")
		req.URL.RawQuery = "limit=1000"
	}
}

// kindFault is the fault of a refusal that a kind of service gives another status
// than is usual; "" for all others.
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

// unwrapError takes an error out of the list in which Gemini gives it.
func unwrapError(raw []byte) []byte {
	var list []json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// retryDelay is Gemini's Retry-After, which stands in the error.
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

// release is what stands behind a model's name in that of a release of it, and
// variant what OpenRouter takes behind every name.
var (
	release = regexp.MustCompile(`^-(\d{4,8}|\d{4}-\d{2}-\d{2}|latest)$`)
	variant = regexp.MustCompile(`:[a-z]+$`)
)

// Offers says whether a service that lists those models has one of that name.
// Services take more names than they list: of a release without its date, of a
// model without its tag, of what runs under a name of one's own.
func Offers(kind string, listed []string, model string) bool {
	if kind == "azure" { // the names of deployments are not listed
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

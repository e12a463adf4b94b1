package openai

import (
	"encoding/json"
	"regexp"
	"strings"

	"nize/llm"
	"nize/store"
)

// A request contains what models wrote earlier. Services reject the whole request if it
// contains something that they would not have written themselves. Since it is sent again
// with every message, that conversation would never get an answer again. So it is sent in a
// form that all services accept.

// invalidName replaces a function name that no service would accept.
const invalidName = "invalid_tool_name"

var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// requestName returns a called function's name in the form that is sent back.
func requestName(name string) string {
	if legalName.MatchString(name) {
		return name
	}
	return invalidName
}

// legalID matches the ids that services accept even if they did not choose them.
var legalID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// callIDs chooses the id of each call for the service: the id that a service gave it,
// unless two calls have the same, or it is from another service and not in the form that
// all accept.
func (c *Client) callIDs(turns []store.Turn) map[string]string {
	seen := make(map[string]int)
	for _, t := range turns {
		for _, tc := range t.Calls {
			seen[tc.Provider]++
		}
	}
	ids := make(map[string]string)
	for _, t := range turns {
		own := strings.HasPrefix(t.Model, c.opt.Provider.Name+"/")
		for _, tc := range t.Calls {
			ids[tc.ID] = tc.ID
			if tc.Provider != "" && seen[tc.Provider] == 1 && (own || legalID.MatchString(tc.Provider)) {
				ids[tc.ID] = tc.Provider
			}
			ids[tc.ID] = c.kindID(ids[tc.ID])
		}
	}
	return ids
}

// requestArgs returns arguments in the form that is sent back: services reject a request
// with arguments that aren't JSON, even if the model itself wrote them.
func requestArgs(args string) string {
	if json.Valid([]byte(args)) {
		return args
	}
	b, err := json.Marshal(map[string]string{"invalid_json": args})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// requestItem returns an item of the Responses API in the form that is sent back.
func requestItem(raw json.RawMessage) json.RawMessage {
	var it struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	if json.Unmarshal(raw, &it) != nil || it.Type != "function_call" || (legalName.MatchString(it.Name) && json.Valid([]byte(it.Arguments))) {
		return raw
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	for key, value := range map[string]string{"name": requestName(it.Name), "arguments": requestArgs(it.Arguments)} {
		b, err := json.Marshal(value)
		if err != nil {
			return raw
		}
		fields[key] = b
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return b
}

// finishWord maps a service's finish reason to that of [llm.Reply].
func finishWord(reason string) string {
	switch lower := strings.ToLower(reason); {
	case lower == "model_length" || lower == "max_tokens":
		return llm.FinishLength
	case strings.Contains(lower, "content_filter"), lower == "safety", lower == "refusal", lower == "recitation", lower == "prohibited_content":
		return llm.FinishWithheld
	}
	return reason
}

package openai

import (
	"encoding/json"
	"regexp"
	"strings"

	"nize/llm"
	"nize/store"
)

// A request holds what models wrote before. Services refuse it as a whole where
// they find in it what they would not have written themselves, and since it is
// sent again with every message, nothing would be answered in that conversation
// any more. So it is written here as all of them take it.

// invalidName stands for the name of a function that no service would take.
const invalidName = "invalid_tool_name"

var legalName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// requestName is a called function's name as it goes back.
func requestName(name string) string {
	if legalName.MatchString(name) {
		return name
	}
	return invalidName
}

// legalID is an id that services take which did not choose it themselves.
var legalID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// callIDs chooses the id by which each call is named to the service: the one
// that a service gave it, unless two calls have the same, or it is another's
// and not in the form that all take.
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

// requestArgs are arguments as they go back: services refuse a request in which
// they are no JSON, even though the model itself wrote them so.
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

// requestItem is an item of the Responses API as it goes back.
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

// finishWord is a service's reason to finish in the words of [llm.Reply].
func finishWord(reason string) string {
	switch lower := strings.ToLower(reason); {
	case lower == "model_length" || lower == "max_tokens":
		return llm.FinishLength
	case strings.Contains(lower, "content_filter"), lower == "safety", lower == "refusal", lower == "recitation", lower == "prohibited_content":
		return llm.FinishWithheld
	}
	return reason
}

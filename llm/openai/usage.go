package openai

import (
	"bytes"
	"encoding/json"
	"strconv"

	"nize/llm"
)

// maxTokens is more than any response or prompt has: a larger number is an error, and would
// use up a budget at once.
const maxTokens = 100_000_000

// count is a number of tokens. Some services send it as a string or with a decimal point;
// an impossible number is -1.
type count int64

func (c *count) UnmarshalJSON(b []byte) error {
	*c = -1
	if string(b) == "null" {
		*c = 0
	} else if n, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 64); err == nil && n >= 0 && n <= maxTokens {
		*c = count(n)
	}
	return nil
}

// tokens returns the usage that a service reported. Impossible counts are treated like
// missing ones: the usage is zero and gets estimated.
func tokens(prompt, completion, total, cached, reasoning count) llm.Usage {
	if prompt <= 0 || completion < 0 {
		return llm.Usage{}
	}
	u := llm.Usage{Prompt: int64(prompt), Completion: int64(completion), Reasoning: int64(max(reasoning, 0))}
	if beside := int64(total - prompt - completion); beside > 0 { // reasoning that the completion doesn't include
		u.Completion += beside
		u.Reasoning = max(u.Reasoning, beside)
	}
	u.Cached = min(int64(max(cached, 0)), u.Prompt)
	u.Reasoning = min(u.Reasoning, u.Completion)
	return u
}

// chatUsage decodes the usage of Chat Completions.
func chatUsage(raw json.RawMessage) llm.Usage {
	var u struct {
		Prompt        count `json:"prompt_tokens"`
		Completion    count `json:"completion_tokens"`
		Total         count `json:"total_tokens"`
		PromptDetails struct {
			Cached count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit count    `json:"prompt_cache_hit_tokens"` // DeepSeek
		Cost     *float64 `json:"cost"`                    // OpenRouter, in dollars
	}
	if json.Unmarshal(raw, &u) != nil {
		return llm.Usage{}
	}
	out := tokens(u.Prompt, u.Completion, u.Total, max(u.PromptDetails.Cached, u.CacheHit), u.CompletionDetails.Reasoning)
	if u.Cost != nil && *u.Cost >= 0 && *u.Cost < 1e6 && out != (llm.Usage{}) {
		out.MicroUSD, out.Priced = int64(*u.Cost*1e6+0.5), true
	}
	return out
}

// responsesUsage decodes the usage of the Responses API.
func responsesUsage(raw json.RawMessage) llm.Usage {
	var u struct {
		Input        count `json:"input_tokens"`
		Output       count `json:"output_tokens"`
		InputDetails struct {
			Cached count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return llm.Usage{}
	}
	return tokens(u.Input, u.Output, 0, u.InputDetails.Cached, u.OutputDetails.Reasoning)
}

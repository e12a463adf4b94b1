package offline

import (
	"encoding/json"
	"regexp"
	"slices"

	"nize/llm"
	"nize/store"
)

// found is one tool of an answer of discover_tools.
type found struct {
	ID          string  `json:"tool_id"`
	Description string  `json:"description"`
	Score       float64 `json:"score"`
}

func readFound(result string) (tools []found, ok bool) {
	var doc struct {
		Tools []found `json:"tools"`
	}
	err := json.Unmarshal([]byte(result), &doc)
	return doc.Tools, err == nil
}

// describeFound looks at what was found.
func (r round) describeFound(text string, step *store.Turn, results []store.Turn) llm.Reply {
	tools, ok := readFound(results[0].Text)
	if !ok {
		return sayReply(r.failure(results[0]))
	}
	var args discoverArgs
	near := json.Unmarshal([]byte(step.Calls[0].Args), &args) == nil && args.Min != nil
	wanted, list := listRequest(text)
	if !list {
		wanted = text
	}
	if !near && !list {
		f := formOf(text)
		tools = slices.DeleteFunc(tools, func(t found) bool { return !t.fits(rephrase(text), f) })
	}
	switch {
	case near:
		return sayReply(r.notFound(wanted, tools))
	case len(tools) == 0:
		zero := 0.0 // anything that is near, to name it
		return callReply(discoverTools, discoverArgs{Query: args.Query, TopK: 3, Min: &zero})
	case list:
		return sayReply(r.toolList(wanted, tools))
	}
	var reply llm.Reply
	for i, t := range tools {
		if i < candidates && t.Score >= nearScore*tools[0].Score {
			reply.Calls = append(reply.Calls, callReply(toolSchema, struct {
				ToolID string `json:"tool_id"`
			}{t.ID}).Calls...)
		}
	}
	return reply
}

// description is what get_tool_schema answers.
type description struct {
	ID            string          `json:"tool_id"`
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"input_schema"`
	NeedsApproval bool            `json:"needs_approval"`
}

// proposeDescribed fills the arguments of the tools that were looked at, the best one
// first, and takes the one that fits, see [better].
func (r round) proposeDescribed(text string, results []store.Turn) llm.Reply {
	var best *description
	var bestFilled arguments
	for _, result := range results {
		var d description
		if json.Unmarshal([]byte(result.Text), &d) != nil || d.ID == "" {
			continue
		}
		f := fillArguments(readParams(d.InputSchema), r.newRequest(text), d.Name+" "+d.Description)
		if best == nil || isBetter(f, bestFilled) || asksRE.MatchString(text) && wantsNothing(f) && lacksAll(bestFilled) {
			best, bestFilled = &d, f
		}
	}
	if best == nil {
		return sayReply(r.failure(results[0]))
	}
	return r.proposeCall(memo{Tool: best.ID, Schema: best.InputSchema, Approve: best.NeedsApproval}, bestFilled)
}

// asksRE is a message that asks for something rather than gives it.
var asksRE = regexp.MustCompile(`(?i)^(?:please )?(?:what|show|list|which|how|when|where|who|tell|give|is|are)\b`)

// wantsNothing is a tool that can run as it is; lacksAll one of which nothing was told.
func wantsNothing(f arguments) bool { return len(f.missing) == 0 }
func lacksAll(f arguments) bool     { return len(f.missing) > 0 && f.told == 0 }

// isBetter says whether a tool that was found later fits the words more than the
// one before it.
func isBetter(f, than arguments) bool {
	if len(than.missing) == 0 {
		return len(f.missing) == 0 && f.told >= than.told+2
	}
	if len(f.missing) == 0 {
		return f.told >= max(1, than.told)
	}
	return f.told > than.told && len(f.missing) < len(than.missing)
}

// proposeCall executes the tool, or asks for what is missing.
func (r round) proposeCall(m memo, f arguments) llm.Reply {
	m.Args = f.raw()
	if len(f.missing) > 0 {
		m.Ask = f.missing[0].name
		return llm.Reply{Text: r.question(m.Tool, f.missing), Opaque: m.raw()}
	}
	if r.isOffered(m.Tool) {
		return callReply(m.Tool, m.Args)
	}
	reply := callReply(llm.ExecuteTool, struct {
		ToolID string          `json:"tool_id"`
		Params json.RawMessage `json:"params"`
	}{m.Tool, m.Args})
	if m.Approve {
		reply.Text = r.proposal(m.Tool)
	}
	return reply
}

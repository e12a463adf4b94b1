package offline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"nize/llm"
	"nize/store"
)

type discoverArgs struct {
	Query string   `json:"query"`
	TopK  int      `json:"top_k,omitempty"`
	Min   *float64 `json:"min_similarity,omitempty"`
}

// found is one tool in the result of discover_tools.
type found struct {
	ID          string  `json:"tool_id"`
	Description string  `json:"description"`
	Score       float64 `json:"score"`
}

// described is the result of get_tool_schema.
type described struct {
	ID            string          `json:"tool_id"`
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"input_schema"`
	NeedsApproval bool            `json:"needs_approval"`
}

// describeFound handles the tools that were found.
func (r round) describeFound(call store.ToolCall, result store.Turn) llm.Reply {
	var doc struct {
		Tools []found `json:"tools"`
	}
	if json.Unmarshal([]byte(result.Text), &doc) != nil {
		return llm.Reply{Text: r.failure(result)}
	}
	var args discoverArgs
	_ = json.Unmarshal([]byte(call.Args), &args) // our own
	tools := doc.Tools
	which := whichRE.FindStringSubmatch(r.text)
	if args.Min == nil && which == nil {
		tools = slices.DeleteFunc(tools, func(t found) bool { return !t.fits(r.text) })
	}
	switch {
	case args.Min != nil:
		return llm.Reply{Text: r.notFound(append(which, r.text)[len(which)/2], tools)}
	case len(tools) == 0:
		zero := 0.0 // any similar tool, to mention it
		return callReply(discoverTools, discoverArgs{Query: args.Query, TopK: 3, Min: &zero})
	case which != nil:
		return llm.Reply{Text: r.toolList(which[1], tools)}
	}
	var reply llm.Reply
	for _, t := range tools[:min(candidates, len(tools))] {
		if t.Score >= nearScore*tools[0].Score {
			reply.Calls = append(reply.Calls, callReply(toolSchema, map[string]string{"tool_id": t.ID}).Calls...)
		}
	}
	return reply
}

// useOffered follows the plan if the tools themselves are offered, as in a program's round:
// it calls the tool that fits the words best by its own name.
func (r round) useOffered(list bool) llm.Reply {
	var all []found
	var fitting []described
	for _, f := range r.req.Functions {
		t := found{ID: f.Name, Description: f.Description}
		if all = append(all, t); t.fits(r.text) {
			fitting = append(fitting, described{ID: f.Name, Name: f.Name, Description: f.Description, InputSchema: f.Schema})
		}
	}
	switch {
	case list:
		return llm.Reply{Text: r.toolList(r.text, all[:min(len(all), 20)])}
	case len(fitting) == 0:
		return llm.Reply{Text: r.notFound(r.text, nil)}
	}
	return r.proposeBest(fitting)
}

// asksRE matches a message that asks for something rather than supplies it.
var asksRE = regexp.MustCompile(`(?i)^(?:please )?(?:what|show|list|which|how|when|where|who|tell|give|is|are)\b`)

// proposeBest fills in the arguments of the tools, the best tool first, and takes the first
// that fits.
func (r round) proposeBest(tools []described) llm.Reply {
	best, filled := -1, arguments{}
	for i, d := range tools {
		f := fillArguments(readParams(d.InputSchema), r.request(), d.Name+" "+d.Description)
		better := best < 0
		switch {
		case better:
		case len(filled.missing) == 0:
			better = len(f.missing) == 0 && f.told >= filled.told+2
		case len(f.missing) == 0:
			better = f.told >= max(1, filled.told) || asksRE.MatchString(r.text) && filled.told == 0
		default:
			better = f.told > filled.told && len(f.missing) < len(filled.missing)
		}
		if better {
			best, filled = i, f
		}
	}
	d := tools[best]
	return r.proposeCall(memo{Tool: d.ID, Schema: d.InputSchema, Approve: d.NeedsApproval}, filled)
}

// proposeCall executes the tool, or asks for what is missing.
func (r round) proposeCall(m memo, f arguments) llm.Reply {
	m.Planner, m.Args, m.Ask = true, jsonOf(f.args), ""
	switch {
	case len(f.missing) > 0:
		m.Ask = f.missing[0].name
		return llm.Reply{Text: r.question(m.Tool, f.missing[0]), Opaque: jsonOf(m)}
	case !r.offers(llm.ExecuteTool):
		return callReply(m.Tool, m.Args)
	}
	reply := callReply(llm.ExecuteTool, map[string]any{"tool_id": m.Tool, "params": m.Args})
	if m.Approve {
		reply.Text = r.proposal(m.Tool)
	}
	return reply
}

var filler, weakWords = vocabulary(`a an the this that these those my me i you your we us please can could would will
	do does did is are was what what's whats which how who where when tell give show get make want need like to of in
	for on at about from with and some any it let let's use run call find now`),
	// Words that occur in nearly every request: a tool that has them is not necessarily
	// what is meant.
	vocabulary(`add make create show get give find list tell write read generate send do compute count return convert put set
	take say text name number many much long old one new good first last far today now other more most own any all every each how
	yes than then there here time`)

// vocabulary returns the stems of a text's words.
func vocabulary(text string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), notWord) {
		words[stem(w)] = true
	}
	return words
}

func notWord(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '\'' || r >= 0x80)
}

// stem removes a word's ending, enough to match "counts" with "count".
func stem(w string) string {
	for _, end := range []string{"ing", "es", "ed", "s"} {
		if cut, ok := strings.CutSuffix(w, end); ok && len(cut) >= 3 {
			return strings.TrimSuffix(cut, "e")
		}
	}
	return strings.TrimSuffix(w, "e")
}

// fits reports whether a tool may be what a message asks for: if the search is certain, the
// message has the tool's form, the first significant word is the tool's, or half of the
// significant words are.
func (t found) fits(text string) bool {
	words := vocabulary(t.ID + " " + t.Description)
	if f := formOf(text); f.hint != "" {
		return slices.ContainsFunc(strings.Fields(f.words), func(w string) bool { return words[stem(w)] })
	}
	text, _, _ = strings.Cut(rephrase(text), ":") // a value follows it
	known, all, leads := 0, 0, false
	for w := range strings.FieldsFuncSeq(strings.ToLower(quotedRE.ReplaceAllString(urlRE.ReplaceAllString(text, " "), " ")), notWord) {
		if s := stem(w); !filler[s] && !weakWords[s] && len(w) > 1 && (w[0] < '0' || w[0] > '9') {
			all++
			if words[s] {
				known++
				leads = leads || all == 1
			}
		}
	}
	return t.Score >= trustedScore || known > 0 && (leads || 2*known >= all)
}

// Package offline is the built-in planner, offline/planner: a model without a key, a
// network or a language model.
//
// It serves the first run, tests and outages, and says what it is. It follows one plan, and
// reads its progress from the history:
//
//	a message          ─► discover_tools with its words
//	tools were found   ─► get_tool_schema of the best ones
//	schemas are known  ─► fill the arguments from the words; the first tool
//	                      with all required ones is executed
//	one is missing     ─► ask for it; the next message supplies it
//	there is a result  ─► show it
//
// If the tools themselves are offered, the first two steps are skipped.
//
// The argument that was asked for is stored with the turn (store.Turn.Opaque), so the
// planner itself has no state. The same history gives the same reply, in its reader's
// language.
//
// request.go finds arguments in a sentence, calculation.go calculations in words; schema.go
// reads a tool's parameters, sentences.go has the texts.
package offline

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/llm"
	"nize/store"
)

const (
	discoverTools = "discover_tools"
	toolSchema    = "get_tool_schema"
	listDomains   = "list_tool_domains"

	maxMessage   = 8 << 10 // bytes of a message that are read
	candidates   = 3       // how many of the found tools are considered
	nearScore    = 0.6     // the fraction of the best tool's score that another needs
	trustedScore = 0.6     // above it, a search result is used even without a common word
)

// Planner is the model. Its zero value works, in English.
type Planner struct {
	say func(locale string, t store.Text) string
}

// New returns the planner. say translates one of its sentences for a BCP 47 locale; nil
// means English for all.
func New(say func(locale string, t store.Text) string) *Planner { return &Planner{say} }

var _ llm.Model = (*Planner)(nil)

// memo is what the planner stores with its own turns.
type memo struct {
	Planner bool            `json:"planner"` // marks it as ours
	Tool    string          `json:"tool,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Ask     string          `json:"ask,omitempty"` // the argument that was asked for
	Approve bool            `json:"approve,omitempty"`

	Introduced bool `json:"introduced,omitempty"` // it has introduced itself
}

// readMemo returns what was stored with a turn of the planner.
func readMemo(t store.Turn) (m memo, ok bool) {
	return m, t.Role == store.FromModel && json.Unmarshal(t.Opaque, &m) == nil && m.Planner
}

// round is the state of one Generate.
type round struct {
	voice
	req    llm.Request
	text   string // the newest message
	at     time.Time
	before []store.Turn // the turns before it
	since  []store.Turn // the turns after it
}

// Generate does the next step of the plan.
func (p *Planner) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	if ctx.Err() != nil {
		return llm.Reply{}, context.Cause(ctx)
	}
	r := round{voice: store.Text.String, req: req}
	if p.say != nil {
		r.voice = func(t store.Text) string { return p.say(req.Locale, t) }
	}
	reply := llm.Reply{Text: r.voice(introduction)}
	for i, t := range slices.Backward(req.Turns) {
		if t.Role == store.FromUser {
			r.text, r.at, r.before, r.since = strings.TrimSpace(t.Text), t.At, req.Turns[:i], req.Turns[i+1:]
			reply = r.nextReply()
			break
		}
	}
	introduced := slices.ContainsFunc(req.Turns, func(t store.Turn) bool { m, _ := readMemo(t); return m.Introduced })
	if r.text != "" && reply.Text != "" && len(reply.Calls) == 0 && !introduced {
		reply.Text = r.voice(introduction) + "\n\n" + reply.Text
		m, _ := readMemo(store.Turn{Role: store.FromModel, Opaque: reply.Opaque})
		m.Planner, m.Introduced = true, true
		reply.Opaque = jsonOf(m)
	}
	reply.Finish = "stop"
	if len(reply.Calls) > 0 {
		reply.Finish = "tool_calls"
	}
	for w := range llm.SplitWords(reply.Text) {
		if ctx.Err() != nil {
			return llm.Reply{}, context.Cause(ctx)
		}
		if delta != nil {
			delta(llm.Delta{Text: w})
		}
	}
	return reply, nil
}

var (
	greetingRE = regexp.MustCompile(`(?i)^(?:hi|hello|hey|hallo|good (?:morning|afternoon|evening|day))(?:\s+(?:there|nize|all|everyone|bot))?[\s!.,]*$`)
	thanksRE   = regexp.MustCompile(`(?i)^(?:thanks?|thank you|great|ok|okay|cool|nice)(?:\s+(?:a lot|so much|very much|you|nize))?[\s!.,]*$`)
	neverRE    = regexp.MustCompile(`(?i)^(?:no|nope|cancel|stop|never ?mind|forget it|abort|nothing|leave it)[\s!.,]*$`)
	helpRE     = regexp.MustCompile(`(?i)^(?:help|what can (?:you|nize) do|what (?:else )?do you do|who are you|what are you|(?:what|which) tools (?:are there|do you have|exist|can you use|are available)|(?:list|show)(?: me)?(?: all)?(?: the| your)? tools)[\s?!.]*$`)
	whichRE    = regexp.MustCompile(`(?i)^(?:(?:which|what) tools?|(?:is|are) there (?:a |any )?tools?|do you have (?:a |any )?tools?|(?:find|search|list|show)(?: me)?(?: a| the| all)? tools?)\s+(?:(?:that|which|can|could|would|will|do|does|is|are|should|to|for|about|helps?|i use|i need|there|you have)\s+)*(.+?)[\s?!.]*$`)
)

// nextReply returns the next step of the plan.
func (r round) nextReply() llm.Reply {
	if len(r.req.Functions) == 0 {
		return r.sentence(noTools)
	}
	if len(r.text) > maxMessage {
		return r.sentence(tooLong)
	}
	step, results := r.lastStep()
	if step == nil {
		return r.start()
	}
	switch name := step.Calls[0].Name; {
	case !r.offers(discoverTools):
		return llm.Reply{Text: r.outcome(name, results[0])}
	case r.req.NoCalls:
		return r.sentence(giveUp)
	case name == discoverTools:
		return r.describeFound(step.Calls[0], results[0])
	case name == listDomains:
		return llm.Reply{Text: r.domainList(results[0])}
	case name == toolSchema:
		var tools []described
		for _, result := range results {
			var d described
			if json.Unmarshal([]byte(result.Text), &d) == nil && d.ID != "" {
				tools = append(tools, d)
			}
		}
		if len(tools) == 0 {
			return llm.Reply{Text: r.failure(results[0])}
		}
		return r.proposeBest(tools)
	}
	var executed struct {
		ToolID string `json:"tool_id"`
	}
	_ = json.Unmarshal([]byte(step.Calls[0].Args), &executed) // our own
	return llm.Reply{Text: r.outcome(executed.ToolID, results[0])}
}

// lastStep returns the last step with calls since the message, and its results.
func (r round) lastStep() (*store.Turn, []store.Turn) {
	for i, step := range slices.Backward(r.since) {
		if step.Role != store.FromModel || len(step.Calls) == 0 {
			continue
		}
		results := make([]store.Turn, len(step.Calls))
		for j, c := range step.Calls {
			for _, t := range r.since[i:] {
				if t.Role == store.FromTool && t.CallID == c.ID {
					results[j] = t
					results[j].Text = llm.Unframe(t.Text)
				}
			}
		}
		return &step, results
	}
	return nil, nil
}

// start answers a new message.
func (r round) start() llm.Reply {
	if reply, ok := r.addSupplied(); ok {
		return reply
	}
	which := whichRE.FindStringSubmatch(r.text)
	switch {
	case greetingRE.MatchString(r.text):
		return r.sentence(greeting)
	case thanksRE.MatchString(r.text):
		return r.sentence(welcome)
	case neverRE.MatchString(r.text):
		return r.sentence(nothingDone)
	case r.req.NoCalls:
		return r.sentence(giveUp)
	case !r.offers(discoverTools):
		return r.useOffered(which != nil || helpRE.MatchString(r.text))
	case helpRE.MatchString(r.text) && r.offers(listDomains):
		return callReply(listDomains, struct{}{})
	case which != nil:
		return callReply(discoverTools, discoverArgs{Query: which[1]})
	}
	return callReply(discoverTools, discoverArgs{Query: rephrase(r.text) + formOf(r.text).hint})
}

func (r round) offers(function string) bool {
	return slices.ContainsFunc(r.req.Functions, func(f store.Function) bool { return f.Name == function })
}

// addSupplied reads the message as the argument that was asked for. ok is false if nothing
// was asked, or if the message looks like a new request.
func (r round) addSupplied() (reply llm.Reply, ok bool) {
	m, asked := memo{}, false
	for _, t := range slices.Backward(r.before) {
		if t.Role == store.FromModel {
			m, asked = readMemo(t)
			break
		}
	}
	if !asked || r.req.NoCalls || !r.offers(discoverTools) && !r.offers(m.Tool) {
		return reply, false
	}
	for _, re := range []*regexp.Regexp{neverRE, greetingRE, helpRE, whichRE} {
		if re.MatchString(r.text) {
			return reply, false
		}
	}
	params := readParams(m.Schema)
	i := slices.IndexFunc(params, func(p param) bool { return p.name == m.Ask })
	f := arguments{args: make(map[string]json.RawMessage)}
	if i < 0 || json.Unmarshal(m.Args, &f.args) != nil {
		return reply, false
	}
	if f.args[m.Ask], ok = answerFor(params[i], r.request()); !ok {
		return reply, false
	}
	for _, p := range params {
		if _, ok := f.args[p.name]; !ok && p.required {
			f.missing = append(f.missing, p)
		}
	}
	return r.proposeCall(m, f), true
}

// answerFor reads a whole message as one argument.
func answerFor(p param, r *request) (json.RawMessage, bool) {
	for _, find := range finders {
		if v, _, ok := find(p, r); ok {
			return v, true
		}
	}
	place, words := p.named(originWords+" "+destinationWords+" "+placeWords), len(strings.Fields(r.text))
	switch {
	case p.kind != "string" || len(p.enum) > 0:
		return convert(p, r.text)
	case p.isTime() || !place && !p.takesFreeText():
		return nil, false // the argument has a form that nothing in the message matches
	case !p.named(textWords) && (strings.HasSuffix(r.text, "?") || words > 8 || place && words > 4):
		return nil, false // that is a new request
	}
	return jsonOf(strings.Trim(r.text, `"“”. `)), true
}

var zoneRE = regexp.MustCompile(`\(([A-Za-z]+(?:/[A-Za-z_+-]+)+)\)`)

// request returns the message for extraction, with its time in the person's time zone.
func (r round) request() *request {
	at := r.at
	if m := zoneRE.FindStringSubmatch(r.req.Context); m != nil {
		if zone, err := time.LoadLocation(m[1]); err == nil {
			at = at.In(zone)
		}
	}
	return &request{text: rephrase(r.text), at: at}
}

// sentence returns a reply of one sentence.
func (r round) sentence(t store.Text) llm.Reply { return llm.Reply{Text: r.voice(t)} }

// callReply returns a reply that calls one function.
func callReply(name string, args any) llm.Reply {
	return llm.Reply{Calls: []store.ToolCall{{Name: name, Args: string(jsonOf(args))}}}
}

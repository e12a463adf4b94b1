// Package offline is the built-in planner, offline/planner: a model without a
// key, a network or a language model. It serves the first run, tests
// and outages, and says what it is.
//
// It follows one plan, and reads from the history how far it came:
//
//	a message          ─► discover_tools with its words
//	tools were found   ─► get_tool_schema of the best ones
//	schemas are known  ─► fill the arguments from the words; the first tool
//	                      whose required ones are all told is executed
//	one is missing     ─► ask for it; the next message supplies it
//	a result is there  ─► show it
//
// Where the tools themselves are offered, the first two steps fall away (direct.go).
//
// Which argument was asked for is kept with the turn (store.Turn.Opaque), so
// the planner itself remembers nothing. The same history gives the same reply,
// in the language of who reads it.
//
// A tool that the search gives only because something must be first is not
// proposed: then the planner says that it found none (forms.go).
//
//   - request.go finds things in a sentence, arguments.go gives them to parameters,
//     schema.go reads what a tool wants, sentences.go has the words.
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

	// maxMessage is the longest message that is read, in bytes.
	maxMessage = 8 << 10
	// candidates is how many of the found tools are looked at.
	candidates = 3
	// nearScore is the share of the best tool's score that another needs.
	nearScore = 0.6
)

// Planner is the model. Its zero value works, and speaks English.
type Planner struct {
	say func(locale string, t store.Text) string
}

// New returns the planner. say prints one of its sentences in the language of a
// BCP 47 locale; nil is English for all.
func New(say func(locale string, t store.Text) string) *Planner { return &Planner{say} }

// voice speaks the language of a locale.
func (p *Planner) voice(locale string) voice {
	if p.say == nil {
		return store.Text.String
	}
	return func(t store.Text) string { return p.say(locale, t) }
}

var _ llm.Model = (*Planner)(nil)

// Generate does the next step of the plan.
func (p *Planner) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	if err := ctx.Err(); err != nil {
		return llm.Reply{}, context.Cause(ctx)
	}
	at, v := newestMessage(req.Turns), p.voice(req.Locale)
	if at < 0 {
		return llm.Reply{Text: v(introduction), Finish: "stop"}, nil
	}
	r := round{voice: v, req: req, user: req.Turns[at], before: req.Turns[:at], since: req.Turns[at+1:]}
	reply := r.nextReply()
	if reply.Text != "" && len(reply.Calls) == 0 && !hasIntroduced(req.Turns) {
		reply.Text = v(introduction) + "\n\n" + reply.Text
		m, _ := readMemo(store.Turn{Role: store.FromModel, Opaque: reply.Opaque})
		m.Introduced = true
		reply.Opaque = m.raw()
	}
	reply.Finish = "stop"
	if len(reply.Calls) > 0 {
		reply.Finish = "tool_calls"
	}
	if delta != nil {
		for w := range llm.SplitWords(reply.Text) {
			if ctx.Err() != nil {
				return llm.Reply{}, context.Cause(ctx)
			}
			delta(llm.Delta{Text: w})
		}
	}
	return reply, nil
}

// newestMessage is the last message.
func newestMessage(turns []store.Turn) int {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].Role == store.FromUser {
			return i
		}
	}
	return -1
}

func hasIntroduced(turns []store.Turn) bool {
	return slices.ContainsFunc(turns, func(t store.Turn) bool {
		m, ok := readMemo(t)
		return ok && m.Introduced
	})
}

// memo is what the planner keeps with its own turns.
type memo struct {
	Planner bool            `json:"planner"` // marks it as ours
	Tool    string          `json:"tool,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Ask     string          `json:"ask,omitempty"` // the argument that was asked for
	Approve bool            `json:"approve,omitempty"`

	Introduced bool `json:"introduced,omitempty"` // it said what it is
}

func (m memo) raw() json.RawMessage {
	m.Planner = true
	b, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}

// readMemo reads what was kept with a turn of the planner.
func readMemo(t store.Turn) (m memo, ok bool) {
	return m, t.Role == store.FromModel && json.Unmarshal(t.Opaque, &m) == nil && m.Planner
}

// round is one look at the history.
type round struct {
	voice
	req    llm.Request
	user   store.Turn   // the newest message
	before []store.Turn // what was said before it
	since  []store.Turn // what was done about it
}

// nextReply is the next step of the plan.
func (r round) nextReply() llm.Reply {
	text := strings.TrimSpace(r.user.Text)
	if len(r.req.Functions) == 0 {
		return r.sayTranslated(noTools)
	}
	if len(text) > maxMessage {
		return r.sayTranslated(tooLong)
	}
	step, results := r.lastStep()
	if !r.hasFunction(discoverTools) {
		return r.useOffered(text, step, results)
	}
	if step == nil {
		return r.discover(text)
	}
	if r.req.NoCalls {
		return r.sayTranslated(giveUp)
	}
	switch step.Calls[0].Name {
	case discoverTools:
		return r.describeFound(text, step, results)
	case listDomains:
		return sayReply(r.domainList(results[0]))
	case toolSchema:
		return r.proposeDescribed(text, results)
	case llm.ExecuteTool:
		return sayReply(r.outcome(calledTool(step.Calls[0]), results[0]))
	}
	return r.sayTranslated(giveUp)
}

// lastStep is the last step with calls since the message, and its results.
func (r round) lastStep() (*store.Turn, []store.Turn) {
	for i := len(r.since) - 1; i >= 0; i-- {
		step := &r.since[i]
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
		return step, results
	}
	return nil, nil
}

var (
	greetingRE = regexp.MustCompile(`(?i)^(?:hi|hello|hey|hallo|good (?:morning|afternoon|evening|day)|greetings|moin|servus|howdy)(?:\s+(?:there|nize|all|everyone|bot))?[\s!.,]*$`)
	thanksRE   = regexp.MustCompile(`(?i)^(?:thanks?|thank you|thx|cheers|great|ok|okay|cool|nice)(?:\s+(?:a lot|so much|very much|you|nize))?[\s!.,]*$`)
	neverRE    = regexp.MustCompile(`(?i)^(?:no|nope|cancel|stop|never ?mind|forget it|abort|nothing|leave it)[\s!.,]*$`)
	helpRE     = regexp.MustCompile(`(?i)^(?:help|what can (?:you|nize) do|what (?:else )?do you do|who are you|what are you|(?:what|which) tools (?:are there|do you have|exist|can you use|are available)|(?:list|show)(?: me)?(?: all)?(?: the| your)? tools)[\s?!.]*$`)
	whichRE    = regexp.MustCompile(`(?i)^(?:which|what) tools?\s+(?:(?:can|could|would|will|do|does|is|are|should|to|for|helps?|that|i use|i need|there|you have)\s+)*(.+?)[\s?!.]*$|^(?:is|are) there (?:a |any )?tools?\s+(?:(?:that|which|can|could|to|for)\s+)*(.+?)[\s?!.]*$|^do you have (?:a |any )?tools?\s+(?:(?:that|which|can|could|to|for)\s+)*(.+?)[\s?!.]*$|^(?:find|search|list|show)(?: me)?(?: a| the| all)? tools?\s+(?:(?:that|which|can|could|to|for|about)\s+)*(.+?)[\s?!.]*$`)
)

// discover answers a new message.
func (r round) discover(text string) llm.Reply {
	if m, ok := r.askedMemo(); ok {
		if reply, ok := r.addSupplied(text, m); ok {
			return reply
		}
	}
	if reply, ok := r.smallTalk(text); ok {
		return reply
	}
	if helpRE.MatchString(text) && r.hasFunction(listDomains) {
		return callReply(listDomains, struct{}{})
	}
	if wanted, ok := listRequest(text); ok {
		return callReply(discoverTools, discoverArgs{Query: wanted})
	}
	return callReply(discoverTools, discoverArgs{Query: rephrase(text) + formOf(text).hint})
}

// smallTalk answers a message that needs no tool.
func (r round) smallTalk(text string) (reply llm.Reply, ok bool) {
	switch {
	case greetingRE.MatchString(text):
		return r.sayTranslated(greeting), true
	case thanksRE.MatchString(text):
		return r.sayTranslated(welcome), true
	case neverRE.MatchString(text):
		return r.sayTranslated(nothingDone), true
	case r.req.NoCalls:
		return r.sayTranslated(giveUp), true
	}
	return reply, false
}

type discoverArgs struct {
	Query string   `json:"query"`
	TopK  int      `json:"top_k,omitempty"`
	Min   *float64 `json:"min_similarity,omitempty"`
}

// listRequest says whether a message asks which tools there are for something.
func listRequest(text string) (wanted string, ok bool) {
	m := whichRE.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	for _, g := range m[1:] {
		if g != "" {
			return g, true
		}
	}
	return "", false
}

func (r round) hasFunction(function string) bool {
	return slices.ContainsFunc(r.req.Functions, func(f store.Function) bool { return f.Name == function })
}

// askedMemo is what the planner asked for last, if the message may be the answer.
func (r round) askedMemo() (memo, bool) {
	for i := len(r.before) - 1; i >= 0; i-- {
		if t := r.before[i]; t.Role == store.FromModel {
			m, ok := readMemo(t)
			return m, ok && m.Ask != ""
		}
	}
	return memo{}, false
}

// addSupplied reads the message as the argument that was asked for. ok is false
// if it rather is a new request.
func (r round) addSupplied(text string, m memo) (reply llm.Reply, ok bool) {
	if neverRE.MatchString(text) {
		return r.sayTranslated(nothingDone), true
	}
	if r.req.NoCalls || greetingRE.MatchString(text) || helpRE.MatchString(text) || whichRE.MatchString(text) {
		return llm.Reply{}, false
	}
	params := readParams(m.Schema)
	i := slices.IndexFunc(params, func(p param) bool { return p.name == m.Ask })
	if i < 0 {
		return llm.Reply{}, false
	}
	value, ok := answerFor(params[i], r.newRequest(text))
	if !ok {
		return llm.Reply{}, false
	}
	f := arguments{args: make(map[string]json.RawMessage)}
	if json.Unmarshal(m.Args, &f.args) != nil {
		return llm.Reply{}, false
	}
	f.args[m.Ask] = value
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
	text := strings.TrimSpace(r.text)
	if p.kind != "string" || len(p.enum) > 0 {
		return convert(p, text)
	}
	place := p.isOrigin() || p.isDestination() || p.isPlace()
	switch words := len(strings.Fields(text)); {
	case p.isTime() || !(place || p.takesFreeText()):
		return nil, false // it has a form, and nothing in the message has it
	case !p.isText() && (strings.HasSuffix(text, "?") || words > 8 || (place && words > 4)):
		return nil, false // that is a new request
	}
	return jsonString(strings.TrimRight(unquote(text), ".")), text != ""
}

var zoneRE = regexp.MustCompile(`\(([A-Za-z]+(?:/[A-Za-z_+-]+)+)\)`)

// newRequest is the message to extract from, with its time in the person's zone.
func (r round) newRequest(text string) *request {
	at := r.user.At
	if m := zoneRE.FindStringSubmatch(r.req.Context); m != nil {
		if zone, err := time.LoadLocation(m[1]); err == nil {
			at = at.In(zone)
		}
	}
	return &request{text: rephrase(text), calculation: calculation(text), at: at}
}

// calledTool is the tool that a call executes.
func calledTool(c store.ToolCall) string {
	var args struct {
		ToolID string `json:"tool_id"`
	}
	if json.Unmarshal([]byte(c.Args), &args) != nil {
		return ""
	}
	return args.ToolID
}

func sayReply(text string) llm.Reply { return llm.Reply{Text: text} }

// sayTranslated is a reply of one sentence.
func (r round) sayTranslated(t store.Text) llm.Reply { return sayReply(r.voice(t)) }

// callReply is a reply that calls one function.
func callReply(name string, args any) llm.Reply {
	raw, err := json.Marshal(args)
	if err != nil {
		return sayReply(giveUp.String())
	}
	return llm.Reply{Calls: []store.ToolCall{{Name: name, Args: string(raw)}}}
}

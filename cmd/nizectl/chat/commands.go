package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// reply is the result of a command.
type reply struct {
	lines  []string
	leave  bool
	fresh  bool   // the conversation was left
	resume string // the conversation to continue
}

// command is one of the / commands.
type command struct {
	name, arg string
	help      phrases.Key
	run       func(s *session, ctx context.Context, arg string) (reply, error)
}

// commands returns the commands by name.
func commands() []command {
	return []command{
		{"approvals", "", phrases.TermHelpApprovals, (*session).cmdApprovals},
		{"details", "ID", phrases.TermHelpDetails, (*session).cmdDetails},
		{"help", "", phrases.TermHelpHelp, (*session).cmdHelp},
		{"history", "", phrases.TermHelpHistory, (*session).cmdHistory},
		{"hooks", "[add NAME TYPE [SERVER] [CONFIG]|remove|on|off NAME]", phrases.AboutHooks, (*session).cmdHooks},
		{"model", "NAME", phrases.TermHelpModel, (*session).cmdModel},
		{"models", "", phrases.TermHelpModels, (*session).cmdModels},
		{"new", "", phrases.TermHelpNew, (*session).cmdNew},
		{"quit", "", phrases.TermHelpQuit, (*session).cmdQuit},
		{"result", "[ID] [save [FILE]]", phrases.TermHelpResult, (*session).cmdResult},
		{"resume", "ID", phrases.TermHelpResume, (*session).cmdResume},
		{"retry", "", phrases.TermHelpRetry, (*session).cmdRetry},
		{"servers", "", phrases.TermHelpServers, (*session).cmdServers},
		{"settings", "[NAME [VALUE]]", phrases.TermHelpSettings, (*session).cmdSettings},
		{"stop", "", phrases.TermHelpStop, (*session).cmdStop},
		{"tools", "QUERY", phrases.TermHelpTools, (*session).cmdTools},
		{"usage", "", phrases.TermHelpUsage, (*session).cmdUsage},
	}
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, "/"+c.name)
	}
	return names
}

// command runs a line that begins with a slash.
func (s *session) command(ctx context.Context, line string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	for _, c := range commands() {
		if "/"+c.name == strings.ToLower(word) {
			return c.run(s, ctx, strings.TrimSpace(arg))
		}
	}
	if near := store.Nearest(strings.ToLower(word), commandNames()); near != "" {
		return reply{}, errors.New(s.words().Say(phrases.TermNear, bots.Escape(word), near))
	}
	return reply{}, errors.New(s.words().Say(phrases.TermUnknown, bots.Escape(word)))
}

func (s *session) cmdDetails(ctx context.Context, id string) (reply, error) {
	card := s.lastCall
	switch {
	case id != "":
		var err error
		if card, err = api.GetApproval.Call(ctx, s.opt.Client, api.CallRequest{ID: id}); err != nil {
			return reply{}, err
		}
	case card.Call == "":
		return reply{lines: []string{s.words().Say(phrases.TermNoDetails)}}, nil
	}
	return reply{lines: bots.CardLines(card, s.reader())}, nil
}

func (s *session) cmdHelp(context.Context, string) (reply, error) {
	var rows [][]string
	for _, c := range commands() {
		rows = append(rows, []string{strings.TrimSpace("/" + c.name + " " + c.arg), s.words().Say(c.help)})
	}
	return reply{lines: columns(rows)}, nil
}

func (s *session) cmdQuit(context.Context, string) (reply, error) { return reply{leave: true}, nil }

func (s *session) cmdNew(context.Context, string) (reply, error) {
	s.leave()
	return reply{fresh: true, lines: []string{s.words().Say(phrases.TermFresh)}}, nil
}

func (s *session) cmdStop(ctx context.Context, _ string) (reply, error) {
	if !s.busy {
		return reply{lines: []string{s.words().Say(phrases.TermNothing)}}, nil
	}
	return reply{}, s.stop(ctx)
}

func (s *session) cmdModel(ctx context.Context, name string) (reply, error) {
	if name == "" {
		now := s.thread.Model
		if s.thread.ID == "" {
			now = s.opt.Model
		}
		if now == "" {
			now = s.words().Say(phrases.TermDefault, s.status.Model)
		}
		return reply{lines: []string{s.words().Say(phrases.TermModel, bots.Escape(now))}}, nil
	}
	models, err := api.ListModels.Call(ctx, s.opt.Client, api.Empty{})
	if err != nil {
		return reply{}, fmt.Errorf("listing the models: %w", err)
	}
	var names []string
	for _, m := range models.Items {
		names = append(names, m.Name)
	}
	if !strings.Contains(name, "/") && !contains(names, name) {
		return reply{}, store.Unknown("model", name, names)
	}
	s.leave()
	s.opt.Model = name
	return reply{fresh: true, lines: []string{s.words().Say(phrases.TermFreshModel, bots.Escape(name))}}, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (s *session) cmdModels(ctx context.Context, _ string) (reply, error) {
	models, err := api.ListModels.Call(ctx, s.opt.Client, api.Empty{})
	if err != nil {
		return reply{}, fmt.Errorf("listing the models: %w", err)
	}
	if len(models.Items) == 0 {
		return reply{lines: []string{s.words().Say(phrases.TermNoModels)}}, nil
	}
	var rows [][]string
	for _, m := range models.Items {
		state := ""
		if m.Default {
			state = s.words().Say(phrases.TermIsDefault)
		}
		if !m.Available {
			state = strings.TrimSpace(state + " " + s.words().Say(phrases.TermNotAvailable, m.Why))
		}
		rows = append(rows, []string{m.Name, m.Target, state})
	}
	return reply{lines: columns(rows)}, nil
}

func (s *session) cmdServers(ctx context.Context, _ string) (reply, error) {
	st, err := api.GetStatus.Call(ctx, s.opt.Client, api.Empty{})
	if err != nil {
		return reply{}, fmt.Errorf("reading the status: %w", err)
	}
	if len(st.Servers) == 0 {
		return reply{lines: []string{s.words().Say(phrases.TermNoServers)}}, nil
	}
	var rows [][]string
	for _, h := range st.Servers {
		rows = append(rows, serverRow(h, s.words()))
	}
	return reply{lines: columns(rows)}, nil
}

func (s *session) cmdTools(ctx context.Context, query string) (reply, error) {
	if query == "" {
		return reply{}, errors.New(s.words().Say(phrases.TermToolsAsk))
	}
	found, err := api.SearchTools.Call(ctx, s.opt.Client, api.SearchToolsRequest{Query: query})
	if err != nil {
		return reply{}, fmt.Errorf("searching tools: %w", err)
	}
	var rows [][]string
	for _, t := range slices.Concat(found.Tools, found.Near) {
		line, _, _ := strings.Cut(t.Description, "\n")
		rows = append(rows, []string{fmt.Sprintf("%.2f", t.Score), t.ID, display.Shorten(bots.Escape(line), 80, "…")})
	}
	r := reply{lines: columns(rows)}
	if len(found.Tools) == 0 {
		r.lines = append([]string{s.words().Say(phrases.TermNoTools)}, r.lines...)
	}
	if len(found.Near) > 0 {
		r.lines[0] += " " + s.words().Say(phrases.ToolsNear)
	}
	return r, nil
}

func (s *session) cmdApprovals(ctx context.Context, _ string) (reply, error) {
	cards, err := api.ListApprovals.Call(ctx, s.opt.Client, api.Empty{})
	if err != nil {
		return reply{}, fmt.Errorf("listing what waits: %w", err)
	}
	if len(cards.Items) == 0 {
		return reply{lines: []string{s.words().Say(phrases.TermNoApprovals)}}, nil
	}
	var rows [][]string
	for _, c := range cards.Items {
		rows = append(rows, []string{c.Call, c.Tool, s.words().Say(phrases.TermBy, c.By), s.words().Say(phrases.TermUntil, c.Expires.In(s.zone).Format("15:04 MST"))})
	}
	return reply{lines: columns(rows)}, nil
}

// cmdRetry repeats the last call; its card is shown like any other.
func (s *session) cmdRetry(ctx context.Context, _ string) (reply, error) {
	if s.lastCall.RepeatVerb == "" {
		return reply{lines: []string{s.words().Say(phrases.TermNoRetry)}}, nil
	}
	card := s.lastCall
	if err := s.decide(ctx, card, api.DecideCallRequest{Verb: card.RepeatVerb}); err != nil {
		return reply{}, err
	}
	s.lastCall = store.Card{}
	return reply{lines: []string{s.words().Say(phrases.TermRetried, bots.Escape(card.Tool))}}, nil
}

func (s *session) cmdUsage(ctx context.Context, _ string) (reply, error) {
	report, err := api.GetUsage.Call(ctx, s.opt.Client, api.GetUsageRequest{Since: s.opt.Now().AddDate(0, 0, -30), By: "model"})
	if err != nil {
		return reply{}, fmt.Errorf("reading the usage: %w", err)
	}
	if len(report.Rows) == 0 {
		return reply{lines: []string{s.words().Say(phrases.TermNoUsage)}}, nil
	}
	words := s.words()
	table := [][]string{{words.Say(phrases.TermUsageModel), words.Say(phrases.TermUsageCalls), words.Say(phrases.TermUsageIn), words.Say(phrases.TermUsageOut), words.Say(phrases.TermUsageCost)}}
	for _, r := range report.Rows {
		cost := fmt.Sprintf("$%.4f", float64(r.MicroUSD)/1e6)
		if r.Unpriced > 0 {
			cost = words.Say(phrases.TermUnpriced, cost, fmt.Sprint(r.Unpriced))
		}
		table = append(table, []string{r.Key, fmt.Sprint(r.Calls), fmt.Sprint(r.Prompt), fmt.Sprint(r.Completion), cost})
	}
	return reply{lines: columns(table)}, nil
}

func (s *session) cmdHistory(ctx context.Context, _ string) (reply, error) {
	list, err := api.ListConversations.Call(ctx, s.opt.Client, api.Empty{})
	if err != nil {
		return reply{}, fmt.Errorf("listing conversations: %w", err)
	}
	threads := list.Items
	if len(threads) == 0 {
		return reply{lines: []string{s.words().Say(phrases.TermNoHistory)}}, nil
	}
	var rows [][]string
	for _, th := range threads[:min(len(threads), 20)] {
		rows = append(rows, []string{th.ID, th.Updated.In(s.zone).Format(time.DateTime), display.Shorten(bots.Escape(th.Title), 60, "…")})
	}
	return reply{lines: append(columns(rows), s.words().Say(phrases.TermResumeOne))}, nil
}

func (s *session) cmdResume(_ context.Context, id string) (reply, error) {
	if !store.ValidID(id) {
		return reply{}, errors.New(s.words().Say(phrases.TermResumeNeeds))
	}
	return reply{fresh: true, resume: id}, nil
}

// columns aligns rows and makes their text safe to print.
func columns(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for j, field := range row {
			row[j] = bots.Escape(field)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], visible(row[j]))
		}
	}
	var out []string
	for _, row := range rows {
		var b strings.Builder
		for j, field := range row {
			b.WriteString(field)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-visible(field)+2))
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

func serverRow(h api.Health, words phrases.Catalogue) []string {
	detail := words.Say(phrases.TermTools, strconv.Itoa(h.ToolCount))
	if h.Held > 0 {
		detail = words.Say(phrases.TermHeld, detail, strconv.Itoa(h.Held))
	}
	if h.LastError != "" {
		detail += ": " + display.Shorten(h.LastError, 100, "…")
	}
	return []string{h.Name, words.Say(phrases.Key(h.State)), detail}
}

// Package setup asks a few questions that make a new nize usable by one person.
//
// It names the admin, adds a model and a first server, and ends with the link that opens
// the chat page. Each answer is also a flag, and none is required: `nizectl` does the same
// in steps.
//
// It uses nized's control socket like nizectl, so it can do nothing that an admin could not
// do by hand.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// Answers are the answers that a person typed or gave as flags.
type Answers struct {
	Admin      string // a name
	Model      string // none, SERVICE, SERVICE/MODEL or a URL
	BaseURL    string // of Model's service
	KeyFile    string // contains the key of Model's service
	Server     string // none, example, a URL or a command line
	ServerName string // "": derived from Server
}

// None is the answer that skips a step, and Example the one for the server included in
// nize.
const (
	None    = "none"
	Example = "example"
)

// The questions fit a terminal of 80 columns.
var (
	adminQuestion  = "\n1. Who is the admin? A name; the link signs this person in."
	modelQuestion  = "\n2. Which model answers? SERVICE or SERVICE/MODEL, where SERVICE is one of\n   " + services + ";\n   or a URL; or " + None + ": then a built-in planner finds and calls tools."
	serverQuestion = "\n3. A first MCP server? A command line or a URL; or " + Example + ", the small one\n   included in nize (time, units, notes); or " + None + "."
)

// Plan is a valid set of answers, not applied yet.
type Plan struct {
	admin    string
	provider *api.AddProviderRequest // nil for none
	model    string                  // of the provider, "" to choose it if there is only one
	server   *store.Server           // nil for none
}

// Ask completes answers and checks them. On a terminal it asks for each missing one;
// otherwise it uses the defaults. It reads the key, if the model service has one. you is
// the default of the admin.
func Ask(a *command.App, given Answers, you string) (*Plan, error) {
	q := question{a: a, asks: a.InTTY && a.ErrTTY}
	if q.asks && (given.Admin == "" || given.Model == "" || given.Server == "") {
		fmt.Fprintln(a.Err, "Three questions; Enter accepts the answer in brackets. nizectl can change it later.")
	}
	p := &Plan{}
	var err error
	if p.admin, err = q.answer(given.Admin, you, adminQuestion, checkName); err != nil {
		return nil, err
	}
	if _, err = q.answer(given.Model, None, modelQuestion, func(text string) (err error) {
		p.provider, p.model, err = parseModel(text, given.BaseURL)
		return err
	}); err != nil {
		return nil, err
	}
	if err := q.key(p.provider, given.KeyFile); err != nil {
		return nil, err
	}
	_, err = q.answer(given.Server, Example, serverQuestion, func(text string) (err error) {
		p.server, err = parseServer(text, given.ServerName)
		return err
	})
	return p, err
}

// question is a person at a terminal, or the lack of one.
type question struct {
	a    *command.App
	asks bool
}

// answer returns the given answer, or what the person types, or the default. An invalid
// answer is asked for again; an invalid flag is an error.
func (q question) answer(given, fallback, text string, check func(string) error) (string, error) {
	if given != "" || !q.asks {
		got := cmp.Or(given, fallback)
		return got, check(got)
	}
	fmt.Fprintln(q.a.Err, display.CleanLines(text))
	for {
		line, err := q.a.TypedLine("   [" + fallback + "] ")
		if errors.Is(err, io.EOF) {
			return "", command.Failf(api.ExitFailed, "nothing was changed")
		}
		if err != nil {
			return "", err
		}
		got := cmp.Or(line, fallback)
		err = check(got)
		if err == nil {
			return got, nil
		}
		fmt.Fprintln(q.a.Err, "   "+display.Clean(err.Error()))
	}
}

// key reads the key of a service, if it has one.
func (q question) key(p *api.AddProviderRequest, file string) error {
	switch {
	case p == nil && file != "":
		return command.Usagef("--key-file has no effect without --model")
	case p == nil:
		return nil
	}
	key, err := q.readKey(p, file)
	if err != nil {
		return err
	}
	p.Key = api.NewSecret(key)
	return nil
}

func (q question) readKey(p *api.AddProviderRequest, file string) (string, error) {
	what := "the key of " + p.Name
	switch {
	case file != "":
		text, err := q.a.TextOrFile(what, "@"+file)
		if err != nil {
			return "", err
		}
		return command.OneWord(command.CheckSecret(what, text))
	case p.Kind == "ollama":
		return "", nil
	case q.asks:
		fmt.Fprint(q.a.Err, "   ")
	}
	if p.Kind == "" || p.Kind == "openai-compatible" {
		return command.OneWord(q.a.OptionalLine(what))
	}
	return command.OneWord(q.a.SecretLine(what))
}

// Result is the result of applying a plan.
type Result struct {
	link     string
	lines    []string // what was done
	failures []string // what failed, and the command that repeats it
	user     string
}

// Apply applies a plan. If the model or the server can't be added, it continues and records
// that in the result: the person can correct it later. progress is called before steps that
// may take long.
func (p *Plan) Apply(ctx context.Context, c *api.Client, progress func(string)) (*Result, error) {
	r := &Result{}
	admin, err := p.addAdmin(ctx, c)
	if ctx.Err() != nil {
		return nil, r.interrupted()
	}
	if err != nil {
		return nil, fmt.Errorf("making %s an admin: %w", p.admin, err)
	}
	r.did("admin", admin)
	if p.provider != nil {
		progress("Asking " + p.provider.Name + " for its models…")
	}
	p.addModel(ctx, c, r)
	if p.server != nil && ctx.Err() == nil {
		progress("Starting the server " + p.server.Name + "…")
	}
	p.addServer(ctx, c, r)
	made, err := api.StartLogin.Call(ctx, c, api.StartLoginRequest{User: admin})
	if ctx.Err() != nil {
		return nil, r.interrupted()
	}
	if err != nil {
		return nil, fmt.Errorf("making a link to the page: %w", err)
	}
	r.link, r.user = made.URL.Reveal(), made.UserName
	return r, nil
}

// interrupted returns the error after Ctrl-C.
func (r *Result) interrupted() error {
	stays := ""
	for _, line := range r.lines {
		stays += "; " + strings.Join(strings.Fields(line), " ") + " stays"
	}
	return command.Failf(command.ExitInterrupted, "interrupted%s; run it again for the rest", stays)
}

func (r *Result) did(what, text string) {
	r.lines = append(r.lines, fmt.Sprintf("%-7s %s", what, text))
}

func (r *Result) failed(what string, err error, next string) {
	r.failures = append(r.failures, fmt.Sprintf("%-7s not added: %v; to try again: %s", what, err, next))
}

// addAdmin finds or adds the person. The caller at the socket is already a user.
func (p *Plan) addAdmin(ctx context.Context, c *api.Client) (string, error) {
	known, err := api.GetUser.Call(ctx, c, api.GetUserRequest{ID: p.admin})
	if api.ExitCode(err) == api.ExitNotFound {
		added, err := api.AddUser.Call(ctx, c, api.AddUserRequest{Name: p.admin, Role: store.Admin})
		return added.Name, err
	}
	if err != nil || known.Role == store.Admin {
		return known.Name, err
	}
	role := store.Admin
	changed, err := api.PatchUser.Call(ctx, c, api.PatchUserRequest{ID: known.ID, Role: &role})
	return changed.Name, err
}

func (p *Plan) addModel(ctx context.Context, c *api.Client, r *Result) {
	if p.provider == nil {
		r.did("model", "none; to add one: nizectl providers add NAME")
		return
	}
	name := p.provider.Name
	made, err := api.AddProvider.Call(ctx, c, *p.provider)
	if err != nil {
		r.failed("model", err, "nizectl providers add "+name)
		return
	}
	model := p.model
	if model == "" && made.Found != nil && len(made.Found.Models) == 1 {
		model = made.Found.Models[0]
	}
	if model == "" {
		if made.Kind == "openai" { // has a default
			r.did("model", name)
			return
		}
		r.did("model", fmt.Sprintf("%s has %d; to choose one: nizectl models set smart %s/MODEL (nizectl models list --provider %s shows them)", name, len(made.Found.Models), name, name))
		return
	}
	mapped, err := api.SetModel.Call(ctx, c, api.SetModelRequest{Name: "smart", Target: name + "/" + model})
	if err == nil {
		_, err = api.SetDefaultModel.Call(ctx, c, api.ModelRequest{Name: "smart"})
	}
	if err != nil {
		r.failed("model", err, "nizectl models set smart "+name+"/MODEL")
		return
	}
	r.did("model", mapped.Target)
}

func (p *Plan) addServer(ctx context.Context, c *api.Client, r *Result) {
	if ctx.Err() != nil {
		return
	}
	if p.server == nil {
		r.did("server", "none; to add one: nizectl servers add NAME -- COMMAND")
		return
	}
	name := p.server.Name
	view, err := api.AddServer.Call(ctx, c, api.AddServerRequest{Server: *p.server})
	switch {
	case api.ExitCode(err) == api.ExitConflict:
		r.did("server", name+" was there before")
		return
	case err != nil:
		next := "nizectl servers add " + name + " -- COMMAND"
		if p.server.URL != "" {
			next = "nizectl servers add " + name + " --url " + p.server.URL
		}
		r.failed("server", err, next)
		return
	}
	r.did("server", fmt.Sprintf("%s, %s", name, command.Count(len(view.Tools), "tool")))
	for _, w := range view.Warnings {
		r.did("", w)
	}
	if view.Held > 0 {
		r.did("", fmt.Sprintf("%s held back: nizectl servers trust %s", command.Count(view.Held, "tool"), name))
	}
}

// Err returns nil if the whole plan was applied.
func (r *Result) Err() error {
	if len(r.failures) == 0 {
		return nil
	}
	return command.Failf(api.ExitFailed, "%s not be added, see above", map[bool]string{true: "one part could", false: "two parts could"}[len(r.failures) == 1])
}

// Print prints what was done to standard error and the link, last, to standard output.
// before is printed above the link.
func (r *Result) Print(a *command.App, before string) error {
	fmt.Fprintln(a.Err)
	for _, line := range slices.Concat(r.lines, r.failures) {
		fmt.Fprintln(a.Err, display.Clean(line))
	}
	fmt.Fprintf(a.Err, "\n%sTo chat, open this address in a browser on this machine. It signs %s in, once:\n", before, display.Clean(r.user))
	if _, err := fmt.Fprintln(a.Raw, display.Clean(r.link)); err != nil {
		return fmt.Errorf("writing the link: %w", err)
	}
	return nil
}

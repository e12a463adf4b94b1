package servers

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

// A registry's data about a server comes from the server's publisher: it is shown, cleaned
// like all text from outside, before any of it is run, and the command is built here, word
// by word, from known kinds of packages.

func searchRegistryCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "search", Args: "WORD", Usage: "search the MCP registry for servers", Run: searchRegistry,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "limit", Usage: "servers per page, at most 100 (default: 30)"},
			&cli.StringFlag{Name: "cursor", Usage: "continue after the previous page"},
		},
		More: "It queries the registry in the setting registry.url by a part of the server's name.\nnizectl servers add --registry NAME adds one."})
}

func searchRegistry(ctx context.Context, c *command.Call) error {
	page, err := api.SearchRegistry.Call(ctx, c.API, api.SearchRegistryRequest{Search: c.Arg(0), Cursor: c.Cmd.String("cursor"), Limit: c.Cmd.Int("limit")})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(page)
	}
	t := c.Table("SERVER", "VERSION", "KIND", "DESCRIPTION").Text(3)
	for _, s := range page.Servers {
		about := s.Description
		if s.Status == "deprecated" {
			about = "(deprecated) " + about
		}
		t.Row(s.Name, s.Version, strings.Join(kindsOf(s), ", "), about)
	}
	t.Print("the registry has no server with that in its name")
	c.More(page.Next)
	return nil
}

// kindsOf returns the ways to run a server: kinds of packages, and remote.
func kindsOf(s api.RegistryServer) []string {
	var kinds []string
	for _, p := range s.Packages {
		kinds = append(kinds, p.Type)
	}
	if len(s.Remotes) > 0 {
		kinds = append(kinds, "remote")
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// registryFlags returns the flags of servers add for a server from the registry.
func registryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "registry", Usage: "`SERVER` of the MCP registry, instead of a command; see servers search"},
		&cli.StringFlag{Name: "version", Usage: "of the server (default: the latest); it stays at that version"},
		&cli.StringFlag{Name: "kind", Usage: "npm, pypi, oci, nuget or remote, if the server offers several"},
		&cli.StringSliceFlag{Name: "arg", Usage: "an argument of the server as NAME=V; others are prompted for"},
		&cli.BoolFlag{Name: "yes", Usage: "don't ask"}, // without -y: if -- was forgotten, the server command's own -y must not confirm this
	}
}

// addFromRegistry prompts for the server's inputs and shows what it will run before
// anything is stored.
func addFromRegistry(ctx context.Context, c *command.Call) (api.AddServerRequest, []secret, error) {
	none := api.AddServerRequest{}
	for _, flag := range []string{"url", "transport", "cwd"} {
		if c.Cmd.IsSet(flag) {
			return none, nil, command.Usagef("--%s has no effect with --registry, which determines how the server is reached", flag)
		}
	}
	if len(c.Args) > 1 {
		return none, nil, command.Usagef("give a command or --registry, not both")
	}
	from, err := api.GetRegistryServer.Call(ctx, c.API, api.RegistryServerRequest{Name: c.Cmd.String("registry"), Version: c.Cmd.String("version")})
	if err != nil {
		return none, nil, err
	}
	name := c.Arg(0)
	if name == "" {
		name = localName(from.Name)
	}
	if err := store.CheckSlug(name); err != nil {
		return none, nil, fmt.Errorf("%w; choose its name here: nizectl servers add NAME --registry %s", err, printable.ShellWord(from.Name))
	}
	if _, err := api.GetServer.Call(ctx, c.API, api.ServerRequest{Name: name}); err == nil {
		return none, nil, command.Failf(api.ExitConflict, "server %q already exists; to change it: nizectl servers edit %s; to add this one under another name: nizectl servers add NAME --registry %s", name, name, printable.ShellWord(from.Name))
	}
	in, err := newInstall(c, from)
	if err != nil {
		return none, nil, err
	}
	if err := in.choose(c.Cmd.String("kind")); err != nil {
		return none, nil, err
	}
	if err := in.unused(); err != nil {
		return none, nil, err
	}
	patch, err := patchFromFlags(c)
	if err != nil {
		return none, nil, err
	}
	s := in.server
	s.Name = name
	if s.Description = strings.TrimSpace(display.Clean(from.Description)); s.Transport == store.Stdio {
		s.Command = resolve(c, s.Command)
	}
	api.Change(&s, patch)
	c.Note("%s", in.summary(s))
	if err := c.Confirm("Add it as %s?", name); err != nil {
		return none, nil, err
	}
	return api.AddServerRequest{Server: s, Force: c.Cmd.Bool("force")}, in.secrets, nil
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// localName returns the default name of a server here: the last part of its registry name.
func localName(name string) string {
	short := notSlug.ReplaceAllString(strings.ToLower(path.Base(name)), "-")
	short = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(short, "mcp-"), "server-"), "-server")
	return strings.Trim(strings.TrimSuffix(short, "-mcp"), "-")
}

// install converts a registry's data about a server, with a person's answers, into a
// record.
type install struct {
	from   api.RegistryServer
	ask    asker
	given  map[string][]string // --arg, --env and --header, by name
	used   map[string]bool
	hidden map[string]bool // --env-secret and --header-secret

	server  store.Server
	secrets []secret
}

// asker requests values from a person.
type asker interface {
	// present reports whether a person can be asked.
	present() bool
	line(question string) (string, error)
	secret(what string) (string, error)
}

// person asks at the terminal; secrets are also read as lines of standard input.
type person struct{ *command.Call }

func (p person) present() bool                        { return p.InTTY && p.ErrTTY }
func (p person) line(question string) (string, error) { return p.AskLine(question) }
func (p person) secret(what string) (string, error)   { return p.SecretLine(what) }

func newInstall(c *command.Call, from api.RegistryServer) (*install, error) {
	in := &install{from: from, ask: person{c}, given: map[string][]string{}, used: map[string]bool{}, hidden: map[string]bool{}}
	for _, flag := range []string{"arg", "env", "header"} {
		for _, word := range c.Cmd.StringSlice(flag) {
			name, value, ok := strings.Cut(word, "=")
			if !ok {
				return nil, command.Usagef("--%s %s: want NAME=V", flag, word)
			}
			if store.SecretValue(name, value) {
				return nil, command.Usagef("--%s %s contains what looks like a key, and anyone on this machine can read a command line; use --env-secret or --header-secret %s, which prompts or reads a line of standard input", flag, name, name)
			}
			in.given[name] = append(in.given[name], value)
		}
	}
	for _, flag := range []string{"env-secret", "header-secret"} {
		for _, name := range c.Cmd.StringSlice(flag) {
			in.hidden[name] = true
		}
	}
	return in, nil
}

// unused returns an error for values that the server has no inputs for: they would have no
// effect.
func (in *install) unused() error {
	for _, name := range slices.Sorted(maps.Keys(in.given)) {
		if !in.used[name] {
			return command.Usagef("%s has no argument, variable or header %s", in.from.Name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.hidden)) {
		if !in.used[name] {
			return command.Usagef("%s has no variable or header %s", in.from.Name, name)
		}
	}
	return nil
}

// choose selects the first supported way to run the server, or the one of that kind.
func (in *install) choose(kind string) error {
	var why []string
	for _, p := range in.from.Packages {
		if kind != "" && kind != p.Type {
			continue
		}
		run, err := packageCommand(p)
		if err == nil {
			return in.program(p, run)
		}
		why = append(why, err.Error())
	}
	for _, r := range in.from.Remotes {
		if kind == "" || kind == "remote" {
			return in.remote(r)
		}
	}
	if len(why) > 0 {
		return command.Failf(api.ExitFailed, "%s can't be added: %s", in.from.Name, strings.Join(why, "; "))
	}
	kinds := strings.Join(kindsOf(in.from), ", ")
	if kind != "" && kinds != "" {
		return command.Usagef("--kind %s: %s has %s", kind, in.from.Name, kinds)
	}
	return command.Failf(api.ExitFailed, "%s can't be added: the registry names no package and no address of it", in.from.Name)
}

// runtime runs a kind of package: its own words, the package's name, and the words between
// that and the package's arguments.
type runtime struct {
	command []string
	name    func(p api.RegistryPackage) string
	after   []string
}

func at(separator string) func(api.RegistryPackage) string {
	return func(p api.RegistryPackage) string { return p.Identifier + separator + p.Version }
}

// runtimes by kind of package and hint; "" is used without a hint.
var runtimes = map[string]map[string]runtime{
	"npm":   {"": {[]string{"npx", "-y"}, at("@"), nil}, "bunx": {[]string{"bunx"}, at("@"), nil}},
	"pypi":  {"": {[]string{"uvx"}, at("@"), nil}, "pipx": {[]string{"pipx", "run"}, at("=="), nil}},
	"nuget": {"": {[]string{"dnx"}, at("@"), []string{"--yes", "--"}}},
	"oci":   {"": {[]string{"docker", "run", "-i", "--rm"}, imageName, nil}, "podman": {[]string{"podman", "run", "-i", "--rm"}, imageName, nil}},
}

// homes are the default registries of each kind of package.
var homes = map[string][]string{
	"npm": {"", "https://registry.npmjs.org"}, "pypi": {"", "https://pypi.org"}, "nuget": {"", "https://api.nuget.org", "https://api.nuget.org/v3/index.json"},
	"oci": {"", "https://docker.io", "https://ghcr.io", "https://quay.io", "https://mcr.microsoft.com"},
}

// imageName returns an image with its tag or digest.
func imageName(p api.RegistryPackage) string {
	name := p.Identifier
	if host := strings.TrimPrefix(p.BaseURL, "https://"); host != "" && host != "docker.io" && !strings.HasPrefix(name, host+"/") {
		name = host + "/" + name
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	if p.Version == "" || strings.ContainsAny(last, ":@") {
		return name
	}
	return name + ":" + p.Version
}

// identifier matches valid package names: one word that can't be mistaken for a flag.
var identifier = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9@._/:+~-]*$`)

// packageCommand returns the runtime for a package.
func packageCommand(p api.RegistryPackage) (none runtime, err error) {
	kind := display.Clean(p.Type)
	by, known := runtimes[p.Type]
	switch {
	case p.Type == "mcpb":
		return none, fmt.Errorf("it is a bundle to be downloaded (%s, SHA-256 %s): unpack it, and add its command", display.Clean(p.Identifier), display.Clean(p.SHA256))
	case !known:
		return none, fmt.Errorf("packages of kind %s are not known here", kind)
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		return none, fmt.Errorf("its %s package listens on %s by itself: start it, and add its address with --url", kind, display.Clean(p.Transport.Type))
	case !slices.Contains(homes[p.Type], strings.TrimSuffix(p.BaseURL, "/")):
		return none, fmt.Errorf("its %s package is at %s, which is not a supported source for that kind", kind, display.Clean(p.BaseURL))
	case max(len(p.Identifier), len(p.Version)) > 301 || !identifier.MatchString(p.Identifier) || p.Version != "" && !identifier.MatchString(p.Version):
		return none, fmt.Errorf("its %s package has a name that no package has: %s", kind, display.Clean(p.Identifier))
	}
	run, ok := by[p.RuntimeHint]
	if !ok {
		run = by[""]
	}
	pinned := p.Version != "" && p.Version != "latest"
	if image := imageName(p); p.Type == "oci" {
		last := image[strings.LastIndexByte(image, '/')+1:]
		pinned = strings.ContainsAny(last, ":@") && !strings.HasSuffix(last, ":latest")
	}
	if !pinned {
		return none, fmt.Errorf("its %s package names no version, so that another one could run tomorrow", kind)
	}
	return run, nil
}

// program sets the fields of a server that is started by a command.
func (in *install) program(p api.RegistryPackage, run runtime) error {
	in.server.Transport = store.Stdio
	words := slices.Clone(run.command)
	for _, a := range p.RuntimeArguments {
		more, err := in.argument(a)
		if err != nil {
			return err
		}
		if len(more) != 1 || !slices.Contains(words, more[0]) { // npx's -y, docker's -i
			words = append(words, more...)
		}
	}
	in.server.Env = map[string]store.Value{}
	for _, v := range p.Environment {
		if !keyName.MatchString(v.Name) {
			return fmt.Errorf("%s can't be added: %q is no name of a variable", in.from.Name, display.Clean(v.Name))
		}
		if err := in.named(v, "variable", in.server.Env); err != nil {
			return err
		}
		if _, set := in.server.Env[v.Name]; set && p.Type == "oci" {
			words = append(words, "-e", v.Name) // passes it from nized's environment into the container
		}
	}
	words = append(append(words, run.name(p)), run.after...)
	for _, a := range p.PackageArguments {
		more, err := in.argument(a)
		if err != nil {
			return err
		}
		words = append(words, more...)
	}
	in.server.Command, in.server.Args = words[0], words[1:]
	return nil
}

// remote sets the fields of a server with a URL.
func (in *install) remote(r api.RegistryRemote) error {
	switch r.Type {
	case "streamable-http", "http":
		in.server.Transport = store.HTTP
	case "sse":
		in.server.Transport = store.SSE
	default:
		return command.Failf(api.ExitFailed, "%s can't be added: its address is over %s, which is not known here", in.from.Name, display.Clean(r.Type))
	}
	where, secret, err := in.fill(r.URL, r.Variables, "the address")
	if err != nil {
		return err
	}
	if secret {
		return command.Failf(api.ExitFailed, "%s can't be added: its address holds a key, which every list would show", in.from.Name)
	}
	if err := checkURL(where); err != nil {
		return err
	}
	in.server.URL = where
	in.server.Headers = map[string]store.Value{}
	for _, h := range r.Headers {
		if !fieldName.MatchString(h.Name) {
			return fmt.Errorf("%s can't be added: %q is no name of a header", in.from.Name, display.Clean(h.Name))
		}
		if err := in.named(h, "header", in.server.Headers); err != nil {
			return err
		}
	}
	return nil
}

// named adds a variable or a header to its map; a secret is sealed.
func (in *install) named(v api.RegistryNamed, what string, into map[string]store.Value) error {
	v.Secret = v.Secret || in.hidden[v.Name]
	text, secretText, err := in.value(v.Name, what, v.RegistryInput)
	switch {
	case err != nil:
		return err
	case text == "":
	case secretText:
		into[v.Name] = store.Value{SecretKey: v.Name}
		in.secrets = append(in.secrets, secret{name: v.Name, what: what + " " + v.Name, value: text})
	default:
		into[v.Name] = store.Value{Text: text}
	}
	return nil
}

// argument returns the words of one argument; none if it was omitted.
func (in *install) argument(a api.RegistryArgument) ([]string, error) {
	name := a.Name
	if name == "" {
		name = a.ValueHint
	}
	if a.Type == "named" && a.Value == "" && a.Default == "" && a.Format == "" && !a.Required && len(a.Choices) == 0 && a.Description == "" {
		return []string{a.Name}, nil // a flag without a value
	}
	values := in.given[name]
	if !a.Repeated || len(values) < 2 || a.Value != "" {
		return in.argumentOnce(a, name)
	}
	var words []string
	for _, v := range values {
		in.given[name] = []string{v}
		more, err := in.argumentOnce(a, name)
		if err != nil {
			return nil, err
		}
		words = append(words, more...)
	}
	return words, nil
}

func (in *install) argumentOnce(a api.RegistryArgument, name string) ([]string, error) {
	text, secretText, err := in.value(name, "argument", a.RegistryInput)
	if err != nil || text == "" {
		return nil, err
	}
	if secretText || store.LooksSecret(text) {
		return nil, command.Failf(api.ExitFailed, "%s can't be added: its argument %s is a key, and anyone on the machine can read a command line", in.from.Name, display.Clean(name))
	}
	if a.Type == "named" && a.Name != "" {
		return []string{a.Name, text}, nil
	}
	return []string{text}, nil
}

// value returns the value of an input: fixed, given, entered, or its default.
func (in *install) value(name, what string, v api.RegistryInput) (text string, secretText bool, err error) {
	if v.Value != "" {
		text, secretText, err := in.fill(v.Value, v.Variables, what+" "+name)
		return text, secretText || v.Secret, err
	}
	in.used[name] = true
	label := what + " " + name
	if all := in.given[name]; len(all) > 0 {
		given := all[len(all)-1]
		if len(v.Choices) > 0 && !slices.Contains(v.Choices, given) {
			return "", false, command.Usagef("%s: %q is not one of %s", label, given, strings.Join(v.Choices, ", "))
		}
		return given, v.Secret, nil
	}
	about := ""
	if v.Description != "" {
		about = ": " + command.Clip(v.Description, 200)
	}
	switch {
	case v.Secret && (v.Required || in.hidden[name]):
		text, err := in.ask.secret(label + about)
		return text, true, err
	case v.Secret && in.ask.present():
		text, err := in.ask.secret(label + about + " (optional)")
		if err != nil && strings.Contains(err.Error(), "is empty") {
			return "", true, nil
		}
		return text, true, err
	case v.Secret:
		return "", true, nil
	case !in.ask.present() && (v.Default != "" || !v.Required):
		return v.Default, false, nil
	case !in.ask.present():
		return "", false, command.Usagef("%s is needed%s: give it with %s %s=V", label, about, map[string]string{"argument": "--arg", "variable": "--env", "header": "--header"}[what], name)
	}
	for {
		text, err := in.ask.line(label + about + hintOf(v) + ": ")
		if err != nil {
			return "", false, err
		}
		if text == "" {
			text = v.Default
		}
		if (text != "" || !v.Required) && (text == "" || len(v.Choices) == 0 || slices.Contains(v.Choices, text)) {
			return text, false, nil
		}
	}
}

// hintOf describes the possible answers.
func hintOf(v api.RegistryInput) string {
	var parts []string
	if len(v.Choices) > 0 {
		parts = append(parts, strings.Join(v.Choices, ", "))
	}
	switch {
	case v.Default != "":
		parts = append(parts, "Enter is "+v.Default)
	case !v.Required:
		parts = append(parts, "optional")
	}
	if v.Placeholder != "" {
		parts = append(parts, "such as "+v.Placeholder)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

var braces = regexp.MustCompile(`\{[^{}]+\}`)

// fill replaces the variables in a text; unknown names are left unchanged.
func (in *install) fill(text string, variables map[string]api.RegistryInput, what string) (out string, secretText bool, err error) {
	answers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if !strings.Contains(text, "{"+name+"}") {
			continue
		}
		v := variables[name]
		v.Variables = nil // one level, as in the registry's schema
		value, hidden, err := in.value(name, "argument", v)
		if err != nil {
			return "", false, fmt.Errorf("%s: %w", what, err)
		}
		answers[name], secretText = value, secretText || hidden
	}
	return braces.ReplaceAllStringFunc(text, func(word string) string {
		if value, ok := answers[strings.Trim(word, "{}")]; ok {
			return value
		}
		return word
	}), secretText, nil
}

// summary describes what will run, for the person who confirms it.
func (in *install) summary(s store.Server) string {
	title := in.from.Name + " " + in.from.Version
	if in.from.Status == "deprecated" {
		title += ", which its publisher calls deprecated"
	}
	runs := "calls " + s.URL
	if s.Transport == store.Stdio {
		words := command.Each(append([]string{s.Command}, s.Args...), printable.ShellWord)
		runs = "runs " + strings.Join(words, " ")
	}
	var with []string
	for name, v := range maps.All(s.Env) {
		with = append(with, valueLabel(name, v))
	}
	for name, v := range maps.All(s.Headers) {
		with = append(with, valueLabel(name, v))
	}
	slices.Sort(with)
	text := title + " " + runs
	if len(with) > 0 {
		text += " with " + strings.Join(with, ", ")
	}
	return text
}

func valueLabel(name string, v store.Value) string {
	if v.Hidden() {
		return name + " (sealed)"
	}
	return name + "=" + printable.ShellWord(v.Text)
}

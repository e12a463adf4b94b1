package servers

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
	"nize/store"
)

// answers are a person's, in order; nobody is there without any.
type answers struct {
	t    *testing.T
	says []string
	here bool
}

func (a *answers) present() bool { return a.here }

func (a *answers) next(question string) (string, error) {
	if len(a.says) == 0 {
		return "", errors.New("nobody answers: " + question)
	}
	want, answer, _ := strings.Cut(a.says[0], "=>")
	a.says = a.says[1:]
	if question != want {
		a.t.Errorf("asked %q, want %q", question, want)
	}
	return answer, nil
}

func (a *answers) line(question string) (string, error) { return a.next(question) }
func (a *answers) secret(what string) (string, error)   { return a.next("secret " + what) }

// TestInstall: what a registry says becomes a command or an address, pinned, with
// each value asked for, given or left at its default; and what can't be run
// safely says why.
func TestInstall(t *testing.T) {
	const files = `{"name":"io.github.acme/files","version":"1.2.3","packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@acme/files","version":"1.2.3","runtimeHint":"npx","transport":{"type":"stdio"},
		"runtimeArguments":[{"type":"positional","value":"-y"},{"type":"named","name":"--loglevel","value":"{level}","variables":{"level":{"default":"error"}}}],
		"packageArguments":[{"type":"positional","valueHint":"folder","description":"What may be read","isRequired":true,"isRepeated":true},{"type":"named","name":"--mode","choices":["ro","rw"],"default":"ro"}],
		"environmentVariables":[{"name":"KEY","description":"Your key","isRequired":true,"isSecret":true},{"name":"DEBUG"}]}]}`
	for name, c := range map[string]struct {
		from   string
		kind   string
		given  map[string][]string
		says   []string
		here   bool
		want   string // the summary, or a part of the error
		sealed string
	}{
		"asked": {from: files, here: true, says: []string{
			"argument level (Enter is error): =>", "secret variable KEY: Your key=>s3cret", "variable DEBUG (optional): =>",
			"argument folder: What may be read: =>/srv/docs", "argument --mode (ro, rw; Enter is ro): =>rx", "argument --mode (ro, rw; Enter is ro): =>rw"},
			want: "io.github.acme/files 1.2.3 runs npx -y --loglevel error @acme/files@1.2.3 /srv/docs --mode rw with KEY (sealed)", sealed: "KEY=s3cret"},
		"given": {from: files, given: map[string][]string{"folder": {"/a", "/b c"}, "DEBUG": {"1"}}, says: []string{"secret variable KEY: Your key=>s3cret"},
			want: "io.github.acme/files 1.2.3 runs npx -y --loglevel error @acme/files@1.2.3 /a '/b c' --mode ro with DEBUG=1, KEY (sealed)", sealed: "KEY=s3cret"},
		"nobody there": {from: files, says: []string{"secret variable KEY: Your key=>s3cret"}, want: "argument folder is needed: What may be read: give it with --arg folder=V"},
		"no such choice": {from: files, given: map[string][]string{"folder": {"/a"}, "--mode": {"rx"}}, says: []string{"secret variable KEY: Your key=>s3cret"},
			want: `argument --mode: "rx" is not one of ro, rw`},
		"no such argument":          {from: files, given: map[string][]string{"folder": {"/a"}, "fodler": {"/a"}}, says: []string{"secret variable KEY: Your key=>x"}, want: "has no argument, variable or header fodler"},
		"pypi":                      {from: `{"name":"n","version":"2","packages":[{"registryType":"pypi","identifier":"acme-mcp","version":"2.0.0","transport":{"type":"stdio"}}]}`, want: "n 2 runs uvx acme-mcp@2.0.0"},
		"pipx":                      {from: `{"name":"n","version":"2","packages":[{"registryType":"pypi","identifier":"acme-mcp","version":"2.0.0","runtimeHint":"pipx"}]}`, want: "n 2 runs pipx run acme-mcp==2.0.0"},
		"a hint that is no runtime": {from: `{"name":"n","version":"2","packages":[{"registryType":"pypi","identifier":"acme-mcp","version":"2.0.0","runtimeHint":"/bin/sh"}]}`, want: "n 2 runs uvx acme-mcp@2.0.0"},
		"nuget":                     {from: `{"name":"n","version":"2","packages":[{"registryType":"nuget","identifier":"Acme.Mcp","version":"2.0.0","packageArguments":[{"type":"positional","value":"serve"}]}]}`, want: "n 2 runs dnx Acme.Mcp@2.0.0 --yes -- serve"},
		"oci": {from: `{"name":"n","version":"2","packages":[{"registryType":"oci","registryBaseUrl":"https://ghcr.io","identifier":"acme/mcp","version":"2.0.0","environmentVariables":[{"name":"MODE","value":"x"}],"runtimeArguments":[{"type":"named","name":"--network","value":"none"}]}]}`,
			want: "n 2 runs docker run -i --rm --network none -e MODE ghcr.io/acme/mcp:2.0.0 with MODE=x"},
		"oci with a digest": {from: `{"name":"n","version":"2","packages":[{"registryType":"oci","identifier":"ghcr.io/acme/mcp@sha256:abc"}]}`, want: "n 2 runs docker run -i --rm ghcr.io/acme/mcp@sha256:abc"},
		"remote": {from: `{"name":"n","version":"2","remotes":[{"type":"streamable-http","url":"https://{team}.example.com/{other}/mcp","variables":{"team":{"isRequired":true}},"headers":[{"name":"Authorization","value":"Bearer {key}","variables":{"key":{"isSecret":true,"isRequired":true,"description":"Token"}}}]}]}`,
			given: map[string][]string{"team": {"ops"}}, says: []string{"secret argument key: Token=>t0ken"}, want: "n 2 calls https://ops.example.com/{other}/mcp with Authorization (sealed)", sealed: "Authorization=Bearer t0ken"},
		"one of two":            {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x","version":"1.0.0"}],"remotes":[{"type":"sse","url":"https://x.example.com/sse"}]}`, kind: "remote", want: "n 2 calls https://x.example.com/sse"},
		"the one that works":    {from: `{"name":"n","version":"2","packages":[{"registryType":"mcpb","identifier":"https://x/y.mcpb"},{"registryType":"npm","identifier":"n","version":"1.0.0"}]}`, want: "n 2 runs npx -y n@1.0.0"},
		"deprecated":            {from: `{"name":"n","version":"2","status":"deprecated","packages":[{"registryType":"npm","identifier":"x","version":"1.0.0"}]}`, want: "n 2, which its publisher calls deprecated runs npx -y x@1.0.0"},
		"no version":            {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x"}]}`, want: "names no version"},
		"the latest image":      {from: `{"name":"n","version":"2","packages":[{"registryType":"oci","identifier":"acme/mcp:latest"}]}`, want: "names no version"},
		"a flag as a name":      {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"--registry=http://x","version":"1"}]}`, want: "a name that no package has"},
		"a place of its own":    {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","registryBaseUrl":"http://evil.example.com","identifier":"x","version":"1.0.0"}]}`, want: "is at http://evil.example.com"},
		"a bundle":              {from: `{"name":"n","version":"2","packages":[{"registryType":"mcpb","identifier":"https://x/y.mcpb","fileSha256":"abc"}]}`, want: "a bundle to be downloaded (https://x/y.mcpb, SHA-256 abc)"},
		"listens by itself":     {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x","version":"1","transport":{"type":"streamable-http","url":"http://localhost:1"}}]}`, want: "start it, and add its address with --url"},
		"an unknown kind":       {from: `{"name":"n","version":"2","packages":[{"registryType":"cargo","identifier":"x","version":"1"}]}`, want: "packages of kind cargo are not known"},
		"a key in an argument":  {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x","version":"1","packageArguments":[{"type":"named","name":"--key","isSecret":true,"isRequired":true}]}]}`, says: []string{"secret argument --key=>k"}, want: "its argument --key is a key"},
		"a key in an address":   {from: `{"name":"n","version":"2","remotes":[{"type":"sse","url":"https://x/{k}","variables":{"k":{"isSecret":true,"isRequired":true}}}]}`, says: []string{"secret argument k=>k"}, want: "its address holds a key"},
		"no name of a variable": {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x","version":"1","environmentVariables":[{"name":"A=B","value":"1"}]}]}`, want: "no name of a variable"},
		"nothing":               {from: `{"name":"n","version":"2"}`, want: "names no package and no address"},
		"not of that kind":      {from: `{"name":"n","version":"2","packages":[{"registryType":"npm","identifier":"x","version":"1"}]}`, kind: "oci", want: "--kind oci: n has npm"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &install{given: c.given, used: map[string]bool{}, hidden: map[string]bool{}, ask: &answers{t, c.says, c.here}}
			if in.given == nil {
				in.given = map[string][]string{}
			}
			if err := json.Unmarshal([]byte(c.from), &in.from); err != nil {
				t.Fatal(err)
			}
			err := in.choose(c.kind)
			if err == nil {
				err = in.unused()
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if diff := cmp.Diff(c.want, in.summary(in.server)); diff != "" {
				t.Error(diff)
			}
			sealed := ""
			for _, s := range in.secrets {
				sealed += s.name + "=" + s.value
			}
			if sealed != c.sealed {
				t.Errorf("sealed %q, want %q", sealed, c.sealed)
			}
		})
	}
}

func TestLocalName(t *testing.T) {
	for name, want := range map[string]string{"io.github.acme/files": "files", "io.github.acme/Mcp-Server-Files": "files", "com.example/weather_mcp": "weather", "ai.x/mcp": "mcp", "a/github-mcp-server": "github"} {
		if got := localName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
		if err := store.CheckSlug(localName(name)); err != nil {
			t.Error(err)
		}
	}
}

// FuzzInstall: nothing that a registry says breaks it, and what comes out is
// started by one of the known programs.
func FuzzInstall(f *testing.F) {
	f.Add([]byte(`{"name":"n","packages":[{"registryType":"npm","identifier":"x","version":"1","packageArguments":[{"type":"named","name":"-x","value":"{a}","variables":{"a":{}}}]}]}`))
	f.Add([]byte(`{"remotes":[{"type":"sse","url":"https://{}{a}"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var from api.RegistryServer
		if json.Unmarshal(text, &from) != nil {
			return
		}
		in := &install{from: from, given: map[string][]string{}, used: map[string]bool{}, hidden: map[string]bool{}, ask: &answers{t: t}}
		if in.choose("") != nil || in.server.Transport != store.Stdio {
			return
		}
		if !strings.Contains(" npx bunx uvx pipx dnx docker podman ", " "+in.server.Command+" ") {
			t.Errorf("%s runs %q", text, in.server.Command)
		}
	})
}

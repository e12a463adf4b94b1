package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
	"nize/store"
)

// secret is a header or variable whose value is not on the command line.
type secret struct {
	name  string
	what  string
	value string // set if it was already entered
}

// keyName and fieldName match valid names of a variable and a header; a header of an
// OpenAPI server may be a query parameter, such as query:api_key.
var (
	keyName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	fieldName = regexp.MustCompile("^(?:query:)?[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// readValues parses K=V words, for headers also 'K: V', and names of secrets into one map.
func readValues(flag string, plain, hidden []string) (map[string]store.Value, error) {
	valid := keyName
	if flag == "header" {
		valid = fieldName
	}
	m := map[string]store.Value{}
	put := func(k string, v store.Value) error {
		if !valid.MatchString(k) {
			return command.Usagef("--%s: %s is no name of a %s", flag, quoteName(k), map[string]string{"header": "header", "env": "variable"}[flag])
		}
		if _, twice := m[k]; twice {
			return command.Usagef("--%s %s is given twice", flag, k)
		}
		m[k] = v
		return nil
	}
	form := "K=V"
	if flag == "header" {
		form = "'K: V' or K=V"
	}
	for _, word := range plain {
		k, text, ok := splitPair(flag, word)
		if !ok {
			return nil, command.Usagef("--%s %s: want %s", flag, quoteName(word), form)
		}
		v := readValue(text)
		if bare := strings.TrimPrefix(k, store.QueryPrefix); !v.Hidden() && (store.SecretValue(bare, text) || store.LooksSecret(bare)) {
			return nil, command.Usagef("--%s %s contains what looks like a key, and anyone on this machine can read a command line; use --%s-secret %s, which prompts or reads a line of standard input", flag, plainName(k), flag, plainName(k))
		}
		if strings.ContainsAny(text, "\x00\r\n") {
			return nil, command.Usagef("--%s %s holds a line break or a zero byte", flag, plainName(k))
		}
		if err := put(k, v); err != nil {
			return nil, err
		}
	}
	for _, k := range hidden {
		if name, _, ok := splitPair(flag, k); ok {
			return nil, command.Usagef("--%s-secret takes only a name, never a value: --%s-secret %s prompts, or reads a line of standard input", flag, flag, plainName(name))
		}
		if err := put(k, store.Value{SecretKey: k}); err != nil {
			return nil, err
		}
	}
	if len(m) == 0 {
		return nil, nil
	}
	return m, nil
}

// splitPair splits a name from its value. A header may also be written as it is sent, with
// a colon.
func splitPair(flag, word string) (name, value string, ok bool) {
	prefix := ""
	if bare, ok := strings.CutPrefix(word, store.QueryPrefix); ok { // of an OpenAPI service
		prefix, word = store.QueryPrefix, bare
	}
	if at := strings.IndexAny(word, "=:"); flag == "header" && at > 0 && word[at] == ':' {
		return prefix + strings.TrimSpace(word[:at]), strings.TrimSpace(word[at+1:]), true
	}
	name, value, ok = strings.Cut(word, "=")
	return prefix + name, value, ok
}

// plainName returns the name for a message, "NAME" if it may be a secret that was written
// in its place.
func plainName(name string) string {
	if store.LooksSecret(name) || !fieldName.MatchString(name) {
		return "NAME"
	}
	return name
}

// quoteName returns a word that should have been a name, for a message. A longer one or one
// of several words is not repeated: it may be a header with its key.
func quoteName(word string) string {
	if len(word) > 30 || store.LooksSecret(word) || strings.ContainsAny(word, " \t:=") {
		return "what was given"
	}
	return strconv.Quote(word)
}

// readValue parses {"secret_key":"NAME"} and {"credential":"ID"} as references and
// everything else as text: a variable may well contain other JSON.
func readValue(text string) store.Value {
	var ref struct {
		SecretKey  string `json:"secret_key"`
		Credential string `json:"credential"`
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if strings.HasPrefix(text, "{") && dec.Decode(&ref) == nil && (ref.SecretKey == "") != (ref.Credential == "") {
		return store.Value{SecretKey: ref.SecretKey, Credential: ref.Credential}
	}
	return store.Value{Text: text}
}

// putSecrets reads the secrets and stores them as the server's credentials. The returned
// function removes those that did not exist before.
func putSecrets(ctx context.Context, c *command.Call, server string, secrets []secret) (undo func(context.Context), err error) {
	var made []store.CredentialKey
	undo = func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		for _, key := range made {
			if _, err := api.DeleteCredential.Call(ctx, c.API, api.DeleteCredentialRequest(key)); err != nil {
				c.Note("nizectl: credential %s of %s is left over: %v", key.Name, key.Service, err)
			}
		}
	}
	if len(secrets) == 0 {
		return undo, nil
	}
	before, err := api.ListCredentials.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return undo, err
	}
	for _, s := range secrets {
		text := s.value
		if text == "" {
			if text, err = c.SecretLine(s.what); err != nil {
				undo(context.WithoutCancel(ctx))
				return undo, err
			}
		}
		key := store.CredentialKey{Scope: "system", Service: server, Name: s.name}
		if _, err := api.PutCredential.Call(ctx, c.API, api.PutCredentialRequest{CredentialKey: key, Secret: api.NewSecret(text)}); err != nil {
			undo(context.WithoutCancel(ctx))
			return undo, fmt.Errorf("storing %s: %w", s.what, err)
		}
		if !slices.ContainsFunc(before.Items, func(have store.Credential) bool { return have.CredentialKey == key }) {
			made = append(made, key)
		}
	}
	return undo, nil
}
